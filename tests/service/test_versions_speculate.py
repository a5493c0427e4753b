"""The conversation that a call is given by the service lets the model begin early, as the plain one does."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import ScriptedModel
from tests.support.dialogue_projects import skill, write_project
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.reply import Speculating
from voice_agent.service.versions import AgentVersions

FILES = {"skills/talk/skill.md": skill("Talk."), "integrations.yml": "llm: {speculate: 'on'}\n"}


async def test_it_may_until_the_next_turn_is_another_versions(tmp_path: Path) -> None:
    def load() -> Agent:
        return Agent.load(load_config(write_project(tmp_path, FILES), {}), ScriptedModel(then="Hi."))

    versions = AgentVersions(load())
    conversation = versions.open("c1", channel="websocket")
    assert isinstance(conversation, Speculating)
    assert conversation.speculations_per_utterance == 1
    versions.replace(load())
    assert conversation.speculations_per_utterance == 0
