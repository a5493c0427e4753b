"""Plugins: found in the project or installed, called in order, each for itself, and never a caller's problem."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import AGENT, Caller, caller, cancel_after, skill, write_project
from tests.support.virtual_time import virtual_time
from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem, ProjectError, Severity
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.hook_runner import MODIFY_LIMIT_S
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.plugin_loading import load_plugins
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.dialogue.tool_loading import project_imports
from voice_agent.service.reloading import Reloader
from voice_agent.service.versions import AgentVersions
from voice_agent.store import MemoryStore

IMPORT = "import asyncio, time\nfrom voice_agent.dialogue.plugins import *\n"
START = tool_call("start_skill", skill="desk")
BASE = {
    "skills/desk/skill.md": skill("Help.", description="The desk.", import_tools="[look, sum_up]"),
    "skills/desk/tools.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Hold")
        async def hold() -> ToolResult:
            return ToolResult(llm_response={})
        """,
    "tools/shared.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Look")
        async def look(what: str) -> ToolResult:
            return ToolResult(llm_response={"by": "project"})

        @tool(description="Add")
        async def sum_up(a: int) -> ToolResult:
            return ToolResult(llm_response={"by": "project"})
        """,
    "references/hours.md": "# Opening hours\nWe open at nine.\n",
}


def plugged(root: Path, plugins: dict[str, str], script: Iterable[Any] = (), **more: Any) -> Caller:
    """Return a conversation of a project whose ``plugins/`` has these files."""
    code = {f"plugins/{name}": text if "import" in text else IMPORT + text for name, text in plugins.items()}
    return caller(root, {**BASE, **more.pop("files", {}), **code}, script, **more)


def system(bench: Caller, call: int = -1) -> str:
    return str(bench.model.requests[call].messages[0].content)


async def test_prefix_and_suffix_of_the_prompt_are_changed(tmp_path: Path) -> None:
    text = """
@hook
def agent_prompt_prefix(prefix, cat):
    return "You are a specialist.\\n" + prefix

@hook(priority=3)
async def agent_prompt_suffix(suffix):
    return suffix + "The end {braces}."
"""
    bench = plugged(tmp_path, {"p.py": text}, ["Hello."])
    await bench.says("hi")
    assert system(bench).startswith("You are a specialist.\nYou are Agent.")
    assert system(bench).endswith("The end {braces}.")


async def test_higher_priorities_run_first_then_names_decide_and_the_projects_hooks_come_last(tmp_path: Path) -> None:
    add = "@hook{}\ndef message_in(message, context):\n    return message.text + '{}'\n"
    files = {"hooks.py": "async def modify_incoming_message(payload):\n    return payload.text + 'z'\n"}
    plugins = {"b.py": add.format("", "b"), "a.py": add.format("", "a"), "c.py": add.format("(priority=9)", "c")}
    bench = plugged(tmp_path, plugins, ["Hello."], files=files)
    await bench.says("-")
    assert bench.events("user")[-1]["text"] == "-cabz"


@pytest.mark.parametrize(
    "body",
    [
        "raise RuntimeError('x')",
        "raise SystemExit",
        "raise StopIteration",
        "raise asyncio.CancelledError",
        "return 7",
        "return object()",
        "return ['x']",
        "return None",
        "suffix.nothing()",
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_hook_that_fails_is_left_out_and_the_others_run(
    tmp_path: Path, body: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = f"@hook(priority=5)\n{kind} agent_prompt_suffix(suffix, context):\n    {body}\n"
    sound = "@hook\ndef agent_prompt_suffix(suffix, context):\n    return suffix + 'sound'\n"
    bench = plugged(tmp_path, {"broken.py": broken, "sound.py": sound}, ["Hello."])
    said = await bench.says("hi")
    assert (said.messages, system(bench).endswith("sound")) == (["Hello."], True)
    assert ("plugin broken" in caplog.text) == (body != "return None")


@virtual_time
async def test_an_async_hook_that_hangs_costs_its_limit_and_no_more(tmp_path: Path) -> None:
    text = """
@hook
async def agent_prompt_suffix(suffix, context):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(1)
    return "late"
