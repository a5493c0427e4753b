"""From the dialogue's words to the caller's ear: sentences, voice, playout.

::

    Say deltas ─▶ splitter ─▶ jobs ─▶ voice (pool, cache) ─▶ playout ─▶ wire
                  one per      │
                  message      └ in the cache and nothing before it: played at once, in the same call

Every job belongs to a turn; what arrives for a turn that is over is dropped, whoever still sends it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.call.playout import Playout
from voice_agent.call.reply_text import ReplyText
from voice_agent.call.timeline import Times
from voice_agent.call.turn import Turn
from voice_agent.call.wire import MarkMessage, Wire
from voice_agent.dialogue.cancellation import TurnCancelled, race
from voice_agent.dialogue.reply import ReplyItem, Say
from voice_agent.speech.protocols import EngineError, Speech, Voice
from voice_agent.telemetry.metrics import ENGINE_FAILURES

log = logging.getLogger(__name__)

MAX_AHEAD_S = 8.0
"""Audio synthesised ahead of playout (256 kB); more would be wasted by a barge-in."""


@dataclass(frozen=True, slots=True)
class _Job:
    turn: Turn
    text: str
    canned: bool
    protected: bool
    first: bool
    discards: bool = False
    aside: bool = False


class Mouth:
    """Speaks for one call.

    Args:
        on_started: The first audio of a turn's reply was released.
        on_aside: The first audio of an aside was, before the reply's.
    """

    def __init__(
        self,
        wire: Wire,
        voice: Voice,
        playout: Playout,
        times: Times,
        *,
        grace_s: float,
        on_started: Callable[[Turn], None],
        on_aside: Callable[[Turn], None],
    ) -> None:
        self._wire, self._voice, self._playout, self._times = wire, voice, playout, times
        self._grace_s = grace_s
        self._on_started, self._on_aside = on_started, on_aside
        self._turn: Turn | None = None
        self._text = ReplyText(wire, times, self._enqueue)
        self._jobs: deque[_Job] = deque()
        self._busy: _Job | None = None
        self._said_all = self._has_apologised = False
        self._work, self._room = asyncio.Event(), asyncio.Event()
        self._starved_since: float | None = None
        self._on_hold = self._goes_on = False

    def begin(self, turn: Turn) -> None:
        """From now on ``turn`` speaks, and no other."""
        self._turn = turn
        self._text.begin()
        self._said_all = self._has_apologised = False
        self._jobs.clear()
        self._starved_since = None
        self._playout.begin(
            turn.ledger,
            not_before=turn.entry.reply_from,
            on_started=lambda: self._on_started(turn),
            on_aside=lambda: self._on_aside(turn),
            on_drained=lambda: self._drained(turn),
            on_room=self._room.set,
        )
        if self._on_hold:
            self._playout.hold()
            self._goes_on = True

    def take(self, turn: Turn, say: ReplyItem) -> None:
        """Take the next piece of a reply (the sink of the turn)."""
        if turn is not self._turn or not isinstance(say, Say):
            return
        self._text.take(turn, say)

    def finish(self, turn: Turn) -> None:
        """The dialogue has said its last for this turn."""
        if turn is not self._turn:
            return
        self._text.end_message(turn)
        self._said_all = True
        self._finish_playout()

    def aside(self, turn: Turn, text: str) -> None:
        """Say a phrase that is no part of the reply. It is said to its end, and what follows waits for that."""
        if turn is not self._turn or turn.closed:
            return
        ready = self._cached(text)
        if ready is not None:
            self._playout.append(ready, aside=True)
            return
        self._jobs.append(_Job(turn, text, canned=True, protected=False, first=True, aside=True))
        self._work.set()

    def mark_reached(self, name: str) -> None:
        """The far end has come to a mark."""
        self._playout.mark_reached(name)

    def go_on(self, turn: Turn) -> None:
        """The dialogue says more after all."""
        if turn is self._turn:
            self._said_all = False
            turn.over.clear()
            self._playout.go_on()

    def ring(self, frames: Iterator[bytes]) -> None:
        """Let the caller hear ``frames`` until `hush`."""
        self._playout.ring(frames)

    def hush(self) -> None:
        """No more of what `ring` plays."""
        self._playout.hush()

    def finish_phrase(self) -> float:
        """Say nothing beyond the phrase that sounds now; return how long, in seconds, it still sounds."""
        self._jobs.clear()
        return self._playout.finish_clip()

    def hold(self) -> None:
        """Keep the turn's first audio back."""
        self._goes_on = False
        self._playout.hold()

    def pause(self) -> None:
        """Silence now; the turn lives on."""
        self._goes_on = False
        self._playout.pause()

    def on_hold(self, held: bool) -> None:
        """The caller has put the call on hold, or takes it off: what was being said goes on then."""
        if held == self._on_hold:
            return
        self._on_hold = held
        if held:
            self._goes_on = not self._playout.held
            self._playout.pause()
        elif self._goes_on:
            self.resume()

    def resume(self) -> None:
        """Go on speaking, unless the call is on hold."""
        if self._on_hold:
            self._goes_on = True
            return
        if self._turn is not None and not self._turn.token.is_cancelled:
            self._turn.over.clear()
            self._playout.resume()

    def stop(self, turn: Turn) -> None:
        """Silence now and for good, at the far end as well. Idempotent, and without effect on a later turn."""
        turn.closed = True
        if turn is not self._turn:
            return
        self._playout.stop(draining=turn.draining)
        self._turn = None
        self._jobs.clear()
        self._room.set()
        self._starved_since = None

    def protects(self) -> bool:
        """Whether wording that must be heard whole is waiting or playing."""
        if self._turn is None:
            return False
        waiting = any(job.protected for job in self._jobs) or (self._busy is not None and self._busy.protected)
        return waiting or self._turn.ledger.protects(self._times.now())

    def discards(self) -> bool:
        """Whether wording sounds over which the caller is not listened to."""
        return self._turn is not None and self._turn.ledger.discards(self._times.now())

    def remaining_s(self) -> float:
        """Return how much of the reply is still to be heard; infinite while the dialogue may say more."""
        turn = self._turn
        if turn is None or not self._said_all or self._jobs or self._busy is not None:
            return math.inf
        return (turn.ledger.length - turn.ledger.position(self._times.now())) / SAMPLE_RATE

    def stalled_s(self) -> float:
        """Return for how long text has waited for a voice that gives no audio; 0 while audio flows."""
        if self._starved_since is None or not self._playout.starved:
            return 0.0
        return self._times.now() - self._starved_since

    async def run(self) -> None:
        """Turn jobs into audio until cancelled."""
        while True:
            while not self._jobs:
                self._work.clear()
                await self._work.wait()
            job = self._busy = self._jobs.popleft()
            try:
                await race(self._speak(job), job.turn.token, name="speech", grace_s=self._grace_s)
            except TurnCancelled:
                pass
            except EngineError as error:
                ENGINE_FAILURES.labels(engine="tts").inc()
                log.warning("a sentence was not spoken: %s", str(error))
            except Exception:
                ENGINE_FAILURES.labels(engine="tts").inc()
                log.exception("a sentence was not spoken")
            finally:
                self._busy = None
            if job.turn is self._turn:
                self._finish_playout()

    async def _speak(self, job: _Job) -> None:
        async with aclosing(self._voice.speak(job.text, canned=job.canned, first=job.first)) as pieces:
            async for speech in pieces:
                if not self._play(job, speech):
                    return
                while self._playout.buffered_s > MAX_AHEAD_S and job.turn is self._turn:
                    self._room.clear()
                    await self._room.wait()

    def _play(self, job: _Job, speech: Speech) -> bool:
        """Hand one piece to the playout; False if its turn is not the current one any more."""
        if job.turn is not self._turn or job.turn.closed:
            return False
        if job.aside:
            if not speech.failed:
                self._playout.append(speech, aside=True)
            return True
        self._starved_since = self._times.now() if self._jobs else None
        if speech.failed and self._has_apologised:
            # One apology in a reply is calm, one for each sentence is not.
            speech = replace(speech, pcm=b"")
        self._has_apologised = self._has_apologised or speech.failed
        self._playout.append(speech, protected=job.protected, discards=job.discards, at_once=job.canned)
        return True

    def _enqueue(self, turn: Turn, text: str, say: Say) -> None:
        if turn.timeline.first_sentence is None:
            turn.timeline.first_sentence = self._times.since()
        alone = not self._jobs and (self._busy is None or self._busy.turn is not turn)
        first = alone and not turn.ledger.length
        protected = not say.interruptible
        discards = protected and say.while_uninterruptible == "discard"
        job = _Job(turn, text, say.source == "response", protected, first, discards)
        if alone:
            ready = self._cached(text)
            if ready is not None:
                self._play(job, ready)
                return
        if self._starved_since is None:
            self._starved_since = self._times.now()
        self._jobs.append(job)
        self._work.set()

    def _cached(self, text: str) -> Speech | None:
        try:
            return self._voice.cached(text)
        except Exception:
            log.exception("the response cache failed")
            return None

    def _finish_playout(self) -> None:
        busy = self._busy is not None and self._busy.turn is self._turn
        if self._said_all and not self._jobs and not busy:
            self._starved_since = None
            self._playout.finish()

    def _drained(self, turn: Turn) -> None:
        if turn.ledger.length:
            self._wire.send(MarkMessage(f"{turn.id}.end"))
        turn.over.set()
