"""Settings of plugins: what agent.yml says, checked by the plugin's own model, given to its hooks and tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import AGENT, Caller, caller, skill, write_project
from voice_agent.cli.check import find_problems
from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem, ProjectError, Severity
from voice_agent.dialogue.agent import Agent
from voice_agent.service.reloading import Reloader
from voice_agent.service.versions import AgentVersions
from voice_agent.store import MemoryStore

PLUGIN = '''
from pydantic import BaseModel, Field
from voice_agent.dialogue.plugins import ReActAgentConfig, ToolResult, hook, tool


class Settings(BaseModel, frozen=True):
    town: str = "Basel"
    shops: int = Field(2, ge=1)
    hours: dict[str, int] = {}


@hook
def agent_prompt_suffix(suffix, context):
    return f"{context.settings.shops} shops in {context.settings.town}."


@tool(description="Where")
async def where(context: ToolContext) -> ToolResult:
    return ToolResult(llm_response={"town": context.settings.town})


class Brief(ReActAgentConfig):
    """Brief."""


@hook
def factory_allowed_agentic_workflows(allowed, context):
    return [*allowed, Brief] if context.settings.shops > 2 else allowed
'''.replace("hook, tool", "ToolContext, hook, tool")
BASE = {
    "skills/desk/skill.md": skill("Help.", description="The desk.", import_tools="[where]"),
    "plugins/shops.py": PLUGIN,
}


def files(settings: str, plugin: str = PLUGIN) -> dict[str, str]:
    return {**BASE, "plugins/shops.py": plugin, "agent.yml": AGENT + settings}


def set_up(root: Path, settings: str, plugin: str = PLUGIN) -> Caller:
    return caller(root, files(settings, plugin), [tool_call("start_skill", skill="desk"), tool_call("where"), "There."])


async def test_hooks_tools_and_workflows_of_a_plugin_are_given_its_settings(tmp_path: Path) -> None:
    bench = set_up(tmp_path, "plugins:\n  shops: {town: Bern, shops: 3}\n")
    await bench.says("where")
    assert str(bench.model.requests[0].messages[0].content).endswith("3 shops in Bern.")
    assert bench.events("tool_executed")[-1]["result_json"] == '{"town": "Bern"}'
    assert "Brief" in bench.agent.workflows.catalogue.classes


@pytest.mark.parametrize("settings", ["", "plugins:\n", "plugins:\n  shops:\n"])
async def test_what_is_left_out_has_its_default(tmp_path: Path, settings: str) -> None:
    bench = set_up(tmp_path, settings)
    await bench.says("where")
    assert str(bench.model.requests[0].messages[0].content).endswith("2 shops in Basel.")
    assert bench.agent.problems == ()


async def test_a_function_may_return_the_model_as_plugins_of_the_other_engine_do(tmp_path: Path) -> None:
    text = """
from cat import hook
from cat.mad_hatter.decorators import plugin
from pydantic import BaseModel

class Shops(BaseModel):
    town: str = "Basel"

@plugin
def settings_model():
    return Shops

@hook
def agent_prompt_suffix(suffix, cat):
    return cat.settings.town
"""
    bench = caller(tmp_path, {**files("plugins: {shops: {town: Bern}}\n", text), **PLAIN}, ["Hello."])
    await bench.says("hi")
    assert str(bench.model.requests[0].messages[0].content).endswith("Bern")


PLAIN = {"skills/desk/skill.md": skill("Help.", description="The desk.")}


@pytest.mark.parametrize(
    ("settings", "id", "line", "words", "severity"),
    [
        ("plugins:\n  shops:\n    shops: 0\n", "plugin.setting", 3, "`plugins.shops.shops`: Input should", "error"),
        ("plugins:\n  shops:\n    hours:\n      mon: x\n", "plugin.setting", 4, "`plugins.shops.hours.mon`", "error"),
        ("plugins:\n  shops:\n    twn: Bern\n", "plugin.unknown_setting", 3, "no key 'twn'", "error"),
        ("plugins:\n  shops:\n    colour: red\n", "plugin.unknown_setting", 3, "no key 'colour'", "warning"),
        ("plugins:\n  shop: {town: Bern}\n", "plugin.unknown", 2, "no such plugin", "error"),
        ("plugins:\n  weather: {town: Bern}\n", "plugin.unknown", 2, "no such plugin", "warning"),
        ("plugins:\n  shops: Bern\n", "config.type", 2, "`plugins.shops` must be a mapping", "error"),
    ],
)
def test_check_names_file_line_and_field_of_what_does_not_fit(
    tmp_path: Path, settings: str, id: str, line: int, words: str, severity: str
) -> None:
    root = write_project(tmp_path, files(settings))
    first = len(AGENT.splitlines())
    found = [problem for problem in find_problems(root) if problem.id == id]
    assert [(p.path, p.line, p.severity.value) for p in found] == [(root / "agent.yml", first + line, severity)]
    assert words in found[0].message


BOUNDED = """import pydantic
class Settings(pydantic.BaseModel, extra="forbid"):
    times: int = pydantic.Field(1, ge=1)
    word: str = "x"
