"""A transfer has a point of no return, rings until it is known what came of it, and always comes to a typed result."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FRAME_S, FakeWire
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time
from voice_agent.audio.frames import SILENCE
from voice_agent.call.transfer import MARGIN_S
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.telemetry.metrics import TRANSFERS
from voice_agent.transfers import TransferReason, TransferResult, TransferTarget

ANNOUNCEMENT, APOLOGY = "One moment, I am putting you through.", "They cannot be reached."
SPOKEN_FROM, ANNOUNCED_AT = 2.1, 2.1 + 0.06 * len(ANNOUNCEMENT)


async def puts_through(speaker: Speaker) -> None:
    speaker.say(ANNOUNCEMENT)
    if not await speaker.transfer("billing"):
        speaker.say(APOLOGY)


def agent() -> ScriptedConversation:
    return ScriptedConversation(says("Hi."), puts_through, says("Of course."))


def wire_with(*transfers: tuple[float, TransferReason], seconds: float = 30.0) -> FakeWire:
    wire = FakeWire(seconds, transfers=transfers or None)
    wire.speak(0.8, "a person")
    return wire


@virtual_time
@pytest.mark.parametrize("reason", list(TransferReason))
async def test_every_result_comes_to_the_dialogue_and_only_success_ends_the_call(
    reason: TransferReason,
) -> None:
    wire, conversation = wire_with((3.0, reason)), agent()
    before = TRANSFERS.labels(result=reason.value)._value.get()
    outcome = await place(wire, conversation)
    assert conversation.of("transfer") == [f"billing {reason.value}"]
    assert TRANSFERS.labels(result=reason.value)._value.get() == before + 1
    if reason is TransferReason.COMPLETED:
        assert (outcome.outcome, outcome.reason) == ("transferred", "billing")
        assert wire.hung_up == conversation.closed == ["transferred"]
        assert conversation.heard()[1] == ANNOUNCEMENT
    else:
        assert (outcome.outcome, outcome.reason) == ("disconnected", "caller_hang_up")
        assert conversation.heard()[1] == f"{ANNOUNCEMENT} {APOLOGY}"


@virtual_time
async def test_it_is_not_asked_for_before_the_announcement_was_heard_at_the_far_end() -> None:
    wire = FakeWire(20, drain_s=0.8, transfers=[(1.0, TransferReason.COMPLETED)])
    wire.speak(0.8, "a person")
    await place(wire, agent())
    (asked_at, target), last = wire.transferred[0], [at for at, _ in wire.frames]
    assert target.name == "billing"
    before = max(at for at in last if at < asked_at)
    assert asked_at >= before + FRAME_S + 0.8 - 0.01


@virtual_time
async def test_it_rings_from_the_point_of_no_return_until_the_result_and_not_a_moment_longer() -> None:
    wire = wire_with((6.0, TransferReason.BUSY))
    await place(wire, agent())
    asked_at = wire.transferred[0][0]
    frames = [(at, frame) for at, frame in wire.frames if asked_at <= at < asked_at + 6.0]
    assert len(frames) == pytest.approx(6.0 / FRAME_S, abs=2)
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(frames)]
    assert max(gaps) <= FRAME_S + 1e-6
    assert wire.audible(asked_at, asked_at + 2.0) > 1.8
    after = [frame for at, frame in wire.frames if at >= asked_at + 6.0 + FRAME_S]
    assert after and after[0] != SILENCE


@virtual_time
async def test_an_own_sound_is_heard_instead_and_a_broken_one_costs_nothing_but_itself() -> None:
    frame = b"\x11\x22" * 320

    async def own(target: TransferTarget) -> bytes:
        return frame

    async def broken(target: TransferTarget) -> bytes:
        raise OSError("no such file")

    wire = wire_with((2.0, TransferReason.COMPLETED))
    await place(wire, agent(), hold_audio=own)
    assert sum(1 for _, sent in wire.frames if sent == frame) == pytest.approx(2.0 / FRAME_S, abs=2)
    wire = wire_with((2.0, TransferReason.COMPLETED))
    outcome = await place(wire, agent(), hold_audio=broken)
    assert outcome.outcome == "transferred"
    assert wire.audible(wire.transferred[0][0]) > 1.8


@virtual_time
@pytest.mark.parametrize("at", [SPOKEN_FROM + 0.1, SPOKEN_FROM + 1.0, ANNOUNCED_AT - 0.4])
async def test_words_before_the_point_of_no_return_roll_it_back(at: float) -> None:
    wire, conversation = wire_with((2.0, TransferReason.COMPLETED)), agent()
    wire.speak(at, "stop right there")
    outcome = await place(wire, conversation)
    assert wire.transferred == []
    assert conversation.of("transfer") == []
    assert conversation.cancelled_with == [CancelReason.BARGE_IN]
    assert outcome.outcome == "disconnected"
    assert conversation.heard()[-1] == "Of course."


@virtual_time
async def test_a_word_that_was_kept_is_answered_before_anybody_is_put_through() -> None:
    wire, conversation = wire_with((2.0, TransferReason.COMPLETED)), agent()
    wire.speak(SPOKEN_FROM + 0.6, "Tuesday")
    await place(wire, conversation)
    assert wire.transferred == []
    assert [user.text for user in conversation.inputs][-1] == "Tuesday"
    assert conversation.heard()[-1] == "Of course."


@virtual_time
@pytest.mark.parametrize("how", ["words", "keys", "typed"])
async def test_nothing_after_the_point_of_no_return_rolls_it_back(how: str) -> None:
    wire, conversation = wire_with((4.0, TransferReason.COMPLETED)), agent()
    at = ANNOUNCED_AT + 1.0
    if how == "words":
        wire.speak(at, "stop right there please")
    elif how == "keys":
        wire.at(at, lambda call: call.press_key("1"))
    else:
        wire.at(at, lambda call: call.type_text("stop right there"))
    outcome = await place(wire, conversation)
    assert (outcome.outcome, len(wire.transferred)) == ("transferred", 1)
    assert conversation.cancelled_with == []


@virtual_time
async def test_a_wire_that_cannot_is_not_asked() -> None:
    wire, conversation = wire_with(seconds=10), agent()
    await place(wire, conversation)
    assert conversation.of("transfer") == ["billing not_supported"]
    assert conversation.heard()[1] == f"{ANNOUNCEMENT} {APOLOGY}"


class _Stubborn(FakeWire):
    """A wire whose transfers end in other ways than with a result."""

    def __init__(self, how: str, seconds: float = 60.0) -> None:
        super().__init__(seconds, transfers=[(0.0, TransferReason.COMPLETED)])
        self._how = how
        self.speak(0.8, "a person")

    async def transfer(self, target: TransferTarget) -> TransferResult:
        await super().transfer(target)
        if self._how == "raises":
            raise ConnectionError("the trunk is down")
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if self._how == "completes late":
                return TransferResult(TransferReason.COMPLETED)
            raise
        raise AssertionError


@virtual_time
async def test_a_wire_that_fails_is_a_trunk_error() -> None:
    wire, conversation = _Stubborn("raises", 15), agent()
    # What was logged holds the traceback, and that the call.
    await place(wire, conversation, calls=[])
    assert conversation.of("transfer") == ["billing trunk_error"]
    assert conversation.heard()[1] == f"{ANNOUNCEMENT} {APOLOGY}"


@virtual_time
async def test_a_wire_that_never_answers_is_given_up() -> None:
    wire, conversation = _Stubborn("hangs"), agent()
    await place(wire, conversation)
    assert conversation.of("transfer") == ["billing timeout"]
    asked_at = wire.transferred[0][0]
    assert wire.audible(asked_at + 30 + MARGIN_S + 0.2, asked_at + 30 + MARGIN_S + 1.0) > 0.5


@virtual_time
async def test_a_caller_who_leaves_while_it_rings_ends_the_call_and_the_transfer() -> None:
    wire, conversation = _Stubborn("hangs", 8.0), agent()
    outcome = await place(wire, conversation)
    assert (outcome.outcome, outcome.reason) == ("disconnected", "caller_hang_up")
    assert conversation.of("transfer") == []


@virtual_time
async def test_a_connection_that_ends_because_the_caller_was_put_through_is_a_transfer() -> None:
    wire, conversation = _Stubborn("completes late", 8.0), agent()
    outcome = await place(wire, conversation)
    assert (outcome.outcome, outcome.reason) == ("transferred", "billing")
    assert conversation.closed == ["transferred"]
    assert conversation.of("transfer") == ["billing completed"]


@virtual_time
async def test_silence_while_it_rings_asks_nobody_whether_they_are_there() -> None:
    wire, conversation = wire_with((20.0, TransferReason.COMPLETED), seconds=60), agent()
    await place(wire, conversation, options=OPTIONS.model_copy(update={"silence_timeout_s": 3.0}))
    assert "/silence" not in [user.text for user in conversation.inputs]
