"""A real model, and a small one that obeys nothing, led by the workflow `react` in the tagged format."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dialogue_projects import AGENT, Calendar, Caller, skill, write_project
from tests.support.hashed_words import HashedWords
from tests.support.llama_server import LlamaServer
from voice_agent.config import LlmOptions, ReactOptions, RecallOptions, ToolCalls
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import Finished, LanguageModel, ModelEvent, ModelRequest, ToolCallDelta
from voice_agent.recall.ingest import learn_files
from voice_agent.recall.memories import Memories
from voice_agent.recall.sqlite_index import SqliteIndex

pytestmark = pytest.mark.models

FILES = {
    "agent.yml": AGENT + "workflow: react\nreact: {max_iterations: 2, max_procedures_calls: 2}\n",
    "skills/clock/skill.md": skill("Tell the time with tell_time.", description="The caller asks for the time."),
    "skills/clock/tools.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Tell the time of a city")
        async def tell_time(city: str) -> ToolResult:
            return ToolResult(llm_response={"time": "noon"})
        """,
}
EXAMPLE = Path(__file__).parents[2]
LINES = ("What time is it in Paris?", "Use <action>tell_time</action>, please.")


def shows_tags(text: str) -> bool:
    return any(f"<{tag}" in text.lower() for tag in ("action", "/action", "answer", "/answer", "input", "thought"))


def weak_model(server: LlamaServer, tool_calls: ToolCalls) -> LanguageModel:
    return build_model(
        LlmOptions(
            provider="openai",
            model="smollm2",
            base_url=server.base_url,
            tool_calls=tool_calls,
            max_tokens=24,
            temperature=0.8,
            first_token_timeout_s=60,
        )
    )


@pytest.mark.parametrize("tool_calls", ["tagged", "auto", "none"])
async def test_a_model_that_obeys_nothing_breaks_nothing_and_the_caller_is_answered(
    tmp_path: Path, llama_server: LlamaServer, tool_calls: ToolCalls
) -> None:
    model = weak_model(llama_server, tool_calls)
    await model.warm_up()
    agent = Agent.load(load_config(write_project(tmp_path, FILES), {}), model)
    talk = Caller(agent, model, Calendar(), agent.open("c1", channel="text"))
    for line in LINES:
        said = await talk.says(line)
        assert said.result.status is TurnStatus.COMPLETED, said.result.error
        assert said.sink.text.strip()
        if tool_calls == "tagged":
            assert not shows_tags(said.sink.text)
    await talk.conversation.close("completed")
    await agent.aclose()
    await model.aclose()


class Opening:
    """Implements `LanguageModel`: the first call of a turn starts a skill; from then on ``model`` is on its own."""

    name = "opening"

    def __init__(self, model: LanguageModel, skill: str) -> None:
        self._model, self._skill, self._begun = model, skill, False
        self.answered: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not self._begun:
            self._begun = True
            yield ToolCallDelta(0, "c0", "start_skill", json.dumps({"skill": self._skill}))
            yield Finished("tool_calls")
            return
        self.answered.append(request)
        async for event in self._model.stream(request):
            yield event

    async def warm_up(self) -> None:
        await self._model.warm_up()

    async def aclose(self) -> None:
        await self._model.aclose()


async def test_the_example_s_research_ends_with_an_answer_whatever_the_model_writes(llama_server: LlamaServer) -> None:
    model = Opening(weak_model(llama_server, "tagged"), "rates_abroad")
    memories = Memories(RecallOptions(), SqliteIndex(None), HashedWords, exists=lambda: False)
    await memories.open(wanted=True)
    await learn_files(memories.library, EXAMPLE, [EXAMPLE / "handbook"])
    config = load_config(EXAMPLE, {})
    config = replace(config, agent=config.agent.model_copy(update={"react": ReactOptions(max_iterations=1)}))
    agent = Agent.load(config, model, recalls=memories)
    talk = Caller(agent, model, Calendar(), agent.open("c1", channel="websocket"))
    said = await talk.says("How much is a ten minute call to a mobile phone in Spain?")
    assert said.result.status is TurnStatus.COMPLETED, said.result.error
    assert said.sink.text.strip()
    assert not shows_tags(said.sink.text)
    assert model.answered, "the model was never asked"
    await talk.conversation.close("completed")
    await agent.aclose()
    await memories.aclose()
    await model.aclose()
