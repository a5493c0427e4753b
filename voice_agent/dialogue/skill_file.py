"""Reads one skill.md: front matter, prose, ordered blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from voice_agent.diagnostics import Problem
from voice_agent.dialogue.block_file import BlockReader
from voice_agent.dialogue.blocks import Block, Paragraph
from voice_agent.dialogue.conditions import Condition
from voice_agent.dialogue.framework_tools import ALIASES
from voice_agent.dialogue.names import Names, paragraphs
from voice_agent.dialogue.project import Confirmation, Constraint, Trigger
from voice_agent.dialogue.remote_tools import bare_name
from voice_agent.yaml_source import LocatedMap, Reader, YamlFile

_KEYS = (
    "name",
    "description",
    "examples",
    "requires",
    "complete_when",
    "import_tools",
    "tool_constraints",
    "utter",
    "routing",
    "workflow",
)
_FENCE = re.compile(r"^:::\s*ordered_block\b(.*)$")


@dataclass(slots=True)
class SkillFile:
    """What one skill.md says, before it is linked to tools and responses. Lines are kept for later complaints."""

    path: Path
    name: str = ""
    description: str = ""
    examples: tuple[str, ...] = ()
    requires: Condition | None = None
    complete_when: Condition | None = None
    criteria: tuple[str, ...] = ()
    imports: dict[str, int] = field(default_factory=dict)
    constraints: dict[str, Constraint] = field(default_factory=dict)
    constraint_lines: dict[str, int] = field(default_factory=dict)
    triggers: list[tuple[Trigger, int]] = field(default_factory=list)
    engine_managed: bool | None = None
    engine_managed_line: int | None = None
    workflow: str | None = None
    prose: tuple[Paragraph, ...] = ()
    blocks: dict[str, Block] = field(default_factory=dict)


def read_skill(path: Path, text: str, names: Names) -> SkillFile | None:
    """Read ``text``; faults go to ``names.reader``. None when there is no usable front matter."""
    reader = names.reader
    lines = text.splitlines()
    delimiter = "skill.markdown.invalid_frontmatter_delimiter"
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if not lines or lines[0].rstrip() != "---" or end is None:
        missing = "does not begin with" if not lines or lines[0].rstrip() != "---" else "has no second"
        remedy = "Put the front matter between two lines that are exactly ---."
        reader.problems.append(Problem(delimiter, f"The file {missing} `---`.", remedy, path, 1))
        return None
    source = YamlFile("\n".join(lines[1:end]), path, first_line=2)
    reader.problems.extend(source.problems)
    if any(p.id == "yaml.syntax" for p in source.problems):
        return None
    top = reader.mapping(source.value, "The front matter", 1)
    skill = SkillFile(path)
    _front_matter(skill, top, names)
    _body(skill, lines[end + 1 :], end + 2, names)
    return skill


def _front_matter(skill: SkillFile, top: LocatedMap, names: Names) -> None:
    reader = names.reader
    reader.unknown(top, _KEYS, "The front matter")
    skill.name = reader.text(top, "name", "`name`", required=True)
    skill.description = reader.text(top, "description", "`description`", required=True)
    skill.examples = tuple(str(v) for v, _ in reader.items(top.get("examples"), "`examples`"))
    if "requires" in top:
        skill.requires = names.condition(top["requires"], top.key_lines["requires"])
    skill.complete_when, skill.criteria = names.completion(top)
    for item, line in reader.items(top.get("import_tools"), "`import_tools`"):
        skill.imports[str(item)] = line
    for item, line in reader.items(top.get("tool_constraints"), "`tool_constraints`"):
        for name, value in reader.mapping(item, "A tool constraint", line).items():
            tool = bare_name(ALIASES.get(name, name))
            skill.constraints[tool] = _constraint(tool, reader.mapping(value, f"`{tool}`", line), names)
            skill.constraint_lines[tool] = line
    for item, line in reader.items(top.get("utter"), "`utter`"):
        for response, value in reader.mapping(item, "An utterance", line).items():
            trigger = _trigger(response, reader.mapping(value, f"`{response}`", line), names, line)
            if trigger is not None:
                skill.triggers.append((trigger, line))
    if "workflow" in top:
        skill.workflow = reader.text(top, "workflow", "`workflow`") or None
    routing = reader.mapping(top.get("routing"), "`routing`")
    reader.unknown(routing, ["engine_managed"], "`routing`", strict=True)
    if "engine_managed" in routing:
        skill.engine_managed = reader.flag(routing, "engine_managed", True)
        skill.engine_managed_line = routing.key_lines["engine_managed"]


def _constraint(tool: str, value: LocatedMap, names: Names) -> Constraint:
    reader = names.reader
    known = ["requires", "requires_confirmation", "on_success", "description", "interruptible", "uninterruptible"]
    reader.unknown(value, known, f"`{tool}`", strict=True)
    requires = names.condition(value["requires"], value.key_lines["requires"]) if "requires" in value else None
    confirmation = None
    if "requires_confirmation" in value:
        raw, line = value["requires_confirmation"], value.key_lines["requires_confirmation"]
        if isinstance(raw, bool):
            options = LocatedMap(enabled=raw)
            options.key_lines = {"enabled": line}
        else:
            options = reader.mapping(raw, "`requires_confirmation`", line)
        known = ["enabled", "utter_for_confirmation", "utter_on_user_denial"]
        reader.unknown(options, known, "`requires_confirmation`", strict=True)
        if reader.flag(options, "enabled", True):
            ask = reader.text(options, "utter_for_confirmation", "`utter_for_confirmation`") or None
            denied = reader.text(options, "utter_on_user_denial", "`utter_on_user_denial`") or None
            confirmation = Confirmation(ask, denied)
    on_success = reader.text(value, "on_success", "`on_success`") or None
    interruptible = reader.flag(value, "interruptible", True) and not reader.flag(value, "uninterruptible", False)
    description = reader.text(value, "description", "`description`")
    return Constraint(requires, confirmation, on_success, description, interruptible)


def _trigger(response: str, value: LocatedMap, names: Names, line: int) -> Trigger | None:
    reader = names.reader
    reader.unknown(value, ["on", "when"], f"`{response}`", strict=True)
    if "when" in value:
        condition = names.condition(value["when"], value.key_lines["when"])
        return None if condition is None else Trigger(response, condition)
    if value.get("on") == "activate":
        return Trigger(response)
    reader.error("utter", f"`{response}` is never said.", "Write {on: activate} or {when: <condition>}.", line)
    return None


def _body(skill: SkillFile, lines: list[str], first_line: int, names: Names) -> None:
    """Split the body into prose and fenced blocks."""
    reader = names.reader
    prose: list[str] = []
    index = 0
    while index < len(lines):
        fence = _FENCE.match(lines[index].strip())
        if fence is None:
            prose.append(lines[index])
            index += 1
            continue
        start = index + 1
        end = next((i for i in range(start, len(lines)) if lines[i].strip() == ":::"), None)
        if end is None:
            at = first_line + index
            reader.error("block.missing_fence", "This block has no closing `:::`.", "Put it on a line of its own.", at)
            break
        _block(skill, fence.group(1), lines[start:end], first_line + start, names)
        # The prose keeps its line numbers: a block counts as blank lines.
        prose += [""] * (end - index + 1)
        index = end + 1
    skill.prose = paragraphs("\n".join(prose), first_line, names)
    _check_mentions(prose, first_line, reader)


def _block(skill: SkillFile, attributes: str, lines: list[str], first_line: int, names: Names) -> None:
    reader = names.reader
    found = re.search(r"\bid\s*=\s*[\"']?([^\W\d][\w-]*)", attributes)
    if found is None:
        reader.error("block.no_id", "This block has no id.", "Write :::ordered_block id=<name>.", first_line - 1)
    block_id = found.group(1) if found else f"block_{len(skill.blocks) + 1}"
    if block_id in skill.blocks:
        message = f"Block {block_id!r} is already defined on line {skill.blocks[block_id].line}."
        reader.error("block.duplicate", message, "Ids of blocks are unique in a skill.", first_line - 1)
    source = YamlFile("\n".join(lines), skill.path, first_line=first_line)
    reader.problems.extend(source.problems)
    if any(p.id == "yaml.syntax" for p in source.problems):
        return
    block = BlockReader(names).read(block_id, source.value, first_line - 1)
    if block is not None:
        skill.blocks[block_id] = block


def _check_mentions(lines: list[str], first_line: int, reader: Reader) -> None:
    for number, line in enumerate(lines, first_line):
        for kind in re.findall(r"@(\w+)\.\w", line):
            if kind not in ("skill", "block"):
                remedy = "Name tools in plain words; only @skill.<id> and @block.<id> mean something."
                reader.error("prose.mention", f"`@{kind}.` means nothing here.", remedy, number)


def mentions(paragraph_texts: tuple[Paragraph, ...]) -> Mapping[str, set[str]]:
    """Return the ids that prose names as ``@skill.<id>`` and ``@block.<id>``."""
    found: dict[str, set[str]] = {"skill": set(), "block": set()}
    for paragraph in paragraph_texts:
        for kind, name in re.findall(r"@(skill|block)\.([^\W\d][\w-]*)", paragraph.text):
            found[kind].add(name)
    return found
