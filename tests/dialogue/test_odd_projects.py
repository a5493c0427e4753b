"""Projects as disks and people leave them: odd files and names end as a problem or not at all, never as a traceback."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.skill_file import mentions

LATIN = """# -*- coding: latin-1 -*-
from voice_agent.dialogue import tool, ToolResult

@tool(description="Gr\u00fc\u00dfe")
async def greet() -> ToolResult:
    return ToolResult(llm_response="\u00fc")
"""
BLOCK = block("- action: utter_size", id="\u00fcber")
PROUD = "class Proud:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n\n\nproud = Proud()\n"


def _load(root: Path, odd: Callable[[Path], object]) -> set[str]:
    write_project(root, {"skills/a/skill.md": skill("Talk.")})
    odd(root)
    _, problems = load_project(root)
    assert all(problem.remedy for problem in problems)
    return {problem.id for problem in problems}


def _put(name: str, content: bytes) -> Callable[[Path], object]:
    def put(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return put


def _pipe(name: str) -> Callable[[Path], object]:
    def put(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)

    return put


def _folder(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).mkdir(parents=True)


@pytest.mark.parametrize("name", ["references/a.md", "skills/b/skill.md", "tools/a.py", "skills/a/tools/a.py"])
def test_a_pipe_among_the_files_is_a_problem_and_is_not_waited_for(tmp_path: Path, name: str) -> None:
    assert _load(tmp_path, _pipe(name)) == {"file.unreadable"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("references/a.md", set()),
        ("skills/b/skill.md", {"file.unreadable"}),
        ("tools/a.py", {"file.unreadable"}),
        ("hooks/a.py", {"file.unreadable"}),
    ],
)
def test_a_folder_called_like_a_file_is_no_traceback(tmp_path: Path, name: str, found: set[str]) -> None:
    assert _load(tmp_path, _folder(name)) == found


@pytest.mark.parametrize(
    "source", [b"raise KeyError('x')", b"import asyncio\nraise asyncio.CancelledError", b"import sys\nsys.exit()"]
)
def test_whatever_a_module_raises_is_a_problem(tmp_path: Path, source: bytes) -> None:
    assert _load(tmp_path, _put("skills/a/tools.py", source)) == {"tool.import"}


def test_a_tool_file_may_be_in_any_encoding_that_it_declares(tmp_path: Path) -> None:
    assert _load(tmp_path, _put("skills/a/tools.py", LATIN.encode("latin-1"))) == set()
    project, _ = load_project(tmp_path)
    assert project.skills["a"].tools["greet"].description == "Gr\u00fc\u00dfe"


@pytest.mark.parametrize("name", ["skills/a/tools.py", "hooks.py"])
def test_an_object_that_raises_at_every_attribute_is_no_tool_and_no_hook(tmp_path: Path, name: str) -> None:
    assert _load(tmp_path, _put(name, PROUD.encode())) == set()


def test_a_skill_whose_folder_name_is_stored_taken_apart_is_named_as_it_is_typed(tmp_path: Path) -> None:
    folder = unicodedata.normalize("NFD", "gr\u00f6\u00dfe")
    files = {
        f"skills/{folder}/skill.md": skill("Hi.", requires="session.gr\u00f6\u00dfe.x == 'a'"),
        f"skills/{folder}/memory.yml": "schema: {public: {x: {type: text}}}\n",
    }
    assert _load(tmp_path, lambda root: write_project(root, files)) == set()


def test_names_may_be_of_any_script_in_memory_blocks_mentions_and_responses(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill("Begin with @block.\u00fcber, or go to @skill.\u00f6l.\n" + BLOCK),
        "skills/\u00f6l/skill.md": skill("Hi."),
        "skills/a/memory.yml": "schema: {public: {gr\u00f6\u00dfe: {type: text}}}\n",
        "responses.yml": "responses: {utter_size: 'It is {session.a.gr\u00f6\u00dfe}.'}\n",
    }
    assert _load(tmp_path, lambda root: write_project(root, files)) == set()
    project, _ = load_project(tmp_path)
    assert list(project.skills["a"].blocks) == ["\u00fcber"]
    response = project.responses.find("utter_size", "a")
    assert response is not None
    assert response.variants[0].template.render(lambda reference: "42") == "It is 42."
    assert mentions(project.skills["a"].prose) == {"skill": {"\u00f6l"}, "block": {"\u00fcber"}}


@pytest.mark.parametrize(("folder", "id"), [("project", "skill.id"), ("class", "skill.id_keyword")])
def test_a_skill_whose_memory_no_condition_could_name_is_reported(tmp_path: Path, folder: str, id: str) -> None:
    assert _load(tmp_path, _put(f"skills/{folder}/skill.md", skill("Hi.").encode())) == {id}


def test_ten_thousand_references_load(tmp_path: Path) -> None:
    def many(root: Path) -> None:
        (root / "references").mkdir()
        for n in range(10_000):
            (root / "references" / f"{n}.md").touch()
        (root / "references" / "up").symlink_to("..")

    assert _load(tmp_path, many) == set()
