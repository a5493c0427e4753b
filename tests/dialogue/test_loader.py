"""A project loads whole, or every fault of every file is named with its line and what would be right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.dialogue_projects import block, caller, skill, write_project
from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem, Severity
from voice_agent.dialogue.loader import load_project

GREET = block("- id: greet\n  action: utter_greet")
RESPONSES = "responses:\n  utter_greet:\n    - text: Hello.\n"


def problems(tmp_path: Path, files: dict[str, str]) -> list[Problem]:
    return list(load_project(write_project(tmp_path, files))[1])


def only(tmp_path: Path, files: dict[str, str], id: str) -> Problem:
    found = [p for p in problems(tmp_path, files) if p.id == id]
    assert len(found) == 1, problems(tmp_path, files)
    return found[0]


def test_the_bundled_skills_and_wording_load_without_a_complaint(tmp_path: Path) -> None:
    assert problems(tmp_path, {"skills/a/skill.md": skill("Talk.")}) == []


def test_every_fault_of_every_file_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            block(
                """
                - id: ask
                  collect: nmae
                - id: say
                  action: utter_helo
                  next: nowhere
                - id: run
                  execute_tool: fetch
                """
            )
        ),
        "skills/a/memory.yml": "schema:\n  public:\n    name: {type: txt}\n    name2: {type: categorical}\n",
        "skills/a/responses.yml": "responses:\n  utter_hello:\n    - text: ''\n",
        "skills/a/tools.py": "from voice_agent.dialogue import tool\n\n\n@tool(description='x')\ndef f():\n    pass\n",
    }
    found = {(p.id, p.path.name if p.path else "", p.line) for p in problems(tmp_path, files)}
    assert {
        ("skill.unknown_field", "skill.md", 8),
        ("skill.block.missing_target", "skill.md", 9),
        ("skill.unknown_response", "skill.md", 9),
        ("skill.unknown_tool", "skill.md", 12),
        ("memory.field_type", "memory.yml", 3),
        ("memory.no_enum_values", "memory.yml", 4),
        ("responses.empty_text", "responses.yml", 3),
        ("tool.definition", "tools.py", 4),
    } <= found


@pytest.mark.parametrize(
    ("text", "message"),
    [("name: x\n", "does not begin with"), ("---\nname: x\n", "no second"), ("", "does not begin with")],
)
def test_front_matter_without_its_delimiters_is_named_by_its_published_id(
    tmp_path: Path, text: str, message: str
) -> None:
    fault = only(tmp_path, {"skills/a/skill.md": text}, "skill.markdown.invalid_frontmatter_delimiter")
    assert message in fault.message


@pytest.mark.parametrize(
    ("steps", "id"),
    [
        ("- id: a\n  noop: true\n  next: b", "skill.block.missing_target"),
        ("- id: a\n  action: utter_greet\n- id: a\n  action: utter_greet", "skill.block.duplicate_step"),
        ("- id: a\n  action: utter_greet\n  collect: x", "skill.block.step_kind"),
        ("- id: a\n  acton: utter_greet", "skill.block.step_kind"),
        ("- id: a\n  action: greet_tool", "skill.block.action"),
        ("- id: a\n  noop: true", "skill.block.noop"),
        ("- id: a\n  action: utter_greet\n  next:\n    - else: a\n    - if: True\n      then: a",
         "skill.block.unreachable_branch"),
        ("- id: a\n  action: utter_greet\n  next:\n    - when: True\n      then: a", "skill.block.branch"),
        ("- id: a\n  action: utter_greet\n  next:\n    - if: session.a.nope\n      then: a", "skill.unknown_reference"),
        ("- id: a\n  action: utter_greet\n  next:\n    - if: import os\n      then: a", "skill.condition.syntax"),
        ("- id: a\n  action: utter_greet\n  next: END\n- id: b\n  action: utter_greet", "skill.block.unreachable_step"),
        ("- id: a\n  call: '@skill.nobody'", "skill.unknown_skill"),
        ("- id: a\n  link: '@skill.a'", "skill.starts_itself"),
        ("- id: a\n  set_memory: {nope: 1}", "skill.unknown_field"),
        ("- id: a\n  instructions: Talk.", "skill.block.no_complete_when"),
        ("- id: a\n  action: 'x: [", "yaml.syntax"),
    ],
)  # fmt: skip
def test_a_broken_block_is_explained(tmp_path: Path, steps: str, id: str) -> None:
    files = {"skills/a/skill.md": skill(block(steps)), "responses.yml": RESPONSES}
    fault = only(tmp_path, files, id)
    assert fault.line is not None and fault.path is not None and fault.path.name == "skill.md"


def test_two_blocks_of_one_name_and_a_missing_fence_are_errors(tmp_path: Path) -> None:
    body = GREET + GREET + ":::ordered_block id=open\nsteps:\n  - action: utter_greet\n"
    found = {p.id for p in problems(tmp_path, {"skills/a/skill.md": skill(body), "responses.yml": RESPONSES})}
    assert {"skill.block.duplicate", "skill.block.missing_fence"} <= found


def test_a_misspelt_key_names_the_right_one(tmp_path: Path) -> None:
    fault = only(tmp_path, {"skills/a/skill.md": skill("Talk.", requirs="'True'")}, "skill.unknown_key")
    assert fault.severity is Severity.ERROR and "'requires'" in fault.remedy


def test_a_key_nobody_knows_is_a_warning(tmp_path: Path) -> None:
    fault = only(tmp_path, {"skills/a/skill.md": skill("Talk.", zebra="1")}, "skill.unknown_key")
    assert fault.severity is Severity.WARNING


def test_a_tool_must_not_have_the_name_of_a_skill_or_of_a_built_in(tmp_path: Path) -> None:
    tools = """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="x")
        async def b() -> ToolResult: ...

        @tool(description="x")
        async def listen() -> ToolResult: ...
        """
    files = {"skills/a/skill.md": skill("Talk."), "skills/b/skill.md": skill("Talk."), "skills/a/tools.py": tools}
    found = {p.id for p in problems(tmp_path, files)}
    assert {"skill.tool_is_skill", "skill.tool_is_builtin"} <= found


def test_an_import_of_a_tool_that_does_not_exist_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk.", import_tools="[look_upp]"),
        "tools/shared.py": "from voice_agent.dialogue import tool\n@tool(description='x')\nasync def look_up(): ...\n",
    }
    assert "'look_up'" in only(tmp_path, files, "skill.unknown_import").remedy


@pytest.mark.parametrize("name", ["mcp/bank", "mcp/bank:", "mcp/:pay", "mcp/bank:*", "mcp/a b:pay", "mcp/bank:pay now"])
def test_an_import_that_names_no_tool_of_a_server_is_an_error(tmp_path: Path, name: str) -> None:
    fault = only(tmp_path, {"skills/a/skill.md": skill("Talk.", import_tools=f'["{name}"]')}, "skill.mcp_name")
    assert "mcp/<server>:<tool>" in fault.remedy


def test_a_mention_that_means_nothing_is_an_error(tmp_path: Path) -> None:
    fault = only(tmp_path, {"skills/a/skill.md": skill("Use @tool.look_up first.")}, "skill.prose.mention")
    assert fault.line == 5


def test_a_private_field_of_another_skill_cannot_be_read(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk.", requires="session.b.pin"),
        "skills/b/skill.md": skill("Talk."),
        "skills/b/memory.yml": "schema:\n  private:\n    pin: {type: text}\n",
    }
    assert only(tmp_path, files, "skill.private_reference").line == 4


def test_a_placeholder_without_a_field_is_an_error(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk."),
        "skills/a/memory.yml": "schema:\n  public:\n    amount: {type: int}\n",
        "skills/a/responses.yml": "responses:\n  utter_x: 'You owe {amont}.'\n",
    }
    assert "'amount'" in only(tmp_path, files, "responses.placeholder").remedy


def test_project_fields_are_never_the_models_and_skills_have_no_seeds(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk."),
        "memory.yml": "who: {type: text, llm_settable: true}\n",
        "skills/a/memory.yml": "schema:\n  public:\n    x: {type: text, seed: true}\n",
    }
    found = {p.id for p in problems(tmp_path, files)}
    assert {"memory.llm_project", "memory.project_only"} <= found


def test_a_handler_that_only_the_engine_starts_cannot_be_put_on_the_menu(tmp_path: Path) -> None:
    id = "default_unsupported_request_handler"
    body = skill("Say sorry.", routing="{engine_managed: false}")
    only(tmp_path, {f"skills/{id}/skill.md": body}, "skill.engine_managed")


def test_duplicate_keys_and_tabs_are_explained(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk."),
        "memory.yml": "who: {type: text}\nwho: {type: int}\n",
        "responses.yml": "responses:\n\tutter_x: y\n",
    }
    found = {(p.id, p.line): p for p in problems(tmp_path, files)}
    assert ("yaml.duplicate_key", 2) in found
    assert "tabs" in found["yaml.syntax", 2].remedy


# --- what loads --------------------------------------------------------------------------------

LIB_TOOL = """
    from lib.helper import VALUE
    {imports}

    @tool(description="Look up")
    async def look_up(context: ToolContext = None) -> ToolResult:
        return ToolResult(llm_response=VALUE)
    """
OURS = "from voice_agent.dialogue import tool, ToolContext, ToolResult"


@pytest.mark.parametrize(
    "imports",
    [
        OURS,
        "from rasa.calm_v2.tools.decorator import tool, ToolContext; from rasa.calm_v2.tools.result import ToolResult",
        "from rasa.mantle.tools.decorator import ToolContext, tool; from rasa.mantle.tools.result import ToolResult",
    ],
)
def test_tools_import_their_helpers_and_older_paths_and_leave_no_trace(tmp_path: Path, imports: str) -> None:
    files = {
        "skills/a/skill.md": skill("Talk."),
        "skills/a/tools.py": LIB_TOOL.replace("{imports}", imports),
        "lib/helper.py": "VALUE = 1\n",
    }
    project, found = load_project(write_project(tmp_path, files))
    assert not found
    assert list(project.skills["a"].tools) == ["look_up"]
    assert not [name for name in sys.modules if name.partition(".")[0] in ("lib", "rasa")]
    assert str(tmp_path) not in sys.path


async def test_two_projects_with_modules_of_one_name_do_not_see_each_other(tmp_path: Path) -> None:
    seen = []
    for name in ("one", "two"):
        files = {
            "skills/a/skill.md": skill("Talk."),
            "skills/a/tools.py": LIB_TOOL.replace("{imports}", OURS),
            "lib/helper.py": f"VALUE = {name!r}\n",
        }
        project, _ = load_project(write_project(tmp_path / name, files))
        seen.append((await project.skills["a"].tools["look_up"].function()).llm_response)
    assert seen == ["one", "two"]


def test_a_skills_own_tool_beats_the_shared_one_and_an_unimported_one_does_not_exist(tmp_path: Path) -> None:
    def define(name: str, said: str) -> str:
        return f"from voice_agent.dialogue import tool\n@tool(description={said!r})\nasync def {name}(): ...\n"

    files = {
        "skills/a/skill.md": skill("Talk.", import_tools="[look_up]"),
        "skills/a/tools.py": define("look_up", "own"),
        "skills/b/skill.md": skill("Talk.", import_tools="[look_up]"),
        "skills/c/skill.md": skill("Talk."),
        "tools/shared.py": define("look_up", "shared"),
    }
    project, found = load_project(write_project(tmp_path, files))
    assert [(p.id, p.severity) for p in found] == [("skill.tool_hides_shared", Severity.WARNING)]
    assert project.skills["a"].tools["look_up"].description == "own"
    assert project.skills["b"].tools["look_up"].description == "shared"
    assert not project.skills["c"].tools


def test_a_definition_in_the_folder_shadows_the_single_file_and_is_reported(tmp_path: Path) -> None:
    define = "from voice_agent.dialogue import tool\n@tool(description='{}')\nasync def look_up(): ...\n"
    files = {
        "skills/a/skill.md": skill("Talk."),
        "skills/a/tools.py": define.format("single"),
        "skills/a/tools/more.py": define.format("folder"),
    }
    project, found = load_project(write_project(tmp_path, files))
    assert [p.id for p in found] == ["tool.duplicate"]
    assert project.skills["a"].tools["look_up"].description == "folder"


def test_conditions_over_several_lines_and_stacked_groups_of_instructions_load(tmp_path: Path) -> None:
    body = """
        if: session.a.x
        You know the caller.

        # A heading is prose
        Always say hello.

        :::ordered_block id=talk
        steps:
          - id: talk
            instructions: |
              if: session.a.x
              First way.
              if: session.a.x == None
              Second way.
            complete_when: >
              session.a.x
              and session.a.x == "y"
        :::
        """
    files = {"skills/a/skill.md": skill(body), "skills/a/memory.yml": "schema:\n  public:\n    x: {type: text}\n"}
    project, found = load_project(write_project(tmp_path, files))
    assert not found
    loaded = project.skills["a"]
    assert [(p.text.splitlines()[0], p.condition is not None) for p in loaded.prose] == [
        ("You know the caller.", True),
        ("# A heading is prose", False),
    ]
    step = loaded.blocks["talk"].steps[0]
    assert [(p.text, p.condition is not None) for p in step.instructions] == [  # type: ignore[attr-defined]
        ("First way.", True),
        ("Second way.", True),
    ]


def test_words_that_yaml_once_read_as_bools_stay_words(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Talk.", utter="[{utter_note: {on: activate}}]"),
        "skills/a/memory.yml": "schema:\n  public:\n    answer: {type: categorical, enum_values: [yes, no, off]}\n",
        "skills/a/responses.yml": "responses:\n  utter_note: We open at 12:30.\n",
    }
    project, found = load_project(write_project(tmp_path, files))
    assert not found
    assert project.skills["a"].fields[0].enum_values == ("yes", "no", "off")
    assert "We open at 12:30." in project.responses.constant_texts()


def test_parts_that_are_not_acted_on_are_warnings(tmp_path: Path) -> None:
    files = {"skills/a/skill.md": skill("Talk."), "hooks.py": "", "endpoints.yml": "event_broker: {type: kafka}"}
    assert {(p.id, p.severity) for p in problems(tmp_path, files)} == {("endpoints.unused", Severity.WARNING)}


def test_the_example_agent_loads_without_a_complaint() -> None:
    root = Path(__file__).parents[2]
    config = load_config(root, {})
    _, found = load_project(root)
    assert (config.problems, found) == ((), ())


async def test_an_override_keeps_the_fields_the_engine_writes(tmp_path: Path) -> None:
    files = {
        "skills/default_silence_check_in/skill.md": skill(GREET, routing="{engine_managed: true}"),
        "responses.yml": RESPONSES,
    }
    bench = caller(tmp_path, files)
    await bench.connects()
    assert bench.agent.project.schema.resolve("silences", "default_silence_check_in") is not None
