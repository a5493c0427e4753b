"""A caller corrects what they said: the block goes on from there, and does not do twice what is still right.

before    a ── check(a) ── say ── b ── [c]            [ ] = where the block waits
corrected a ◀─────────────────────────
after     a ── check(a) ── say ── b ── [c]            check runs, if its arguments have changed;
               run         skip   skip                what was said is not said again

Pure: no clock, no I/O, no model.
"""

from __future__ import annotations

from collections.abc import Set

from voice_agent.dialogue.blocks import Block, CallStep, CollectStep, InstructionsStep, Step, ToolStep
from voice_agent.dialogue.conditions import Condition, Read, Reference
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.project import Skill
from voice_agent.dialogue.stepper import Cursor, Mark, following


def revisit(cursor: Cursor, skill: Skill, corrected: Set[Reference], read: Read) -> CollectStep | None:
    """Move ``cursor`` back to what follows the earliest question whose answer was corrected.

    Only when a step done since then depends on the answer; what lies ahead reads the new one anyway.

    Returns:
        The step whose answer was corrected, if the cursor has moved.
    """
    done = [step for step in map(cursor.block.find, cursor.passed) if step is not None]
    for position, step in enumerate(done):
        if isinstance(step, CollectStep) and step.field.reference in corrected:
            since = done[position:]
            if not any(depends(each, cursor.passed[each.id], skill, corrected) for each in since):
                return None
            go_back(cursor, step, skill, corrected, read)
            return step
    return None


def go_back(cursor: Cursor, to: CollectStep, skill: Skill, corrected: Set[Reference], read: Read) -> None:
    """Put ``cursor`` behind ``to``; what was done since is remembered, so that it is not done again for nothing."""
    index = cursor.block.index(to.id)
    assert index is not None
    order = list(cursor.passed)
    if to.id in cursor.passed:
        behind = order[order.index(to.id) + 1 :]
    else:
        # Records do not tell of questions; their order in the block has to do.
        behind = [id for id in order if (cursor.block.index(id) or 0) > index]
    marks = {**{id: cursor.passed.pop(id) for id in behind}, **cursor.again}
    cursor.again = {
        id: mark
        for id, mark in marks.items()
        if (step := cursor.block.find(id)) is not None and not _is_void(step, mark, skill, corrected)
    }
    cursor.go(following(cursor.block, index, read))


def _is_void(step: Step, mark: Mark, skill: Skill, corrected: Set[Reference]) -> bool:
    """What ``step`` came to holds no more. A tool's arguments are compared when it is reached."""
    if isinstance(step, ToolStep):
        return bool(mark.read & {str(reference) for reference in corrected})
    return isinstance(step, CallStep) and depends(step, mark, skill, corrected)


def depends(step: Step, mark: Mark, skill: Skill, corrected: Set[Reference]) -> bool:
    """Return whether ``step``, done as ``mark`` says, would do something else or lead elsewhere now."""
    return bool(mark.read & {str(reference) for reference in corrected}) or _uses(step, skill, corrected, frozenset())


def _uses(step: Step, skill: Skill, corrected: Set[Reference], seen: frozenset[str]) -> bool:
    conditions: list[Condition | None] = [branch.condition for branch in step.next]
    if isinstance(step, InstructionsStep):
        conditions.append(step.complete_when)
    if any(condition is not None and corrected & set(condition.references) for condition in conditions):
        return True
    if isinstance(step, ToolStep):
        return bool(corrected & _arguments(step, skill))
    if isinstance(step, CallStep) and step.target.kind == "block" and step.target.id not in seen:
        block: Block | None = skill.blocks.get(step.target.id)
        inner = () if block is None else block.steps
        return any(_uses(each, skill, corrected, seen | {step.target.id}) for each in inner)
    return False


def _arguments(step: ToolStep, skill: Skill) -> set[Reference]:
    """Return the fields of ``skill`` that the tool's arguments are taken from."""
    tool = skill.tools.get(step.tool)
    given = {value.reference for value in step.arguments.values() if isinstance(value, Field)}
    bare = set(tool.live.parameter_names if tool else ()) - step.arguments.keys()
    return given | {Reference(skill.id, name) for name in bare}
