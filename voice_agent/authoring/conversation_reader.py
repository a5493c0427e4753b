"""Finds and reads conversation tests, reporting every fault with its line."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from voice_agent.authoring.conversation_file import ConversationFile, ConversationTest
from voice_agent.diagnostics import Problem, RemediableError, did_you_mean
from voice_agent.yaml_source import LocatedMap, Reader, line_of, read_file

FOLDERS = ("tests", "conversations")
"""Folders of a project in which tests are looked for, by their files ``*.yml`` and ``*.yaml``."""


@dataclass(frozen=True)
class LocatedTest:
    """A test with its defaults filled in, and where it stands.

    Attributes:
        source: The mapping it was read from, which knows its lines.
    """

    test: ConversationTest
    path: Path
    line: int
    source: LocatedMap

    def line_of(self, *location: str | int) -> int | None:
        """Return the line of the deepest part of ``location`` that stands in the file as such."""
        return line_of(self.source, location)


def find_files(root: Path) -> list[Path]:
    """Return the conversation test files of the project in ``root``."""
    found = [p for folder in FOLDERS for ending in ("yml", "yaml") for p in (root / folder).glob(f"**/*.{ending}")]
    return sorted(p for p in found if _is_test_file(p))


def _is_test_file(path: Path) -> bool:
    """Return whether a YAML file means to be one of ours: other tools keep theirs in ``tests/`` too."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            return any(line.startswith("conversations:") for line in lines)
    except OSError:
        return True  # reading it will say what is wrong


def project_of(path: Path) -> Path:
    """Return the project that ``path`` (a directory, or a file in one) belongs to.

    Raises:
        RemediableError: There is none.
    """
    start = path if path.is_dir() else path.parent
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "agent.yml").is_file():
            return folder
    raise RemediableError(f"{path} belongs to no project.", "A project is a directory with an agent.yml.")


def read_tests(path: Path, problems: list[Problem]) -> list[LocatedTest]:
    """Read one file. What cannot be read is reported in ``problems`` and left out."""
    source = read_file(path, problems)
    if source is None:
        return []
    reader = Reader(path, problems, "conversation")
    top = reader.mapping(source.value, path.name)
    try:
        file = ConversationFile.model_validate(top)
    except ValidationError as fault:
        for error in fault.errors(include_url=False):
            _report(error, top, reader)
        return []
    found = []
    seen: dict[str, int] = {}
    for number, test in enumerate(file.conversations):
        raw = top["conversations"][number]
        line = line_of(top, ["conversations", number, "name"]) or 1
        if test.name in seen:
            message = f"The name {test.name!r} is already used on line {seen[test.name]}."
            reader.error("duplicate_name", message, "Names are unique in a file.", line)
        seen[test.name] = line
        test = _with_defaults(test, file)
        _check_clock(test, raw, reader)
        found.append(LocatedTest(test, path, line, raw))
    return found


def _with_defaults(test: ConversationTest, file: ConversationFile) -> ConversationTest:
    return test.model_copy(
        update={
            "channel": test.channel or file.channel,
            "now": test.now or file.now,
            "model": test.model or file.model,
            "stubs": {**file.stubs, **test.stubs},
        }
    )


def _check_clock(test: ConversationTest, raw: LocatedMap, reader: Reader) -> None:
    waits = [index for index, step in enumerate(test.steps) if step.wait is not None]
    if waits and test.now is None:
        line = line_of(raw, ["steps", waits[0], "wait"])
        reader.error("wait_without_now", "`wait` moves a clock that stands still.", "Give the test a `now:`.", line)


def _report(error: Any, top: LocatedMap, reader: Reader) -> None:
    location: Sequence[str | int] = error["loc"]
    line = line_of(top, location)
    where = _path(location)
    if error["type"] == "extra_forbidden":
        known = _options_at(ConversationFile, location[:-1])
        near = did_you_mean(str(location[-1]), known)
        parent = _path(location[:-1]) or reader.path.name
        remedy = near or f"Known keys: {', '.join(known)}."
        reader.error("unknown_key", f"`{parent}` has no key {str(location[-1])!r}.", remedy, line)
        return
    message = str(error["msg"]).removeprefix("Value error, ")
    kind = "invalid" if error["type"] == "value_error" else error["type"]
    text = f"`{where}` is missing." if kind == "missing" else f"`{where}`: {message}."
    reader.error("missing_key" if kind == "missing" else "value", text, "", line)


def _path(location: Iterable[str | int]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _options_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the keys that may stand at ``location``."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            current = _inner(current, list)
        elif isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = current.model_fields[part].annotation
        else:
            current = _inner(current, dict)
        current = _without_none(current)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _without_none(annotation: Any) -> Any:
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = next((a for a in get_args(annotation) if a is not type(None)), None)
    return annotation


def _inner(annotation: Any, container: type) -> Any:
    return get_args(annotation)[-1] if get_origin(annotation) is container else annotation
