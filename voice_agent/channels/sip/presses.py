"""Keys that the agent presses, as events in the place of audio (RFC 4733). Pure: one packet each 20 ms.

::

    audio   ▮ ▮                             ▮ ▮
    key         1 2 3 4 5 E E E  gap  gap         duration grows; the end comes three times, since packets are lost
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from voice_agent.audio.frames import FRAME_MS
from voice_agent.digits import DIGITS_SENT, GAP_S, KEY_S, PAUSE, PAUSE_S, DigitsResult

HELD = round(KEY_S * 1000 / FRAME_MS)
"""Packets while a key is held down."""
ENDS = 3
"""How often its end is told (RFC 4733, section 2.5.1.4)."""
GAP = max(0, round(GAP_S * 1000 / FRAME_MS) - ENDS)


@dataclass(frozen=True, slots=True)
class Press:
    """One packet of a key. ``held``: frames for which it is down by then. ``first``: the key goes down with it."""

    key: str = field(repr=False)
    held: int
    first: bool = False
    end: bool = False


def presses(digits: str) -> Iterator[Press | None]:
    """Yield a packet for each frame; None stands for silence between keys."""
    for one in digits:
        if one == PAUSE:
            yield from [None] * round(PAUSE_S * 1000 / FRAME_MS)
            continue
        for held in range(1, HELD + 1):
            yield Press(one, held, first=held == 1)
        for _ in range(ENDS):
            yield Press(one, HELD, end=True)
        yield from [None] * GAP


class Pressing:
    """The keys that a call presses now, one packet at a time.

    Args:
        on_end: Told what has come of it: once, when all of them have been pressed, or they cannot be any more.
    """

    def __init__(self, digits: str, on_end: Callable[[DigitsResult], None]) -> None:
        self._packets, self._on_end = presses(digits), on_end
        self._over = False

    def take(self) -> Press | None:
        """Return the packet that leaves in the place of the next frame, if one does."""
        if not self._over:
            for packet in self._packets:
                return packet
            self.stop(DIGITS_SENT)
        return None

    def stop(self, result: DigitsResult) -> None:
        """Press no more."""
        if not self._over:
            self._over = True
            self._on_end(result)
