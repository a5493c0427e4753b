"""Marks of positions, for far ends that say when their playout comes to one.

::

    released   ██████████ p1.3200 ██████████ p1.6400 ███ p1.7360      one every `MARK_FRAMES`, and one at the end
    clear                             ▲ from here on p2.…: what is echoed of p1 does not count any more
"""

from __future__ import annotations

from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.wire import MarkMessage, Wire

MARK_FRAMES = 10
"""Frames from one mark to the next."""


class PositionMarks:
    """The marks of one call. Sends none to a far end that does not echo them."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._wanted = wire, wire.traits.echoes_marks
        self._stretch = self._unmarked = 0

    def begin(self) -> None:
        """A reply begins, or was cut: marks from before do not count."""
        self._stretch += 1

    def released(self, ledger: PlayoutLedger, *, at_end: bool) -> None:
        """One more frame was released; name its position now and then, and where nothing more is there to release."""
        if not self._wanted:
            return
        self._unmarked += 1
        if self._unmarked >= MARK_FRAMES or at_end:
            self._unmarked = 0
            self._wire.send(MarkMessage(f"p{self._stretch}.{ledger.released}"))

    def reached(self, name: str, ledger: PlayoutLedger, now: float) -> None:
        """The far end has come to a mark, perhaps one of these; the position is in samples of the reply."""
        stretch, _, position = name.partition(".")
        if stretch == f"p{self._stretch}" and position.isdecimal():
            ledger.confirmed(int(position), now)
