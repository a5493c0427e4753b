"""What happened is told from records alone, whatever they hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.dialogue.blocks import ActionStep, Block, LinkStep, Target
from voice_agent.inspector.account import account, outcome_of
from voice_agent.inspector.flow import graph

KINDS = (
    "call_started", "call_ended", "turn_started", "user", "tool_executed", "turn_finished", "turn_superseded", "bot",
    "reply_unheard", "reply_owed", "line", "turn_timeline", "backchannel", "session_started", "session_ended",
    "memory_set", "skill_activated", "skill_completed", "skill_cancelled", "unknown",
)  # fmt: skip


def _records(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"sequence": n, "timestamp": f"t{n}", kind: payload} for n, (kind, payload) in enumerate(events)]


def test_a_turn_is_put_together_from_what_was_recorded_at_different_times() -> None:
    told = account(
        _records(
            ("call_started", {"call_id": "c", "channel": "websocket"}),
            ("turn_started", {"turn_id": "c-1", "number": 3}),
            ("user", {"turn_id": "c-1", "text": "hello", "kind": "speech"}),
            ("turn_finished", {"turn_id": "c-1", "status": "completed"}),
            ("bot", {"turn_id": "c-1", "text": "Good", "unheard": "morning", "interrupted": True}),
            ("turn_timeline", {"turn_id": "c-1", "call_id": "c", "endpoint": 1.5, "pauses": [{"onset": 2.0}]}),
            ("call_ended", {"call_id": "c", "outcome": "completed", "reason": "done", "seconds": 9.0}),
        ),
        {},
    )
    (turn,) = told["turns"]
    assert (turn["number"], turn["user"]["text"], turn["heard"], turn["unheard"]) == (3, "hello", "Good", "morning")
    assert (turn["times"], turn["pauses"], turn["call_id"]) == ({"endpoint": 1.5}, [{"onset": 2.0}], "c")
    assert told["calls"][0]["seconds"] == 9.0
    assert told["outcome"] == "completed"


def test_a_tool_is_placed_by_the_seconds_since_its_turn_began() -> None:
    records = _records(
        ("turn_started", {"turn_id": "a", "number": 1}),
        ("tool_executed", {"turn_id": "a", "tool": "look", "success": True}),
        ("tool_executed", {"turn_id": "a", "tool": "sum_up", "success": True}),
        ("turn_timeline", {"turn_id": "a", "endpoint": 0.0, "first_text": 0.4}),
    )
    for record, timestamp in zip(records, ("12:00:00.000Z", "12:00:01.250Z", "no time at all"), strict=False):
        record["timestamp"] = timestamp if timestamp[0] == "n" else f"2025-01-01T{timestamp}"
    (turn,) = account(records, {})["turns"]
    assert [tool["seconds"] for tool in turn["tools"]] == [1.25, None]
    assert (turn["call_id"], turn["times"]) == (None, {"endpoint": 0.0, "first_text": 0.4})


def test_words_that_began_a_new_session_stay_with_their_turn() -> None:
    told = account(
        _records(
            ("turn_started", {"turn_id": "a.start", "number": 1}),
            ("user", {"turn_id": "a.start", "text": "/session_start", "kind": "intent"}),
            ("turn_finished", {"turn_id": "a.start", "status": "completed"}),
            ("turn_started", {"turn_id": "a", "number": 2}),
            ("user", {"turn_id": "a", "text": "hi", "kind": "text"}),
            ("turn_finished", {"turn_id": "a", "status": "completed"}),
            ("bot", {"turn_id": "a", "text": "Welcome. Hello."}),
        ),
        {},
    )
    assert [(t["id"], t["user"]["text"], t["heard"]) for t in told["turns"]] == [("a", "hi", "Welcome. Hello.")]


def test_memory_is_forgotten_as_the_engine_forgets_it() -> None:
    fields = {("a", "private"): {"public": False}, ("a", "public"): {"public": True}}
    events = [
        ("memory_set", {"namespace": "a", "key": "private", "value_json": "1"}),
        ("memory_set", {"namespace": "a", "key": "public", "value_json": "2"}),
        ("memory_set", {"namespace": "project", "key": "p", "value_json": "3"}),
    ]

    def current(*more: tuple[str, dict[str, Any]]) -> set[str]:
        return {e["key"] for e in account(_records(*events, *more), fields)["memory"] if e["current"]}

    assert current() == {"private", "public", "p"}
    assert current(("skill_completed", {"skill": "a"})) == {"public", "p"}
    assert current(("skill_activated", {"skill": "a"})) == {"p"}
    assert current(("session_ended", {"outcome": "completed"})) == set()
    assert account(_records(*events, ("session_started", {})), fields)["memory"] == []


def test_the_outcome_is_that_of_the_last_call_and_open_while_another_goes_on() -> None:
    ended = ("call_ended", {"call_id": "c", "outcome": "disconnected", "reason": "caller_hang_up", "seconds": 3})
    assert outcome_of(_records(ended))["reason"] == "caller_hang_up"
    assert outcome_of(_records(ended, ("session_ended", {"outcome": "disconnected"})))["seconds"] == 3
    assert outcome_of(_records(ended, ("call_started", {"call_id": "d"})))["outcome"] is None
    assert outcome_of(_records(("session_ended", {"outcome": "completed"})))["outcome"] == "completed"


payloads = st.dictionaries(
    st.sampled_from(["turn_id", "call_id", "skill", "key", "namespace", "value_json", "text", "status", "number"]),
    st.none() | st.text(max_size=5) | st.integers() | st.booleans(),
)


@given(st.lists(st.tuples(st.sampled_from(KINDS), payloads), max_size=30))
def test_no_record_breaks_the_account(events: list[tuple[str, dict[str, Any]]]) -> None:
    told = account(_records(*events), {})
    assert set(told) == {"calls", "turns", "notes", "memory", "outcome", "session_ended"}
    outcome_of(_records(*events))


def test_a_block_is_drawn_with_its_branches_and_without_arrows_that_nothing_follows() -> None:
    steps = (ActionStep(id="a", line=1, response="utter_a"), LinkStep(id="b", line=2, target=Target("block", "x")))
    drawn = graph(Block("main", steps))
    assert drawn["steps"][0] == {"id": "a", "kind": "action", "label": "utter_a", "next": [{"to": "b", "if": None}]}
    assert drawn["steps"][1]["next"] == []