"""
    bench = plugged(tmp_path, {"p.py": text}, ["Hello."])
    began = asyncio.get_running_loop().time()
    assert (await bench.says("hi")).messages == ["Hello."]
    assert asyncio.get_running_loop().time() - began < MODIFY_LIMIT_S + 0.5
    assert "late" not in system(bench)
    await asyncio.sleep(2)


async def test_a_hook_that_blocks_holds_up_neither_the_loop_nor_later_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voice_agent.dialogue.hook_runner.MODIFY_LIMIT_S", 0.2)
    started, go = tmp_path / "started", tmp_path / "go"
    text = f"""
import pathlib

@hook
def agent_prompt_suffix(suffix, context):
    with pathlib.Path({str(started)!r}).open("a") as file:
        file.write("x")
    while not pathlib.Path({str(go)!r}).exists():
        time.sleep(0.01)
    return "late"
"""
    bench = plugged(tmp_path / "project", {"p.py": IMPORT + text}, ["One.", "Two."])
    try:
        # It comes back only at the end: a loop that waited for it would wait for ever.
        assert (await bench.says("a")).messages == ["One."]
        assert (await bench.says("b")).messages == ["Two."]
        assert started.read_text() == "x"
    finally:
        go.touch()


@virtual_time
async def test_a_cancelled_turn_does_not_wait_for_a_hook(tmp_path: Path) -> None:
    text = "@hook\nasync def agent_prompt_suffix(suffix, context):\n    await asyncio.sleep(1.9)\n"
    bench = plugged(tmp_path, {"p.py": text}, ["Hello."])
    token, loop = CancelToken(), asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, CancelReason.BARGE_IN))
        said = await bench.says("hi", cancel=token)
    assert (said.result.status, loop.time() - began) == (TurnStatus.CANCELLED, 0.5)


async def test_each_hook_has_a_copy_of_its_own(tmp_path: Path) -> None:
    text = """
@hook(priority=2)
def agent_allowed_tools(tools, context):
    tools.clear()

@hook(priority=1)
def before_recall(query, context):
    object.__setattr__(query, "query", "scribbled")
"""
    script = [START, tool_call("search_knowledge", query="hours"), "At nine."]
    bench = plugged(tmp_path, {"p.py": text}, script)
    await bench.says("when")
    assert "look" in {tool.name for tool in bench.model.requests[-1].tools}
    assert bench.events("knowledge_searched")[-1]["query"] == "hours"


# --- tools -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["[t for t in tools if t.name != 'look']", "{'hold', 'made_up'}", "('hold',)"])
async def test_tools_are_taken_away_and_a_call_to_one_is_refused(tmp_path: Path, given: str) -> None:
    text = f"@hook\ndef agent_allowed_tools(tools, context):\n    return {given}\n"
    bench = plugged(tmp_path, {"p.py": text}, [START, tool_call("look", what="x"), "Sorry."])
    await bench.says("go")
    offered = {tool.name for tool in bench.model.requests[-1].tools}
    assert ("look" in offered, "hold" in offered, "made_up" in offered) == (False, True, False)
    assert {"complete", "hangup"} <= offered
    assert bench.events("tool_executed") == []


async def test_without_any_tool_left_the_model_talks(tmp_path: Path) -> None:
    bench = plugged(
        tmp_path, {"p.py": "@hook\ndef agent_allowed_tools(tools):\n    return []\n"}, [START, "Just talk."]
    )
    assert (await bench.says("go")).messages == ["Just talk."]


TOOL = """
@tool(description="Weather")
async def weather(city: str) -> ToolResult:
    return ToolResult(llm_response={"by": "%s"})

@tool(description="Look")
async def look(what: str) -> ToolResult:
    return ToolResult(llm_response={"by": "%s"})
