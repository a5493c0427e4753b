"""Configured wording: variants, conditions, and placeholders filled in one pass.

A placeholder is ``{session.<skill>.<entry>}`` or a bare ``{entry}``. Anything else in braces is
text. A filled value is never looked at again, so no value can act as a template.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from voice_agent.dialogue.conditions import Condition, Read, Reference

log = logging.getLogger(__name__)

_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*(?:\.[^\W\d]\w*)*)\}")

Lookup = Callable[[Reference | str], Any]
"""Value of a three-part reference or of a bare name; None while unset."""


@dataclass(frozen=True, slots=True)
class Template:
    """Text with placeholders, parsed once."""

    source: str
    parts: tuple[str | Reference, ...]
    bare: frozenset[str] = frozenset()

    @property
    def is_constant(self) -> bool:
        return all(isinstance(part, str) for part in self.parts) and not self.bare

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def render(self, lookup: Lookup) -> str:
        """Fill the placeholders; an unset one becomes empty and is logged."""
        return self.fill(lookup)[0]

    def fill(self, lookup: Lookup) -> tuple[str, tuple[str, ...]]:
        """Return the text, and the values that were filled in."""
        pieces = [part if isinstance(part, str) else _spoken(part, lookup) for part in self.parts]
        filled = zip(self.parts, pieces, strict=True)
        return "".join(pieces), tuple(piece for part, piece in filled if isinstance(part, Reference) and piece)


def parse_template(text: str) -> Template:
    """Parse ``text``. A bare ``{name}`` becomes a `Reference` with an empty namespace."""
    parts: list[str | Reference] = []
    bare: set[str] = set()
    end = 0
    for found in _PLACEHOLDER.finditer(text):
        names = found.group(1).split(".")
        if len(names) == 1:
            reference = Reference("", names[0])
            bare.add(names[0])
        elif len(names) == 3 and names[0] == "session":
            reference = Reference(names[1], names[2])
        else:
            continue
        parts.extend((text[end : found.start()], reference))
        end = found.end()
    parts.append(text[end:])
    return Template(text, tuple(part for part in parts if part != ""), frozenset(bare))


def _spoken(reference: Reference, lookup: Lookup) -> str:
    value = lookup(reference if reference.namespace else reference.entry)
    if value is None:
        log.warning("a placeholder for %s is empty because the value is not set", reference.entry)
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Variant:
    """One wording.

    Attributes:
        channel: Only for this channel, where set.
        interruptible: False for wording that must be heard whole.
        while_uninterruptible: What becomes of the caller's words meanwhile: kept and answered after it, or discarded.
        record: What a model sees of it later: what was heard, or all of it even if it was cut.
        rephrase: The author allows a model to reword it.
    """

    template: Template
    condition: Condition | None = None
    channel: str | None = None
    interruptible: bool = True
    while_uninterruptible: Literal["keep", "discard"] = "keep"
    record: Literal["heard", "full"] = "heard"
    rephrase: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    name: str
    variants: tuple[Variant, ...]

    def choose(self, read: Read, channel: str | None = None, nth: int = 0) -> Variant | None:
        """Return the first conditioned variant that holds, else the ``nth`` (round and round) without a condition.

        Variants of the caller's channel come before general ones, those of other channels never.
        A variant whose condition cannot be evaluated is skipped.
        """
        usable = [v for v in self.variants if v.channel in (None, channel)]
        usable.sort(key=lambda v: v.channel is None)
        for variant in usable:
            if variant.condition is not None and _holds(variant.condition, read):
                return variant
        plain = [v for v in usable if v.condition is None]
        plain = [v for v in plain if v.channel == plain[0].channel]
        return plain[nth % len(plain)] if plain else None


def _holds(condition: Condition, read: Read) -> bool:
    try:
        return condition.evaluate(read)
    except TypeError:
        return False


@dataclass(frozen=True, slots=True)
class Wording:
    """A message ready to be said.

    Attributes:
        name: Of the response; empty for a model's own words.
        rephrase: A model may reword it, as long as every one of ``values`` stays as it is.
        about: What the rewording should be about, where the text alone does not say it.
        template: The text before its placeholders were filled.
    """

    name: str
    text: str
    interruptible: bool = True
    rephrase: bool = False
    values: tuple[str, ...] = ()
    about: str = ""
    template: str = ""
    while_uninterruptible: Literal["keep", "discard"] = "keep"
    record: Literal["heard", "full"] = "heard"


@dataclass(frozen=True, slots=True)
class Responses:
    """The responses of a project: a skill's own, then the root's, then the packaged ones."""

    packaged: Mapping[str, Response] = field(default_factory=dict)
    root: Mapping[str, Response] = field(default_factory=dict)
    by_skill: Mapping[str, Mapping[str, Response]] = field(default_factory=dict)

    @property
    def own(self) -> Sequence[Mapping[str, Response]]:
        """The project's own responses, by file."""
        return (self.root, *self.by_skill.values())

    def find(self, name: str, skill: str | None) -> Response | None:
        own = self.by_skill.get(skill, {}).get(name) if skill else None
        return own or self.root.get(name) or self.packaged.get(name)

    def names(self, skill: str | None) -> set[str]:
        return {*self.packaged, *self.root, *(self.by_skill.get(skill, {}) if skill else ())}

    def constant_texts(self, first: Sequence[tuple[str, str | None]] = ()) -> tuple[str, ...]:
        """Return every text without placeholders, those of ``first`` (name, skill) before all others."""
        ordered = [found for name, skill in first if (found := self.find(name, skill)) is not None]
        for group in (*self.by_skill.values(), self.root, self.packaged):
            ordered.extend(group.values())
        texts = (v.template for response in ordered for v in response.variants)
        return tuple(dict.fromkeys(t.source for t in texts if t.is_constant))
