"""Every conversation test of the example agent, with the model that comes with it."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from voice_agent.authoring.player import Status
from voice_agent.authoring.reports import as_json
from voice_agent.authoring.suite import find_suites, run_suites

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "conversations").glob("*.yml"))


@pytest.mark.models
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_the_conversations_go_as_they_are_written(path: Path) -> None:
    async with aclosing(run_suites(find_suites([path]))) as results:
        outcomes = [outcome async for outcome in results]
    assert len(outcomes) >= 2
    assert all(outcome.status is Status.PASSED for outcome in outcomes), as_json(outcomes)


def test_every_skill_on_the_menu_has_conversations() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    skills = {path.parent.name for path in (ROOT / "skills").glob("*/skill.md")}
    spoken_of = {"default_session_start": "utter_greet", "say_goodbye": "goodbye", "human_handoff": "request_call_back"}
    assert [skill for skill in skills if spoken_of.get(skill, skill) not in written] == []