"""


async def test_a_skill_imports_a_tool_of_a_plugin_and_of_two_the_first_by_name_is_used(tmp_path: Path) -> None:
    files = {"skills/desk/skill.md": skill("Help.", description="The desk.", import_tools="[look, weather]")}
    script = [START, tool_call("weather", city="x"), tool_call("look", what="y"), "Done."]
    plugins = {"b.py": TOOL % ("b", "b"), "a/__init__.py": "", "a/parts.py": TOOL % ("a", "a")}
    bench = plugged(tmp_path, plugins, script, files=files)
    await bench.says("go")
    assert [e["result_json"] for e in bench.events("tool_executed")] == ['{"by": "a"}', '{"by": "project"}']
    found = [str(p) for p in bench.agent.problems if p.id == "plugin.tool"]
    assert sum("b: the tool 'weather'" in p for p in found) == 1
    assert sum("'look' of the project is used" in p for p in found) == 1


async def test_a_plugin_of_the_other_engine_loads_as_it_is(tmp_path: Path) -> None:
    text = '''
from cat import hook
from cat.mad_hatter.decorators import tool
from .numbers import double

@tool(return_direct=False)
def weather(city: str, days: int = 1, cat=None):
    """Tell the weather of a city."""
    return f"sunny in {city} for {double(days)} days, {cat.conversation_id}"

@tool
async def tides(cat):
    """Tell the tides."""
    return {"high": "noon"}

@hook(priority=0)
def before_cat_sends_message(message, cat):
    message = message.model_copy(update={"text": message.text.upper()})
    return message

@hook
def before_cat_bootstrap(cat):
    raise AssertionError
'''
    files = {"skills/desk/skill.md": skill("Help.", description="The desk.", import_tools="[weather, tides]")}
    script = [START, tool_call("weather", city="Rome"), tool_call("tides"), "Fine."]
    plugins = {"cat-weather/__init__.py": "import sys\n", "cat-weather/main.py": text}
    plugins["cat-weather/numbers.py"] = "import sys\ndef double(n):\n    return 2 * n\n"
    bench = plugged(tmp_path, plugins, script, files=files)
    assert (await bench.says("go")).messages == ["FINE."]
    results = [e["result_json"] for e in bench.events("tool_executed")]
    assert results == ['"sunny in Rome for 2 days, c1"', '{"high": "noon"}']
    weather = next(t for t in bench.model.requests[1].tools if t.name == "weather")
    assert (weather.description, list(weather.parameters["properties"])) == (
        "Tell the weather of a city.",
        ["city", "days"],
    )
    assert [p.severity for p in bench.agent.problems if p.id == "plugin.unknown_hook"] == [Severity.WARNING]
    assert "cat" not in sys.modules
    assert not [name for name in sys.modules if name.startswith("plugins")]
    thread = await bench.agent.threads.run(threading.current_thread)
    await bench.agent.aclose()
    thread.join(10)
    assert not thread.is_alive(), "its threads are the agent's"


# --- replies without the model -----------------------------------------------------------------


async def test_a_fast_reply_is_all_that_happens(tmp_path: Path) -> None:
    text = "@hook\ndef fast_reply(reply, context):\n    return 'Pong.'\n"
    bench = plugged(tmp_path, {"p.py": text})
    said = await bench.says("ping")
    assert (said.messages, said.result.status, bench.model.requests) == (["Pong."], TurnStatus.COMPLETED, [])
    assert [e["text"] for e in bench.events("bot")] == ["Pong."]


async def test_a_reply_in_place_of_the_model_comes_after_what_code_decides(tmp_path: Path) -> None:
    text = (
        "@hook\nasync def agent_fast_reply(reply, context):\n    return '  ' if context.turn_id == 't1' else 'Fast.'\n"
    )
    bench = plugged(tmp_path, {"p.py": text}, ["Slow."])
    assert (await bench.says("a")).messages == ["Fast."]
    assert (await bench.says("b")).messages == ["Slow."]


# --- recall ------------------------------------------------------------------------------------


async def test_what_is_looked_for_and_what_is_found_may_be_changed(tmp_path: Path) -> None:
    text = """
@hook
def before_recall(query, context):
    return query.model_copy(update={"query": "opening hours", "limit": 1})

@hook
def after_recall(found, context):
    return found.model_copy(update={"passages": found.passages[:1]})
