from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.webrtc.reorder import DEPTH, JUMP, Reorder


def pushed(sequences: list[int]) -> list[int]:
    order: Reorder[int] = Reorder()
    return [item for sequence in sequences for item in order.push(sequence % 65536, sequence)]


def test_packets_in_order_pass_at_once_across_the_wrap() -> None:
    sequences = list(range(65530, 65550))
    order: Reorder[int] = Reorder()
    assert [order.push(s % 65536, s) for s in sequences] == [[s] for s in sequences]


def test_a_late_packet_takes_its_place() -> None:
    assert pushed([1, 2, 4, 5, 3, 6]) == [1, 2, 3, 4, 5, 6]


def test_a_packet_that_does_not_come_is_given_up_after_a_few_later_ones() -> None:
    order: Reorder[int] = Reorder()
    assert [order.push(s, s) for s in (5, 7, 8, 9, 6, 10)] == [[5], [], [], [7, 8, 9], [], [10]]
    assert (order.lost, order.late) == (1, 1)


def test_packets_that_come_twice_pass_once() -> None:
    assert pushed([1, 1, 2, 4, 4, 3, 3]) == [1, 2, 3, 4]


def test_a_sender_that_begins_anew_is_followed() -> None:
    assert pushed([1, 2, 4, 30_000, 30_001]) == [1, 2, 30_000, 30_001]


@given(st.integers(0, 65535), st.integers(0, 2**32), st.floats(0, 0.4), st.integers(0, DEPTH - 1))
def test_whatever_the_network_does_packets_pass_in_order_and_once(
    start: int, seed: int, loss: float, swap: int
) -> None:
    dice = random.Random(seed)
    sent = [start + n for n in range(120) if dice.random() >= loss]
    arrives = [s for _, s in sorted((n + dice.uniform(0, swap), s) for n, s in enumerate(sent))]
    passed = pushed(arrives)
    assert passed == sorted(set(passed))
    assert set(passed) <= set(sent)


@given(st.lists(st.integers(0, 65535), max_size=200))
def test_no_sequence_numbers_make_it_keep_more_than_a_few(sequences: list[int]) -> None:
    order: Reorder[int] = Reorder()
    for sequence in sequences:
        order.push(sequence, sequence)
        assert len(order._waiting) < DEPTH
    assert order.lost <= JUMP * max(1, len(sequences))
