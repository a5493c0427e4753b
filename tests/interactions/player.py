"""Plays a script against a real call in virtual time, and checks what must hold whatever the script says."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.interactions.agent import ScriptAgent
from tests.interactions.audible import FALLBACK, GAP_FRAME, MarkedVoice, Sounding, soundings, stretches, word_of
from tests.interactions.far_end import ScriptDetector, ScriptEars, ScriptWire
from tests.interactions.script import Script
from tests.support.calls import OPTIONS
from tests.support.virtual_time import VirtualLoop
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.outcome import CallOutcome
from voice_agent.call.wire import MetricsMessage, TranscriptMessage
from voice_agent.config import TurnTaking

MAX_TAIL_FRAMES = 4


@dataclass
class Played:
    """What came of a script."""

    agent: ScriptAgent
    wire: ScriptWire
    voice: MarkedVoice
    ears: ScriptEars
    outcome: CallOutcome
    sounded: list[Sounding]

    @property
    def audible(self) -> list[str]:
        return stretches(self.sounded, self.voice.words)

    @property
    def client(self) -> list[dict[str, str]]:
        """Words the client was told for good: the caller's, the agent's as they were said, and as they were heard."""
        told: list[dict[str, str]] = []
        for _, message in self.wire.messages:
            if isinstance(message, TranscriptMessage) and message.final and message.text.strip():
                if message.heard is None:
                    told.append({message.role: message.text.strip()})
                else:
                    told.append({"heard": message.heard.strip()})
        return told

    @property
    def timelines(self) -> list[dict[str, float | None]]:
        return [dict(m.timeline) for _, m in self.wire.messages if isinstance(m, MetricsMessage)]


class ScriptLoop(VirtualLoop):
    """A virtual loop that jumps without a system call. A script has no files and no threads."""

    def __init__(self) -> None:
        super().__init__()
        jumping = self._jumping

        def select(timeout: float | None = None) -> list[Any]:
            if timeout is None:
                raise RuntimeError("deadlock: no task is ready and no timer is set")
            jumping.now += max(timeout, 0.0)
            return []

        jumping.select = select  # type: ignore[method-assign]


def play(
    script: Script, *, hang_up_at: float | None = None, agent: Callable[[Script], ScriptAgent] = ScriptAgent
) -> Played:
    """Play a script to the end of its call.

    Args:
        hang_up_at: The caller leaves then, whatever the script has them do later.
        agent: Makes the conversation.

    Raises:
        AssertionError: Something does not hold that must hold for every call.
    """
    # What was there before cannot belong to the call: the collector need not look at it to find the call gone.
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=ScriptLoop) as runner, _errors_of_the_log() as errors:
            played = runner.run(_play(script, hang_up_at, agent))
    finally:
        gc.unfreeze()
    broken = any(step.fail is not None for turn in script.agent for step in turn)
    assert bool(errors) is broken, f"errors in the log: {errors}"
    return played


@contextmanager
def _errors_of_the_log() -> Iterator[list[str]]:
    """Collect what is logged as an error, without the traceback, which would hold the call."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    log, collector = logging.getLogger("voice_agent"), Collector(logging.ERROR)
    propagates = log.propagate
    log.propagate = False
    log.addHandler(collector)
    try:
        yield found
    finally:
        log.removeHandler(collector)
        log.propagate = propagates


async def _play(script: Script, hang_up_at: float | None, make: Callable[[Script], ScriptAgent]) -> Played:
    before = asyncio.all_tasks()
    agent = make(script)
    agent.resumed = script.line.resumed
    line = script.line if hang_up_at is None else script.line.model_copy(update={"seconds": hang_up_at})
    options = TurnTaking.model_validate({**OPTIONS.model_dump(), **script.options})
    async with MediaClock() as clock:
        voice = MarkedVoice(script.voice, lambda: agent.settled, script.lines.get("utter_filler", "").split("|"))
        wire = ScriptWire(line, script.caller, clock, agent.entries, voice.words)
        ears = ScriptEars(wire, script.ears)
        call = Call(
            call_id="call",
            conversation=agent,
            wire=wire,
            voice=voice,
            recognizer=ears,
            detector=ScriptDetector(),
            options=options,
            clock=clock,
            strict=True,
        )
        wire.call = call
        outcome = await call.run()
        reference, wire.call = weakref.ref(call), None
        del call
        assert clock.subscribers == 0, "the call is still on the clock"
    played = Played(agent, wire, voice, ears, outcome, soundings(wire.played_frames))
    assert outcome.reason != "internal_error", "the call failed"
    assert hang_up_at is not None or not wire.acts_left, f"the caller never came to {wire.acts_left}"
    assert asyncio.all_tasks() == before, "tasks were left behind"
    gc.collect()
    assert reference() is None, "the ended call is still referenced"
    _check(played, script)
    return played


