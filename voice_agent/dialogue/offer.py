"""What the model may do in its next call: the tools it is offered, and the same in structured form.

Gates are decided here and again when a call comes back (`calls`); a model that invents a call
gets nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from voice_agent.config import TransferOptions
from voice_agent.dialogue import framework_tools as ft
from voice_agent.dialogue.blocks import CollectStep, InstructionsStep
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.project import Project, Skill
from voice_agent.dialogue.skill_file import mentions
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.tools import Tool
from voice_agent.dialogue.turn import Turn
from voice_agent.digits import MAX_DIGITS, PAUSE, PAUSE_S
from voice_agent.llm.protocol import FieldCard, Scope, SkillCard, ToolSpec

DIGITS_FORM = f"1 to {MAX_DIGITS} of 0-9, *, #, A-D; {PAUSE} waits {PAUSE_S} seconds."


@dataclass(frozen=True, slots=True)
class Offer:
    """The allowed moves.

    Attributes:
        skills: Skills `start_skill` may name.
        fields: Fields `set_fields` may write.
        asked: The field whose question is open.
        tools: The active skill's own tools whose gates are open.
    """

    specs: tuple[ToolSpec, ...]
    scope: Scope
    skills: Mapping[str, Skill] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)
    asked: Field | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(spec.name for spec in self.specs)


def routable(project: Project, state: DialogueState) -> dict[str, Skill]:
    """Return the skills that may be started now: on the menu or named by the active prose, gate open, not at work."""
    top = state.top
    named = mentions(top.skill.prose)["skill"] if top is not None and not top.cursors else set()
    candidates = [s for s in project.skills.values() if s.menu or s.id in named]
    read = state.memory.read
    waiting = set() if top is None else {frame.skill.id for frame in state.callers(top)} - named
    at_work = waiting if top is None else waiting | {top.skill.id}
    return {s.id: s for s in candidates if s.id not in at_work and (s.requires is None or s.requires.holds(read))}


def fillable(state: DialogueState) -> tuple[dict[str, Field], Field | None]:
    """Return the fields the model may write now, and the one the caller was asked for."""
    top = state.top
    if top is None:
        return {}, None
    fields = {f.name: f for f in top.skill.fields if f.llm_settable}
    asked: Field | None = None
    if top.cursor is not None:
        fields.update({f.name: f for f in top.cursor.block.fields})
        step = top.cursor.step
        if isinstance(step, CollectStep):
            fields[step.field.name] = step.field
            if top.cursor.since is not None and state.question is None:
                asked = step.field
    return fields, asked


def open_tools(state: DialogueState) -> dict[str, Tool]:
    """Return the active skill's tools that the model may call: in prose or an instructions step, gates open."""
    top = state.top
    if top is None or (top.cursor is not None and not isinstance(top.cursor.step, InstructionsStep)):
        return {}
    read = state.memory.read
    found = {}
    for name, tool in top.skill.tools.items():
        requires = top.skill.constraint(name).requires
        if requires is None or requires.holds(read):
            current = tool.current()
            if current is not None:
                found[name] = current
    return found


def away_tools(state: DialogueState) -> tuple[str, ...]:
    """Return the names of the active skill's tools whose servers cannot be reached now."""
    top = state.top
    return () if top is None else tuple(name for name, tool in top.skill.tools.items() if tool.current() is None)


def build_offer(
    project: Project,
    state: DialogueState,
    turn: Turn,
    transfers: Mapping[str, TransferOptions] | None = None,
    *,
    learnt: bool = False,
) -> Offer:
    """Decide what the model may do now.

    Args:
        transfers: Destinations that the caller can be put through to.
        learnt: There are documents to search, beside the project's own references.
    """
    top = state.top
    skill = top.skill if top is not None else None
    skills, tools = routable(project, state), open_tools(state)
    fields, asked = fillable(state)
    in_block = top is not None and top.cursor is not None
    confirming = state.question is not None and state.question.asked < turn.number
    knowledge = learnt or has_knowledge(project, state)
    specs: list[ToolSpec] = []
    if skills:
        specs.append(ft.choice(ft.START_SKILL, "skill", skills, _override(skill, ft.START_SKILL)))
    if fields:
        schema = {name: ft.field_schema(f) for name, f in fields.items()}
        specs.append(ft.spec(ft.SET_FIELDS, schema, description=_override(skill, ft.SET_FIELDS)))
    if confirming:
        specs += [ft.spec(name, description=_override(skill, name)) for name in (ft.CONFIRM, ft.DENY)]
    if top is not None and not in_block:
        if top.skill.blocks:
            specs.append(ft.choice(ft.RUN_BLOCK, "block", top.skill.blocks, _override(skill, ft.RUN_BLOCK)))
        specs.append(ft.spec(ft.COMPLETE, description=_override(top.skill, ft.COMPLETE)))
    if top is not None and (not top.skill.lifecycle or fields):
        specs.append(ft.spec(ft.CANCEL_SKILL, description=_override(top.skill, ft.CANCEL_SKILL)))
    for name, tool in tools.items():
        description = top.skill.constraint(name).description if top else ""
        specs.append(ToolSpec(name, description or tool.description, tool.parameters))
    if knowledge:
        query = {"query": {"type": "string", "description": "The question in full words."}}
        description = _override(skill, ft.SEARCH_KNOWLEDGE)
        specs.append(ft.spec(ft.SEARCH_KNOWLEDGE, query, required=["query"], description=description))
    if not knowledge or turn.searched:
        # With something to search, giving up comes after searching.
        reason = {"reason": {"type": "string"}}
        specs.append(ft.spec(ft.CANNOT_HELP, reason, description=_override(skill, ft.CANNOT_HELP)))
    specs += [ft.spec(name, description=_override(skill, name)) for name in (ft.LISTEN, ft.HANG_UP)]
    if transfers and turn.reply.can_transfer and may_transfer(state):
        about = "; ".join(f"{name}: {to.description}" if to.description else name for name, to in transfers.items())
        specs.append(ft.choice(ft.TRANSFER, "destination", transfers, _override(skill, ft.TRANSFER), about=about))
    if turn.reply.can_send_digits and may_press(state):
        keys = {"digits": {"type": "string", "description": DIGITS_FORM}}
        description = _override(skill, ft.SEND_DIGITS)
        specs.append(ft.spec(ft.SEND_DIGITS, keys, required=["digits"], description=description))
    scope = Scope(
        utterance=turn.utterance,
        skills=tuple(SkillCard(s.id, s.description, s.examples, s.name) for s in skills.values()),
        active_skill=top.skill.id if top else None,
        fields=_cards(fields, asked),
        confirming=confirming,
        has_knowledge=knowledge,
    )
    return Offer(tuple(specs), scope, skills, fields, asked, tools)


