"""Opens one of the files: its mapping with variables filled in, and the reader that reports faults in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voice_agent.diagnostics import Problem
from voice_agent.variables import expand_variables
from voice_agent.yaml_source import LocatedMap, Reader, YamlFile, read_file


def open_settings(
    path: Path, kind: str, environ: Mapping[str, str], problems: list[Problem]
) -> tuple[LocatedMap, Reader] | None:
    """Return what stands in ``path`` and its reader; None, with the reason among ``problems``, if it cannot be read.

    Args:
        kind: Begins the ids of its problems.
    """
    if not path.is_file():
        problems.append(Problem(f"{kind}.missing", f"{path.name} is missing.", "A project needs this file.", path))
        return None
    source: YamlFile | None = read_file(path, problems)
    if source is None:
        return None
    reader = Reader(path, problems, kind)
    top = reader.mapping(source.value, path.name)

    def missing(name: str, line: int | None) -> None:
        remedy = f"Set it, or write ${{{name}:-default}}."
        reader.error("missing_variable", f"Environment variable {name} is not set.", remedy, line)

    expand_variables(top, environ, missing)
    return top, reader
