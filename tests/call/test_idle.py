"""The idle clock runs only while the call is idle, and tells once."""

from __future__ import annotations

from voice_agent.call.idle import IdleClock


def test_it_tells_once_after_the_whole_silence() -> None:
    clock = IdleClock(8)
    assert [clock.update(t, True) for t in (0, 4, 7.9, 8, 8.1)] == [False, False, False, True, False]


def test_anything_that_happens_starts_it_again() -> None:
    clock = IdleClock(8)
    clock.update(0, True)
    clock.update(7, False)
    assert not clock.update(9, True)
    assert clock.update(17, True)


def test_zero_switches_it_off() -> None:
    clock = IdleClock(0)
    assert not any(clock.update(t, True) for t in range(100))
