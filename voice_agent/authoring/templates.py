"""New projects and skills: small, complete, and passing their own checks from the first minute."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path

from voice_agent.authoring.template_texts import PROJECT, SKILL
from voice_agent.diagnostics import RemediableError
from voice_agent.dialogue.project import LIFECYCLE

MAX_NAME_CHARS = 60
SCHEMAS = "schemas"
_RESERVED = frozenset({"project", "session", "none", "any"})


def new_project(folder: Path) -> list[Path]:
    """Write a new project into ``folder`` and return its files. Schemas are written by `schemas.write`.

    Raises:
        RemediableError: The name cannot be one, or there is something in ``folder`` already.
    """
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or len(name) > MAX_NAME_CHARS:
        raise RemediableError(
            f"{name!r} cannot be the name of a project.",
            f"Use up to {MAX_NAME_CHARS} letters, digits, hyphens and underscores, beginning with a letter.",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RemediableError(f"{folder} exists already.", "Name a folder that is not there yet, or an empty one.")
    agent = re.sub(r"[-_]+", " ", name).strip().title()
    return _write(PROJECT, folder, {"ID": name.lower().replace("_", "-"), "AGENT": agent}, SCHEMAS)


def new_skill(root: Path, id: str) -> list[Path]:
    """Write a new skill into the project in ``root`` and return its files.

    Raises:
        RemediableError: The id cannot be one, the skill is there already, or ``root`` is no project.
    """
    if not (root / "agent.yml").is_file():
        raise RemediableError(f"{root} is no project.", "Name one with --path, or make one with `voice-agent new`.")
    fits = re.fullmatch(r"[a-z][a-z0-9_]*", id) is not None and len(id) <= MAX_NAME_CHARS
    if not fits or keyword.iskeyword(id) or id in _RESERVED:
        raise RemediableError(
            f"{id!r} cannot be the id of a skill.",
            f"Use up to {MAX_NAME_CHARS} lower-case letters, digits and underscores, such as change_address; "
            f"not a word of Python, nor {', '.join(sorted(_RESERVED))}.",
        )
    if id in LIFECYCLE:
        raise RemediableError(f"{id} is a skill of the engine.", "To override it make its folder by hand.")
    for path in (root / "skills" / id, root / "tests" / f"{id}.yml"):
        if path.exists():
            raise RemediableError(f"{path} exists already.", "Choose another id, or remove it first.")
    words = id.replace("_", " ")
    return _write(SKILL, root, {"ID": id, "TITLE": words.capitalize(), "WORDS": words}, _schemas_of(root))


def _schemas_of(root: Path) -> str | None:
    """Return where, seen from ``root``, the schemas lie that its agent.yml names; None if it names none."""
    text = (root / "agent.yml").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"yaml-language-server: \$schema=(\S+)/agent\.json", text)
    return found.group(1) if found else None


def _write(texts: Mapping[str, str], target: Path, values: Mapping[str, str], schemas: str | None) -> list[Path]:
    """Write ``texts`` below ``target``; each file's schema line leads to ``schemas`` from where the file is."""
    written = []
    for name, text in texts.items():
        relative = Path(_fill(name, values))
        path = target / relative
        up = "" if schemas is None or "://" in schemas else "../" * (len(relative.parts) - 1)
        filled = _fill(text, {**values, "SCHEMAS": f"{up}{schemas}"})
        if schemas is None:
            filled = re.sub(r"^# yaml-language-server:.*\n", "", filled, flags=re.MULTILINE)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(filled)
        written.append(path)
    return written


def _fill(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"<<([A-Z]+)>>", lambda found: values[found.group(1)], text)
