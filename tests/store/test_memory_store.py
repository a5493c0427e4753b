"""The store in memory keeps what it is given, within its bounds."""

from __future__ import annotations

import pytest

from voice_agent.store import MemoryStore, StoredConversation


async def test_events_are_appended_and_the_state_is_replaced() -> None:
    store = MemoryStore()
    store.append("c", [{"n": 0}], {"turn": 1})
    store.append("c", [{"n": 1}], {"turn": 2})
    store.append("c", [{"n": 2}], None)
    records = tuple({"n": n, "sequence": n} for n in range(3))
    assert await store.load("c") == StoredConversation(records, {"turn": 2}, 1)


async def test_an_unknown_conversation_is_none_and_may_be_deleted() -> None:
    store = MemoryStore()
    assert await store.load("c") is None
    await store.delete("c")


async def test_a_loaded_state_is_nobody_elses() -> None:
    store = MemoryStore()
    state: dict[str, list[int]] = {"list": [1]}
    store.append("c", [], state)
    state["list"].append(2)
    loaded = await store.load("c")
    assert loaded is not None and loaded.state is not None
    loaded.state["list"].append(3)
    again = await store.load("c")
    assert again is not None and again.state == {"list": [1]}


async def test_the_conversation_untouched_for_longest_goes_first() -> None:
    store = MemoryStore(max_conversations=2)
    for id in ("a", "b", "a", "c"):
        store.append(id, [], {})
    assert [await store.load(id) is not None for id in ("a", "b", "c")] == [True, False, True]


async def test_only_the_newest_events_are_kept() -> None:
    store = MemoryStore(max_events=3)
    store.append("c", [{"n": n} for n in range(5)], None)
    loaded = await store.load("c")
    assert loaded is not None and [e["n"] for e in loaded.events] == [2, 3, 4]


async def test_a_conversation_is_forgotten_after_its_time() -> None:
    now = [0.0]
    store = MemoryStore(ttl_s=10, clock=lambda: now[0])
    store.append("old", [], {})
    now[0] = 6
    store.append("young", [], {})
    now[0] = 11
    assert (await store.load("old"), await store.load("young") is not None) == (None, True)
    assert len(store) == 1


async def test_closing_empties_it_and_may_be_repeated() -> None:
    store = MemoryStore()
    store.append("c", [], {})
    await store.aclose()
    await store.aclose()
    assert len(store) == 0


@pytest.mark.parametrize("bounds", [{"max_conversations": 0}, {"max_events": 0}, {"ttl_s": 0}])
def test_bounds_must_be_positive(bounds: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        MemoryStore(**bounds)  # type: ignore[arg-type]
