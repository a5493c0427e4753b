"""Exchanges worth keeping are put together out of the tracker's records."""

from __future__ import annotations

from typing import Any

from voice_agent.recall.entries import Who
from voice_agent.recall.episodes import Exchanges


def record(type: str, turn: str = "t1", /, user: str = "ann", **payload: Any) -> dict[str, Any]:
    envelope = {"conversation_id": "c1", "timestamp": "2030-01-02T03:04:05.000Z", "user_id": user}
    return {**envelope, type: {"turn_id": turn, **payload}}


def test_what_was_said_and_heard_makes_an_exchange() -> None:
    exchanges = Exchanges()
    assert exchanges.add(record("user", text="my router is broken", kind="speech")) is None
    found = exchanges.add(record("bot", text="Oh dear."))
    assert found is not None
    assert (found.who, found.turn, found.text) == (
        Who("ann", "c1"),
        "t1",
        "Caller: my router is broken\nAgent: Oh dear.",
    )
    assert found.moment == 1893553445.0
    assert exchanges.add(record("bot", text="Oh dear.")) is None


def test_a_conversations_id_is_no_caller() -> None:
    exchanges = Exchanges()
    exchanges.add(record("user", user="c1", text="hello there", kind="text"))
    found = exchanges.add(record("bot", user="c1", text="Hi."))
    assert found is not None
    assert found.who == Who("", "c1")


def test_keys_intents_superseded_and_personal_turns_are_left_out() -> None:
    exchanges = Exchanges()
    for kind in ("dtmf", "intent"):
        exchanges.add(record("user", kind, text="4711", kind=kind))
        assert exchanges.add(record("bot", kind, text="Thanks.")) is None
    exchanges.add(record("user", "t2", text="wait", kind="speech"))
    exchanges.add(record("turn_superseded", "t2"))
    assert exchanges.add(record("bot", "t2", text="Yes?")) is None
    exchanges.add(record("user", "t3", text="my number is four two", kind="speech"))
    exchanges.add(record("memory_set", "t3", key="account", value_json='"42"', pii=True))
    assert exchanges.add(record("bot", "t3", text="Thank you.")) is None


def test_other_records_and_odd_ones_are_ignored() -> None:
    exchanges = Exchanges()
    for odd in ({}, {"user": None}, {"bot": "x"}, record("tool_executed", tool="x"), record("user", "", text="x")):
        assert exchanges.add(odd) is None
