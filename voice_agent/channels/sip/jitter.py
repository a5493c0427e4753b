"""Packets in order, whatever the network does to them, and gaps where they were lost. Pure: time comes in as seconds.

Nothing is played here, so nothing has to wait for the sake of a steady sound: what comes in order goes on at once, and
the call's intake sees to real time. Only behind a gap packets wait, as long as what is missing may still come::

    on the wire   1  2     4  5     3        6           8  9              10
    given         1  2  ·  ·  ·     3 4 5    6     ·     ·  ·  (7 lost) 8 9 10
                           └ wait_s ┘ came in time       └ wait_s ┘

How long follows the jitter that was measured, and how late packets have come that were given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 0.12
JITTER_FACTOR = 3.0
"""Waiting time per second of mean deviation: 95 % of a normal distribution lie within 2.5 of it."""
MAX_WAITING = 64
"""Packets kept behind a gap; more than that, and the gap is given up."""
MAX_STEP = 3000
"""A jump in sequence numbers beyond this is a new stream (RFC 3550, appendix A.1)."""
MAX_MISORDER = 100
"""Packets may come this late in number; older ones are of a stream that began anew, if more of it follow."""
NEW_STREAM = 5
"""Older packets in a row by which that is known."""
LATE_MARGIN_S = 0.01
_LATE_DECAY = 0.998
"""For each packet: what was learnt of lateness is halved in 7 s."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Audio in its place. ``lost``: timestamp steps that are missing before it, for other reasons than silence;
    ``silent``: steps before it in which its sender was silent."""

    payload: bytes = field(repr=False)
    lost: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    timestamp: int
    steps: int
    payload: bytes
    at: float


class JitterBuffer:
    """One stream of one sender.

    Args:
        clock: Timestamp steps per second.

    Attributes:
        late, lost, duplicates: Packets that came too late, never, or twice.
    """

    def __init__(self, clock: int) -> None:
        self._clock = clock
        self._waiting: dict[int, _Waiting] = {}
        self._next: int | None = None
        self._next_timestamp = 0
        self._gap_since = 0.0
        self._jitter_s = 0.0
        self._transit: float | None = None
        self._late_s = 0.0
        self._given_up: dict[int, float] = {}
        self._old = (-1, 0)
        self.late = self.lost = self.duplicates = 0

    @property
    def wait_limit_s(self) -> float:
        """How long a missing packet is waited for now."""
        wanted = max(SHORTEST_WAIT_S + JITTER_FACTOR * self._jitter_s, self._late_s)
        return min(wanted, LONGEST_WAIT_S)

    def push(self, number: int, timestamp: int, steps: int, payload: bytes, now: float) -> list[Heard]:
        """Take a packet; return what goes on now.

        Args:
            number: Extended sequence number.
            steps: Length of its audio in timestamp steps; 0 for packets that are no audio and only have a number.
        """
        if steps:
            self._measure(timestamp, now)
        if self._next is None or abs(number - self._next) > MAX_STEP:
            self._waiting.clear()
            self._next, self._next_timestamp = number, timestamp
        if number < self._next and not self._begins_anew(number):
            self._too_late(number, now)
            return []
        if number < self._next:
            self._waiting.clear()
            self._next, self._next_timestamp = number, timestamp
        if number in self._waiting:
            self.duplicates += 1
            return []
        if not self._waiting and number > self._next:
            self._gap_since = now
        self._waiting[number] = _Waiting(timestamp, steps, payload, now)
        return self._give(now)

    def release(self, now: float) -> list[Heard]:
        """Return what goes on because it has waited long enough."""
        return self._give(now)

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until `release` has something, or None while nothing waits."""
        return max(0.0, self._gap_since + self.wait_limit_s - now) if self._waiting else None

    def _give(self, now: float) -> list[Heard]:
        given: list[Heard] = []
        assert self._next is not None
        lost = False
        while self._waiting:
            packet = self._waiting.pop(self._next, None)
            if packet is None:
                if now - self._gap_since < self.wait_limit_s - 1e-9 and len(self._waiting) < MAX_WAITING:
                    break
                found = min(self._waiting)
                self.lost += found - self._next
                for number in range(max(self._next, found - MAX_WAITING), found):
                    self._given_up[number] = now
                lost, self._next = True, found
                continue
            self._next += 1
            # What waits behind the next gap has waited since the last of it came.
            self._gap_since = min((p.at for p in self._waiting.values()), default=now)
            if packet.steps:
                given.append(self._place(packet, lost=lost))
                lost = False
        while len(self._given_up) > MAX_WAITING:
            del self._given_up[next(iter(self._given_up))]
        return given

    def _place(self, packet: _Waiting, *, lost: bool) -> Heard:
        missing = (packet.timestamp - self._next_timestamp) & 0xFFFFFFFF
        if missing >= 0x80000000:
            missing = 0
        self._next_timestamp = (packet.timestamp + packet.steps) & 0xFFFFFFFF
        return Heard(packet.payload, missing, 0) if lost else Heard(packet.payload, 0, missing)

    def _begins_anew(self, number: int) -> bool:
        """A sender that numbers anew, or one number that was damaged, must not silence a caller for a minute."""
        assert self._next is not None
        if number >= self._next - MAX_MISORDER:
            return False
        self._old = (number, self._old[1] + 1 if number == self._old[0] + 1 else 1)
        return self._old[1] >= NEW_STREAM

    def _measure(self, timestamp: int, now: float) -> None:
        transit = now - timestamp / self._clock
        if self._transit is not None:
            difference = abs(transit - self._transit)
            if difference < 1.0:  # a pause or a new timestamp base tells nothing of the way
                self._jitter_s += (difference - self._jitter_s) / 16
        self._transit = transit
        self._late_s *= _LATE_DECAY

    def _too_late(self, number: int, now: float) -> None:
        given_up = self._given_up.pop(number, None)
        if given_up is None:
            self.duplicates += 1
            return
        self.late += 1
        self._late_s = max(self._late_s, min(LONGEST_WAIT_S, self.wait_limit_s + now - given_up + LATE_MARGIN_S))