"""


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("times: 0", "Write a value of at least 1."),
        ("times: often", "Write a whole number."),
        ("word: [a]", "Write text, in quotes."),
        ("tomes: 2", "Known keys: times, word."),
    ],
)
def test_the_remedy_is_about_the_key_or_about_the_value(tmp_path: Path, given: str, remedy: str) -> None:
    root = write_project(tmp_path, {**files(f"plugins:\n  shops: {{{given}}}\n", BOUNDED), **PLAIN})
    assert [p.remedy for p in find_problems(root) if p.id == "plugin.setting"] == [remedy]


def test_a_value_that_does_not_fit_is_not_repeated(tmp_path: Path) -> None:
    root = write_project(tmp_path, files("plugins:\n  shops: {shops: sk-secret}\n"))
    assert "sk-secret" not in " ".join(map(str, find_problems(root)))


@pytest.mark.parametrize(
    ("plugin", "id"),
    [
        ("def settings_model():\n    return 7\n", "plugin.settings_model"),
        ("def settings_model():\n    raise KeyError('x')\n", "plugin.settings_model"),
        ("async def settings_model():\n    pass\n", "plugin.settings_model"),
        ("import pydantic\nclass Settings(pydantic.BaseModel):\n    must: str\n", "plugin.setting"),
        ("WORD = 1\n", "plugin.no_settings"),
    ],
)
def test_a_plugin_without_a_usable_model_is_reported(tmp_path: Path, plugin: str, id: str) -> None:
    root = write_project(tmp_path, {**files("plugins:\n  shops: {}\n", plugin), **PLAIN})
    found = find_problems(root)
    assert [problem.id for problem in found if problem.id.startswith("plugin.")][:1] == [id]


async def test_a_reload_whose_settings_are_refused_leaves_the_old_version_in_use(tmp_path: Path) -> None:
    root, store = write_project(tmp_path, files("plugins:\n  shops: {town: Bern}\n")), MemoryStore()
    model = ScriptedModel(["One.", "Two."])
    versions = AgentVersions(Agent.load(load_config(root, {}), model, store=store))
    errors: list[Problem] = []
    reloader = Reloader(root, versions, model, store, report=errors.extend)
    (root / "plugins/shops.py").write_text(PLUGIN.replace("ge=1", "ge=5"))
    (root / "agent.yml").write_text(AGENT + "plugins:\n  shops: {town: Bonn, shops: 2}\n")
    assert not await reloader.reload()
    assert [(p.id, p.severity) for p in errors] == [("plugin.setting", Severity.ERROR)]
    bench = Caller(versions.current, model, None, versions.open("c1", channel="text"))  # type: ignore[arg-type]
    await bench.says("a")
    assert str(model.requests[0].messages[0].content).endswith("2 shops in Bern.")
    (root / "agent.yml").write_text(AGENT + "plugins:\n  shops: {town: Bonn, shops: 6}\n")
    assert await reloader.reload()
    await bench.says("b")
    assert str(model.requests[1].messages[0].content).endswith("6 shops in Bonn.")


def test_a_project_whose_settings_are_refused_does_not_start(tmp_path: Path) -> None:
    root = write_project(tmp_path, files("plugins: {shops: {shops: no}}\n"))
    with pytest.raises(ProjectError, match=r"plugins\.shops\.shops"):
        Agent.load(load_config(root, {}), ScriptedModel([]))


def test_a_plugin_that_cannot_be_read_is_one_problem_with_its_settings_and_the_imports_of_its_tools(
    tmp_path: Path,
) -> None:
    root = write_project(tmp_path, files("plugins: {shops: {town: Bern}}\n", PLUGIN.replace("return f", "retrn f")))
    assert [p.id for p in find_problems(root)] == ["plugin.syntax"]


def test_a_tool_with_the_name_of_a_skill_is_told_at_its_place_in_the_plugin(tmp_path: Path) -> None:
    extra = {"skills/where/skill.md": skill("Help.", description="The way.")}
    root = write_project(tmp_path, files("plugins: {shops: {town: Bern}}\n") | extra)
    (problem,) = [p for p in find_problems(root) if p.id == "skill.tool_is_skill"]
    assert problem.path == root / "plugins" / "shops.py"
    assert problem.line is not None
    assert problem.path.read_text().splitlines()[problem.line - 1] == '@tool(description="Where")'
