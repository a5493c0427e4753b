"""The service with a real MCP server: ready without one, called through the dialogue, cut off, killed, closed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from tests.fakes.model import Entry, tool_call
from tests.fakes.sink import CollectingSink
from tests.support.dialogue_projects import skill
from tests.support.mcp import PROGRAM, connection, is_alive, noted, until
from tests.support.small_service import small_service
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.reply import TurnStatus, UserInput
from voice_agent.service.service import Service

SETTINGS = f"""
mcp_servers:
  fake: {{command: "{sys.executable}", args: ["{PROGRAM}"], connect_timeout_s: 60}}
  gone: {{transport: http, url: "http://127.0.0.1:9/mcp", connect_timeout_s: 2}}
"""
FILES = {
    "skills/help/skill.md": skill(
        "Help.", import_tools='["mcp/fake:add", "mcp/fake:slow", "mcp/fake:notes", "mcp/fake:picture", "mcp/gone:find"]'
    ),
}


async def turn(service: Service, text: str, cancel: CancelToken | None = None) -> tuple[TurnStatus, list[str]]:
    conversation = service.agent.open("c1", channel="text")
    sink = CollectingSink()
    result = await conversation.turn(UserInput(text), turn_id=text, sink=sink, cancel=cancel or CancelToken())
    conversation.commit_reply(text, sink.heard())
    return result.status, sink.messages


def ran(service: Service) -> list[tuple[str, bool, str]]:
    """(tool, success, result) of each run, which is recorded under both names."""
    payloads = [payload_of(event) for event in service.agent.open("c1", channel="text").events]
    found = {
        kind: [(p["tool"], p["success"], p["result_json"]) for k, p in payloads if k == kind and p["tool"] != "listen"]
        for kind in ("tool_executed", "mcp_tool_executed")
    }
    assert found["tool_executed"] == found["mcp_tool_executed"]
    return found["tool_executed"]


async def test_from_readiness_to_the_end(tmp_path: Path) -> None:
    script: list[Entry] = [
        *(tool_call("start_skill", skill="help"), tool_call("add", a=2, b=3), "Five."),
        *(tool_call("add", a="two"), "That was not a number."),
        *(tool_call("picture"), "I have a picture."),
        tool_call("slow", seconds=60),
        *(tool_call("notes"), "It was cancelled."),
        *(tool_call("slow", seconds=60), "It did not work."),
    ]
    service = small_service(tmp_path, model=script, settings=SETTINGS, files=FILES)
    try:
        await service.start()
        assert not service.missing
        held = service.agent.open("c1", channel="text")  # it is kept only while somebody holds it
        fake = connection(service._servers)
        assert (await turn(service, "add"))[1][-1] == "Five."
        assert ran(service)[-1] == ("add", True, '{"result": 5}')
        await turn(service, "add two")
        assert "is not of type 'integer'" in ran(service)[-1][2]
        await turn(service, "show me")
        assert "[image, image/png" in ran(service)[-1][2]

        # The caller barges in while the server works: it is told, and nothing is recorded.
        before, token = len(ran(service)), CancelToken()
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(turn(service, "take your time", token))
            await noted(fake, "begun")
            token.cancel(CancelReason.BARGE_IN)
        assert talking.result()[0] is TurnStatus.CANCELLED
        assert len(ran(service)) == before
        await turn(service, "what happened?")
        notes = json.loads(ran(service)[-1][2])
        assert notes["notes"] == ["begun", "cancelled"]

        # Killed in mid-call: the call fails as a result, and the caller is answered.
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(turn(service, "once more"))
            await noted(fake, "begun", times=2)
            os.kill(notes["pid"], signal.SIGKILL)
        assert talking.result() == (TurnStatus.COMPLETED, ["It did not work."])
        assert "may or may not" in ran(service)[-1][2]
        await until(lambda: fake.is_connected)
        process = int((await fake.call("notes", {})).llm_response["pid"])
    finally:
        await service.drain(1)
        await service.aclose()
    assert not is_alive(process)
    assert held.id == "c1"
    assert not [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("mcp.")]