def _check(played: Played, script: Script) -> None:
    agent, wire = played.agent, played.wire
    assert agent.parallel <= 1, "two turns ran at once"
    assert len(agent.closed) == 1, "the conversation must be closed exactly once"
    assert not played.voice.open, "a synthesis was left open"
    assert len(wire.hung_up) == 1, "the wire must be hung up exactly once"
    by_agent = [step.hang_up for turn in script.agent + script.silence for step in turn if step.hang_up is not None]
    is_over = played.outcome.outcome == "completed" and played.outcome.reason in by_agent
    assert agent.ended == [played.outcome.reason] * is_over, "a hang-up is done exactly when the call has ended by it"
    kinds = [kind for kind, _ in agent.log]
    assert kinds[-1] == "close", "something happened after the end"
    turns = [k for k in kinds if k in ("turn", "heard")]
    assert turns == ["turn", "heard"] * (len(turns) // 2), f"each turn is committed before the next one: {turns}"
    _check_heard(played)
    _check_stale(played)
    _check_cuts(played)
    _check_client(played)


def _heard_part(kind: str, data: str) -> str:
    return data.partition(": ")[2] if kind == "line" else data.partition("| ")[0]


def _check_heard(played: Played) -> None:
    """What the conversation remembers is what sounded, within one word."""
    replies: list[tuple[str, str]] = []
    for kind, data in played.agent.log:
        if kind == "heard":
            heard, bar, unheard = data.partition("| ")
            replies.append((heard, unheard if bar else ""))
        elif kind == "line":
            replies.append((data.partition(": ")[2], "?"))
    for turn, (heard, unheard) in enumerate(replies):
        words_of = played.voice.words
        numbers = sorted(
            {s.number for s in played.sounded if words_of[s.number].turn == turn and not words_of[s.number].aside}
        )
        sounded = [w.text for w in (played.voice.words[n] for n in numbers) if w.text != FALLBACK]
        words = heard.split()
        shorter = min(len(words), len(sounded))
        assert words[:shorter] == sounded[:shorter], f"heard {words}, sounded {sounded}"
        assert abs(len(words) - len(sounded)) <= 1, f"heard {words}, sounded {sounded}"
        if not unheard:
            assert words == sounded, f"all was heard, but only {sounded} sounded"


def _check_stale(played: Played) -> None:
    """Nothing of a reply sounds once a later one has sounded."""
    turns = [played.voice.words[s.number].turn for s in played.sounded]
    assert turns == sorted(turns), "audio of an earlier reply after that of a later one"


def _check_cuts(played: Played) -> None:
    """After a cut nothing is sent but a falling tail of at most 80 ms, until speech goes on."""
    for start in played.wire.frames_at_clear:
        tail: list[int] = []
        for _, frame in played.wire.frames[start:]:
            if word_of(frame) is not None or frame == GAP_FRAME:
                break
            tail.append(int(np.abs(np.frombuffer(frame, np.int16)).max()))
        assert len(tail) <= MAX_TAIL_FRAMES, f"{len(tail)} frames after a cut"
        assert tail == sorted(tail, reverse=True), f"the tail of a cut rises: {tail}"


def _check_client(played: Played) -> None:
    """The client was told what the conversation was told, in its order."""
    told = [text for entry in played.client for kind, text in entry.items() if kind == "heard"]
    known = [_heard_part(kind, data) for kind, data in played.agent.log if kind in ("heard", "line") and data]
    # A caller who has left cannot be told what was heard last.
    may_lack = 1 if played.outcome.outcome == "disconnected" else 0
    assert 0 <= len(known) - len(told) <= may_lack, f"the client was told {told}, not {known}"
    assert [t.split() for t in told] == [k.split() for k in known[: len(told)]]
    said = [text for entry in played.client for kind, text in entry.items() if kind == "user"]
    for kind, text in played.agent.log:
        if kind == "turn" and not text.startswith("/"):
            assert any(text.endswith(words) for words in said), f"the client was never told {text!r}"


def slowest_answer(played: Played) -> float:
    """Return the longest time from the caller's last voice to the first audio of the answer."""
    pairs = [(t["speech_end"], t["first_audio"]) for t in played.timelines]
    return max(audio - end for end, audio in pairs if end is not None and audio is not None)


def slowest_stop(played: Played) -> float:
    """Return the longest time from the caller's first voice to the clearing of the agent's audio for it."""
    starts = [segment.start for segment in played.wire.spoken]
    clears = [at - played.wire.began for at in played.wire.clears]
    assert clears, "nothing was stopped"
    return max(at - max(start for start in starts if start <= at) for at in clears)
