"""What a project says and can never work, seen from above: circles and dead ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.blocks import (
    ActionStep,
    Block,
    CallStep,
    InstructionsStep,
    LinkStep,
    NoopStep,
    SetMemoryStep,
    Step,
    ToolStep,
)
from voice_agent.dialogue.project import Project, Skill
from voice_agent.text_file import read_text

_MENTION = re.compile(r"@(\w+)\.(\w[\w-]*)")
_FENCE = re.compile(r"^\s*:::")
_NEVER_WAIT = (ActionStep, NoopStep, SetMemoryStep)


def check_flow(project: Project, problems: list[Problem]) -> None:
    """Append circles, endless loops, and mentions that lead nowhere."""
    for skill in project.skills.values():
        for block in skill.blocks.values():
            _endless(skill, block, problems)
        _check_mentions(project, skill, problems)
    _circles(project, problems)


@dataclass(frozen=True, slots=True)
class _Mention:
    kind: str
    id: str
    line: int
    in_block: bool


def _mentions(path: Path) -> Iterable[_Mention]:
    """Yield every ``@kind.id`` of a skill's body."""
    # What is wrong with the file was reported when it was loaded.
    lines = (read_text(path, []) or "").splitlines()
    body = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), len(lines)) + 1
    fenced = False
    for number, line in enumerate(lines[body:], body + 1):
        if _FENCE.match(line):
            fenced = not fenced
        for kind, id in _MENTION.findall(line):
            yield _Mention(kind, id, number, fenced)


def _check_mentions(project: Project, skill: Skill, problems: list[Problem]) -> None:
    """Prose, and instructions inside blocks, may name skills and blocks and nothing else."""
    targets = {id for block in skill.blocks.values() for step in block.steps for id in _targets(step)}
    for found in _mentions(skill.path):
        known = {"skill": project.skills, "block": skill.blocks}.get(found.kind)
        if found.in_block and found.id in targets:
            continue
        if known is None and found.in_block:
            message = f"`@{found.kind}.` means nothing here."
            remedy = "Name tools in plain words; only @skill.<id> and @block.<id> mean something."
            problems.append(Problem("skill.prose.mention", message, remedy, skill.path, found.line))
        elif known is not None and found.id not in known:
            message, near = f"There is no {found.kind} {found.id!r}.", did_you_mean(found.id, known)
            problems.append(Problem(f"skill.unknown_{found.kind}", message, near, skill.path, found.line))
        elif found.kind == "skill" and found.id == skill.id:
            message, remedy = "A skill cannot start itself.", "Use a block and `next`."
            problems.append(Problem("skill.starts_itself", message, remedy, skill.path, found.line))


def _targets(step: Step) -> tuple[str, ...]:
    return (step.target.id,) if isinstance(step, CallStep | LinkStep) else ()


def _endless(skill: Skill, block: Block, problems: list[Problem]) -> None:
    """Report steps that follow each other in a circle without a branch and without ever waiting."""
    reported: set[int] = set()
    for start in range(len(block.steps)):
        path: list[int] = []
        index: int | None = start
        while index is not None and index not in path:
            path.append(index)
            index = _only_successor(skill, block, index)
        if index is None or index in reported:
            continue
        circle = path[path.index(index) :]
        reported.update(circle)
        names = " → ".join(block.steps[i].id for i in (*circle, index))
        message = f"These steps go round for ever without waiting: {names}."
        remedy = "Give one of them a branch that leads out, or let one wait for the caller."
        line = block.steps[index].line
        problems.append(Problem("skill.block.endless", message, remedy, skill.path, line))


def _only_successor(skill: Skill, block: Block, index: int) -> int | None:
    """Return the step that must follow at once; None where the block ends, waits or branches."""
    step = block.steps[index]
    constraint = skill.constraint(step.tool) if isinstance(step, ToolStep) else None
    free_tool = constraint is not None and constraint.requires is None and constraint.confirmation is None
    if not (isinstance(step, _NEVER_WAIT) or free_tool):
        return None
    if not step.next:
        return index + 1 if index + 1 < len(block.steps) else None
    if any(branch.condition is not None for branch in step.next):
        return None
    return block.index(step.next[0].then)


# --- circles of skills -------------------------------------------------------------------------


def _circles(project: Project, problems: list[Problem]) -> None:
    """Report skills that run each other in a circle: a skill that waits for another cannot be run by it.

    An error where steps of blocks do it, a warning where prose only allows it.
    """
    always = {id: _called(skill) for id, skill in project.skills.items()}
    maybe = {id: {**_mentioned(skill), **always[id]} for id, skill in project.skills.items()}
    found = {frozenset(circle) for circle in _find_circles(always)}
    for circle in _find_circles(always):
        _report_circle(project, circle, always[circle[0]], problems, Severity.ERROR)
    for circle in _find_circles(maybe):
        if frozenset(circle) not in found:
            _report_circle(project, circle, maybe[circle[0]], problems, Severity.WARNING)


def _called(skill: Skill) -> dict[str, int]:
    """Return the skills that ``call`` steps run, with their lines."""
    calls = [step for block in skill.blocks.values() for step in block.steps if isinstance(step, CallStep)]
    return {c.target.id: c.line for c in calls if c.target.id != skill.id and c.target.id not in skill.blocks}


def _mentioned(skill: Skill) -> dict[str, int]:
    lines = {found.id: found.line for found in _mentions(skill.path) if found.kind == "skill"}
    links = {step.target.id for block in skill.blocks.values() for step in block.steps if isinstance(step, LinkStep)}
    steps = [s for block in skill.blocks.values() for s in block.steps if isinstance(s, InstructionsStep)]
    said = [p.text for s in steps for p in s.instructions] + [p.text for p in skill.prose]
    named = {id for text in said for kind, id in _MENTION.findall(text) if kind == "skill"}
    return {id: line for id, line in lines.items() if id != skill.id and (id in named or id not in links)}


def _find_circles(edges: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    """Return the circles of a graph, each once, starting at its first node in order."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    finished: set[str] = set()

    def visit(node: str, path: tuple[str, ...]) -> None:
        if node in path:
            circle = path[path.index(node) :]
            found.setdefault(frozenset(circle), circle)
            return
        if node in finished:
            return
        for following in edges.get(node, ()):
            visit(following, (*path, node))
        finished.add(node)

    for node in edges:
        visit(node, ())
    return list(found.values())


def _report_circle(
    project: Project, circle: tuple[str, ...], edges: Mapping[str, int], problems: list[Problem], severity: Severity
) -> None:
    names = " → ".join((*circle, circle[0]))
    message = f"These skills run each other in a circle: {names}."
    remedy = "A skill that waits for another cannot be started by it; use `link` to hand over for good."
    following = circle[1] if len(circle) > 1 else circle[0]
    path = project.skills[circle[0]].path
    problems.append(Problem("skill.circle", message, remedy, path, edges.get(following), severity))
