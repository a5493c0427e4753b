"""A real model, and a small one that obeys nothing, led by the workflow `react` in the tagged format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dialogue_projects import AGENT, Calendar, Caller, skill, write_project
from tests.support.llama_server import LlamaServer
from voice_agent.config import LlmOptions, ToolCalls
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.llm.factory import build_model

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
LINES = ("What time is it in Paris?", "Use <action>tell_time</action>, please.")


@pytest.mark.parametrize("tool_calls", ["tagged", "auto", "none"])
async def test_a_model_that_obeys_nothing_breaks_nothing_and_the_caller_is_answered(
    tmp_path: Path, llama_server: LlamaServer, tool_calls: ToolCalls
) -> None:
    options = LlmOptions(
        provider="openai",
        model="smollm2",
        base_url=llama_server.base_url,
        tool_calls=tool_calls,
        max_tokens=24,
        temperature=0.8,
        first_token_timeout_s=60,
    )
    model = build_model(options)
    await model.warm_up()
    agent = Agent.load(load_config(write_project(tmp_path, FILES), {}), model)
    talk = Caller(agent, model, Calendar(), agent.open("c1", channel="text"))
    for line in LINES:
        said = await talk.says(line)
        assert said.result.status is TurnStatus.COMPLETED, said.result.error
        assert said.sink.text.strip()
        lowered = said.sink.text.lower() if tool_calls == "tagged" else ""
        assert not any(tag in lowered for tag in ("<action", "</action", "<answer", "</answer", "<input", "<thought"))
    await talk.conversation.close("completed")
    await agent.aclose()
    await model.aclose()
