"""What every store must do, whatever it keeps conversations in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from voice_agent.store import ConversationStore, MemoryStore, SqliteStore


def record(sequence: int, kind: str = "user", *, conversation: str = "c", **payload: Any) -> dict[str, Any]:
    """Return a record as the tracker makes them."""
    return {
        "conversation_id": conversation,
        "sequence": sequence,
        "timestamp": f"2030-01-01T00:00:{sequence % 60:02d}.000Z",
        "event_id": f"{conversation}-{sequence}-{payload.get('by', '')}",
        "session_id": "s",
        "user_id": payload.pop("caller", conversation),
        kind: payload,
    }


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConversationStore]:
    store: ConversationStore = (
        MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "conversations.sqlite3")
    )
    await store.open()
    yield store
    await store.aclose()


async def numbers(store: ConversationStore, conversation_id: str = "c") -> list[int]:
    loaded = await store.load(conversation_id)
    assert loaded is not None
    return [event["sequence"] for event in loaded.events]


async def test_records_come_back_in_order_with_the_newest_state(store: ConversationStore) -> None:
    store.append("c", [record(0, text="one"), record(1)], {"turn": 1})
    store.append("c", [record(2)], {"turn": 2})
    store.append("c", [record(3)])
    loaded = await store.load("c")
    assert loaded is not None
    assert [event["sequence"] for event in loaded.events] == [0, 1, 2, 3]
    assert loaded.events[0] == record(0, text="one")
    assert (loaded.state, loaded.state_sequence) == ({"turn": 2}, 2)


async def test_what_was_appended_is_there_at_once_and_after_a_flush(store: ConversationStore) -> None:
    store.append("c", [record(0)], {"turn": 1})
    assert await numbers(store) == [0]
    store.append("c", [record(1)])
    assert await store.flush(5)
    assert await numbers(store) == [0, 1]


async def test_an_unknown_conversation_is_none_and_may_be_deleted(store: ConversationStore) -> None:
    assert await store.load("c") is None
    assert await store.events("c") == ()
    await store.delete("c")


async def test_a_state_alone_counts_for_everything_before_it(store: ConversationStore) -> None:
    store.append("c", [record(0), record(1)], {"turn": 1})
    assert await store.flush(5)
    store.append("c", [], {"turn": 2})
    loaded = await store.load("c")
    assert loaded is not None and (loaded.state, loaded.state_sequence) == ({"turn": 2}, 1)


async def test_changing_the_state_afterwards_changes_nothing_stored(store: ConversationStore) -> None:
    state: dict[str, Any] = {"list": [1]}
    store.append("c", [record(0)], state)
    state["list"].append(2)
    loaded = await store.load("c")
    assert loaded is not None and loaded.state == {"list": [1]}


async def test_the_same_record_twice_is_stored_once(store: ConversationStore) -> None:
    store.append("c", [record(0), record(1)])
    await store.flush(5)
    store.append("c", [record(0), record(1), record(2)])
    assert await numbers(store) == [0, 1, 2]


async def test_another_record_under_a_number_in_use_comes_after_it(store: ConversationStore) -> None:
    store.append("c", [record(0), record(1)])
    await store.flush(5)
    store.append("c", [record(0, by="other"), record(1, by="other")], {"turn": 9})
    loaded = await store.load("c")
    assert loaded is not None
    assert [event["sequence"] for event in loaded.events] == [0, 1, 2, 3]
    assert loaded.state_sequence == 3


async def test_gaps_in_the_numbers_stay(store: ConversationStore) -> None:
    store.append("c", [record(3), record(7)])
    store.append("c", [record(9)])
    assert await numbers(store) == [3, 7, 9]


async def test_only_the_newest_records_are_loaded(store: ConversationStore) -> None:
    store.append("c", [record(n) for n in range(50)], {"turn": 1})
    loaded = await store.load("c", max_events=5)
    assert loaded is not None
    assert [event["sequence"] for event in loaded.events] == [45, 46, 47, 48, 49]


async def test_records_are_read_page_by_page(store: ConversationStore) -> None:
    store.append("c", [record(n) for n in range(25)])
    await store.flush(5)
    pages, after = [], -1
    while page := await store.events("c", after=after, limit=10):
        pages.append([event["sequence"] for event in page])
        after = page[-1]["sequence"]
    assert pages == [list(range(10)), list(range(10, 20)), list(range(20, 25))]


async def test_conversations_are_listed_newest_first_page_by_page(store: ConversationStore) -> None:
    for n in range(7):
        store.append(f"c{n}", [record(0, conversation=f"c{n}"), record(1, conversation=f"c{n}")])
        await store.flush(5)
    store.append("c2", [record(2, conversation="c2")])
    await store.flush(5)
    seen, cursor = [], None
    while True:
        page = await store.conversations(limit=3, cursor=cursor)
        seen.append([c.id for c in page.conversations])
        cursor = page.next
        if cursor is None:
            break
    assert seen == [["c2", "c6", "c5"], ["c4", "c3", "c1"], ["c0"]]
    first = (await store.conversations(limit=1)).conversations[0]
    assert (first.events, first.caller) == (3, "c2")
    assert (first.started_at, first.updated_at) == ("2030-01-01T00:00:00.000Z", "2030-01-01T00:00:02.000Z")


async def test_conversations_are_found_by_their_caller(store: ConversationStore) -> None:
    for n, caller in enumerate(["ann", "bob", "ann", "eve"]):
        store.append(f"c{n}", [record(0, conversation=f"c{n}", caller=caller)])
        await store.flush(5)
    page = await store.conversations(caller="ann")
    assert [c.id for c in page.conversations] == ["c2", "c0"]
    assert (await store.conversations(caller="nobody")).conversations == ()


@pytest.mark.parametrize("cursor", ["1; DROP TABLE events", "", "x:y", "0x1p1:", f"1{'0' * 5000}"])
async def test_a_cursor_that_is_none_is_refused(store: ConversationStore, cursor: str) -> None:
    with pytest.raises(ValueError):
        await store.conversations(cursor=cursor)


@pytest.mark.parametrize("cursor", [f"1{'0' * 400}:1", f"0x1p1:1{'0' * 400}", f"0x1p1:-{2**63}"])
async def test_a_cursor_beyond_all_numbers_is_refused(tmp_path: Path, cursor: str) -> None:
    store = SqliteStore(tmp_path / "conversations.sqlite3")
    await store.open()
    with pytest.raises(ValueError):
        await store.conversations(cursor=cursor)
    await store.aclose()


async def test_a_deleted_conversation_is_gone_and_may_begin_anew(store: ConversationStore) -> None:
    store.append("c", [record(0), record(1)], {"turn": 1})
    store.append("d", [record(0, conversation="d")])
    await store.delete("c")
    assert await store.load("c") is None
    assert (await store.conversations()).conversations[0].id == "d"
    store.append("c", [record(0)])
    assert await numbers(store) == [0]


async def test_flat_rows_of_older_trackers_are_read(store: ConversationStore) -> None:
    store.append("c", [{"event": "user", "text": "hello", "timestamp": 1700000000.5}, {"event": "bot", "text": "hi"}])
    loaded = await store.load("c")
    assert loaded is not None
    assert [(e["event"], e["sequence"]) for e in loaded.events] == [("user", 0), ("bot", 1)]


async def test_json_inside_a_record_stays_text(store: ConversationStore) -> None:
    store.append("c", [record(0, "tool_executed", tool="t", arguments_json='{"a": 1}', result_json='"x"')])
    await store.flush(5)
    loaded = await store.load("c")
    assert loaded is not None
    payload = loaded.events[0]["tool_executed"]
    assert (payload["arguments_json"], payload["result_json"]) == ('{"a": 1}', '"x"')


@pytest.mark.parametrize("text", ["naïve ☎ 電話", "half a pair: \ud83d", "nul \x00 and quote ' \"; --", "x" * 300_000])
async def test_any_text_comes_back_as_it_was(store: ConversationStore, text: str) -> None:
    store.append("c", [record(0, text=text)], {"memory": [["project", "name", text]]})
    assert await store.flush(5)
    loaded = await store.load("c")
    assert loaded is not None and loaded.state is not None
    assert loaded.events[0]["user"]["text"] == text
    assert loaded.state["memory"][0][2] == text


async def test_closing_may_be_repeated(store: ConversationStore) -> None:
    store.append("c", [record(0)])
    await store.aclose()
    await store.aclose()
