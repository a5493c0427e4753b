"""Kills an agent in the middle of conversations, again and again, and looks at what it left behind.

    python -m tests.support.crashing_agent DIRECTORY KILLS SEED

Each agent is a process of its own that goes on with the one conversation of its predecessor until it is killed with
SIGKILL at a random instant. Prints what was found after each kill as one JSON document.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.model import ScriptedModel, tool_call
from tests.fakes.sink import CollectingSink
from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.config_files import ProjectConfig, load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.replay import replay
from voice_agent.dialogue.reply import UserInput
from voice_agent.dialogue.state import DialogueState, restore, snapshot
from voice_agent.llm.protocol import ModelRequest, ToolCall
from voice_agent.store import SqliteStore
from voice_agent.store.database import connect, prepare
from voice_agent.store.queries import read_conversation

CONVERSATION = "c"
MAX_TALK_S = 0.12
TOOLS = """
import asyncio, os, random
from voice_agent.dialogue import tool, ToolContext, ToolResult

async def done(name, context):
    await asyncio.sleep(random.uniform(0, 0.003))
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{name} {context.idempotency_key}\\n")
    context.memory.set("last", name)
    context.memory.set("count", (context.memory.get("count") or 0) + 1)
    await asyncio.sleep(random.uniform(0, 0.003))
    return ToolResult(llm_response={"key": context.idempotency_key})
"""
STEPS = ("fetch", "check", "reserve", "book")
FILES = {
    "skills/job/skill.md": skill(
        block("\n".join(f"- execute_tool: {name}" for name in (*STEPS, "pay")) + "\n- action: utter_done"),
        tool_constraints="[{pay: {requires_confirmation: {enabled: true}}}]",
    ),
    "skills/job/tools.py": TOOLS
    + "".join(
        f'\n@tool(description="x")\nasync def {name}(context: ToolContext = None) -> ToolResult:\n'
        f'    return await done("{name}", context)\n'
        for name in (*STEPS, "pay")
    ),
    "skills/job/memory.yml": "schema:\n  public:\n    last: {type: text}\n    count: {type: int}\n",
    "skills/job/responses.yml": "responses:\n  utter_done: Done.\n",
}


def answer(request: ModelRequest) -> ToolCall | str:
    """Confirm what is held, start the skill when it can be, and chat otherwise."""
    offered = {tool.name for tool in request.tools}
    if "confirm" in offered:
        return tool_call("confirm")
    if "start_skill" in offered and not any(message.role == "tool" for message in request.messages[-2:]):
        return tool_call("start_skill", skill="job")
    return "All right."


async def talk(config: ProjectConfig, path: Path, talking: int) -> None:
    """Go on with the conversation for ever."""
    store = SqliteStore(path)
    await store.open()
    conversation = Agent.load(config, ScriptedModel(then=answer), store=store).open(CONVERSATION, channel="text")
    os.write(talking, b".")
    while True:
        turn_id, sink = f"{os.getpid()}-{time.monotonic_ns()}", CollectingSink()
        await conversation.turn(UserInput("go on"), turn_id=turn_id, sink=sink, cancel=CancelToken())
        conversation.commit_reply(turn_id, sink.heard())


def run_and_kill(config: ProjectConfig, path: Path, dice: random.Random) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        random.seed(dice.random())
        try:
            asyncio.run(talk(config, path, write))
        finally:
            os._exit(1)
    os.close(write)
    started = os.read(read, 1)
    os.close(read)
    time.sleep(dice.uniform(0, MAX_TALK_S))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert started and os.WIFSIGNALED(status), "the agent ended before it was killed"


def state_of(config: ProjectConfig, stored: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the snapshot and the one that the records alone give."""
    project = Agent.load(config, ScriptedModel()).project
    states = [DialogueState(Memory(project.schema)) for _ in range(2)]
    restore(states[0], stored.state, project)
    replay(states[1], stored.events, project)
    return comparable(snapshot(states[0])), comparable(snapshot(states[1]))


def comparable(state: Mapping[str, Any]) -> dict[str, Any]:
    """What both the records and the snapshot tell."""
    return {
        "turn": state["turn"],
        "activations": state["activations"],
        "memory": sorted(map(str, state["memory"])),
        "session": state["session"]["id"],
        "user_turns": state["session"]["user_turns"],
        "stack": [frame["skill"] for frame in state["stack"]],
        "places": [[cursor["step"] for cursor in frame["cursors"]] for frame in state["stack"]],
    }


def main() -> None:
    directory, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    config = load_config(write_project(directory / "project", FILES), {})
    ledger, path = directory / "ledger", directory / "c.sqlite3"
    ledger.touch()
    os.environ["LEDGER"] = str(ledger)
    dice = random.Random(seed)
    found = []
    for _ in range(kills):
        run_and_kill(config, path, dice)
        prepare(path)
        connection = connect(path)
        stored = read_conversation(connection, CONVERSATION, 1_000_000)
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
        entry: dict[str, Any] = {"integrity": integrity, "ledger": ledger.read_text().splitlines()}
        if stored is not None:
            saved, replayed = state_of(config, stored)
            entry |= {"snapshot": saved, "replayed": replayed, "state_sequence": stored.state_sequence}
            entry["records"] = [(event["sequence"], *payload_of(event)) for event in stored.events]
        found.append(entry)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
