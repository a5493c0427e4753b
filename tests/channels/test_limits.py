from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.limits import TokenBucket


def test_a_burst_is_allowed_at_once_and_no_more() -> None:
    bucket = TokenBucket(3, 1, now=10)
    assert [bucket.take(1, 10) for _ in range(4)] == [True, True, True, False]


def test_time_refills_up_to_the_burst() -> None:
    bucket = TokenBucket(3, 1, now=0)
    assert bucket.take(3, 0)
    assert bucket.wait_s(2, 1) == 1
    assert bucket.level(100) == 3


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 3)), max_size=60))
def test_never_more_than_burst_plus_rate_times_time_is_given(steps: list[tuple[float, float]]) -> None:
    bucket, now, taken = TokenBucket(3, 0.5, now=0), 0.0, 0.0
    for pause, amount in steps:
        now += pause
        if bucket.take(amount, now):
            taken += amount
        assert taken <= 3 + 0.5 * now + 1e-6
