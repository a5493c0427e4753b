"""Every problem that `voice-agent check` can find: its id, what it means, and what would be right.

``docs/problems.md`` is made from this table; a test keeps it in step with the ids in the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from voice_agent.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem. A ``*`` in ``id`` stands for the kind of file or for a key."""

    id: str
    meaning: str
    remedy: str
    severity: Severity = Severity.ERROR


def _entries(*rows: tuple[str, str, str]) -> tuple[Entry, ...]:
    """Make entries; a leading ``~`` of the id marks a warning, ``^`` a note."""
    marks = {"~": Severity.WARNING, "^": Severity.NOTE}
    return tuple(Entry(id.lstrip("~^"), what, remedy, marks.get(id[0], Severity.ERROR)) for id, what, remedy in rows)


_FILES = _entries(
    ("project.missing", "There is no project: no directory, or one with neither agent.yml nor integrations.yml.",
     "Name a project directory, or make one with `voice-agent new`."),
    ("project.no_skills", "The project has no skill.", "Add `skills/<name>/skill.md`; see `voice-agent new skill`."),
    ("*.missing", "A file that every project needs is not there.", "Create it."),
    ("file.encoding", "A file is not UTF-8.", "Save it as UTF-8."),
    ("file.unreadable", "A file cannot be read.", "Check what it is and its permissions, or remove it."),
    ("file.too_large", "A file is larger than anybody writes by hand.", "Split it, or move it out of the project."),
    ("yaml.syntax", "A file, front matter or block is not valid YAML.",
     "Mend the line; quote texts with `: ` in them, and indent with spaces."),
    ("yaml.duplicate_key", "A mapping has the same key twice.", "Keep one."),
    ("yaml.key", "A key is a list or a mapping.", "Use a plain word as the key."),
    ("yaml.tag", "A value has a tag, such as `!!binary`, that means nothing here.", "Remove it."),
    ("yaml.value", "A value is not of the kind that its tag names, or a number is too long.", "Quote it."),
    ("yaml.merge", "`<<` takes over something that is no mapping.", "Name an anchor: `<<: *name`."),
    ("yaml.too_large", "A file is nested too deeply, or too large once its aliases are expanded.", "Split it."),
    ("*.type", "A value is of the wrong kind, such as a list where text belongs.", "Write the kind that is named."),
    ("*.unknown_key",
     "Nobody reads this key. An error when it looks like a slip or stands where only known keys may, else a warning.",
     "Use the key that is suggested, or remove it."),
    ("*.missing_variable", "`${NAME}` names an environment variable that is not set.",
     "Set it, or write `${NAME:-default}`."),
    ("*.duplicate", "The same thing is declared in two places.", "Keep one."),
    ("~*.unused", "A key is understood but not acted on here.", "Remove it, or leave it for another engine."),
    ("engine.unavailable", "An engine, model, package or key that the settings name is not there.",
     "Do what the message says."),
)  # fmt: skip

_SETTINGS = _entries(
    ("config.agent.missing_persona", "`agent.persona` is missing in agent.yml.", "Say in a sentence who the agent is."),
    ("~agent.id", "`agent.id` was missing; one has been made.", "Keep it under version control."),
    ("agent.unknown_workflow", "`workflow` in agent.yml names none that there is.",
     "Name `mantle`, `react` or a plugin's."),
    ("skill.unknown_workflow", "`workflow` in a skill names none that there is.",
     "Name `mantle`, `react` or a plugin's."),
    ("transfer.unknown_destination", "A step puts the caller through to a name that `transfers:` does not have.",
     "Name one of the destinations in integrations.yml."),
    ("transfer.unknown_response", "The response that announces a transfer does not exist.",
     "Add it, or leave `utter:` out."),
    ("transfer.hold_audio", "The sound to wait with is not there.", "Name a WAV file within the project."),
    ("agent.unknown_skill", "`conversation.before_end` names a skill that does not exist.", "Name a skill."),
    ("config.rule_is_mapping", "A rule contains `: ` and is therefore read as a mapping.",
     "Put the whole rule in quotes."),
    ("*.value.*", "A setting has a value that it cannot have.", "Use a value of the kind and range that is named."),
    ("integrations.missing_key", "The environment variable with a key is not set.", "Set it."),
    ("integrations.mcp_incomplete", "An MCP server has no program or no address.", "Add `command` or `url`."),
    ("~integrations.mcp_unused", "A key means nothing to an MCP server of this kind.", "Remove it."),
    ("integrations.mcp_key", "The key of an MCP server stands among its headers.", "Name its variable with `key_env`."),
    ("~mcp.no_command", "The program of an MCP server is not on this machine.", "Install it."),
    ("~mcp.no_directory", "The folder in which an MCP server is to be started is not there.", "Name another."),
    ("~mcp.unreachable", "An MCP server could not be reached. Found with `--online`.", "Start it."),
    ("^mcp.not_asked", "Skills import tools of an MCP server that was not asked for them.",
     "Ask it: `voice-agent check --online`."),
    ("~integrations.unknown_channel", "There is no channel of this name; it is ignored.", "Use a known one."),
    ("~integrations.engine_fallback", "There is no such speech engine here; the local one is used.",
     "Name a known engine, or leave it."),
    ("~endpoints.api_key", "A model of a model group has no usable key.", "Name its variable."),
    ("~endpoints.empty_model_group", "A model group has no models.", "Add `models:`."),
    ("~endpoints.model", "A model of a model group cannot be used.", "Give it a provider and a model."),
    ("~endpoints.nlg", "The rephraser's settings cannot be used.", "Use `type: rephrase` and a model group."),
    ("~endpoints.unknown_model_group", "A model group of this id is not declared.", "Declare it in `model_groups:`."),
)  # fmt: skip

