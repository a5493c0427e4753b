"""A far end that died is never noticed, or its death is reported as many errors, or takes other calls along.

Right: a wire without any media ends the call; a closed socket is an end, once, without an error in the log; a wire
that breaks breaks its own call only.
"""

from __future__ import annotations

import logging

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.wire import CallInputs

GREETING = "Hello, how can I help you today?"


@virtual_time
@pytest.mark.parametrize("media_until", [0.0, 5.0])
async def test_no_frames_at_all_end_the_call(media_until: float, caplog: pytest.LogCaptureFixture) -> None:
    """And no flood of warnings meanwhile."""
    wire = FakeWire(600, media_until=media_until)
    talk = ScriptedConversation(says(GREETING))
    with caplog.at_level(logging.WARNING):
        outcome = await place(wire, talk)
    assert (outcome.outcome, outcome.reason) == ("disconnected", "media_timeout")
    assert outcome.seconds == pytest.approx(media_until + 15, abs=0.6)
    assert wire.hung_up == ["media_timeout"]
    assert caplog.records == []


@virtual_time
async def test_silent_frames_are_media() -> None:
    outcome = await place(FakeWire(40), ScriptedConversation(says(GREETING)))
    assert outcome.reason == "caller_hang_up"


@virtual_time
async def test_typing_is_a_sign_of_life() -> None:
    wire = FakeWire(40, media_until=0)
    for at in (10.0, 20.0, 30.0):
        wire.at(at, lambda call: call.type_text("hello"))
    outcome = await place(wire, ScriptedConversation(says("Hi.")))
    assert outcome.reason == "caller_hang_up"


class _Breaking(FakeWire):
    async def run(self, call: CallInputs) -> str:
        await super().run(call)
        raise OSError("transaction id already in use")


@virtual_time
async def test_a_wire_that_raises_ends_its_own_call_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        calls: list[object] = []
        outcome = await place(
            _Breaking(1.0),
            ScriptedConversation(says(GREETING)),
            calls=calls,  # type: ignore[arg-type]
        )
    assert outcome.reason == "connection_lost"
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@virtual_time
@pytest.mark.parametrize("at", [0.1, 0.5, 0.98, 1.0, 1.02])
async def test_a_socket_that_closes_in_mid_speech_is_one_quiet_end(at: float, caplog: pytest.LogCaptureFixture) -> None:
    wire = FakeWire(at, leave="disconnected")
    talk = ScriptedConversation(says(GREETING))
    with caplog.at_level(logging.WARNING):
        outcome = await place(wire, talk)
    assert (outcome.outcome, outcome.reason) == ("disconnected", "connection_lost")
    assert caplog.records == []
    assert wire.after_end <= 1
    assert talk.of("close") == ["dropped"]


@virtual_time
async def test_a_resumed_call_does_not_greet_again() -> None:
    wire = FakeWire(6)
    wire.speak(1.0, "are you still there?")
    talk = ScriptedConversation(says("Yes."))
    talk.resumed = True
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "are you still there?"]
    assert talk.heard() == ["", "Yes."]


@virtual_time
async def test_a_wire_that_sends_only_speech_is_heard_like_any_other() -> None:
    wire = FakeWire(8, sends_silence=False)
    end = wire.speak(2.0, "what is my balance?")
    talk = ScriptedConversation(says("Hello."), says("Fifty."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "what is my balance?"]
    assert next(t for t, _ in wire.frames if t > end) - end < 0.8
