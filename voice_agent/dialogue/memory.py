"""Memory: typed values in declared fields, per skill and for the whole session (``project``)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from voice_agent.diagnostics import did_you_mean
from voice_agent.dialogue.conditions import Reference
from voice_agent.dialogue.fields import Field, MemoryRefused, coerce

PROJECT = "project"
"""Namespace of the root ``memory.yml``."""


class Writer(Enum):
    """Who wrote a value. Decides what may be written, and is recorded with it."""

    TOOL = "tool"
    MODEL = "model"
    STEP = "step"
    SEED = "seed"
    ENGINE = "engine"
    HOOK = "hook"


class Schema:
    """All declared fields of a project."""

    def __init__(self, fields: Iterable[Field] = ()) -> None:
        self._fields: dict[Reference, Field] = {f.reference: f for f in fields}

    def __iter__(self) -> Any:
        return iter(self._fields.values())

    def get(self, reference: Reference) -> Field | None:
        return self._fields.get(reference)

    def of(self, namespace: str) -> list[Field]:
        return [f for f in self._fields.values() if f.namespace == namespace]

    def resolve(self, name: str, skill: str | None) -> Field | None:
        """Return the field a bare ``name`` means inside ``skill``: the skill's own first, then the project's."""
        own = self._fields.get(Reference(skill, name)) if skill else None
        return own or self._fields.get(Reference(PROJECT, name))

    def suggestion(self, name: str, namespaces: Iterable[str]) -> str:
        known = [f.name for n in namespaces for f in self.of(n)]
        return did_you_mean(name, known)


Listener = Callable[[Field, Any, Writer], None]


@dataclass(slots=True)
class Memory:
    """The values of one session. Every write goes through the declarations and is reported to ``on_write``."""

    schema: Schema
    on_write: Listener | None = None
    _values: dict[Reference, Any] = field(default_factory=dict)

    def read(self, namespace: str, entry: str) -> Any:
        """Return the value, or the declared initial one, or None."""
        reference = Reference(namespace, entry)
        if reference in self._values:
            return self._values[reference]
        declared = self.schema.get(reference)
        return None if declared is None else declared.initial_value

    def write(self, declared: Field, value: Any, writer: Writer) -> None:
        """Write one value.

        Raises:
            MemoryRefused: It does not fit the type, or the field is locked or not the writer's to set.
        """
        if declared.namespace == PROJECT:
            if writer is Writer.MODEL:
                raise MemoryRefused(f"{declared.name} belongs to the project and is not set by the model.")
            if writer is Writer.SEED and not declared.seed:
                raise MemoryRefused(f"{declared.name} is not declared with `seed: true`.")
            current = self._values.get(declared.reference)
            if current is not None and not declared.mutable:
                if coerce(declared, value) == current:
                    return
                raise MemoryRefused(f"{declared.name} is already set and locked for this session.")
        converted = coerce(declared, value)
        self._values[declared.reference] = converted
        if self.on_write is not None:
            self.on_write(declared, converted, writer)

    def begin(self, skill: str) -> None:
        """A skill starts: its memory is empty."""
        self._forget(lambda f: f.namespace == skill)

    def end(self, skill: str) -> None:
        """A skill ended: what it did not publish is forgotten."""
        self._forget(lambda f: f.namespace == skill and not f.public)

    def clear(self) -> None:
        self._values.clear()

    def _forget(self, which: Callable[[Field], bool]) -> None:
        for reference in [r for r in self._values if (f := self.schema.get(r)) is not None and which(f)]:
            del self._values[reference]

    def readable(self, skill: str | None) -> list[tuple[Field, Any]]:
        """Return set values that ``skill`` may read: its own, other skills' public ones, the project's."""
        found = []
        for declared in self.schema:
            if declared.namespace in (skill, PROJECT) or declared.public:
                value = self.read(declared.namespace, declared.name)
                if value is not None:
                    found.append((declared, value))
        return found

    def snapshot(self) -> list[list[Any]]:
        """Return the values as JSON-ready ``[namespace, entry, value]`` triples."""
        return [[r.namespace, r.entry, value] for r, value in self._values.items()]

    def restore(self, triples: Iterable[Iterable[Any]]) -> None:
        """Take over a snapshot; values whose declaration has gone or changed are left out."""
        for namespace, entry, value in triples:
            declared = self.schema.get(Reference(namespace, entry))
            if declared is not None:
                try:
                    self._values[declared.reference] = coerce(declared, value)
                except MemoryRefused:
                    continue


class MemoryHandle:
    """What a tool or a hook sees of memory: bare names, the skill's first, then the project's.

    Closed when its user has ended; a tool that outlived its grace window cannot write any more.
    """

    __slots__ = ("_closed", "_memory", "_skill", "_writer", "read")

    def __init__(self, memory: Memory, skill: str | None, writer: Writer = Writer.TOOL) -> None:
        self._memory, self._skill, self._writer, self._closed = memory, skill, writer, False
        self.read: set[Reference] = set()

    def _field(self, name: str) -> Field:
        declared = self._memory.schema.resolve(name, self._skill)
        if declared is None:
            near = self._memory.schema.suggestion(name, [n for n in (self._skill, PROJECT) if n])
            raise MemoryRefused(f"Memory has no field {name!r} here. {near}".strip())
        return declared

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a field, ``default`` while it is unset.

        Raises:
            MemoryRefused: No such field is declared.
        """
        declared = self._field(name)
        self.read.add(declared.reference)
        value = self._memory.read(declared.namespace, declared.name)
        # A copy: only `set` changes memory, and an initial value belongs to every conversation.
        return default if value is None else copy.deepcopy(value)

    def set(self, name: str, value: Any) -> None:
        """Write a field.

        Raises:
            MemoryRefused: Not declared, of another type, locked, or the tool is past its time.
        """
        if self._closed:
            why = "A hook that observes" if self._writer is Writer.HOOK else "A tool that has ended"
            raise MemoryRefused(f"{why} cannot write {name!r}.")
        self._memory.write(self._field(name), value, self._writer)

    def close(self) -> None:
        self._closed = True
