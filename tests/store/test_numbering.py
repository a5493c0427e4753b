"""Records are put behind what is stored, each once, with numbers that rise."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.store.backlog import Batch
from voice_agent.store.numbering import merged, number
from voice_agent.store.protocol import StoredConversation

RECORDS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcdef")), unique_by=lambda pair: pair[1])


def _record(sequence: int, event_id: str) -> dict[str, Any]:
    return {"sequence": sequence, "event_id": event_id}


def _batch(*records: dict[str, Any], state: str | None = None, state_sequence: int = -1) -> Batch:
    return Batch(0, deque(records), state, state_sequence)


def test_a_gap_stays_and_a_number_used_twice_is_changed() -> None:
    batch = _batch(_record(3, "c"), _record(7, "d"), _record(7, "e"), state="{}", state_sequence=7)
    numbered = number(batch, 3, lambda id: False)
    assert [(e["event_id"], e["sequence"]) for e in numbered.events] == [("c", 4), ("d", 7), ("e", 8)]
    assert (numbered.last, numbered.moved, numbered.state_sequence) == (8, 2, 8)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcdef")), unique_by=lambda pair: pair[1]),
    st.integers(-1, 9),
)
def test_numbers_rise_and_nothing_is_lost_or_stored_twice(records: list[tuple[int, str]], last: int) -> None:
    stored = {"a", "b"}
    batch = _batch(*(_record(sequence, id) for sequence, id in records))
    numbered = number(batch, last, stored.__contains__)
    sequences = [e["sequence"] for e in numbered.events]
    assert sequences == sorted(set(sequences)) and all(sequence > last for sequence in sequences)
    kept = {e["event_id"] for e in numbered.events}
    assert kept >= {id for _, id in records} - stored
    again = number(_batch(*numbered.events), numbered.last, kept.__contains__)
    assert (again.events, again.last) == ([], numbered.last)


def test_what_waits_stands_behind_what_is_stored() -> None:
    stored = StoredConversation((_record(0, "a"), _record(1, "b")), {"turn": 1}, 1)
    waiting = _batch(_record(1, "b"), _record(1, "c"), state='{"turn": 2}', state_sequence=1)
    found = merged(stored, waiting, 2)
    assert found is not None
    assert [(e["event_id"], e["sequence"]) for e in found.events] == [("b", 1), ("c", 2)]
    assert (found.state, found.state_sequence) == ({"turn": 2}, 2)
    assert merged(stored, Batch(0, delete_first=True), 2) is None