"""
    bench = plugged(tmp_path, {"p.py": text}, [tool_call("search_knowledge", query="x"), "At nine."])
    await bench.says("when")
    assert bench.events("knowledge_searched")[-1]["query"] == "opening hours"
    assert "We open at nine" in bench.model.requests[-1].messages[-1].content


# --- workflows ---------------------------------------------------------------------------------

WORKFLOW = """
class BriefConfig(ReActAgentConfig):
    workflow = "brief"
    max_iterations: int = 1

@hook
def factory_allowed_agentic_workflows(allowed, cat):
    allowed.append(BriefConfig)
    return allowed
"""


async def test_a_workflow_of_a_plugin_is_chosen_by_its_name(tmp_path: Path) -> None:
    files = {"agent.yml": AGENT + "workflow: brief\n"}
    bench = plugged(tmp_path, {"p.py": WORKFLOW}, [START, "Enough."], files=files)
    said = await bench.says("go")
    assert (said.messages, said.result.limit_hit) == (["Enough."], "iterations")
    assert list(bench.agent.workflows.catalogue.classes)[-1] == "BriefConfig"


@pytest.mark.parametrize("body", ["return 5", "return allowed + [int]", "return ['x']", "raise RuntimeError('x')"])
def test_a_factory_that_returns_nonsense_is_an_error(tmp_path: Path, body: str) -> None:
    text = f"@hook\ndef factory_allowed_agentic_workflows(allowed, cat):\n    {body}\n"
    with pytest.raises(ProjectError) as caught:
        plugged(tmp_path, {"p.py": text})
    assert [p.id for p in caught.value.problems] == ["plugin.workflow"]


async def test_a_workflow_that_cannot_be_made_gives_way_to_the_default(tmp_path: Path) -> None:
    text = WORKFLOW + "    \nBriefConfig.build = lambda self, thinker: 1 / 0\n"
    files = {"agent.yml": AGENT + "workflow: brief\n"}
    assert (await plugged(tmp_path, {"p.py": text}, ["Well."], files=files).says("go")).messages == ["Well."]


# --- loading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("def x(:\n", "plugin.syntax"),
        ("import nothing_of_this_name\n", "plugin.import"),
        ("raise SystemExit\n", "plugin.import"),
        ("@hook\ndef fast_reply():\n    pass\n", "plugin.definition"),
        ("@hook\ndef fast_reply(a, b, c):\n    pass\n", "plugin.definition"),
        ("@hook('name')\ndef fast_reply(a):\n    pass\n", "plugin.definition"),
        ("from cat import tool\n@tool\ndef x(a: int):\n    return a\n", "plugin.definition"),
    ],
)
def test_a_broken_plugin_is_an_error_with_its_place(tmp_path: Path, text: str, id: str) -> None:
    with pytest.raises(ProjectError) as caught:
        plugged(tmp_path, {"p.py": text})
    (problem,) = caught.value.problems
    assert (problem.id, problem.path) == (id, tmp_path / "plugins" / "p.py")


async def test_a_guard_written_with_the_projects_decorators_fails_closed_in_a_plugin_too(tmp_path: Path) -> None:
    text = "from voice_agent.dialogue.hooks import *\n@modify_outgoing_message\nasync def guard(payload):\n    1 / 0\n"
    bench = plugged(tmp_path, {"p.py": text}, ["Secret."])
    assert (await bench.says("hi")).messages == ["I am sorry, I cannot say that."]


def installed(root: Path, name: str, text: str) -> EntryPoint:
    (root / f"{name}.py").write_text(IMPORT + text)
    return EntryPoint(name, name, "voice_agent.plugins")


def test_installed_plugins_are_found_by_their_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, root = tmp_path / "site", write_project(tmp_path / "project", {**BASE, "plugins/own.py": IMPORT})
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    suffix = "@hook\ndef agent_prompt_suffix(suffix):\n    pass\n"
    points = [installed(site, "zz_plugin", suffix), installed(site, "own", suffix)]
    points += [EntryPoint("gone", "no_such_module", "voice_agent.plugins"), EntryPoint("odd", "os:sep", "x")]
    problems: list[Problem] = []
    with project_imports(root):
        found = load_plugins(root, problems, installed=points)
    assert found.names == ["own", "zz_plugin"]
    assert [hook.plugin for hook in found.hooks] == ["zz_plugin"]
    assert sorted(p.id for p in problems) == ["plugin.entry_point", "plugin.hidden", "plugin.import"]


def test_a_plugin_that_is_switched_off_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, suffix = tmp_path / "site", "@hook\ndef agent_prompt_suffix(suffix):\n    pass\n"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    agent_yml = AGENT + "plugins:\n  broken: false\n  packed: false\n  folder: false\n  brokn: false\n"
    files = {**BASE, "agent.yml": agent_yml, "plugins/kept.py": IMPORT + suffix}
    files |= {"plugins/broken.py": "1 / 0\n", "plugins/folder/part.py": "1 / 0\n"}
    root = write_project(tmp_path / "project", files)
    problems: list[Problem] = []
    with project_imports(root):
        points = [EntryPoint("packed", "no_such_module", "voice_agent.plugins"), installed(site, "other", suffix)]
        found = load_plugins(root, problems, load_config(root, {}).plugins, installed=points)
    assert found.names == ["kept", "other"]
    assert [(p.id, p.line) for p in problems] == [("plugin.unknown", len(AGENT.splitlines()) + 5)]


async def test_a_plugin_is_switched_off_and_on_while_conversations_go_on(tmp_path: Path) -> None:
    suffix = "@hook\ndef agent_prompt_suffix(suffix):\n    return 'from a plugin'\n"
    root, store = write_project(tmp_path, {**BASE, "plugins/p.py": IMPORT + suffix}), MemoryStore()
    model = ScriptedModel(["One.", "Two.", "Three."])
    versions = AgentVersions(Agent.load(load_config(root, {}), model, store=store))
    reloader = Reloader(root, versions, model, store)
    bench = Caller(versions.current, model, None, versions.open("c1", channel="text"))  # type: ignore[arg-type]
    heard = []
    for setting in ("", "plugins: {p: false}\n", "plugins: {p: }\n"):
        (root / "agent.yml").write_text(AGENT + setting)
        await reloader.reload()
        await bench.says("hi")
        heard.append(system(bench).endswith("from a plugin"))
    assert heard == [True, False, True]


def test_a_project_without_plugins_has_none(tmp_path: Path) -> None:
    project, _ = load_project(write_project(tmp_path, BASE))
    assert not project.hooks


# --- reload ------------------------------------------------------------------------------------


async def test_a_reload_uses_the_new_code_from_the_next_turn_and_keeps_the_old_when_the_new_is_broken(
    tmp_path: Path,
) -> None:
    def suffix(word: str) -> str:
        return f"{IMPORT}from .part import WORD\n@hook\ndef agent_prompt_suffix(suffix):\n    return WORD + '{word}'\n"

    files = {**BASE, "plugins/p/__init__.py": suffix("one"), "plugins/p/part.py": "WORD = 'part '\n"}
    root, store = write_project(tmp_path, files), MemoryStore()
    asked, go = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def _play(self, entry: Any, record: Any) -> Any:
            asked.set()
            await go.wait()
            async for event in super()._play(entry, record):
                yield event

    model = Waiting(["", "One.", "Two.", "Three."])
    versions = AgentVersions(Agent.load(load_config(root, {}), model, store=store))
    errors: list[Problem] = []
    reloader = Reloader(root, versions, model, store, report=errors.extend)
    bench = Caller(versions.current, model, None, versions.open("c1", channel="text"))  # type: ignore[arg-type]
    running = asyncio.ensure_future(bench.says("a"))
    await asked.wait()
    (root / "plugins/p/part.py").write_text("WORD = 'new part '\n")
    (root / "plugins/p/__init__.py").write_text(suffix("two") + "\n# longer\n")
    assert await reloader.reload()
    go.set()
    await running
    assert [system(bench, n).endswith("part one") for n in (0, 1)] == [True, True]
    await bench.says("b")
    assert system(bench).endswith("new part two")
    (root / "plugins/p/part.py").write_text("WORD = \n")
    assert not await reloader.reload()
    assert {p.id for p in errors} >= {"plugin.syntax"}
    await bench.says("c")
    assert system(bench).endswith("new part two")
