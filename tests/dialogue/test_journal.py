"""A conversation reaches its store while it happens, and comes back from it as it was."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import sqlite3
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import block, caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.reply import SESSION_START, HeardReply
from voice_agent.store import MemoryStore, SqliteStore, StoredConversation

START = tool_call("start_skill", skill="job")
FILES = {
    "skills/job/skill.md": skill(
        block("- execute_tool: fetch\n- execute_tool: hang\n- action: utter_done"),
    ),
    "skills/job/tools.py": """
        import asyncio
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="x")
        async def fetch(context: ToolContext = None) -> ToolResult:
            context.memory.set("found", "seven")
            return ToolResult(llm_response={"found": "seven"})

        @tool(description="x")
        async def hang(context: ToolContext = None) -> ToolResult:
            await asyncio.sleep(1)
            return ToolResult(llm_response={"hung": True})
        """,
    "skills/job/memory.yml": "schema:\n  public:\n    found: {type: text}\n",
    "skills/job/responses.yml": "responses:\n  utter_done: Done.\n",
    "skills/default_session_start/skill.md": skill(block("- action: utter_greet"), routing="{engine_managed: true}"),
    "skills/default_session_start/responses.yml": "responses:\n  utter_greet: Welcome.\n",
}


class Snapshots(MemoryStore):
    """Keeps what each hand-over brought."""

    def __init__(self) -> None:
        super().__init__()
        self.handed: list[tuple[list[str], Any]] = []

    def append(
        self, conversation_id: str, events: Sequence[Mapping[str, Any]], state: Mapping[str, Any] | None = None
    ) -> None:
        super().append(conversation_id, events, state)
        self.handed.append(([payload_of(event)[0] for event in events], json.loads(json.dumps(state))))


async def killed_at(store: MemoryStore, moment: StoredConversation) -> MemoryStore:
    """Return a store with what would be left if the process had died at ``moment``."""
    left = MemoryStore()
    left.append("c1", moment.events, moment.state)
    return left


@virtual_time
async def test_records_are_handed_over_when_the_turn_waits_and_not_only_at_its_end(tmp_path: Path) -> None:
    store = Snapshots()
    bench = caller(tmp_path, FILES, [START], store=store)
    turn = asyncio.ensure_future(bench.says("go"))
    await asyncio.sleep(0.5)
    handed = [kind for kinds, _ in store.handed for kind in kinds]
    assert handed[-2:] == ["tool_executed", "mcp_tool_executed"]
    assert handed == bench.kinds
    (frame,) = store.handed[-1][1]["stack"]
    assert [c["step"] for c in frame["cursors"]] != [None], "in the middle of the block"
    await turn
    assert [kind for kinds, _ in store.handed for kind in kinds] == bench.kinds


@virtual_time
async def test_a_process_that_died_in_a_tool_has_run_the_tools_before_it_once(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", FILES, [START], store=store)
    turn = asyncio.ensure_future(bench.says("go"))
    await asyncio.sleep(0.5)
    stored = await store.load("c1")
    assert stored is not None
    left = await killed_at(store, stored)
    await turn

    later = caller(tmp_path / "b", FILES, ["Where were we?"], store=left)
    later._turns = itertools.count(10)
    await later.says("hello?")
    tools = [p["tool"] for p in later.events("tool_executed")]
    assert tools == ["fetch", "hang"], "the first is not run again, the one that was cut off is"
    assert later.read("job", "found") == "seven"
    ends = [(p["turn_id"], p["status"], p.get("reason")) for p in later.events("turn_finished")]
    assert ends == [("t0.start", "completed", None), ("t0", "cancelled", "crash"), ("t10", "completed", None)]
    history = later.model.requests[0].messages
    assert any(m.role == "tool" and "seven" in m.content for m in history), "the next turn knows the result"
    assert any(m.role == "user" and m.content == "go" for m in history)


@pytest.mark.parametrize(("after_s", "greeted"), [(5, False), (29, False), (60, True)])
async def test_a_caller_who_comes_back_after_a_crash_is_greeted_only_when_it_was_long_ago(
    tmp_path: Path, after_s: float, greeted: bool
) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", FILES, ["Hi."], store=store)
    await bench.connects()
    await bench.says("hello")
    later = caller(tmp_path / "b", FILES, ["Again."], store=store)
    later.calendar.advance(seconds=after_s)
    assert bool((await later.connects()).messages) == greeted
    session = later.conversation.events[-1]["session_id"]
    assert session == bench.conversation.events[0]["session_id"], "the session is the same"
    assert (await later.says("and now?")).messages == ["Again."]


async def test_a_session_that_expired_while_nothing_ran_begins_anew_with_its_tracker_kept(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", FILES, ["Hi."], store=store)
    await bench.says("hello")
    later = caller(tmp_path / "b", FILES, ["Anew."], store=store)
    later.calendar.advance(minutes=61)
    assert (await later.says("hello again")).messages == ["Welcome.", "Anew."]
    assert [p["text"] for p in later.events("user")][1] == "hello"
    assert len({e["session_id"] for e in later.conversation.events}) == 2


async def test_a_lost_line_survives_the_restart_too(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", FILES, ["Hi."], store=store)
    await bench.says("hello")
    bench.calendar.advance(minutes=5)
    await bench.conversation.close("dropped")
    later = caller(tmp_path / "b", FILES, [], store=store)
    later.calendar.advance(minutes=5, seconds=20)
    assert (await later.connects()).messages == []


async def test_closing_an_unused_known_conversation_leaves_it_as_it_was(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", FILES, [START], store=store, model=None)
    await bench.says("hello", heard=HeardReply("Welcome."))
    before = await store.load("c1")
    later = caller(tmp_path / "b", FILES, store=store)
    later.conversation.note("backchannel", text="mm")
    await later.conversation.close("disconnected")
    after = await store.load("c1")
    assert before is not None and after is not None and before.state is not None and after.state is not None
    assert after.state["session"]["id"] == before.state["session"]["id"] != ""
    assert after.state["stack"] == before.state["stack"]
    assert [payload_of(e)[0] for e in after.events] == [*(payload_of(e)[0] for e in before.events), "backchannel"]
    assert [e["sequence"] for e in after.events] == list(range(len(after.events)))


async def test_closing_a_conversation_that_never_was_stores_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    await caller(tmp_path, FILES, store=store).conversation.close("completed")
    assert len(store) == 0


async def test_what_was_heard_is_stored_at_once(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path, FILES, ["Hello."], store=store)
    await bench.says("hi", commit=False)
    bench.conversation.commit_reply("t0", HeardReply("Hel", "lo."))
    stored = await store.load("c1")
    assert stored is not None and payload_of(stored.events[-1]) == (
        "bot", {"turn_id": "t0", "text": "Hel", "interrupted": True, "unheard": "lo."},
    )  # fmt: skip


class Unreadable(MemoryStore):
    """Hands out a snapshot that the records have outrun, or that makes no sense."""

    def __init__(self, state: Any, sequence: int | None) -> None:
        super().__init__()
        self._as_stored = (state, sequence)

    async def load(self, conversation_id: str, **options: Any) -> StoredConversation | None:
        stored = await super().load(conversation_id, **options)
        return stored and StoredConversation(stored.events, *self._as_stored)


@pytest.mark.parametrize("state", [None, {}, {"version": 1, "turn": "many"}, {"turn": 1, "memory": 7}])
async def test_without_a_snapshot_that_fits_the_records_are_replayed(tmp_path: Path, state: Any) -> None:
    """The records are the source of truth."""
    store = Unreadable(state, None if state is None else 10_000)
    first = caller(tmp_path / "a", FILES, [START, "Anything else?"], store=store)
    turn = await first.says("go")
    assert turn.messages[0] == "Welcome."
    later = caller(tmp_path / "b", FILES, ["Sure."], store=store)
    await later.says("one more thing")
    assert later.read("job", "found") == "seven"
    assert later.conversation.events[-1]["session_id"] == first.conversation.events[0]["session_id"]
    assert [p["number"] for p in later.events("turn_started")] == [1, 2, 3]
    assert len(later.events("tool_executed")) == 2


async def test_records_newer_than_the_snapshot_are_replayed_over_it(tmp_path: Path) -> None:
    kept = Snapshots()
    first = caller(tmp_path / "a", FILES, [START], store=kept)
    await first.says("go")
    seen, behind = -1, None
    for kinds, state in kept.handed:
        seen += len(kinds)
        if kinds[-1] == "mcp_tool_executed":
            break
        behind = (state, seen)
    assert behind is not None
    store = Unreadable(*behind)
    stored = await kept.load("c1")
    assert stored is not None
    store.append("c1", stored.events)
    later = caller(tmp_path / "b", FILES, ["Sure."], store=store)
    await later.says("one more thing")
    assert later.read("job", "found") == "seven"
    assert [p["number"] for p in later.events("turn_started")] == [1, 2, 3]


async def test_a_conversation_nobody_holds_is_gone_without_the_collector(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hello."], store=MemoryStore())
    await bench.says("hi")
    await bench.conversation.close("disconnected")
    gone = weakref.ref(bench.conversation._journal)
    gc.disable()
    try:
        bench.conversation = None  # type: ignore[assignment]
        await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()


async def test_a_conversation_in_a_file_goes_on_from_it(tmp_path: Path) -> None:
    for number in range(3):
        store = SqliteStore(tmp_path / "c.sqlite3")
        await store.open()
        bench = caller(tmp_path / str(number), FILES, model=ScriptedModel(["Hi."]), store=store)
        bench._turns = itertools.count(10 * number)
        await bench.says("hello")
        await bench.conversation.close("disconnected")
        await store.aclose()
    assert [p["text"] for p in bench.events("user")] == [SESSION_START.text, "hello", "hello", "hello"]
    assert [e["sequence"] for e in bench.conversation.events] == list(range(len(bench.conversation.events)))
    request = bench.model.requests[0].messages
    assert [m.content for m in request if m.role == "user"] == ["hello"] * 3


async def test_a_call_goes_on_while_its_disk_takes_nothing_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    store = SqliteStore(path)
    await store.open()
    bench = caller(tmp_path / "a", FILES, ["One.", "Two."], store=store)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert (await bench.says("hello")).messages == ["Welcome.", "One."]
    assert (await bench.says("and?")).messages == ["Two."]
    holder.execute("ROLLBACK")
    holder.close()
    await bench.conversation.close("completed")
    assert await store.flush(10)
    assert list(await store.events("c1")) == list(bench.conversation.events)
    await store.aclose()


async def test_a_store_that_cannot_be_read_costs_the_caller_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = caller(tmp_path / "a", FILES, ["Hello."], store=SqliteStore(tmp_path / "never-opened.sqlite3"))
    assert (await bench.says("hi")).messages == ["Welcome.", "Hello."]
    assert [m for m in caplog.messages if "begins anew" in m]
