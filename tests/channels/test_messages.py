from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.call.wire import (
    ErrorMessage,
    EventMessage,
    HeardMessage,
    MarkMessage,
    MetricsMessage,
    StateMessage,
    TranscriptMessage,
)
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key, Mute, Played, TypedText, decode, encode


def test_every_message_of_the_wire_is_understood() -> None:
    assert decode('{"type":"text","text":" hello "}') == TypedText("hello")
    assert decode('{"type":"dtmf","digit":"a"}') == Key("A")
    assert decode('{"type":"played","ms":1234}') == Played(1234.0)
    assert decode('{"type":"hangup"}') == CallerHangUp()
    assert decode('{"type":"mute","muted":true}') == Mute(True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_json"),
        ("hello", "not_json"),
        ("[1]", "not_json"),
        ("null", "not_json"),
        ("[" * 60_000, "not_json"),
        ("1" * 6000, "not_json"),
        ("{}", "unknown_message"),
        ('{"type":"sing"}', "unknown_message"),
        ('{"type":["text"]}', "unknown_message"),
        ('{"type":"text"}', "bad_message"),
        ('{"type":"text","text":"  "}', "bad_message"),
        ('{"type":"text","text":7}', "bad_message"),
        (json.dumps({"type": "text", "text": "x" * 2001}), "bad_message"),
        ('{"type":"dtmf","digit":"55"}', "bad_message"),
        ('{"type":"dtmf","digit":"x"}', "bad_message"),
        ('{"type":"dtmf","digit":5}', "bad_message"),
        ('{"type":"played","ms":-1}', "bad_message"),
        ('{"type":"played","ms":NaN}', "bad_message"),
        ('{"type":"played","ms":1e400}', "bad_message"),
        ('{"type":"played","ms":1' + "0" * 400 + "}", "bad_message"),
        ('{"type":"text","text":"\\u0000\\u001b"}', "bad_message"),
        ('{"type":"played","ms":true}', "bad_message"),
        ('{"type":"played","ms":"9"}', "bad_message"),
        ('{"type":"mute"}', "bad_message"),
        ('{"type":"mute","muted":1}', "bad_message"),
    ],
)
def test_a_message_that_cannot_be_used_says_what_would_be_right(text: str, code: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(text)
    assert caught.value.code == code


def test_typed_words_are_plain_text() -> None:
    assert decode('{"type":"text","text":"\\ud83d\\ude00 \\ud800 a\\u0000b\\u001b[31m\\nc"}') == TypedText(
        "😀 \ufffd ab[31m\nc"
    )


def test_half_a_character_in_a_reply_can_still_be_sent() -> None:
    sent = encode(TranscriptMessage("agent", "fine \ud83d", final=True))
    assert json.loads(sent.encode())["text"] == "fine \ufffd"


@given(st.text())
def test_no_text_does_more_than_be_refused(text: str) -> None:
    # A word of our own may be among the texts, so another one tells whether a refusal repeats what it was given.
    with pytest.raises(BadMessage) as caught:
        decode(f"{text} marmalade")
    assert "marmalade" not in caught.value.message


def test_messages_for_the_client_are_plain_json() -> None:
    assert json.loads(encode(TranscriptMessage("agent", "Grüezi", True, heard="Grü"))) == {
        "type": "transcript",
        "role": "agent",
        "text": "Grüezi",
        "final": True,
        "heard": "Grü",
    }
    assert "heard" not in json.loads(encode(TranscriptMessage("user", "hi", False)))
    assert json.loads(encode(MarkMessage("a"))) == {"type": "mark", "name": "a"}
    assert json.loads(encode(MetricsMessage("t1", {"first_audio": 1.5, "pause": None})))["timeline"]["pause"] is None
    assert json.loads(encode(ErrorMessage("busy", "Later."))) == {"type": "error", "code": "busy", "message": "Later."}


def test_events_with_read_only_mappings_and_strange_values_are_written() -> None:
    event = MappingProxyType({"tool_executed": MappingProxyType({"tool": "x"}), "odd": object()})
    written = json.loads(encode(EventMessage(event)))["event"]
    assert written["tool_executed"] == {"tool": "x"}
    assert isinstance(written["odd"], str)


def test_state_and_heard_text_for_clients_that_follow_the_call() -> None:
    assert json.loads(encode(StateMessage("hearing"))) == {"type": "state", "state": "hearing"}
    assert json.loads(encode(HeardMessage("Your balance"))) == {"type": "heard", "text": "Your balance"}
