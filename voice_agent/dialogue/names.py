"""What the names in one skill file mean: conditions, references and fields, checked as they are read."""

from __future__ import annotations

from typing import Any

from voice_agent.diagnostics import did_you_mean
from voice_agent.dialogue.blocks import Paragraph
from voice_agent.dialogue.conditions import Condition, ConditionSyntaxError, Reference, parse_condition
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.memory import PROJECT, Schema
from voice_agent.yaml_source import LocatedMap, Reader


class Names:
    """What names mean while one skill file is read."""

    def __init__(self, skill: str, schema: Schema, reader: Reader) -> None:
        self.skill, self.schema, self.reader = skill, schema, reader

    def condition(self, text: Any, line: int | None) -> Condition | None:
        """Parse a condition; None, and an error, if it is none or names unknown memory."""
        if isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str):
            self.reader.error("condition.type", "A condition must be text.", "Quote it.", line)
            return None
        try:
            condition = parse_condition(text)
        except ConditionSyntaxError as fault:
            self.reader.error("condition.syntax", fault.message, fault.remedy, line)
            return None
        known = [
            self.known(reference, line, f"The condition {condition.source!r}") for reference in condition.references
        ]
        return condition if all(known) else None

    def completion(self, parent: LocatedMap) -> tuple[Condition | None, tuple[str, ...]]:
        """Return the condition and the criteria of ``complete_when``: a condition alone, or a mapping of both."""
        value, line = parent.get("complete_when"), parent.key_lines.get("complete_when")
        criteria: tuple[str, ...] = ()
        if isinstance(value, LocatedMap):
            self.reader.unknown(value, ["condition", "criteria"], "`complete_when`", strict=True)
            given = value.get("criteria")
            if isinstance(given, str):
                criteria = (given.strip(),)
            else:
                criteria = tuple(str(item) for item, _ in self.reader.items(given, "`criteria`", line))
            value = value.get("condition")
        return (None if value is None else self.condition(value, line)), criteria

    def known(self, reference: Reference, line: int | None, where: str) -> bool:
        """Report a reference to memory that is not declared, or that this skill may not read."""
        declared = self.schema.get(reference)
        if declared is None:
            near = did_you_mean(str(reference), (str(f.reference) for f in self.schema))
            remedy = near or f"Declare {reference.entry!r} in the memory.yml it belongs to."
            self.reader.error("unknown_reference", f"{where} names {reference}, which is not declared.", remedy, line)
            return False
        if not declared.public and declared.namespace != self.skill:
            message = f"{where} reads {reference}, which is private to skill {declared.namespace!r}."
            self.reader.error("private_reference", message, "Move it to `public:` there.", line)
            return False
        return True

    def field(self, name: Any, line: int | None) -> Field | None:
        """Return the field named bare or in full; None, and an error, if there is none."""
        text = str(name)
        parts = text.split(".")
        if len(parts) == 3 and parts[0] == "session":
            reference = Reference(parts[1], parts[2])
            return self.schema.get(reference) if self.known(reference, line, "The step") else None
        found = self.schema.resolve(text, self.skill)
        if found is None:
            near = self.schema.suggestion(text, (self.skill, PROJECT))
            remedy = near or "Declare it in memory.yml."
            self.reader.error("unknown_field", f"Memory has no field {text!r} here.", remedy, line)
        return found


def _unquoted(text: str) -> str:
    """Return a condition without quotes around the whole of it; those around a value in it stay."""
    whole = len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]
    return text[1:-1] if whole else text


def paragraphs(text: str, first_line: int, names: Names) -> tuple[Paragraph, ...]:
    """Split prose at blank lines and ``if:`` lines; an ``if:`` reaches to the next of either."""
    found: list[Paragraph] = []
    lines: list[str] = []
    condition: Condition | None = None
    broken = False

    def flush() -> None:
        nonlocal condition, broken
        if lines and not broken:
            found.append(Paragraph("\n".join(lines).strip(), condition))
        lines.clear()
        condition, broken = None, False

    for number, line in enumerate(text.splitlines(), first_line):
        stripped = line.strip()
        if not stripped:
            flush()
        elif stripped.startswith("if:"):
            flush()
            condition = names.condition(_unquoted(stripped[3:].strip()), number)
            broken = condition is None
        else:
            lines.append(line.rstrip())
    flush()
    return tuple(p for p in found if p.text)
