"""YAML that remembers where each key stood, so that every complaint can name a file and a line.

Differs from YAML 1.1 where authors are bitten by it: ``on``, ``off``, ``yes`` and ``no`` stay words,
``12:30`` stays text, and dates stay text. Aliases are bounded, duplicate keys are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.text_file import read_text

MAX_NODES = 200_000
"""Values one file may hold, aliases expanded; a bound on what a hostile file can cost."""

MAX_NUMBER_CHARS = 300
"""Python itself refuses to write out an integer of some thousand digits."""


class LocatedMap(dict[str, Any]):
    """A YAML mapping. ``line`` is its first line, ``key_lines`` the line of each key; all 1-based."""

    line: int = 1
    key_lines: dict[str, int]


class LocatedList(list[Any]):
    """A YAML sequence with the line of each item."""

    line: int = 1
    item_lines: list[int]


class _Loader(yaml.SafeLoader):
    """`yaml.SafeLoader` with the core schema of YAML 1.2 for plain scalars. Says best what is wrong with a text."""


_CORE = "tag:yaml.org,2002:"
_MERGE = f"{_CORE}merge"
_SCALARS = ("str", "bool", "int", "float", "null")

_loaders: list[Any] = [_Loader]
if yaml.__with_libyaml__:

    class _FastLoader(yaml.CSafeLoader):
        """The same in C, some eight times as fast. What it refuses is read by `_Loader`, for its words."""

    _loaders.insert(0, _FastLoader)

for _loader in _loaders:
    _loader.yaml_implicit_resolvers = {}

for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|^[-+]?[0-9]+[eE][-+]?[0-9]+$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^<<$", "<"),
):
    for _loader in _loaders:
        _loader.add_implicit_resolver(f"{_CORE}{_tag}", re.compile(_pattern), list(_first))


class YamlFile:
    """One YAML document: its value, and the problems met while reading it."""

    def __init__(self, text: str, path: Path, *, first_line: int = 1) -> None:
        """Parse ``text``. ``first_line`` is the line of ``path`` on which ``text`` begins."""
        self.path = path
        self.problems: list[Problem] = []
        self.value: Any = None
        self._offset = first_line
        self._nodes = 0
        try:
            self._parse(text)
        except yaml.MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            line = None if mark is None else mark.line + self._offset
            self._complain("yaml.syntax", f"Not valid YAML: {fault.problem or fault}.", _hint(fault, text), line)
        except yaml.YAMLError as fault:
            self._complain("yaml.syntax", f"Not valid YAML: {fault}.", "", None)
        except (RecursionError, OverflowError):
            self._complain("yaml.too_large", "Nested too deeply or too large.", "Split the file.", None)

    def _parse(self, text: str) -> None:
        for number, make in enumerate(_loaders, 1):
            loader = make(text)
            try:
                node = loader.get_single_node()
                self.value = None if node is None else self._convert(loader, node)
            except yaml.YAMLError:
                if number == len(_loaders):
                    raise
                self.problems.clear()
                self._nodes = 0
            else:
                return
            finally:
                loader.dispose()

    def _complain(self, id: str, message: str, remedy: str, line: int | None) -> None:
        self.problems.append(Problem(id, message, remedy, self.path, line))

    def _convert(self, loader: Any, node: yaml.Node) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OverflowError
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node)
        if isinstance(node, yaml.SequenceNode):
            items = LocatedList(self._convert(loader, child) for child in node.value)
            items.line = node.start_mark.line + self._offset
            items.item_lines = [child.start_mark.line + self._offset for child in node.value]
            return items
        return self._scalar(loader, node)

    def _scalar(self, loader: Any, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix(_CORE)
        line = node.start_mark.line + self._offset
        if kind not in _SCALARS:
            self._complain("yaml.tag", f"The tag {kind!r} means nothing here.", "Remove it, or quote the text.", line)
            return None
        try:
            if kind in ("int", "float") and len(node.value) > MAX_NUMBER_CHARS:
                raise ValueError
            return loader.construct_object(node)
        except (ValueError, KeyError):
            self._complain("yaml.value", f"{node.value!r:.40} is no {kind}.", "Quote it to make it text.", line)
            return None

    def _mapping(self, loader: Any, node: yaml.MappingNode) -> LocatedMap:
        result = LocatedMap()
        result.line = node.start_mark.line + self._offset
        result.key_lines = {}
        merged: list[LocatedMap] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + self._offset
            if key_node.tag == _MERGE:
                merged += self._merged(loader, value_node, line)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._complain("yaml.key", "A key must be a plain word.", "Quote it, or make it a list.", line)
                continue
            key = key_node.value
            if key in result:
                message = f"{key!r} stands here twice (first on line {result.key_lines[key]})."
                self._complain("yaml.duplicate_key", message, "Keep one.", line)
                continue
            result[key] = self._convert(loader, value_node)
            result.key_lines[key] = line
        for other in merged:
            for key, value in other.items():
                if key not in result:
                    result[key], result.key_lines[key] = value, other.key_lines[key]
        return result

    def _merged(self, loader: Any, node: yaml.Node, line: int) -> list[LocatedMap]:
        """Return what ``<<`` takes over: one mapping or several, the first one winning. Own keys win over all.

        Not left to PyYAML, which writes merged keys into the nodes: own keys then look like duplicates.
        """
        value = self._convert(loader, node)
        found = value if isinstance(value, LocatedList) else [value]
        if all(isinstance(one, LocatedMap) for one in found):
            return list(found)
        remedy = "Name an anchor: `<<: *name`."
        self._complain("yaml.merge", "`<<` takes a mapping, or a list of mappings.", remedy, line)
        return []


def _hint(fault: yaml.MarkedYAMLError, text: str) -> str:
    if "mapping values are not allowed" in str(fault.problem):
        return "A text that contains ': ' must be quoted."
    if "expected ',' or" in str(fault.problem):
        return "Inside {…} and […] a text with any of ? , : [ ] { } must be quoted."
    if "\t" in text and "cannot start any token" in str(fault.problem):
        return "Indent with spaces, not tabs."
    return ""


def line_of(value: Any, location: Iterable[str | int]) -> int | None:
    """Return the line of the deepest part of ``location`` that exists in ``value``."""
    line: int | None = getattr(value, "line", None)
    for part in location:
        if isinstance(value, LocatedMap) and isinstance(part, str) and part in value:
            line, value = value.key_lines[part], value[part]
        elif isinstance(value, LocatedList) and isinstance(part, int) and part < len(value):
            line, value = value.item_lines[part], value[part]
        else:
            break
    return line


class Reader:
    """Typed access to parts of a `YamlFile` that reports what does not fit instead of raising."""

    def __init__(self, path: Path, problems: list[Problem], kind: str) -> None:
        """``kind`` is the first part of the ids of problems, such as ``skill`` or ``memory``."""
        self.path, self.problems, self.kind = path, problems, kind

    def error(self, id: str, message: str, remedy: str = "", line: int | None = None) -> None:
        self.problems.append(Problem(f"{self.kind}.{id}", message, remedy, self.path, line))

    def warn(self, id: str, message: str, remedy: str = "", line: int | None = None) -> None:
        self.problems.append(Problem(f"{self.kind}.{id}", message, remedy, self.path, line, Severity.WARNING))

    def mapping(self, value: Any, what: str, line: int | None = None) -> LocatedMap:
        """Return ``value`` as a mapping; an empty one, and an error, if it is something else."""
        if isinstance(value, LocatedMap):
            return value
        if value is not None:
            message = f"{what} must be a mapping, not {_name(value)}."
            self.error("type", message, "Write `key: value`.", getattr(value, "line", line))
        empty = LocatedMap()
        empty.line, empty.key_lines = line or 1, {}
        return empty

    def items(self, value: Any, what: str, line: int | None = None) -> list[tuple[Any, int]]:
        """Return (item, line) pairs of a list; nothing, and an error, if it is something else."""
        if isinstance(value, LocatedList):
            return list(zip(value, value.item_lines, strict=True))
        if value is not None:
            message = f"{what} must be a list, not {_name(value)}."
            self.error("type", message, "Write `- item` lines.", getattr(value, "line", line))
        return []

    def text(self, parent: LocatedMap, key: str, what: str, *, required: bool = False) -> str:
        """Return ``parent[key]`` as text, stripped; empty, and an error, if it is missing or no text."""
        value, line = parent.get(key), parent.key_lines.get(key, parent.line)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, LocatedMap):
            self.error(
                "type", f"{what} must be text, not a mapping.", "A text that contains ': ' must be quoted.", line
            )
        elif value is not None and not isinstance(value, str):
            self.error("type", f"{what} must be text, not {_name(value)}.", "Write text, in quotes.", line)
        elif required:
            self.error(f"missing_{key}", f"{what} is missing.", f"Add `{key}:`.", line)
        return ""

    def flag(self, parent: LocatedMap, key: str, default: bool) -> bool:
        """Return ``parent[key]`` as a bool; YAML 1.1 spellings (yes, on …) count."""
        value = parent.get(key, default)
        if isinstance(value, bool):
            return value
        words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        self.error("type", f"`{key}` must be true or false.", "Write one of them.", parent.key_lines.get(key))
        return default

    def unknown(self, parent: LocatedMap, known: Iterable[str], where: str, *, strict: bool = False) -> None:
        """Report keys nobody reads: an error when it looks like a slip or ``strict``, else a warning."""
        names = list(known)
        for key in parent:
            if key in names:
                continue
            near = did_you_mean(key, [name for name in names if name not in parent])
            report = self.error if near or strict else self.warn
            remedy = near or f"Known keys: {', '.join(sorted(names))}."
            report("unknown_key", f"{where} has no key {key!r}.", remedy, parent.key_lines[key])


def _name(value: Any) -> str:
    names: Sequence[tuple[type, str]] = ((bool, "a bool"), (str, "text"), (int, "a number"), (float, "a number"))
    for kind, name in names:
        if isinstance(value, kind):
            return name
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "empty"


def read_file(path: Path, problems: list[Problem]) -> YamlFile | None:
    """Read a YAML file, appending its problems; None when it cannot be read at all."""
    text = read_text(path, problems)
    if text is None:
        return None
    source = YamlFile(text, path)
    problems.extend(source.problems)
    return None if any(p.id.startswith("yaml.syntax") for p in source.problems) else source
