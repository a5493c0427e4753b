"""Releases the agent's audio to the wire, one frame per tick of the shared clock.

::

    audio ready ▼
    frames      █  █ █ █ █ █ ▒▒ stall ▒▒ ████ █ █ █     the first at once, then one per tick;
    ticks       |  | | | | |             |    | | |     missed ticks are made up to `lead_ms`, never beyond

Nothing is sent early to fill a far end's buffer: every frame ahead of its time makes the ones before it late by
comparison, and is one more to be cleared.

A pause takes effect within the call: nothing more is released but a fade of the cut sound, and what
the far end still holds is cleared. Resuming goes on from the start of the cut word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from voice_agent.audio.frames import FRAME_BYTES, FRAME_MS, FRAME_SAMPLES
from voice_agent.call.clips import Clips, frames_of
from voice_agent.call.clock import TICK_S, MediaClock
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.marks import PositionMarks
from voice_agent.call.outlet import Outlet
from voice_agent.speech.protocols import Speech

MAX_FADE_MS = 80
_EPSILON_S = 1e-6


class Playout:
    """The one place from which agent audio reaches the wire.

    Args:
        now: The event loop's time.
        lead_ms: Most audio that may be ahead of the wall clock.
        fade_ms: Length of the fade when speech is cut.
    """

    def __init__(
        self,
        outlet: Outlet,
        marks: PositionMarks,
        clock: MediaClock,
        now: Callable[[], float],
        *,
        lead_ms: int,
        fade_ms: int,
    ) -> None:
        self._outlet, self._marks, self._clock, self._now = outlet, marks, clock, now
        self._lead_s = lead_ms / 1000
        self._fade_ms = min(fade_ms, MAX_FADE_MS)
        self._ledger: PlayoutLedger | None = None
        self._clips = Clips()
        self._not_before = 0.0
        self._held = self._finished = self._started = self._audible = self._ends_here = False
        self._sound: Iterator[bytes] | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._on_started: Callable[[], None] = _nothing
        self._on_aside: Callable[[], None] = _nothing
        self._on_drained: Callable[[], None] = _nothing
        self._on_room: Callable[[], None] = _nothing

    @property
    def buffered_s(self) -> float:
        """Seconds of audio that wait for their release."""
        if self._ledger is None:
            return 0.0
        return (self._ledger.length - self._ledger.released) / FRAME_SAMPLES * TICK_S

    @property
    def starved(self) -> bool:
        """Nothing is held back, and nothing is there to play."""
        return not self._held and not self._clips

    @property
    def held(self) -> bool:
        """Nothing is released until `resume`."""
        return self._held

    def begin(
        self,
        ledger: PlayoutLedger,
        *,
        on_started: Callable[[], None],
        on_drained: Callable[[], None],
        on_room: Callable[[], None],
        on_aside: Callable[[], None] | None = None,
        not_before: float = 0.0,
    ) -> None:
        """A new turn speaks from now on; whatever was left of the one before is dropped.

        Args:
            on_started: The first frame of the reply was released.
            on_aside: The first frame of an aside was released before anything of the reply was.
            not_before: Loop time before which nothing sounds, unless a piece is appended as ``at_once``.
        """
        self._forget()
        self._ledger, self._not_before = ledger, not_before
        self._marks.begin()
        self._outlet.begin(ledger)
        self._held = self._finished = self._started = self._audible = self._ends_here = False
        self._on_aside = on_aside or _nothing
        self._on_started, self._on_drained, self._on_room = on_started, on_drained, on_room

    def append(
        self,
        speech: Speech,
        *,
        protected: bool = False,
        discards: bool = False,
        aside: bool = False,
        at_once: bool = False,
    ) -> None:
        """Queue one piece of the current turn, padded to whole frames.

        Args:
            protected, discards: See `PlayoutLedger.append`.
            at_once: It need not wait for the time before which nothing sounds.
            aside: It is no part of the reply: it takes its time, and none of its words count as heard or unheard.
        """
        if aside:
            self._outlet.aside(speech.text)
            speech = replace(speech, text="")
        if self._ledger is None or self._ends_here:
            return
        pcm = speech.pcm[: len(speech.pcm) & ~1]
        frames = frames_of(pcm)
        first = self._ledger.length
        self._ledger.append(speech, frames * FRAME_SAMPLES, protected=protected, discards=discards)
        if at_once:
            self._not_before = 0.0
        if frames:
            self._clips.add(pcm, first, aside=aside)
        self._go()

    def finish(self) -> None:
        """No more pieces come. `on_drained` is called once all of them were heard."""
        self._finished = True
        self._go()

    def go_on(self) -> None:
        """More pieces come after all."""
        self._finished = False

    def ring(self, frames: Iterator[bytes]) -> None:
        """Let the caller hear ``frames``, one per tick, until `hush`. They are no part of the reply."""
        if self._ledger is not None:
            self._sound = frames
            self._subscribe()

    def hush(self) -> None:
        """No more of what `ring` plays."""
        if self._sound is not None:
            self._sound = None
            self._stop_ticking()

    def finish_clip(self) -> float:
        """Take and release nothing beyond the piece that sounds now; return how long, in seconds, it still sounds."""
        if self._ledger is None:
            return 0.0
        self._ends_here = True
        left_s = self._clips.drop_rest()
        return 0.0 if self._held else left_s + self._ledger.ahead(self._now())

    def hold(self) -> None:
        """Release nothing until `resume`."""
        self._held = True
        self._stop_ticking()

    def pause(self) -> None:
        """Silence now: fade the cut sound, clear the far end, remember the position."""
        if self._ledger is None or self._held:
            return
        self.hold()
        self._cut()

    def resume(self) -> None:
        """Go on, after a pause from the start of the cut word."""
        if self._ledger is None or not self._held:
            return
        self._held = False
        if self._audible:
            self._clips.seek(self._ledger.rewind())
        self._go()

    def stop(self, *, draining: bool = False) -> None:
        """Silence now and for good: the turn is over.

        Args:
            draining: The far end still plays what counts as heard by the clock: that is dropped too.
        """
        if self._ledger is None:
            return
        if draining and self._ledger.drained(self._now()):
            self._outlet.clear_far_end()
        elif not self._held and self._audible:
            self._cut()
        self._forget()

    def _cut(self) -> None:
        ledger = self._ledger
        assert ledger is not None
        now = self._now()
        if not self._audible or ledger.drained(now):
            return
        at = ledger.clear(now)
        self._outlet.clear(now)
        self._marks.begin()
        fade = self._clips.fade(at, self._fade_ms * FRAME_SAMPLES // FRAME_MS)
        ledger.faded(len(fade) // 2)
        for start in range(0, len(fade), FRAME_BYTES):
            self._outlet.send(fade[start : start + FRAME_BYTES], now + start / FRAME_BYTES * TICK_S)

    def _go(self) -> None:
        """Start releasing if there is something to release, or something to wait for."""
        if self._held or self._ledger is None or self._unsubscribe is not None:
            return
        now = self._now()
        if self._clips:
            self._subscribe()
            if now >= self._not_before:
                self._release(now)
        elif self._finished:
            if self._ledger.drained(now):
                self._on_drained()
            else:
                self._subscribe()

    def _subscribe(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._clock.subscribe(self._tick)

    def _tick(self) -> None:
        ledger, now = self._ledger, self._clock.now
        if ledger is None:
            self._stop_ticking()
            return
        if self._sound is not None:
            if (frame := next(self._sound, None)) is not None:
                ledger.faded(FRAME_SAMPLES)
                self._outlet.send(frame, now)
            return
        if self._clips:
            if now < self._not_before:
                return
            self._release(now)
            missed = self._clock.missed
            # Made up only within the lead: the rest of a stall is skipped, not replayed.
            while missed > 0 and self._clips and ledger.ahead(now) + TICK_S <= self._lead_s + _EPSILON_S:
                self._release(now)
                missed -= 1
            return
        if not self._finished:
            self._stop_ticking()
        elif ledger.drained(now):
            self._stop_ticking()
            self._on_drained()

    def _release(self, now: float) -> None:
        assert self._ledger is not None
        frame, aside, has_room = self._clips.take()
        if has_room:
            self._on_room()
        self._ledger.release(now)
        self._outlet.send(frame, self._ledger.play_until - TICK_S)
        self._marks.released(self._ledger, at_end=not self._clips)
        if not self._started:
            self._begin_to_sound(aside)

    def _begin_to_sound(self, aside: bool) -> None:
        first, self._audible = not self._audible, True
        if not aside:
            self._started = True
            self._on_started()
        elif first:
            self._on_aside()

    def mark_reached(self, name: str) -> None:
        """The far end has come to a mark, perhaps one of a position in the current reply."""
        if self._ledger is not None:
            self._marks.reached(name, self._ledger, self._now())

    def _stop_ticking(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _forget(self) -> None:
        self._stop_ticking()
        self._ledger = self._sound = None
        self._clips.clear()
        self._on_started = self._on_aside = self._on_drained = self._on_room = _nothing


def _nothing() -> None:
    pass
