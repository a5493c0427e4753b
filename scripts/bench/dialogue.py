#!/usr/bin/env python3
"""What the dialogue engine itself costs, without a model, a voice or a wire.

    scripts/bench/dialogue.py [--rounds 200] [--json]

Measures, in CPU time of this process:

* a deterministic turn: a block that branches, runs a tool, sets memory, says a response and waits;
* loading a project of 200 skills, each with memory, responses, tools and a block;
* taking over a stored conversation of 2,000 records, and the prompt of its next turn;
* what the loop adds to a turn with one model call, over the same stream consumed bare;
* one iteration of the workflow react in the tagged format: prompt, parser, gates, a tool, its record;
* calling one hook of a plugin, beside what the hook itself does.

Ends with status 1 when a figure is over its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.hook_runner import HookRunner, HookSet
from voice_agent.dialogue.hooks import HookContext
from voice_agent.dialogue.memory import Memory, MemoryHandle, Schema, Writer
from voice_agent.dialogue.plugin_points import PluginPoint, TextPayload, hook, plugin_hook
from voice_agent.dialogue.reply import HeardReply, ReplyItem, UserInput
from voice_agent.llm.protocol import Finished, ModelEvent, ModelRequest, TextDelta, ToolCallDelta
from voice_agent.llm.tool_binding import ToolBinding
from voice_agent.store import MemoryStore

SENTENCE = "Your balance is forty two dollars and it is due on Friday. Anything else?"


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    milliseconds: float
    limit_ms: float
    worst_ms: float | None = None

    @property
    def is_kept(self) -> bool:
        return self.milliseconds <= self.limit_ms


class QuickModel:
    """Starts the first skill when it is asked to, otherwise says a sentence; all at once."""

    name = "quick"

    def __init__(self) -> None:
        self.start: str | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self.start is not None:
            skill, self.start = self.start, None
            yield ToolCallDelta(0, "c", "start_skill", json.dumps({"skill": skill}))
            yield Finished("tool_calls")
            return
        for word in SENTENCE.split():
            yield TextDelta(f"{word} ")
        yield Finished("stop")

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


class Nowhere:
    def emit(self, item: ReplyItem) -> None: ...


SKILL = """
---
name: Skill {n}
description: Does the thing number {n} for callers who ask for it.
requires: not session.project.blocked
tool_constraints:
  - read_{n}: {{requires: session.skill_{n}.ready}}
---
Help with number {n}. Name @block.main when it is time.

:::ordered_block id=main
steps:
  - id: prepare
    set_memory: {{ready: true}}
  - id: read
    execute_tool: read_{n}
  - id: which
    noop: true
    next:
      - if: session.skill_{n}.amount > 10 and session.skill_{n}.ready == True
        then: tell
      - else: END
  - id: tell
    action: utter_tell_{n}
  - id: wait
    execute_tool: listen
  - id: again
    noop: true
    next: prepare
:::
"""
LOOPING = SKILL.replace("Help with number {n}. Name @block.main when it is time.\n", "")
MEMORY = "schema:\n  public:\n    ready: {type: bool}\n    amount: {type: int}\n"
RESPONSES = "responses:\n  utter_tell_{n}:\n    - text: 'Number {n} is {{amount}}.'\n"
TOOLS = """
from voice_agent.dialogue import tool, ToolContext, ToolResult

@tool(description="Read number {n}")
async def read_{n}(context: ToolContext = None) -> ToolResult:
    context.memory.set("amount", 42)
    return ToolResult(llm_response={{"amount": 42}})
"""


def write_project(root: Path, skills: int, skill: str = SKILL) -> Path:
    files = {
        "agent.yml": "agent: {id: bench, persona: You are calm and helpful.}\nrules: [Be brief.]\n",
        "integrations.yml": "{}\n",
        "memory.yml": "blocked: {type: bool}\n",
    }
    for n in range(skills):
        for name, text in (
            ("skill.md", skill),
            ("memory.yml", MEMORY),
            ("responses.yml", RESPONSES),
            ("tools.py", TOOLS),
        ):
            files[f"skills/skill_{n}/{name}"] = MEMORY if text is MEMORY else text.format(n=n)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def load(root: Path, model: QuickModel, store: MemoryStore | None = None) -> Agent:
    return Agent.load(load_config(root, {}), model, store=store)


async def say(conversation: LiveConversation, text: str, number: int) -> None:
    await conversation.turn(UserInput(text), turn_id=f"t{number}", sink=Nowhere(), cancel=CancelToken())
    conversation.commit_reply(f"t{number}", HeardReply("Number 0 is 42."))


def figure(name: str, samples_s: list[float], limit_ms: float) -> Figure:
    return Figure(name, statistics.median(samples_s) * 1000, limit_ms, max(samples_s) * 1000)


async def deterministic_turn(root: Path, rounds: int) -> Figure:
    model = QuickModel()
    conversation = load(write_project(root, 1, LOOPING), model).open("bench", channel="text")
    model.start = "skill_0"
    await say(conversation, "begin", 0)
    samples = []
    for number in range(1, rounds + 1):
        began = time.process_time()
        await say(conversation, "go on", number)
        samples.append(time.process_time() - began)
    assert sum("tool_executed" in event for event in conversation.events) >= 2 * rounds, "the block did not run"
    return figure("deterministic turn (branch, tool, memory, response)", samples, 1.0)


def load_200_skills(root: Path) -> Figure:
    write_project(root, 200)
    samples = []
    for _ in range(3):
        began = time.process_time()
        agent = load(root, QuickModel())
        samples.append(time.process_time() - began)
        assert len(agent.project.skills) >= 200
    return figure("load 200 skills", samples, 1000.0)


async def replay(root: Path, rounds: int) -> Figure:
    """Take over 2,000 records: the first turn of a conversation that another process has begun."""
    store, model = MemoryStore(), QuickModel()
    conversation = load(write_project(root, 3), model, store).open("long", channel="text")
    number = 0
    while len(conversation.events) < 2000:
        await say(conversation, f"question number {number}", number)
        number += 1
    await conversation.close("disconnected")
    samples = []
    for _ in range(rounds):
        again = load(root, model, store).open("long", channel="text")
        began = time.process_time()
        await again.turn(UserInput("hello"), turn_id="again", sink=Nowhere(), cancel=CancelToken())
        samples.append(time.process_time() - began)
        assert len(again.events) >= 2000
    return figure("replay 2,000 records and answer", samples, 50.0)


async def loop_overhead(root: Path, rounds: int) -> Figure:
    model = QuickModel()
    conversation = load(write_project(root, 20), model).open("bench", channel="websocket")
    samples = []
    for number in range(rounds):
        began = time.process_time()
        await say(conversation, "tell me", number)
        whole = time.process_time() - began
        began = time.process_time()
        async with aclosing(model.stream(ModelRequest(()))) as stream:
            async for _ in stream:
                pass
        samples.append(whole - (time.process_time() - began))
    return figure("what the loop adds to a model turn (20 skills)", samples, 2.0)


class TaggedModel:
    """Uses a tool a few times and then answers, in the tagged format."""

    name = "tagged"

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.calls += 1
        number = self.calls % (ITERATIONS + 1)
        if self.calls == 1:
            text = "<action>start_skill</action><input>skill_0</input>"
        elif number:
            text = f'I need to see. <action>look</action><input>{{"what": "thing {number}"}}</input>'
        else:
            text = f"<answer>{SENTENCE}</answer>"
        for piece in re.findall(r".{1,4}", text):
            yield TextDelta(piece)
        yield Finished("stop")

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


ITERATIONS = 5
LOOK = """
from voice_agent.dialogue import tool, ToolResult

