"""Arguments for a project's own tool, out of what the caller has said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from voice_agent.llm.embedded.fields import Reader
from voice_agent.llm.embedded.questions import question
from voice_agent.llm.embedded.turn import Turn
from voice_agent.llm.protocol import FieldCard, ToolSpec

_TYPES = {"string": "text", "integer": "int", "number": "float", "boolean": "bool", "array": "list"}


@dataclass(frozen=True, slots=True)
class Filled:
    """``missing`` is the first required parameter that is still unknown."""

    values: dict[str, Any] = field(default_factory=dict)
    missing: FieldCard | None = None


def parameter_cards(tool: ToolSpec, known: Sequence[FieldCard] = ()) -> list[FieldCard]:
    """Return the tool's parameters in the form of fields, in the order of its schema.

    Args:
        known: Fields of the skill. One of a parameter's name describes it better than its schema does.
    """
    own = {card.name: replace(card, asked=False) for card in known}
    properties = tool.parameters.get("properties") or {}
    return [own.get(name) or _card(name, schema) for name, schema in properties.items() if isinstance(schema, Mapping)]


def fill(tool: ToolSpec, turn: Turn, reader: Reader) -> Filled:
    """Fill ``tool``'s parameters.

    In order of trust: the caller's answers to our own questions for a parameter (those questions
    are found again in the history by their wording), values they mentioned now, and values they
    gave for a field of the same name.
    """
    cards = parameter_cards(tool, turn.scope.fields)
    values = {card.name: value for card in cards if (value := _from_fields(card.name, turn)) is not None}
    values |= reader.mentioned(cards, turn.utterance)
    for said, reply in turn.exchanges:
        card = asked_for(said, cards)
        value = None if card is None else reader.asked(card, reply)
        if card is not None and value is not None:
            values[card.name] = value
    required = tool.parameters.get("required") or []
    missing = next((card for card in cards if card.name in required and card.name not in values), None)
    return Filled(values, missing)


def asked_for(said: str, cards: list[FieldCard]) -> FieldCard | None:
    """Return the card whose question ``said`` ends with."""
    return next((card for card in cards if said.strip().endswith((question(card), question(card, hint=True)))), None)


def _from_fields(name: str, turn: Turn) -> Any:
    given = (call.arguments.get(name) for call in reversed([*turn.earlier, *turn.calls]) if call.name == "set_fields")
    return next((value for value in given if value is not None), None)


def _card(name: str, schema: Mapping[str, Any]) -> FieldCard:
    options = [schema, *(option for key in ("anyOf", "oneOf") for option in schema.get(key) or ())]
    typed: Mapping[str, Any] = next((option for option in options if option.get("type") not in (None, "null")), {})
    choices: list[Any] = next((option["enum"] for option in options if isinstance(option.get("enum"), list)), [])
    kind = "categorical" if choices else _TYPES.get(str(typed.get("type")), "text")
    description = str(schema.get("description") or "")
    if typed.get("format") in ("date", "time", "email") and typed["format"] not in name:
        description = description or f"{typed['format']} of {name.replace('_', ' ')}"
    return FieldCard(name, kind, description, tuple(str(choice) for choice in choices))