def fitting_offer(offer: Offer, ranking: Sequence[str], above: int) -> Offer:
    """Leave away the tools, or skills, that fit the caller's words least, where there are more than ``above``.

    The framework's own tools stay, and so does everything while nothing is known of what fits.

    Args:
        ranking: Keys of tools and skills (`tool_key`, `skill_key`), the best first; what is not in it stays.
    """
    place = {key: number for number, key in enumerate(ranking)}

    def kept(names: Iterable[str], key: Callable[[str], str]) -> set[str]:
        return set(sorted(names, key=lambda name: place.get(key(name), -1))[:above])

    tools, skills = kept(offer.tools, tool_key), kept(offer.skills, skill_key)
    if not place or (len(tools) == len(offer.tools) and len(skills) == len(offer.skills)):
        return offer
    specs = []
    for spec in offer.specs:
        if spec.name == ft.START_SKILL and len(skills) < len(offer.skills):
            narrowed = [name for name in offer.skills if name in skills]
            specs.append(ft.choice(ft.START_SKILL, "skill", narrowed, spec.description))
        elif spec.name in tools or spec.name not in offer.tools:
            specs.append(spec)
    cards = tuple(card for card in offer.scope.skills if card.id in skills)
    return replace(
        offer,
        specs=tuple(specs),
        scope=replace(offer.scope, skills=cards),
        skills={name: one for name, one in offer.skills.items() if name in skills},
        tools={name: one for name, one in offer.tools.items() if name in tools},
    )


def tool_key(name: str) -> str:
    return f"tool {name}"


def skill_key(id: str) -> str:
    return f"skill {id}"


def is_open(state: DialogueState, name: str) -> bool:
    """Return whether the active skill's constraint on a framework tool lets it be used now."""
    top = state.top
    requires = None if top is None else top.skill.constraint(name).requires
    return requires is None or requires.holds(state.memory.read)


def may_transfer(state: DialogueState) -> bool:
    """Return whether the active skill lets the model put callers through now."""
    return is_open(state, ft.TRANSFER)


def may_press(state: DialogueState) -> bool:
    """Return whether the model may press keys now: only in a skill that names the tool among its constraints."""
    return state.top is not None and ft.SEND_DIGITS in state.top.skill.constraints and is_open(state, ft.SEND_DIGITS)


def fill_offer(state: DialogueState, turn: Turn) -> Offer:
    """The narrow offer after a skill was started: only write down what the caller has already said."""
    top = state.top
    assert top is not None
    read = state.memory.read
    fields = {f.name: f for f in top.skill.fillable if read(f.namespace, f.name) is None}
    schema = {name: ft.field_schema(f) for name, f in fields.items()}
    scope = Scope(utterance=turn.utterance, active_skill=top.skill.id, fields=_cards(fields, None))
    return Offer((ft.spec(ft.SET_FIELDS, schema), ft.spec(ft.LISTEN)), scope, fields=fields)


def has_knowledge(project: Project, state: DialogueState) -> bool:
    own = state.top.skill.knowledge if state.top else None
    return bool(own) or bool(project.knowledge)


def _cards(fields: Mapping[str, Field], asked: Field | None) -> tuple[FieldCard, ...]:
    return tuple(FieldCard(f.name, f.type, f.description, f.enum_values, f == asked) for f in fields.values())


def _override(skill: Skill | None, name: str) -> str:
    return skill.constraint(name).description if skill else ""
