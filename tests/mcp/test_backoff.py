"""A lost server is tried again ever less often, and never by all clients at once."""

from __future__ import annotations

import random

from voice_agent.mcp.backoff import LONGEST_S, STEADY_S, Backoff


def test_waits_double_up_to_a_limit_and_are_shortened_at_random() -> None:
    backoff = Backoff(random.Random(1))
    for number in range(20):
        longest = min(LONGEST_S, 0.5 * 2**number)
        assert longest / 2 <= backoff.lost(0) <= longest


def test_a_connection_that_held_begins_anew_and_one_that_did_not_goes_on() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(8):
        backoff.lost(1)
    assert backoff.lost(1) > 10
    assert backoff.lost(STEADY_S) <= 0.5


def test_two_clients_do_not_wait_alike() -> None:
    assert Backoff(random.Random(1)).lost(0) != Backoff(random.Random(2)).lost(0)
