from __future__ import annotations

import pytest

from voice_agent.channels.carriers.pending import (
    MAX_PENDING,
    TOKEN_S,
    BadStream,
    PendingCalls,
    Replayed,
    TooManyPending,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_expires_and_its_call_cannot_be_announced_again() -> None:
    clock = Clock()
    pending = PendingCalls(clock)
    expected = pending.expect("CA1", "c", {})
    clock.now = TOKEN_S
    assert pending.find(expected.token) is expected
    clock.now = TOKEN_S + 0.1
    with pytest.raises(BadStream, match="bad_token"):
        pending.redeem(expected.token, "CA1")
    with pytest.raises(Replayed):
        pending.expect("CA1", "c", {})
    assert len(pending) == 0


def test_a_token_is_void_after_another_call_has_shown_it() -> None:
    pending = PendingCalls(Clock())
    expected = pending.expect("CA1", "c", {})
    with pytest.raises(BadStream, match="wrong_call"):
        pending.redeem(expected.token, "CA2")
    with pytest.raises(BadStream, match="bad_token"):
        pending.redeem(expected.token, "CA1")


def test_a_call_that_we_place_is_bound_to_what_the_carrier_names_it() -> None:
    pending = PendingCalls(Clock())
    expected = pending.expect("", "c", {})
    assert pending.bind(expected, "CA1")
    assert pending.redeem(expected.token, "CA1") is expected


def test_a_stream_that_comes_before_the_carrier_has_named_the_call_must_turn_out_to_be_its() -> None:
    pending = PendingCalls(Clock())
    expected = pending.expect("", "c", {})
    pending.redeem(expected.token, "CA1")
    assert not pending.bind(expected, "CA2")
    assert pending.bind(expected, "CA1")


def test_no_more_calls_are_expected_than_fit() -> None:
    pending = PendingCalls(Clock())
    for number in range(MAX_PENDING):
        pending.expect(f"CA{number}", "c", {})
    with pytest.raises(TooManyPending):
        pending.expect("one more", "c", {})


def test_a_call_for_which_there_was_no_room_is_expected_when_its_carrier_asks_again() -> None:
    clock = Clock()
    pending = PendingCalls(clock)
    for number in range(MAX_PENDING):
        pending.expect(f"CA{number}", "c", {})
    with pytest.raises(TooManyPending):
        pending.expect("one more", "c", {})
    clock.now = TOKEN_S + 0.1
    assert pending.expect("one more", "c", {}).call == "one more"