_MEMORY = _entries(
    ("memory.field_name", "A field's name is no identifier.", "Use letters, digits and underscores."),
    ("memory.field_type", "A field has an unknown type.", "Use text, categorical, bool, int, float, list or any."),
    ("memory.no_enum_values", "A categorical field has nothing to choose from.", "Add `enum_values:`."),
    ("memory.project_only", "`seed` and `mutable` belong to the root memory.yml.", "Remove them from the skill's."),
    ("memory.llm_project", "Project memory cannot be set by the model.", "Remove `llm_settable`."),
    ("memory.initial_value", "The initial value does not fit the field's type.", "Give one that does."),
    ("undeclared_memory_write", "A tool writes a field that nobody declares where the tool can see it.",
     "Declare it in the skill's memory.yml or the root's."),
)  # fmt: skip

_RESPONSES = _entries(
    ("responses.name", "A response's name does not begin with `utter_`.", "Rename it."),
    ("responses.empty", "A response has no wording.", "Add `- text: …`."),
    ("responses.empty_text", "A variant has no text.", "Write what should be said, in quotes if it contains `: `."),
    ("responses.placeholder", "A placeholder names no field.", "Declare the field, or write the reference in full."),
    ("*.delivery", "`while_uninterruptible` or `record` has a value that it cannot have.",
     "Write keep or discard; heard or full."),
    ("~*.delivery_unused", "Words over speech that may be interrupted are never discarded.",
     "Add `interruptible: false`."),
    ("^responses.rephrase", "A response asks to be rephrased, but no model here can.",
     "Set another `llm:`, or a model group for `nlg:` in endpoints.yml."),
)  # fmt: skip

_NAMES = _entries(
    ("*.condition.syntax", "A condition is not in the grammar of conditions.",
     "Use and, or, not, comparisons, constants and `session.<skill|project>.<entry>`."),
    ("*.condition.type", "A condition is no text.", "Quote it."),
    ("*.unknown_reference", "A condition or placeholder names memory that is not declared.",
     "Declare it, or use the name that is suggested."),
    ("*.private_reference", "A condition reads another skill's private memory.", "Move the field to `public:` there."),
    ("skill.unknown_field", "A step names a field that is not declared.", "Declare it in memory.yml."),
    ("skill.unknown_tool", "A step or constraint names a tool that the skill does not have.",
     "Define it, or import it with `import_tools`."),
    ("skill.unknown_import", "`import_tools` names a shared tool that does not exist.", "Define it in `tools/*.py`."),
    ("skill.unknown_response", "A response of this name does not exist.", "Add it to responses.yml."),
    ("skill.unknown_skill", "`@skill.<id>` names a skill that does not exist.", "Use the id of a folder in `skills/`."),
    ("skill.unknown_block", "`@block.<id>` names a block that the skill does not have.", "Use the id of a block."),
    ("skill.mcp_name", "An import begins with `mcp/` and names no tool of a server.",
     "Write `mcp/<server>:<tool>`, one for each tool."),
    ("skill.mcp_collision", "A server's tool has the name of another tool that the skill could mean.",
     "Rename one, or import only one."),
    ("skill.unknown_mcp_server", "`import_tools` names an MCP server that `mcp_servers:` does not have.",
     "Name it in integrations.yml."),
    ("skill.unknown_mcp_tool", "An MCP server does not have the tool that a skill imports. Found with `--online`.",
     "Use a name that the server lists."),
)  # fmt: skip

