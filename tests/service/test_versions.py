"""A project that changes while conversations go on: a running turn keeps its version, later ones have the new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.fakes.sink import CollectingSink
from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.reply import SESSION_START, HeardReply, TurnStatus, UserInput
from voice_agent.service.versions import AgentVersions, VersionedConversation
from voice_agent.store import MemoryStore

STEPS = """
- id: ask
  collect: day
  utterance: utter_ask
- id: look
  execute_tool: look
- id: tell
  action: utter_told
"""
TOOL = (
    "import asyncio\nfrom voice_agent.dialogue import ToolContext, ToolResult, tool\n\n\n"
    '@tool(description="x")\nasync def look(context: ToolContext = None) -> ToolResult:\n'
    '    await asyncio.sleep(0.3)\n    return ToolResult(llm_response={"version": 1})\n'
)
FILES: Mapping[str, str] = {
    "responses.yml": """
        responses:
          utter_greet: Hello from one.
          utter_ask: Which day, says one?
          utter_told: One told.
        """,
    "skills/default_session_start/skill.md": skill(
        block("- id: g\n  action: utter_greet"), routing="{engine_managed: true}"
    ),
    "skills/a/skill.md": skill(block(STEPS)),
    "skills/a/memory.yml": "schema:\n  public:\n    day: {type: text}\n",
    "skills/a/tools.py": TOOL,
}


class Bench:
    """One conversation over all versions of a small project."""

    def __init__(self, root: Path, script: Iterable[Entry]) -> None:
        self.root, self.store, self.model = root, MemoryStore(), ScriptedModel(script)
        self.versions = AgentVersions(self._load(FILES))
        self.conversation: VersionedConversation = self.versions.open("c1", channel="text")
        self._turns = 0

    def _load(self, files: Mapping[str, str]) -> Agent:
        return Agent.load(load_config(write_project(self.root, files), {}), self.model, store=self.store)

    def edited(self, **texts: tuple[str, str]) -> Agent:
        """Replace texts in files and load the result; keys are `responses`, `skill`, `tools`."""
        paths = {"responses": "responses.yml", "skill": "skills/a/skill.md", "tools": "skills/a/tools.py"}
        files = {paths[key]: (self.root / paths[key]).read_text().replace(*change) for key, change in texts.items()}
        return self._load({**{p: (self.root / p).read_text() for p in FILES}, **files})

    def edit(self, **texts: tuple[str, str]) -> None:
        """Edit as `edited` does and use the result from now on."""
        self.versions.replace(self.edited(**texts))

    async def says(self, text: str | UserInput, cancel: CancelToken | None = None) -> list[str]:
        user = UserInput(text) if isinstance(text, str) else text
        self._turns += 1
        sink, turn_id = CollectingSink(), f"t{self._turns}"
        self.result = await self.conversation.turn(user, turn_id=turn_id, sink=sink, cancel=cancel or CancelToken())
        self.conversation.commit_reply(turn_id, sink.heard())
        return sink.messages

    def kinds(self) -> list[str]:
        return [payload_of(event)[0] for event in self.conversation.events]


START = tool_call("start_skill", skill="a")


async def test_a_later_turn_uses_the_new_wording_and_goes_on_in_the_same_step(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [START, tool_call("listen"), tool_call("set_fields", day="Monday")])
    assert await bench.says(SESSION_START) == ["Hello from one."]
    assert await bench.says("start") == ["Which day, says one?"]
    bench.edit(responses=("One told", "Two told"), tools=('"version": 1', '"version": 2'))
    assert (await bench.says("Monday"))[0] == "Two told."
    results = [p["result_json"] for k, p in map(payload_of, bench.conversation.events) if k == "tool_executed"]
    assert results[-1] == '{"version": 2}'


async def test_a_running_turn_keeps_its_version(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [START, tool_call("listen"), tool_call("set_fields", day="Monday")])
    await bench.says("start")
    newer = bench.edited(responses=("One told", "Two told"))
    running = asyncio.ensure_future(bench.says("Monday"))
    await asyncio.sleep(0.02)
    bench.versions.replace(newer)
    assert (await running)[0] == "One told."


async def test_a_turn_that_follows_a_cancelled_one_waits_for_it_and_loses_nothing(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        [START, tool_call("listen"), tool_call("set_fields", day="Monday")],
    )
    await bench.says("start")
    newer, token = bench.edited(responses=("One told", "Two told")), CancelToken()
    running = asyncio.ensure_future(bench.says("Monday", token))
    await asyncio.sleep(0.02)
    bench.versions.replace(newer)
    token.cancel(CancelReason.BARGE_IN)
    await running
    assert bench.result.status is TurnStatus.CANCELLED
    bench.model._script.append("Fine.")
    assert (await bench.says("go on"))[0] == "Two told."
    assert bench.kinds().count("tool_executed") == 1 + 1  # listen, look


async def test_a_turn_cancelled_while_it_waits_changes_no_hands(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [START, tool_call("listen"), tool_call("set_fields", day="Monday")])
    await bench.says("start")
    newer = bench.edited(responses=("One told", "Two told"))
    running = asyncio.ensure_future(bench.says("Monday"))
    await asyncio.sleep(0.02)
    bench.versions.replace(newer)
    token = CancelToken()
    second = asyncio.ensure_future(
        bench.conversation.turn(UserInput("x"), turn_id="x", sink=CollectingSink(), cancel=token)
    )
    await asyncio.sleep(0.01)
    token.cancel(CancelReason.SUPERSEDED)
    assert (await second).status is TurnStatus.CANCELLED
    assert (await running)[0] == "One told."


async def test_a_step_that_is_gone_ends_its_skill_and_the_conversation_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [START, tool_call("listen"), "What would you like?"])
    await bench.says("start")
    bench.edit(skill=("id: ask", "id: question"))
    assert await bench.says("Monday") == ["What would you like?"]


async def test_the_tracker_goes_on_without_gap_or_repeat_and_listeners_hear_both_versions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["One.", "Two."])
    heard: list[int] = []
    forget = bench.conversation.on_event(lambda event: heard.append(event["sequence"]))
    await bench.says("hello")
    bench.edit(responses=("Hello from one", "Hello from two"))
    await bench.says("hello")
    sequences = [event["sequence"] for event in bench.conversation.events]
    assert sequences == list(range(len(sequences)))
    assert heard == sequences
    stored = await bench.store.load("c1")
    assert stored is not None
    assert [event["sequence"] for event in stored.events] == sequences
    forget()
    await bench.says("/silence")
    assert len(heard) == len(sequences)


async def test_a_reply_is_committed_once_whichever_version_said_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["One.", "Two."])
    await bench.says("hello")
    bench.edit(responses=("Hello from one", "Hello from two"))
    await bench.says("hello")
    bench.conversation.commit_reply("t1", HeardReply("again"))
    said = [p["text"] for k, p in map(payload_of, bench.conversation.events) if k == "bot"]
    assert "One." in " ".join(said) and "again" not in said


async def test_a_new_conversation_begins_with_the_newest_version_and_one_id_is_one_conversation(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    bench.edit(responses=("Hello from one", "Hello from two"))
    other = bench.versions.open("c2", channel="text")
    assert bench.versions.open("c2", channel="websocket") is other
    sink = CollectingSink()
    await other.turn(SESSION_START, turn_id="x", sink=sink, cancel=CancelToken())
    assert sink.messages == ["Hello from two."]
    assert other.line("utter_greet") == "Hello from two."


async def test_after_the_end_nothing_of_earlier_versions_is_held(tmp_path: Path) -> None:
    import gc
    import weakref

    bench = Bench(tmp_path, ["One.", "Two."])
    await bench.says("hello")
    first = weakref.ref(bench.conversation._conversation)
    bench.edit(responses=("Hello from one", "Hello from two"))
    await bench.says("hello")
    await bench.conversation.close("completed")
    gc.collect()
    assert first() is None
    with pytest.raises(ValueError, match="kind"):
        bench.conversation.note("not a kind")
