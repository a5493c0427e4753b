"""Small broken projects: what is wrong with each, and the ids and lines that must be reported."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.dialogue_projects import block, skill

TOOL = 'from voice_agent.dialogue import tool\n\n\n@tool(description="x")\nasync def find() -> None: ...\n'
GREET = "responses:\n  utter_greet: Hello.\n"
FIELDS = "schema:\n  public:\n    account: {type: text}\n    paid: {type: bool}\n"
ONE_STEP = block("- id: greet\n  action: utter_greet")


@dataclass(frozen=True)
class Broken:
    """One project. ``files`` are added to a sound one; ``expected`` are (file, line, id) of every problem."""

    title: str
    files: dict[str, str]
    expected: set[tuple[str, int | None, str]]
    says: str = ""
    """Something that message or remedy must say."""
    removed: tuple[str, ...] = field(default=())


def _skill(steps: str, **front: str) -> str:
    return skill(block(steps), **front)


A = "skills/a/skill.md"
BROKEN = (
    Broken("a misspelt key of agent.yml", {"agent.yml": "agent:\n  persona: Help.\n  langage: en\n"},
           {("agent.yml", 3, "config.unknown_key")}, "Did you mean 'language'?"),
    Broken("no persona", {"agent.yml": "agent:\n  id: x\n"}, {("agent.yml", 1, "config.agent.missing_persona")}),
    Broken("no settings at all", {}, {("agent.yml", None, "config.missing")}, removed=("agent.yml",)),
    Broken("a rule with a colon", {"agent.yml": "agent:\n  persona: Help.\nrules:\n  - Be kind.\n  - Remember: no.\n"},
           {("agent.yml", 5, "config.rule_is_mapping")}, "in quotes"),
    Broken("a port that is none", {"integrations.yml": "server:\n  port: many\n"},
           {("integrations.yml", 2, "integrations.value.int_parsing")}),
    Broken("a key that is not set", {"integrations.yml": "llm:\n  provider: openai\n  api_key_env: NO_KEY\n"},
           {("integrations.yml", 3, "integrations.missing_key")}, "NO_KEY"),
    Broken("a variable that is not set", {"integrations.yml": "server:\n  host: ${NO_SUCH_HOST}\n"},
           {("integrations.yml", 2, "integrations.missing_variable")}, "NO_SUCH_HOST"),
    Broken("an engine that does not exist", {"integrations.yml": "llm:\n  provider: embeded\n"},
           {("", None, "engine.unavailable")}, "Did you mean 'embedded'?"),
    Broken("YAML that is none", {"responses.yml": "responses:\n  utter_greet: Mind: the gap\n"},
           {("responses.yml", 2, "yaml.syntax")}, "must be quoted"),
    Broken("a tab", {"memory.yml": "name:\n\ttype: text\n"}, {("memory.yml", 2, "yaml.syntax")}, "not tabs"),
    Broken("the same key twice", {"responses.yml": GREET + "  utter_greet: Again.\n"},
           {("responses.yml", 3, "yaml.duplicate_key")}, "first on line 2"),
    Broken("front matter that never ends", {A: "---\nname: A\n"},
           {(A, 1, "skill.markdown.invalid_frontmatter_delimiter")}),
    Broken("no description", {A: "---\nname: A\n---\nDo it.\n"}, {(A, 2, "skill.missing_description")}),
    Broken("a misspelt key of a skill", {A: skill("Do it.\n", require="session.project.x")},
           {(A, 4, "skill.unknown_key")}, "Did you mean 'requires'?"),
    Broken("a condition on memory that is not there", {A: skill("Do it.\n", requires="session.a.acount")},
           {(A, 4, "skill.unknown_reference")}, "Did you mean 'session.a.account'?"),
    Broken("a condition that is code", {A: skill("Do it.\n", requires='"len(session.a.account) > 3"')},
           {(A, 4, "skill.condition.syntax")}, "cannot call"),
    Broken("another skill's private memory",
           {A: skill("Do it.\n", requires="session.b.pin"), "skills/b/skill.md": skill("Do it.\n"),
            "skills/b/memory.yml": "schema:\n  private:\n    pin: {type: text}\n"},
           {(A, 4, "skill.private_reference")}),
    Broken("a step nobody reaches",
           {A: _skill("- id: one\n  action: utter_greet\n  next: END\n- id: two\n  action: utter_greet")},
           {(A, 10, "skill.block.unreachable_step")}),
    Broken("a step that leads nowhere", {A: _skill("- id: one\n  action: utter_greet\n  next: tow\n- id: two\n"
                                                   "  action: utter_greet")},
           {(A, 7, "skill.block.missing_target"), (A, 10, "skill.block.unreachable_step")}, "Did you mean 'two'?"),
    Broken("two steps of one name", {A: _skill("- id: one\n  action: utter_greet\n- id: one\n  action: utter_greet")},
           {(A, 9, "skill.block.duplicate_step")}, "line 7"),
    Broken("a step of two kinds", {A: _skill("- id: one\n  action: utter_greet\n  collect: account")},
           {(A, 7, "skill.block.step_kind")}),
    Broken("a misspelt kind of step", {A: _skill("- id: one\n  acton: utter_greet")},
           {(A, 7, "skill.block.step_kind")}, "Did you mean 'action'?"),
    Broken("steps that go round for ever",
           {A: _skill("- id: one\n  action: utter_greet\n- id: two\n  set_memory: {paid: true}\n  next: one")},
           {(A, 7, "skill.block.endless")}, "one → two → one"),
    Broken("a block without steps", {A: skill(":::ordered_block id=main\nsteps: []\n:::\n")},
           {(A, 5, "skill.block.empty"), (A, 1, "skill.empty")}),
    Broken("a block that is not closed", {A: skill("Say hello.\n:::ordered_block id=main\nsteps: []\n")},
           {(A, 6, "skill.block.missing_fence")}),
    Broken("two blocks of one name", {A: skill("Use @block.main.\n" + ONE_STEP + ONE_STEP)},
           {(A, 11, "skill.block.duplicate")}, "line 6"),
    Broken("a tool named with @", {A: skill("First line.\nCall @tool.lookup now.\n")},
           {(A, 6, "skill.prose.mention")}, "plain words"),
    Broken("a tool named with @ inside a step",
           {A: _skill("- id: one\n  instructions: |\n    Call @tool.lookup.\n  complete_when: session.a.account")},
           {(A, 9, "skill.prose.mention")}),
    Broken("a skill that is not there", {A: skill("Go on with @skill.bb.\n"), "skills/b/skill.md": skill("Do it.\n")},
           {(A, 5, "skill.unknown_skill")}),
    Broken("skills that call each other",
           {A: _skill("- id: one\n  call: '@skill.b'"),
            "skills/b/skill.md": _skill("- id: one\n  call: '@skill.a'")},
           {(A, 7, "skill.circle")}, "a → b → a"),
    Broken("a response that is not there", {A: _skill("- id: one\n  action: utter_gret")},
           {(A, 7, "skill.unknown_response")}, "Did you mean 'utter_greet'?"),
    Broken("a placeholder without a field", {"responses.yml": "responses:\n  utter_greet: Hello {acount}.\n"},
           {("responses.yml", 2, "responses.placeholder")}),
    Broken("a field of no type", {"memory.yml": "name: {type: txt}\n"}, {("memory.yml", 1, "memory.field_type")},
           "Did you mean 'text'?"),
    Broken("a tool that is not there", {A: _skill("- id: one\n  execute_tool: find_it")},
           {(A, 7, "skill.unknown_tool")}),
    Broken("an import that is not there",
           {A: skill("Do it.\n", import_tools="[find_ti]"),
            "tools/search.py": "from voice_agent.dialogue import tool\n\n\n"
            '@tool(description="Finds.")\nasync def find_it() -> None: ...\n'},
           {(A, 4, "skill.unknown_import")}, "Did you mean 'find_it'?"),
    Broken("a tool with the name of a skill",
           {"skills/a/tools.py": 'from voice_agent.dialogue import tool\n\n\n@tool(description="x")\n'
            "async def b() -> None: ...\n", "skills/b/skill.md": skill("Do it.\n")},
           {("skills/a/tools.py", 4, "skill.tool_is_skill")}),
    Broken("a tool with the name of a built-in one",
           {"skills/a/tools.py": TOOL.replace("find", "listen")},
           {("skills/a/tools.py", 4, "skill.tool_is_builtin")}),
    Broken("an import that the skill's own tool hides",
           {A: skill("Do it.\n", import_tools="[find]"), "tools/search.py": TOOL, "skills/a/tools.py": TOOL},
           {(A, 4, "skill.tool_hides_shared")}, "The tool 'find' of this skill is used"),
    Broken("a step that leads to a broken one",
           {A: _skill("- id: one\n  action: utter_greet\n  next: two\n- id: two\n  acton: utter_greet")},
           {(A, 10, "skill.block.step_kind")}),
    Broken("a skill that names itself", {A: skill("First this.\nThen @skill.a again.\n")},
           {(A, 6, "skill.starts_itself")}),
    Broken("a tool in two files",
           {"skills/a/tools.py": 'from voice_agent.dialogue import tool\n\n\n@tool(description="x")\n'
            "async def find() -> None: ...\n", "skills/a/tools/more.py":
            'from voice_agent.dialogue import tool\n\n\n@tool(description="x")\nasync def find() -> None: ...\n'},
           {("skills/a/tools/more.py", 4, "tool.duplicate")}),
    Broken("a tool that is not async",
           {"skills/a/tools.py": 'from voice_agent.dialogue import tool\n\n\n@tool(description="x")\n'
            "def find() -> None: ...\n", A: _skill("- id: one\n  execute_tool: find")},
           {("skills/a/tools.py", 4, "tool.definition")}, "async def"),
    Broken("a tool that writes what nobody declared",
           {"skills/a/tools.py": "from voice_agent.dialogue import ToolContext, tool\n\n\n"
            '@tool(description="x")\nasync def find(context: ToolContext = None) -> None:\n'
            '    context.memory.set("acount", 1)\n'},
           {("skills/a/tools.py", 6, "undeclared_memory_write")}, "Did you mean 'account'?"),
    Broken("a conversation test with a misspelt key",
           {"tests/a.yml": "conversations:\n  - name: x\n    steps:\n      - say: hi\n        expct: {}\n"},
           {("tests/a.yml", 5, "conversation.unknown_key")}, "Did you mean 'expect'?"),
)  # fmt: skip

SOUND = {
    "responses.yml": GREET,
    A: skill(ONE_STEP),
    "skills/a/memory.yml": FIELDS,
}
