"""The places of records behind what is stored: what is there already is left out, a number used twice is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from voice_agent.store.backlog import Batch
from voice_agent.store.protocol import Record, StoredConversation


@dataclass(slots=True)
class Numbered:
    """Records fit to stand behind what is stored."""

    events: list[Record]
    last: int
    state_sequence: int
    moved: int = 0


def number(batch: Batch, last: int, is_stored: Callable[[str], bool]) -> Numbered:
    """Leave out what is stored already, and number anew what would not come after ``last``.

    Args:
        last: The last number stored; -1 for none.
        is_stored: Whether the record with this ``event_id`` is.
    """
    # A snapshot without records of its own includes everything up to here.
    numbered = Numbered([], last, last)
    for event in batch.events:
        wanted = sequence = event.get("sequence", numbered.last + 1)
        if sequence <= numbered.last:
            if "event_id" in event and is_stored(event["event_id"]):
                continue
            sequence = numbered.last + 1
            numbered.moved += 1
        if event.get("sequence") != sequence:
            event = {**event, "sequence": sequence}
        numbered.events.append(event)
        numbered.last = sequence
        if wanted <= batch.state_sequence:
            numbered.state_sequence = sequence
    return numbered


def merged(stored: StoredConversation | None, batch: Batch, max_events: int) -> StoredConversation | None:
    """Return what is stored with what still waits to be."""
    if batch.delete_first:
        stored = None
        if not batch.events and batch.state is None:
            return None
    events: list[Mapping[str, Any]] = [] if stored is None else list(stored.events)
    last = events[-1]["sequence"] if events else -1
    numbered = number(batch, last, {event.get("event_id") for event in events}.__contains__)
    newest = tuple([*events, *numbered.events][-max_events:])
    if batch.state is not None:
        return StoredConversation(newest, json.loads(batch.state), numbered.state_sequence)
    return StoredConversation(newest) if stored is None else replace(stored, events=newest)
