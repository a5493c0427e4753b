"""The agent's speech as the caller hears it: stretches of audio, separated by silence."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from voice_agent.caller.audio import FRAME_S
from voice_agent.caller.playout import PlayedFrame

GAP_S = 0.4
"""Silence that separates two stretches. Pauses between sentences are shorter, a caller's interruption is longer."""


@dataclass(slots=True)
class Stretch:
    """Agent audio without a gap of `GAP_S`. Times in seconds of the caller's clock.

    Attributes:
        start: When its first audible frame was played.
        end: When the last audible frame so far had been played.
        arrived_at: When its first audible frame came in by the wire.
        ended: A gap has followed.
    """

    start: float
    end: float
    arrived_at: float
    ended: bool = False


class AgentSpeech:
    """Collects stretches from the frames the caller hears."""

    def __init__(self, gap_s: float = GAP_S) -> None:
        self._gap_s = gap_s
        self._arrivals: list[float] = []
        self.stretches: list[Stretch] = []

    @property
    def current(self) -> Stretch | None:
        """The stretch that has not yet ended."""
        last = self.stretches[-1] if self.stretches else None
        return last if last is not None and not last.ended else None

    def arrive(self, now: float, audible: bool) -> None:
        """Note that audio came in by the wire."""
        if audible:
            self._arrivals.append(now)

    def hear(self, now: float, frame: PlayedFrame) -> None:
        """Note what is played from ``now`` on for 20 ms."""
        current = self.current
        if frame.audible:
            if current is None:
                arrived_at = now if frame.arrived_at is None else frame.arrived_at
                self.stretches.append(Stretch(now, now + FRAME_S, arrived_at))
            else:
                current.end = now + FRAME_S
        elif current is not None and now + FRAME_S - current.end >= self._gap_s - 1e-6:
            current.ended = True

    def silent_for(self, now: float) -> float:
        """Seconds since the agent was last heard, or since the beginning."""
        return now - self.stretches[-1].end if self.stretches else now

    def last_arrival(self, stretch: Stretch) -> float | None:
        """Return when the last audible audio of ``stretch`` came in by the wire, heard or cleared."""
        following = next((s.arrived_at for s in self.stretches if s.start > stretch.start), None)
        index = len(self._arrivals) if following is None else bisect_right(self._arrivals, following - 1e-9)
        return self._arrivals[index - 1] if index else None

    def following(self, after: float, excluding: Stretch | None = None) -> Stretch | None:
        """Return the first stretch that is heard after ``after``, even if it began before."""
        return next((s for s in self.stretches if s.end > after and s is not excluding), None)