_SKILLS = _entries(
    ("skill.markdown.invalid_frontmatter_delimiter", "The front matter does not stand between two lines `---`.",
     "Begin the file with `---` and close the front matter with `---`."),
    ("*.missing_*", "A required key is missing.", "Add it."),
    ("skill.id", "A folder's name cannot be a skill id.", "Use letters, digits and underscores."),
    ("~skill.id_hyphen", "Conditions cannot name the memory of a skill with a hyphen.", "Use underscores."),
    ("~skill.id_keyword", "Conditions cannot name the memory of a skill called `and`, `class` or the like.",
     "Rename the folder."),
    ("skill.engine_managed", "The skill for unsupported requests is started by the engine only.",
     "Remove `engine_managed: false`."),
    ("skill.utter", "An utterance is never said.", "Write `{on: activate}` or `{when: <condition>}`."),
    ("skill.tool_is_skill", "A tool has the name of a skill.", "Rename it."),
    ("skill.tool_is_builtin", "A tool has the name of a built-in tool.", "Rename it."),
    ("~skill.tool_hides_shared", "A skill imports a shared tool and has one of that name itself, which is used.",
     "Rename one, or remove the import."),
    ("skill.prose.mention", "`@` is followed by something other than `skill.` or `block.`.",
     "Name tools in plain words."),
    ("skill.starts_itself", "A skill starts itself.", "Use a block and `next`."),
    ("skill.circle",
     "Skills run each other in a circle. An error where steps do it, a warning where prose only allows it.",
     "Use `link` to hand over for good, or break the circle."),
    ("skill.empty", "A skill has neither instructions nor blocks.", "Say what to do."),
    ("~skill.unreachable_block", "A block of a skill without prose can never start.", "Name it with `call`."),
    ("~skill.silent_greeting", "The override of default_session_start says nothing.", "Add an `action`."),
)  # fmt: skip

_BLOCKS = _entries(
    ("skill.block.no_id", "A block has no id.", "Write `:::ordered_block id=<name>`."),
    ("skill.block.duplicate", "Two blocks of a skill have the same id.", "Rename one."),
    ("skill.block.missing_fence", "A block is not closed.", "Put `:::` on a line of its own."),
    ("skill.block.empty", "A block has no steps.", "Add `steps:` with a list."),
    ("skill.block.duplicate_step", "Two steps of a block have the same id.", "Rename one."),
    ("skill.block.step_id", "A step that does something is called END.", "Rename it."),
    ("skill.block.step_kind", "A step does nothing, or several things at once.", "Give it exactly one kind."),
    ("skill.block.branch", "An item of `next` is no branch.", "Write `if`/`then`, or `else`."),
    ("skill.block.unreachable_branch", "A branch stands after `else`.", "Put `else` last."),
    ("skill.block.missing_target", "`next` names a step that does not exist.", "Use the id of a step, or END."),
    ("~skill.block.unreachable_step", "No step leads to this one.", "Let a `next` lead to it, or remove it."),
    ("skill.block.endless", "Steps follow each other in a circle without ever waiting.", "Give them a way out."),
    ("skill.block.instructions", "`instructions` is no text.", "Write what the model should do."),
    ("~skill.block.no_complete_when", "An instructions step ends with the model's first reply.",
     "Say when it is done with `complete_when`."),
    ("skill.block.collect_foreign", "A collect step fills a field of another namespace.",
     "Declare the field in this skill's memory.yml."),
    ("~skill.block.no_utterance", "A collect step has no question; the model will word it.", "Add `utterance:`."),
    ("skill.block.action", "`action` names something other than a response.", "To run a tool write `execute_tool:`."),
    ("skill.block.noop", "A noop has no `next`.", "Add it."),
    ("skill.block.set_memory", "`set_memory` gives a field a value that does not fit its type.", "Give one that does."),
    ("skill.block.link", "A `link` has a `next`.", "It never comes back; use `call`."),
    ("skill.transfer_confirmation", "`requires_confirmation` stands for `transfer`, which is never held.",
     "Collect a yes or no before it."),
    ("skill.block.transfer", "A step puts the caller through to nobody.", "Write `args: {destination: NAME}`."),
    ("skill.digits_confirmation", "`requires_confirmation` stands for `send_digits`, which is never held.",
     "Collect a yes or no before it."),
    ("skill.block.send_digits", "A step presses no keys, or something that is none.",
     "Write `args: {digits: \"1w42#\"}`, in quotes."),
    ("skill.block.target", "`call` or `link` names nothing that can run.", "Write `@skill.<id>` or `@block.<id>`."),
    ("skill.block.unknown_argument", "A tool does not take this argument.", "Use a parameter of the tool."),
    ("skill.block.missing_argument", "Nothing gives a tool a required argument.",
     "Add `args:`, or a memory field of that name."),
)  # fmt: skip

