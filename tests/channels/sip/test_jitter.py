"""The jitter buffer under every order of arrival: nothing twice, nothing out of order, no time lost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.channels.sip.jitter import LONGEST_WAIT_S, MAX_WAITING, SHORTEST_WAIT_S, Heard, JitterBuffer
from voice_agent.channels.sip.rtp import Numbers

STEPS = 160


def play(arrivals: list[tuple[float, int]], first: int = 0) -> list[tuple[float, Heard]]:
    """Feed (time, packet) pairs; return what came when. Time goes on until nothing waits."""
    buffer, numbers, out, now = JitterBuffer(8000), Numbers(), [], 0.0
    pending = sorted(arrivals)
    while True:
        wait_s = buffer.wait_s(now)
        due = None if wait_s is None else now + wait_s
        if pending and (due is None or pending[0][0] <= due):
            now, packet = pending.pop(0)
            number = numbers.extend((first + packet) & 0xFFFF)
            timestamp = (first * STEPS + packet * STEPS) & 0xFFFFFFFF
            heard = buffer.push(number, timestamp, STEPS, packet.to_bytes(2, "big"), now)
        elif due is not None:
            now = due
            heard = buffer.release(now)
            assert heard, "the time was right"
        else:
            return out
        out += [(now, item) for item in heard]


def ids(played: list[tuple[float, Heard]]) -> list[int]:
    return [int.from_bytes(item.payload, "big") for _, item in played]


def test_what_comes_in_order_goes_on_at_once() -> None:
    played = play([(i * 0.02, i) for i in range(50)])
    assert ids(played) == list(range(50))
    assert [round(at, 3) for at, _ in played] == [round(i * 0.02, 3) for i in range(50)]
    assert all(item.lost == item.silent == 0 for _, item in played)


def test_a_lost_packet_is_waited_for_briefly_and_its_time_is_kept() -> None:
    played = play([(i * 0.02, i) for i in range(20) if i != 7])
    assert [item.lost for _, item in played if item.lost] == [STEPS]
    at = next(at for at, item in played if item.lost)
    assert SHORTEST_WAIT_S <= at - 8 * 0.02 + 1e-9 <= LONGEST_WAIT_S


def test_two_that_change_places_are_put_right_and_nothing_is_missing() -> None:
    arrivals = [(i * 0.02, i) for i in range(20)]
    arrivals[7], arrivals[8] = (0.14, 8), (0.15, 7)
    played = play(arrivals)
    assert ids(played) == list(range(20))
    assert not any(item.lost for _, item in played)


def test_silence_of_the_sender_is_no_loss() -> None:
    buffer = JitterBuffer(8000)
    buffer.push(1, 0, STEPS, b"a", 0.0)
    (heard,) = buffer.push(2, 1600, STEPS, b"b", 0.2)
    assert (heard.lost, heard.silent) == (0, 1440)


def test_keys_take_a_number_and_no_time() -> None:
    buffer = JitterBuffer(8000)
    buffer.push(1, 0, STEPS, b"a", 0.0)
    assert buffer.push(2, 160, 0, b"", 0.02) == []
    (heard,) = buffer.push(3, 160, STEPS, b"b", 0.04)
    assert (heard.lost, heard.silent) == (0, 0)


def test_a_jittery_way_is_waited_for_longer_but_never_beyond_the_limit() -> None:
    dice, buffer = random.Random(1), JitterBuffer(8000)
    at_rest = buffer.wait_limit_s
    for i in range(300):
        buffer.push(i, i * STEPS, STEPS, b"x", i * 0.02 + dice.uniform(0, 0.018))
    assert at_rest < buffer.wait_limit_s <= LONGEST_WAIT_S


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_loss_repetition_and_order_gives_each_packet_once_in_order_and_keeps_the_time(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 80))
    first = data.draw(st.sampled_from([0, 1, 65_500, 65_535, 30_000]))
    arrivals = [(0.0, 0)]
    for packet in range(1, count):
        copies = data.draw(st.sampled_from([1, 1, 1, 1, 0, 2]))
        arrivals += [(packet * 0.02 + data.draw(st.floats(0, 0.3)), packet) for _ in range(copies)]
    played = play(arrivals, first)
    order = ids(played)
    assert order == sorted(set(order)), "in order, once"
    assert set(order) <= {packet for _, packet in arrivals}
    filled = sum(item.lost + item.silent for _, item in played)
    assert filled == ((order[-1] - order[0] + 1) - len(order)) * STEPS, "every gap is told with its length"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 2**32 - 1), st.integers(0, 1000)), max_size=200))
def test_nonsense_neither_breaks_it_nor_fills_it(packets: list[tuple[int, int, int]]) -> None:
    buffer, now = JitterBuffer(8000), 0.0
    for number, timestamp, steps in packets:
        now += 0.01
        buffer.push(number, timestamp, steps, b"x", now)
        assert len(buffer._waiting) <= MAX_WAITING + 1
        assert len(buffer._given_up) <= MAX_WAITING


@given(st.lists(st.integers(-300, 300), max_size=200), st.integers(0, 0xFFFF))
def test_numbers_follow_over_the_wrap_around(steps: list[int], first: int) -> None:
    numbers, true, highest = Numbers(), first, first
    start = numbers.extend(first)
    for step in steps:
        true = highest + step
        assert numbers.extend(true & 0xFFFF) - start == true - first
        highest = max(highest, true)


@pytest.mark.parametrize("late_s", [0.05, 0.1])
def test_who_was_given_up_and_came_late_is_waited_for_the_next_time(late_s: float) -> None:
    buffer, numbers = JitterBuffer(8000), Numbers()
    arrivals = sorted((i * 0.02 + (late_s if i % 10 == 5 else 0), i) for i in range(200))
    lost_early = 0
    for now, i in arrivals:
        while (wait_s := buffer.wait_s(now)) is not None and wait_s <= 0 and buffer.release(now):
            pass
        buffer.push(numbers.extend(i), i * STEPS, STEPS, b"x", now)
        if i == 100:
            lost_early = buffer.lost
    assert lost_early <= buffer.lost <= 3, "twenty come late"


@pytest.mark.parametrize("step", [-2500, -150, 2500])
def test_a_sender_whose_numbers_jump_is_heard_again_at_once(step: int) -> None:
    buffer, heard = JitterBuffer(8000), list[Heard]()
    for i in range(3000, 3200):
        heard += buffer.push(i, i * STEPS, STEPS, b"before", i * 0.02)
    for i in range(3200, 3250):
        heard += buffer.push(i + step, i * STEPS, STEPS, b"after", i * 0.02)
    assert sum(item.payload == b"after" for item in heard) >= 45


def test_one_damaged_number_costs_a_few_packets() -> None:
    buffer, heard = JitterBuffer(8000), list[Heard]()
    for i in range(500):
        number = i + 2000 if i == 100 else i
        heard += buffer.push(number, i * STEPS, STEPS, b"", i * 0.02)
    assert len(heard) > 480
