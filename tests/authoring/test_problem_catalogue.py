"""The catalogue of problems is whole: every id in the code is in it, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from click.testing import CliRunner

from voice_agent.authoring.problem_catalogue import CATALOGUE, as_markdown, find
from voice_agent.cli import cli

ROOT = Path(__file__).parents[2]
REPORTERS = {"error", "warn", "_report", "_problem", "_complain"}
READERS = ("yaml_source.py", "config_files", "dialogue", "authoring", "cli", "service")


def _ids() -> Iterator[tuple[str, str]]:
    """Yield (id or its last part, place) of every problem that the code can report; ``*`` stands for what varies."""
    package = ROOT / "voice_agent"
    files = [
        f for name in READERS for f in ([package / name] if name.endswith(".py") else (package / name).rglob("*.py"))
    ]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_log = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "log"
            if is_log or not (name == "Problem" or name in REPORTERS):
                continue
            for text in _texts(node.args[0]):
                if text and " " not in text:
                    yield text, f"{path.name}:{node.lineno}"


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "*" for v in node.values]
        yield "".join(parts).removeprefix("*.")
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)


def _fits(entry: str, id: str) -> bool:
    """Return whether an id of the code, perhaps without its kind, is what the entry is about."""
    return entry == id or entry.endswith(f".{id}") or fnmatchcase(entry, id) or fnmatchcase(entry, f"*.{id}") or (
        fnmatchcase(id, entry) or fnmatchcase(f"x.{id}", entry)
    )  # fmt: skip


def test_every_id_in_the_code_is_in_the_catalogue() -> None:
    missing = {f"{id} ({place})" for id, place in _ids() if not any(_fits(e.id, id) for e in CATALOGUE)}
    assert missing == set()


def test_every_entry_is_reported_somewhere() -> None:
    ids = {id for id, _ in _ids()} | {"skill.markdown.invalid_frontmatter_delimiter"}
    unused = {e.id for e in CATALOGUE if not any(_fits(e.id, id) for id in ids)}
    assert unused == set()


def test_ids_are_unique_and_every_entry_says_what_to_do() -> None:
    assert len({e.id for e in CATALOGUE}) == len(CATALOGUE)
    assert all(e.meaning.endswith(".") and e.remedy.endswith(".") for e in CATALOGUE)


def test_the_page_is_in_step() -> None:
    committed = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    assert committed == as_markdown(), "run: python -m voice_agent.authoring.problem_catalogue > docs/problems.md"


def test_the_most_specific_entry_explains_an_id() -> None:
    assert find("skill.unknown_key") is not None
    specific = find("config.agent.missing_persona")
    assert specific is not None and specific.id == "config.agent.missing_persona"
    assert find("no.such.problem") is None


def test_check_explains_an_id_and_suggests_one() -> None:
    explained = CliRunner().invoke(cli, ["check", "--explain", "skill.circle"])
    assert (explained.exit_code, "in a circle" in explained.output) == (0, True)
    wrong = CliRunner().invoke(cli, ["check", "--explain", "skill.circel"])
    assert (wrong.exit_code, "Did you mean 'skill.circle'?" in wrong.output) == (2, True)
