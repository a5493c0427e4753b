"""The example in `examples/mcp`: its own server, a real one, over the text agent and the checks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from voice_agent.channels.desk import TextItem, TextPiece
from voice_agent.cli.check import find_problems
from voice_agent.diagnostics import Severity
from voice_agent.service.text_agent import text_agent

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp"


@pytest.mark.models
async def test_a_caller_hears_what_the_server_said(tmp_path: Path) -> None:
    heard: list[str] = []

    async def deliver(item: TextItem) -> None:
        if isinstance(item, TextPiece):
            heard.append(item.text)

    async with text_agent(shutil.copytree(EXAMPLE, tmp_path / "project"), ephemeral=True) as agent:
        await agent.texts.turn("c1", "Where is my parcel?", deliver)
        await agent.texts.turn("c1", "four seven one one", deliver)
    assert "Your parcel is on the van. It comes today." in "".join(heard)


def test_asked_online_it_has_no_problem_and_a_slip_in_an_import_is_found(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    skill = project / "skills" / "parcel" / "skill.md"
    assert [p.id for p in find_problems(project, online=False)] == ["mcp.not_asked"]
    skill.write_text(skill.read_text().replace("track_parcel", "track_parcels"))
    problems = [p for p in find_problems(project, online=True) if p.severity is Severity.ERROR]
    assert [(p.id, p.remedy) for p in problems] == [("skill.unknown_mcp_tool", "Did you mean 'track_parcel'?")]
