import json

import pytest

from voice_agent.caller.websocket import WebSocketWire, address, read_audio, read_message
from voice_agent.caller.wire import (
    AgentAudio,
    AgentHangUp,
    Clear,
    ConnectionFailed,
    Destination,
    Fault,
    Other,
    Ready,
    TurnTimeline,
    Words,
)


@pytest.mark.parametrize(
    ("body", "item"),
    [
        ({"type": "ready", "conversation": "c1", "rate": 8000}, Ready("c1", 8000)),
        ({"type": "ready"}, Ready(None, None)),
        ({"type": "transcript", "role": "user", "text": "hi", "final": True}, Words("user", "hi", True)),
        (
            {"type": "transcript", "role": "agent", "text": "hello", "final": True, "heard": "hel"},
            Words("agent", "hello", True, "hel"),
        ),
        ({"type": "transcript", "role": 5, "text": None, "final": "yes", "heard": 3}, Words("", "", False)),
        ({"type": "clear"}, Clear()),
        ({"type": "hangup", "reason": "goodbye"}, AgentHangUp("goodbye")),
        ({"type": "error", "code": "busy", "message": "full"}, Fault("busy", "full")),
        (
            {"type": "metrics", "turn_id": "t1", "timeline": {"speech_end": 1, "pause": None, "first_audio": 1.5}},
            TurnTimeline("t1", {"speech_end": 1.0, "first_audio": 1.5}),
        ),
        ({"type": "metrics", "timeline": {"endpoint": True, "first_token": "soon"}}, TurnTimeline("", {})),
        ({"type": "mark", "name": "x"}, Other("mark", {"type": "mark", "name": "x"})),
    ],
)
def test_messages_of_the_wire_are_read(body, item):
    assert read_message(json.dumps(body)) == item


@pytest.mark.parametrize("text", ["", "no json", "[1, 2]", "7", '{"no": "type"}', '{"type": 7}', "[" * 100_000])
def test_what_is_no_message_becomes_a_fault_and_never_an_exception(text):
    item = read_message(text)
    assert isinstance(item, Fault) and item.code == "unreadable"


def test_instants_that_are_no_finite_numbers_are_dropped():
    assert read_message('{"type": "metrics", "timeline": {"endpoint": NaN, "pause": 1e999}}') == TurnTimeline("", {})


def test_half_a_sample_is_a_fault():
    assert read_audio(b"\1\2\3\4") == AgentAudio(b"\1\2\3\4")
    assert isinstance(read_audio(b"\1\2\3"), Fault)


def test_the_address_keeps_its_own_query_and_gains_the_wires_parameters():
    url = address(Destination("wss://host:8443/ws?tenant=a+b", rate=8000, token="secret", conversation="c/1"))
    assert url == "wss://host:8443/ws?tenant=a+b&rate=8000&metrics=1&conversation=c%2F1"


@pytest.mark.parametrize("url", ["", "http://host/ws", "ws://", "ws:///ws", "ws://host:port/ws", "host:8080"])
def test_what_is_no_websocket_address_is_refused_with_an_example(url):
    with pytest.raises(ConnectionFailed, match=r"ws://127\.0\.0\.1:8080/ws"):
        address(Destination(url))


async def test_a_refused_connection_names_the_command_that_starts_the_service():
    with pytest.raises(ConnectionFailed, match="voice-agent run"):
        await WebSocketWire(Destination("ws://127.0.0.1:1/ws")).connect()


async def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent():
    with pytest.raises(ConnectionFailed, match="--token"):
        await WebSocketWire(Destination("ws://127.0.0.1:1/ws", token="a\r\nb")).connect()


async def test_hanging_up_a_wire_that_never_connected_does_nothing():
    await WebSocketWire(Destination("ws://127.0.0.1:1/ws")).hang_up()
