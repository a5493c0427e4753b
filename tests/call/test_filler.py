"""One filler a turn, when nothing was spoken for a while and nobody speaks; one timer, no looking at clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.filler import LATE_VOICE_S, Filler
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.turn import Entry, Turn
from voice_agent.call.wire import TranscriptMessage
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import SILENCE, InputKind, UserInput

QUESTION = Entry(UserInput("what is my balance?", InputKind.SPEECH))


class _Call:
    """A filler, and what it said at which time."""

    def __init__(self, after_ms: int = 900) -> None:
        self.may_speak = True
        self.said: list[tuple[float, int]] = []
        loop = asyncio.get_running_loop()
        self.filler = Filler(after_ms, lambda: self.may_speak, lambda _, n: self.said.append((loop.time(), n)))

    def begin(self, entry: Entry = QUESTION) -> Turn:
        self.began = asyncio.get_running_loop().time()
        turn = Turn("1", entry, PlayoutLedger(), lambda turn, item: None, self.began)
        self.filler.begin(turn)
        return turn

    @property
    def after(self) -> list[float]:
        return [round(at - self.began, 3) for at, _ in self.said]


@virtual_time
async def test_it_is_said_once_however_long_the_turn_takes() -> None:
    call = _Call()
    call.begin()
    await asyncio.sleep(60)
    call.filler.quiet()
    assert call.after == [0.9]


@virtual_time
async def test_nothing_is_said_once_the_turn_is_over_cancelled_or_audible() -> None:
    ends: tuple[Callable[[_Call, Turn], Any], ...] = (
        lambda call, turn: call.filler.end(),
        lambda call, turn: turn.token.cancel(CancelReason.BARGE_IN),
        lambda call, turn: setattr(turn.timeline, "first_audio", 1.0),
    )
    for end in ends:
        call = _Call()
        turn = call.begin(Entry(UserInput("hello", InputKind.SPEECH)))
        await asyncio.sleep(0.89)
        end(call, turn)
        await asyncio.sleep(10)
        call.filler.quiet()
        assert call.said == []


@virtual_time
async def test_words_that_the_voice_is_at_work_on_get_half_a_second_more() -> None:
    call = _Call()
    call.begin().ledger.said("Your balance is fifty dollars.")
    await asyncio.sleep(60)
    assert call.after == [pytest.approx(0.9 + LATE_VOICE_S)]


@virtual_time
async def test_while_the_caller_speaks_it_waits_for_the_silence() -> None:
    call = _Call()
    call.begin()
    call.may_speak = False
    call.filler.quiet()
    await asyncio.sleep(2)
    call.filler.quiet()
    assert call.said == []
    call.may_speak = True
    call.filler.quiet()
    assert call.after == [2.0]


@virtual_time
async def test_intents_and_lines_of_the_service_get_none_and_zero_switches_it_off() -> None:
    for entry, after_ms in ((Entry(SILENCE), 900), (Entry(line="utter_x"), 900), (QUESTION, 0)):
        call = _Call(after_ms)
        call.begin(entry)
        await asyncio.sleep(5)
        assert call.said == []


@virtual_time
async def test_the_wordings_go_round_over_the_turns_of_a_call() -> None:
    call = _Call()
    for _ in range(3):
        call.begin()
        await asyncio.sleep(2)
        call.filler.end()
    assert [n for _, n in call.said] == [0, 1, 2]


@virtual_time
async def test_a_minute_of_thinking_costs_one_timer() -> None:
    """A filler that spins, and callers who hear nothing else."""
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    original = loop.call_later

    def counted(delay: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        timers.append(delay)
        return original(delay, *args, **kwargs)

    loop.call_later = counted  # type: ignore[method-assign]
    call = _Call()
    call.begin()
    done = loop.create_future()
    loop.call_at(loop.time() + 60, done.set_result, None)
    await done
    assert timers == [0.9]


@virtual_time
async def test_a_call_says_it_beside_the_reply_and_tells_nobody_that_it_was_one() -> None:
    async def slow(speaker: Speaker) -> None:
        await speaker.wait(3.0)
        speaker.say("Fifty dollars.")

    wire = FakeWire(12)
    wire.speak(1.0, "what is my balance?")
    talk = ScriptedConversation(says("Hello."), slow, lines={"utter_filler": "One moment, please."})
    await place(wire, talk, voice=FakeVoice(cached=("One moment, please.",)))
    assert talk.heard() == ["Hello.", "Fifty dollars."]
    assert talk.of("note") == ["filler"]
    assert wire.transcripts("agent") == ["Hello.", "Fifty dollars."]


@virtual_time
async def test_the_far_end_is_told_that_a_reply_is_over_of_which_only_a_filler_sounded() -> None:
    """It counts what it has played of each reply: the next one would be reckoned from the wrong place."""

    async def slow(speaker: Speaker) -> None:
        await speaker.wait(60)

    wire = FakeWire(14.0)
    wire.speak(2.0, "what is my balance")
    wire.speak(6.0, "stop tell me the hours")
    replies = (says("Hello."), slow, says("We are open from nine to five."))
    talk = ScriptedConversation(*replies, lines={"utter_filler": "One moment."})
    await place(wire, talk)
    over = [m.heard for _, m in wire.messages if isinstance(m, TranscriptMessage) and m.heard is not None]
    assert over == ["Hello.", "", "We are open from nine to five."]