@tool(description="Look something up")
async def look(what: str) -> ToolResult:
    return ToolResult(llm_response={"found": what})
"""


async def react_iteration(root: Path, rounds: int) -> Figure:
    write_project(root, 20)
    (root / "agent.yml").write_text(
        "agent: {id: bench, persona: You are calm.}\nworkflow: react\nreact: {max_iterations: 6}\n"
    )
    (root / "skills/skill_0/skill.md").write_text("---\nname: One\ndescription: The thing.\n---\nLook it up.\n")
    (root / "skills/skill_0/tools.py").write_text(LOOK)
    model = TaggedModel()
    agent = Agent.load(load_config(root, {}), ToolBinding(model, "tagged"))
    conversation = agent.open("bench", channel="text")
    await say(conversation, "begin", 0)
    samples = []
    for number in range(1, rounds + 1):
        before, began = model.calls, time.process_time()
        await say(conversation, "tell me", number)
        samples.append((time.process_time() - began) / max(1, model.calls - before))
    assert model.calls > rounds * ITERATIONS, "the tool was not used"
    return figure("one iteration of react, tagged, with a tool (20 skills)", samples, 2.0)


async def hook_dispatch(rounds: int, *, threaded: bool) -> Figure:
    hooks = 20
    source = "def agent_prompt_suffix(suffix, context): return None"
    space: dict[str, Any] = {}
    exec(source if threaded else f"async {source}", space)
    one = plugin_hook(hook(space["agent_prompt_suffix"]), "bench")
    assert one is not None
    memory = Memory(Schema([]), lambda *_: None)
    context = HookContext("c", "t", "text", False, MemoryHandle(memory, None, Writer.HOOK))
    runner = HookRunner(HookSet([one] * hooks), lambda may_write, settings=None: context)
    token, payload, samples = CancelToken(), TextPayload("x"), []
    for _ in range(rounds):
        began = time.process_time()
        await runner.check(PluginPoint.PROMPT_SUFFIX, payload, token)
        samples.append((time.process_time() - began) / hooks)
    name = "one hook of a plugin, in a thread" if threaded else "one hook of a plugin, async"
    return figure(name, samples, 0.2 if threaded else 0.02)


def on_uvloop(work: Coroutine[Any, Any, Figure]) -> Figure:
    """Run ``work`` on the loop that the service runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def measure(rounds: int) -> list[Figure]:
    def within(work: Callable[[Path], Figure]) -> Figure:
        with tempfile.TemporaryDirectory() as folder:
            return work(Path(folder))

    return [
        within(lambda root: asyncio.run(deterministic_turn(root, rounds))),
        within(load_200_skills),
        within(lambda root: asyncio.run(replay(root, 5))),
        within(lambda root: asyncio.run(loop_overhead(root, rounds))),
        within(lambda root: asyncio.run(react_iteration(root, max(10, rounds // 4)))),
        on_uvloop(hook_dispatch(rounds, threaded=False)),
        on_uvloop(hook_dispatch(rounds, threaded=True)),
    ]


def show(figures: list[Figure]) -> None:
    table = Table(title="The dialogue engine, CPU time")
    for heading in ("", "median", "worst", "limit", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for one in figures:
        worst = "" if one.worst_ms is None else f"{one.worst_ms:.2f} ms"
        verdict = "[green]kept[/]" if one.is_kept else "[red]over[/]"
        table.add_row(one.name, f"{one.milliseconds:.3g} ms", worst, f"{one.limit_ms:g} ms", verdict)
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options.rounds)
    if options.json:
        print(json.dumps([asdict(one) for one in figures], indent=2))
    else:
        show(figures)
    return 0 if all(one.is_kept for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
