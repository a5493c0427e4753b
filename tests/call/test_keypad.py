"""Keys are pressed once what was said has been heard, all of them or none, and come to a typed result."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.dtmf import keys_in
from tests.support.virtual_time import virtual_time
from voice_agent.call.keypad import MARGIN_S
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.digits import DigitsReason, DigitsResult

BEFORE, AFTER = "I am pressing one now.", "That was it."
HEARD_AT = 0.06 * len(BEFORE)


class SigningWire(FakeWire):
    """A wire with a sign of its own for keys."""

    def __init__(self, seconds: float = 20.0, *, takes_s: float = 1.0, comes_to: object = DigitsReason.SENT) -> None:
        super().__init__(seconds, telephone=True)
        self.takes_s, self.comes_to = takes_s, comes_to
        self.pressed: list[tuple[float, str]] = []

    async def send_digits(self, digits: str) -> DigitsResult:
        self.pressed.append((asyncio.get_running_loop().time(), digits))
        await asyncio.sleep(self.takes_s)
        if isinstance(self.comes_to, Exception):
            raise self.comes_to
        assert isinstance(self.comes_to, DigitsReason)
        return DigitsResult(self.comes_to)


async def presses(speaker: Speaker) -> None:
    speaker.say(BEFORE)
    await speaker.press("4w2#")
    speaker.say(AFTER)


def asked(wire: FakeWire, at: float = 1.0) -> ScriptedConversation:
    wire.speak(at, "press one for sales")
    return ScriptedConversation(says("Hi."), presses, says("Fine."))


@virtual_time
@pytest.mark.parametrize("reason", [DigitsReason.SENT, DigitsReason.TRUNK_ERROR])
async def test_a_wire_with_a_sign_for_keys_is_asked_once_the_words_before_were_heard(reason: DigitsReason) -> None:
    wire = SigningWire(comes_to=reason)
    conversation = asked(wire)
    await place(wire, conversation)
    [(at, digits)] = wire.pressed
    assert digits == "4w2#"
    said = [when for when, frame in wire.frames if 2.0 < when < at and any(frame)]
    assert len(said) * 0.02 == pytest.approx(HEARD_AT, abs=0.3)
    assert wire.audible(at, at + 1.0) == 0
    assert wire.audible(at + 1.0, at + 3.0) > 0.3
    assert conversation.of("press") == [f"4w2# {reason.value}"]
    assert conversation.heard()[1] == f"{BEFORE} {AFTER}"


@virtual_time
async def test_where_there_is_no_other_sign_the_keys_are_tones_in_the_audio_and_take_their_time() -> None:
    for wire in (FakeWire(20, telephone=True), SigningWire(takes_s=0.0, comes_to=DigitsReason.NOT_SUPPORTED)):
        conversation = asked(wire)
        await place(wire, conversation)
        assert keys_in(b"".join(frame for _, frame in wire.frames)) == "42#"
        assert conversation.of("press") == ["4w2# sent"]
        assert conversation.heard()[1] == f"{BEFORE} {AFTER}"


@virtual_time
async def test_a_wire_without_a_telephone_line_presses_nothing() -> None:
    wire = FakeWire(20)
    conversation = asked(wire)
    await place(wire, conversation)
    assert conversation.of("press") == ["4w2# not_supported"]
    assert keys_in(b"".join(frame for _, frame in wire.frames)) == ""


@virtual_time
async def test_whoever_speaks_before_the_first_key_is_answered_and_nothing_is_pressed() -> None:
    wire = SigningWire()
    conversation = asked(wire)
    wire.speak(3.4, "wait that is wrong")
    await place(wire, conversation)
    assert wire.pressed == []
    assert conversation.of("press") == []
    assert conversation.cancelled_with == [CancelReason.BARGE_IN]
    assert conversation.heard()[-1] == "Fine."


@virtual_time
async def test_from_the_first_key_on_all_are_pressed_and_words_of_that_time_are_answered_after_it() -> None:
    wire = SigningWire(takes_s=3.0)
    conversation = asked(wire)
    pressed_at = 2.1 + HEARD_AT + 0.5
    wire.speak(pressed_at + 1.0, "thank you one moment")
    await place(wire, conversation)
    assert wire.pressed[0][0] < pressed_at + 1.0
    assert conversation.of("press") == ["4w2# sent"]
    assert conversation.cancelled_with == []
    assert conversation.inputs[-1].text == "thank you one moment"
    assert conversation.heard()[-1] == "Fine."


@virtual_time
async def test_a_wire_that_breaks_or_never_answers_is_a_result_too(caplog: pytest.LogCaptureFixture) -> None:
    wire = SigningWire(comes_to=RuntimeError("broken"))
    conversation = asked(wire)
    await place(wire, conversation, calls=[])  # the record of the fault holds on to it
    assert conversation.of("press") == ["4w2# trunk_error"]
    wire = SigningWire(60, takes_s=3600)
    conversation = asked(wire)
    await place(wire, conversation)
    assert conversation.of("press") == ["4w2# timeout"]
    assert MARGIN_S < 30
    assert "4w2#" not in str([vars(record) for record in caplog.records])


@virtual_time
async def test_a_far_end_that_goes_while_keys_are_pressed_ends_the_call_and_leaves_nothing() -> None:
    wire = SigningWire(5.0, takes_s=3600)
    conversation = asked(wire)
    outcome = await place(wire, conversation)
    assert (outcome.outcome, conversation.of("press")) == ("disconnected", [])
    assert conversation.closed
