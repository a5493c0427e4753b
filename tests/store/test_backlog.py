"""What waits to be written: bounded, in order, and whole again after a failed write."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.test_store_contract import record
from voice_agent.store.backlog import Backlog


def sequences(backlog: Backlog, conversation: str = "c") -> list[int]:
    batch = backlog.unwritten(conversation)
    return [] if batch is None else [event["sequence"] for event in batch.events]


def backlog(max_events: int = 100, max_bytes: int = 10**9) -> Backlog:
    return Backlog(max_events, max_bytes)


def test_appends_of_a_conversation_are_taken_together_in_order() -> None:
    waiting = backlog()
    waiting.append("c", [record(0)], '{"turn": 1}')
    waiting.append("d", [record(0)], None)
    waiting.append("c", [record(1), record(2)], '{"turn": 2}')
    taken = waiting.take(100)
    assert [event["sequence"] for event in taken["c"].events] == [0, 1, 2]
    assert (taken["c"].state, taken["c"].state_sequence) == ('{"turn": 2}', 2)
    assert list(taken) == ["c", "d"]


def test_what_could_not_be_written_stands_in_front_of_what_came_meanwhile() -> None:
    waiting = backlog()
    waiting.append("c", [record(0)], '{"turn": 1}')
    waiting.take(100)
    waiting.append("c", [record(1)], None)
    waiting.append("e", [record(5)], None)
    waiting.put_back()
    assert sequences(waiting) == [0, 1]
    taken = waiting.take(100)
    assert (list(taken), taken["c"].state_sequence) == (["c", "e"], 0)


def test_a_state_alone_includes_what_waits_before_it() -> None:
    waiting = backlog()
    waiting.append("c", [record(0), record(1)], None)
    waiting.take(100)
    waiting.append("c", [], '{"turn": 1}')
    waiting.put_back()
    batch = waiting.unwritten("c")
    assert batch is not None and batch.state_sequence == 1


def test_a_deletion_drops_what_waited_before_it_and_nothing_after() -> None:
    waiting = backlog()
    waiting.append("c", [record(0)], '{"turn": 1}')
    waiting.take(100)
    waiting.append("c", [record(1)], None)
    waiting.delete("c")
    waiting.append("c", [record(0, by="anew")], None)
    waiting.put_back()
    batch = waiting.unwritten("c")
    assert batch is not None
    assert (batch.delete_first, batch.state, sequences(waiting)) == (True, None, [0])
    assert len(waiting) == 1


def test_beyond_its_bounds_the_oldest_records_go_and_are_counted() -> None:
    waiting = backlog(max_events=10)
    for n in range(25):
        waiting.append("c", [record(n)], f'{{"turn": {n}}}')
    assert sequences(waiting) == list(range(15, 25))
    assert (len(waiting), waiting.dropped) == (10, 15)
    batch = waiting.unwritten("c")
    assert batch is not None and batch.state == '{"turn": 24}', "the newest state is kept whatever happens"


def test_its_bytes_are_bounded_too() -> None:
    waiting = backlog(max_bytes=100_000)
    for n in range(30):
        waiting.append("c", [record(n, text="x" * 10_000)], None)
    assert len(waiting) < 10
    assert sequences(waiting)[-1] == 29


def test_everything_is_settled_when_nothing_waits() -> None:
    waiting = backlog()
    assert waiting.settled() == waiting.last_ticket == 0
    waiting.append("c", [record(0)], None)
    waiting.append("d", [record(0)], None)
    assert waiting.settled() == 0
    waiting.take(1)
    waiting.done()
    assert waiting.settled() == 1
    waiting.take(1)
    waiting.done()
    assert waiting.settled() == waiting.last_ticket == 2


def test_waking_is_not_forgotten_when_nobody_waits_yet() -> None:
    waiting = backlog()
    waiting.wake()
    assert waiting.wait(60) is False


STEPS = st.lists(st.sampled_from(["append", "state", "take", "done", "put_back", "delete"]), max_size=60)


@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_whatever_the_order_of_events_nothing_is_lost_doubled_or_turned_around(steps: list[str], seed: int) -> None:
    """Compares with a plain list per conversation, from which written records are struck."""
    dice = random.Random(seed)
    waiting, written = backlog(10_000), defaultdict(list)
    expected: dict[str, list[int]] = defaultdict(list)
    counter = 0
    taken = False
    for step in steps:
        name = dice.choice("ab")
        if step in ("append", "state"):
            events = [record(counter + n, conversation=name) for n in range(dice.randint(1, 3))]
            counter += len(events)
            expected[name] += [event["sequence"] for event in events]
            waiting.append(name, events, "{}" if step == "state" else None)
        elif step == "delete":
            waiting.delete(name)
            expected[name] = []
        elif step == "take" and not taken:
            batches, taken = dict(waiting.take(dice.randint(1, 4))), True
        elif step == "done" and taken:
            for conversation, batch in batches.items():
                if batch.delete_first:
                    written[conversation] = []
                written[conversation] += [event["sequence"] for event in batch.events]
            waiting.done()
            taken = False
        elif step == "put_back" and taken:
            waiting.put_back()
            taken = False
    if taken:
        waiting.put_back()
    for name in "ab":
        batch = waiting.unwritten(name)
        kept = [] if batch is not None and batch.delete_first else written[name]
        assert kept + sequences(waiting, name) == expected[name]
    assert len(waiting) == sum(len(sequences(waiting, name)) for name in "ab")


@pytest.mark.parametrize("count", [0, 1])
def test_an_append_of_nothing_changes_no_count(count: int) -> None:
    waiting = backlog()
    waiting.append("c", [record(0)] * count, None)
    assert len(waiting) == count