_CODE = _entries(
    ("tool.syntax", "A tool file is not valid Python.", "Mend the line."),
    ("tool.import", "A tool file cannot be imported.", "Mend what it raises."),
    ("tool.definition", "A tool is not declared as one must be.",
     'Write `@tool(description="…")` on an `async def` with plain parameters.'),
    ("~tool.duplicate", "A tool is defined in two files of a folder.", "Remove one."),
    ("hook.definition", "A hook is not declared as one must be.", "Make it an `async def` with the right parameters."),
    ("^hook.waits", "A hook must see whole messages, so replies are not spoken while the model still writes.",
     "Leave out the hook if the first word must come sooner."),
    ("plugin.definition", "A hook or tool of a plugin is not declared as one must be.", "The message says how."),
    ("plugin.import", "A file of a plugin cannot be imported.", "Mend what it raises, or install what it needs."),
    ("plugin.syntax", "A file of a plugin is not valid Python.", "Mend the line."),
    ("plugin.entry_point", "An installed plugin names no module.", "Name the module with its hooks and tools."),
    ("plugin.workflow", "A plugin's workflows cannot be used.", "Return classes derived from AgenticWorkflowConfig."),
    ("~plugin.unknown_hook", "A hook of a plugin is called like no point.", "Use the name that is suggested."),
    ("~plugin.tool", "Two plugins, or a plugin and the project, have a tool of one name.", "Rename one."),
    ("plugin.settings_model", "What a plugin declares as the model of its settings is none.",
     "Write `class Settings(pydantic.BaseModel)`, or a function `settings_model` that returns such a class."),
    ("plugin.setting", "A setting of a plugin does not fit the plugin's model.", "The message says what is expected."),
    ("plugin.unknown_setting", "A plugin has no setting of this name.", "Use the name that is suggested."),
    ("plugin.unknown", "`plugins` in agent.yml has settings for a plugin that there is not.",
     "Use the name of a plugin, or remove them."),
    ("~plugin.no_settings", "`plugins` in agent.yml has settings for a plugin that takes none.", "Remove them."),
    ("~plugin.hidden", "A plugin of the project hides an installed one.", "Rename one."),
    ("hook.unknown_point", "A hook's name is no point of the engine.", "Use the name that is suggested."),
)  # fmt: skip

_TESTS = _entries(
    ("conversation.value", "A key of a conversation test has an impossible value.", "Do what the message says."),
    ("conversation.duplicate_name", "Two tests of a file have the same name.", "Rename one."),
    ("conversation.wait_without_now", "`wait` needs a clock that stands still.", "Give the test a `now:`."),
)  # fmt: skip

GROUPS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("Files", _FILES),
    ("Settings", _SETTINGS),
    ("Memory", _MEMORY),
    ("Responses", _RESPONSES),
    ("Names and conditions", _NAMES),
    ("Skills", _SKILLS),
    ("Ordered blocks", _BLOCKS),
    ("Tools and hooks", _CODE),
    ("Conversation tests", _TESTS),
)
CATALOGUE: tuple[Entry, ...] = tuple(entry for _, entries in GROUPS for entry in entries)


def find(id: str) -> Entry | None:
    """Return the entry of a problem id, the most specific one."""
    fitting = [entry for entry in CATALOGUE if fnmatchcase(id, entry.id)]
    return max(fitting, key=lambda entry: len(entry.id.replace("*", "")), default=None)


def as_markdown() -> str:
    """Return ``docs/problems.md``."""
    lines = [
        "# Problems that `voice-agent check` finds",
        "",
        "Made by `python -m voice_agent.authoring.problem_catalogue`; do not edit. A `*` stands for the kind of file",
        "(`config` is agent.yml) or for a key. Those marked *warning* or *note* do not keep a project from running.",
        "`voice-agent check --explain ID` shows one line of these tables.",
    ]
    for title, entries in GROUPS:
        lines += ["", f"## {title}", "", "| id | meaning | remedy |", "|-|-|-|", *_rows(entries)]
    return "\n".join(lines) + "\n"


def _rows(entries: Iterable[Entry]) -> Iterable[str]:
    for entry in entries:
        meaning, remedy = (text.replace("|", "\\|") for text in (entry.meaning, entry.remedy))
        mark = "" if entry.severity is Severity.ERROR else f" *{entry.severity.value}*"
        yield f"| `{entry.id}`{mark} | {meaning} | {remedy} |"


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
