"""What each exchange says and is told, message by message, as its documentation has it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.call.wire import MarkMessage, TranscriptMessage
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key, Mute
from voice_agent.channels.pbx.asterisk import AsteriskSerializer
from voice_agent.channels.pbx.freeswitch import FreeSwitchSerializer
from voice_agent.channels.pbx.genesys import GenesysSerializer
from voice_agent.channels.pbx.jambonz import JambonzSerializer
from voice_agent.channels.streaming.serializer import Answer, Farewell, FlowControl, MarkReached, Media, Started

PCM = bytes(range(64)) * 5
STARTED = (
    '{"event": "MEDIA_START", "connection_id": "m1", "channel": "WebSocket/m1/0x51", "channel_id": "1761245643.1",'
    ' "format": "ulaw", "optimal_frame_size": 160, "ptime": 20, "channel_variables": {"CALLERID": "100", "n": 5}}'
)


def asterisk(start: str = STARTED) -> AsteriskSerializer:
    serializer = AsteriskSerializer()
    serializer.read(start)
    return serializer


def jambonz() -> JambonzSerializer:
    serializer = JambonzSerializer()
    serializer.read('{"callSid": "c1", "from": "+1", "to": "+2", "sampleRate": 16000, "mixType": "mono"}')
    return serializer


def genesys_text(kind: str, seq: int, serverseq: int = 0, **parameters: Any) -> str:
    head = {"version": "2", "id": "s1", "type": kind, "seq": seq, "serverseq": serverseq, "position": "PT1.5S"}
    return json.dumps(head | {"parameters": parameters})


def opening(**changes: Any) -> str:
    media = [{"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000}]
    told: dict[str, Any] = {"organizationId": "o1", "conversationId": "c1", "media": media}
    told |= {
        "participant": {"id": "p", "ani": "+1", "aniName": "Ann", "dnis": "+2"},
        "inputVariables": {"plan": "gold"},
    }
    return genesys_text("open", 1, **(told | changes))


def genesys() -> GenesysSerializer:
    serializer = GenesysSerializer("s1", "o1")
    serializer.read(opening())
    return serializer


class TestAsterisk:
    def test_it_is_told_the_format_and_the_channels_variables(self) -> None:
        serializer = AsteriskSerializer()
        variables = {"CALLERID": "100", "n": "5"}
        assert serializer.read(STARTED) == (Started("1761245643.1", parameters=variables),)
        assert (serializer.rate, serializer.frame_ms, serializer.traits.echoes_marks) == (8000, 20, True)
        assert serializer.read(ulaw_encode(PCM)) == (Media(ulaw_decode(ulaw_encode(PCM))),)
        assert serializer.audio(PCM) == ulaw_encode(PCM)

    def test_plain_texts_are_answered_in_plain_texts(self) -> None:
        serializer = AsteriskSerializer()
        line = "MEDIA_START connection_id:e226 channel_id:pbx1-1.9 format:slin16 optimal_frame_size:640"
        assert serializer.read(line) == (Started("pbx1-1.9"),)
        assert (serializer.rate, serializer.traits.echoes_marks) == (16000, False)
        assert list(serializer.opening()) == ["ANSWER"]
        assert list(serializer.clear()) == ["FLUSH_MEDIA"]
        assert list(serializer.hang_up("completed")) == ["HANGUP"]
        assert serializer.message(MarkMessage("p1.320")) is None
        assert serializer.read("DTMF_END digit:5") == (Key("5"),)
        assert serializer.read("MEDIA_XOFF") == (FlowControl(full=True),)

    def test_events_and_commands_in_json(self) -> None:
        serializer = asterisk()
        assert serializer.read('{"event": "DTMF_END", "channel_id": "x", "digit": "#"}') == (Key("#"),)
        assert serializer.read('{"event": "MEDIA_XOFF"}') == (FlowControl(full=True),)
        assert serializer.read('{"event": "MEDIA_XON"}') == (FlowControl(full=False),)
        marked = serializer.message(MarkMessage("p1.320"))
        assert json.loads(str(marked)) == {"command": "MARK_MEDIA", "correlation_id": "p1.320"}
        processed = '{"event": "MEDIA_MARK_PROCESSED", "correlation_id": "p1.320"}'
        assert serializer.read(processed) == (MarkReached("p1.320"),)
        assert [json.loads(str(m)) for m in serializer.opening()] == [{"command": "ANSWER"}]
        assert serializer.message(TranscriptMessage("agent", "Hello.", final=True)) is None

    def test_the_end_of_its_queue_is_asked_for_and_told(self) -> None:
        serializer = asterisk()
        assert serializer.read('{"event": "QUEUE_DRAINED"}') == ()
        assert json.loads(str(serializer.message(MarkMessage("drain.1")))) == {"command": "REPORT_QUEUE_DRAINED"}
        assert serializer.read('{"event": "QUEUE_DRAINED"}') == (MarkReached("drain.1"),)

    @pytest.mark.parametrize("told", ["format:opus optimal_frame_size:160", "format:slin optimal_frame_size:7"])
    def test_what_cannot_be_played_is_refused_with_what_can(self, told: str) -> None:
        with pytest.raises(BadMessage, match="must be"):
            AsteriskSerializer().read(f"MEDIA_START connection_id:x channel:y {told}")

    def test_no_message_comes_near_the_size_that_asterisk_closes_on(self) -> None:
        serializer = asterisk("MEDIA_START format:slin48 optimal_frame_size:1920")
        assert len(serializer.audio(bytes(1920))) == 1920


class TestFreeSwitch:
    def test_metadata_says_which_call_it_is(self) -> None:
        serializer = FreeSwitchSerializer(16000)
        (started,) = serializer.read('{"uuid": "u1", "caller": "100", "called": "200", "plan": "gold"}')
        assert isinstance(started, Started)
        assert (started.call, started.caller, started.called) == ("u1", "100", "200")
        assert started.parameters["plan"] == "gold"

    def test_a_stream_may_begin_without_metadata_or_with_words_that_are_no_json(self) -> None:
        assert FreeSwitchSerializer().read(PCM) == (Started(""), Media(PCM))
        assert FreeSwitchSerializer().read("hello") == (Started(""),)

    def test_audio_is_base64_in_json(self) -> None:
        body = json.loads(str(FreeSwitchSerializer(16000).audio(PCM)))
        encoded = base64.b64encode(PCM).decode()
        data = {"audioDataType": "raw", "sampleRate": 16000, "audioData": encoded}
        assert body == {"type": "streamAudio", "data": data}

    def test_a_script_of_the_exchange_sends_keys_and_the_callers_end(self) -> None:
        serializer = FreeSwitchSerializer()
        serializer.read("{}")
        assert serializer.read('{"type": "dtmf", "digit": "5"}') == (Key("5"),)
        assert serializer.read('{"type": "hangup"}') == (CallerHangUp(),)
        assert serializer.read("whatever `stop` was given") == ()


class TestJambonz:
    def test_the_first_text_says_which_call_it_is_and_the_rate(self) -> None:
        serializer = JambonzSerializer()
        (started,) = serializer.read('{"callSid": "c1", "from": "+1", "to": "+2", "sampleRate": 16000, "plan": "gold"}')
        assert isinstance(started, Started)
        assert (started.call, started.caller, started.called, serializer.rate) == ("c1", "+1", "+2", 16000)
        assert started.parameters["plan"] == "gold"

    @pytest.mark.parametrize("told", ['{"sampleRate": 64000}', '{"sampleRate": 8000, "mixType": "stereo"}', "[]", "x"])
    def test_other_rates_and_both_sides_at_once_are_refused(self, told: str) -> None:
        with pytest.raises(BadMessage):
            JambonzSerializer().read(told)

    def test_marks_count_when_played_and_not_when_cleared(self) -> None:
        serializer = jambonz()
        assert json.loads(str(serializer.message(MarkMessage("m")))) == {"type": "mark", "data": {"name": "m"}}
        assert serializer.read('{"type": "mark", "data": {"name": "m", "event": "playout"}}') == (MarkReached("m"),)
        assert serializer.read('{"type": "mark", "data": {"name": "m", "event": "cleared"}}') == ()
        assert serializer.read('{"event": "dtmf", "dtmf": "2", "duration": "1600"}') == (Key("2"),)
        assert serializer.read('{"type": "playDone"}') == ()


class TestGenesys:
    def test_open_is_answered_with_the_media_that_was_chosen(self) -> None:
        serializer = GenesysSerializer("s1", "o1")
        (started,) = serializer.read(opening())
        assert started == Started("c1", "+1", "+2", {"plan": "gold"})
        (opened,) = serializer.opening()
        assert json.loads(serializer.stamp(str(opened))) == {
            "version": "2",
            "id": "s1",
            "seq": 1,
            "clientseq": 1,
            "type": "opened",
            "parameters": {
                "startPaused": False,
                "media": [{"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000}],
            },
        }

    def test_of_both_sides_only_the_caller_is_heard(self) -> None:
        serializer = GenesysSerializer()
        media = [{"type": "audio", "format": "PCMU", "channels": ["internal", "external"], "rate": 8000}]
        serializer.read(opening(media=media))
        codes = ulaw_encode(PCM)
        both = bytes(code for pair in zip(bytes(len(codes)), codes, strict=True) for code in pair)
        alone = genesys().read(codes)
        assert serializer.read(both) == alone

    def test_pings_keys_pauses_and_the_end(self) -> None:
        serializer = genesys()
        (pong,) = serializer.read(genesys_text("ping", 2, rtt="PT0.02S"))
        assert isinstance(pong, Answer)
        assert json.loads(serializer.stamp(str(pong.message)))["type"] == "pong"
        assert serializer.read(genesys_text("dtmf", 3, 1, digit="5")) == (Key("5"),)
        assert serializer.read(genesys_text("paused", 4, 1)) == (Mute(True),)
        assert serializer.read(genesys_text("resumed", 5, 1, start="PT1S", discarded="PT1S")) == (Mute(False),)
        assert serializer.read(genesys_text("playback_started", 6, 1)) == ()
        (closed,) = serializer.read(genesys_text("close", 7, 1, reason="end"))
        assert isinstance(closed, Farewell)
        assert json.loads(serializer.stamp(str(closed.message)))["type"] == "closed"

    @pytest.mark.parametrize(
        "text",
        [
            genesys_text("ping", 3),
            genesys_text("ping", 1),
            genesys_text("ping", 2, 5),
            genesys_text("ping", 2).replace('"s1"', '"s2"'),
            genesys_text("ping", 2).replace('"2"', '"1"'),
            "no json",
        ],
    )
    def test_what_breaks_the_protocol_ends_the_session_with_the_reason(self, text: str) -> None:
        (farewell,) = genesys().read(text)
        assert isinstance(farewell, Farewell)
        assert farewell.reason == "disconnected"
        assert json.loads(str(farewell.message))["parameters"]["reason"] == "error"

    def test_another_organization_than_the_one_that_signed_is_unauthorized(self) -> None:
        (farewell,) = GenesysSerializer("s1", "o2").read(opening())
        assert isinstance(farewell, Farewell)
        assert json.loads(str(farewell.message))["parameters"] == {"reason": "unauthorized"}

    def test_a_connection_that_only_tries_whether_we_are_there_is_no_call(self) -> None:
        serializer = GenesysSerializer()
        (answer,) = serializer.read(opening(conversationId="00000000-0000-0000-0000-000000000000"))
        assert isinstance(answer, Answer)
        assert json.loads(str(answer.message))["type"] == "opened"
        (farewell,) = serializer.read(genesys_text("close", 2, reason="end"))
        assert isinstance(farewell, Farewell)

    def test_only_pcmu_is_spoken(self) -> None:
        media = [{"type": "audio", "format": "L16", "channels": ["external"], "rate": 8000}]
        (farewell,) = GenesysSerializer().read(opening(media=media))
        assert isinstance(farewell, Farewell)

    def test_an_end_of_ours_is_completed_and_a_refusal_an_error(self) -> None:
        serializer = genesys()
        (refused,) = serializer.hang_up("at_capacity")
        assert json.loads(str(refused))["parameters"]["reason"] == "error"
        list(serializer.opening())
        (ended,) = serializer.hang_up("completed")
        assert json.loads(str(ended))["parameters"]["reason"] == "completed"


@pytest.mark.parametrize(
    ("serializer", "flush", "hang_up"),
    [
        (asterisk(), {"command": "FLUSH_MEDIA"}, {"command": "HANGUP"}),
        (FreeSwitchSerializer(), {"type": "clear"}, {"type": "hangup", "reason": "completed"}),
        (jambonz(), {"type": "killAudio"}, {"type": "disconnect"}),
    ],
)
def test_an_interruption_is_one_flush_message_and_an_end_the_exchanges_own(
    serializer: Any, flush: object, hang_up: object
) -> None:
    assert [json.loads(message) for message in serializer.clear()] == [flush]
    assert [json.loads(message) for message in serializer.hang_up("completed")] == [hang_up]


def test_genesys_is_told_of_an_interruption_in_one_event() -> None:
    (event,) = genesys().clear()
    assert json.loads(str(event))["parameters"] == {"entities": [{"type": "barge_in", "data": {}}]}
