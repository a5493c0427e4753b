"""The agent as an MCP server, driven by the SDK's own client: over standard input, and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters

from tests.support.dialogue_projects import block, skill, write_project
from tests.support.mcp import is_alive, until
from voice_agent.mcp_server.talk import ClientConversation
from voice_agent.service.text_agent import text_agent

FILES = {
    "integrations.yml": "llm: {provider: embedded}\n",
    "agent.yml": "agent:\n  id: bank\n  name: Mo\n  persona: You help callers of a bank.\n",
    "memory.yml": "known: {type: bool, mutable: true}\n",
    "responses.yml": "responses:\n  utter_greet: Welcome to the bank.\n  utter_hours: We are open from nine to five.\n",
    "skills/default_session_start/skill.md": skill(
        block("- {id: greet, action: utter_greet}"), routing="{engine_managed: true}"
    ),
    "skills/hours/skill.md": skill(
        block("- {id: say, action: utter_hours}"), description="Tell when the bank is open.",
        examples='["When are you open?", "What are your opening hours?"]',
    ),
    "skills/money/skill.md": skill(
        "Help with money.",
        tool_constraints=(
            "[{balance: {requires: session.project.known}}, {close_account: {requires_confirmation: {enabled: true}}}]"
        ),
    ),
    "skills/money/tools.py": """
        import asyncio, os, sys
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="Say who the caller is.")
        async def identify(pin: str, context: ToolContext) -> ToolResult:
            print("this must not reach the protocol")
            os.write(1, b"nor must this\\n")
            context.memory.set("known", pin == "1234")
            return ToolResult({"ok": pin == "1234"})

        @tool(description="The balance.")
        async def balance() -> ToolResult:
            return ToolResult({"balance": 12})

        @tool(description="Close the account for ever.")
        async def close_account() -> ToolResult:
            return ToolResult({"closed": True})

        @tool(description="Takes a minute.")
        async def wait(path: str) -> ToolResult:
            open(path, "w").write("begun")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                open(path, "w").write("cancelled")
                raise
            return ToolResult("done")
        """,
}  # fmt: skip
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[2])}
FOR_ALL = {"talk", "identify", "wait"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("bank"), FILES)


def command(project: Path, *options: str) -> list[str]:
    return ["-m", "voice_agent", "mcp", str(project), "--ephemeral", *options]


@asynccontextmanager
async def by_stdio(project: Path, mode: str) -> AsyncIterator[Client]:
    started = StdioServerParameters(command=sys.executable, args=command(project), env=ENVIRONMENT)
    async with Client(started, mode=mode, cache=None) as client:  # type: ignore[arg-type]
        yield client


@asynccontextmanager
async def served(project: Path, **environment: str) -> AsyncIterator[str]:
    """Run ``voice-agent mcp --http`` and return its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command(project, "--http", "--port", "0")),
        env={**os.environ, **ENVIRONMENT, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(90):
            while b"listening on" not in (line := await process.stderr.readline()):
                assert line, "it ended before it listened"
        yield line.decode().split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def call(client: Client, name: str, **arguments: Any) -> Any:
    result = await client.call_tool(name, arguments)
    return {"error": result.content} if result.is_error else result.structured_content


async def goes_through_a_conversation(client: Client) -> None:
    assert await names(client) == FOR_ALL
    said = await call(client, "talk", text="When are you open?")
    assert "We are open from nine to five." in said["reply"]
    assert said["conversation_id"] and not said["ended"]
    assert (await call(client, "talk", text="Hello?"))["conversation_id"] == said["conversation_id"]
    # A gate is a matter of this client's conversation, and of nothing that a client sends.
    assert "error" in await call(client, "balance")
    assert await call(client, "identify", pin="0000") == {"ok": False}
    assert "balance" not in await names(client)
    assert await call(client, "identify", pin="1234") == {"ok": True}
    assert "balance" in await names(client)
    assert await call(client, "balance") == {"balance": 12}
    assert "error" in await call(client, "close_account")
    assert "error" in await call(client, "identify", pen="1234")
    assert "error" in await call(client, "talk", text="")
    assert "error" in await call(client, "talk", text="Hi.", conversation_id="../etc/passwd")


@pytest.mark.models
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_by_standard_input_it_talks_and_opens_tools(project: Path, mode: str, tmp_path: Path) -> None:
    async with by_stdio(project, mode) as client:
        await goes_through_a_conversation(client)
        mark = tmp_path / "mark"
        waiting = asyncio.ensure_future(client.call_tool("wait", {"path": str(mark)}))
        await until(lambda: mark.exists() and mark.read_text() == "begun")
        waiting.cancel()
        await until(lambda: mark.read_text() == "cancelled", 10)


@pytest.mark.models
async def test_over_http_each_client_has_gates_of_its_own_and_hears_of_changes(project: Path) -> None:
    changed = asyncio.Event()

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            changed.set()

    async with served(project) as address, Client(address, cache=None, message_handler=heard) as one:
        await goes_through_a_conversation(one)
        await asyncio.wait_for(changed.wait(), 10)
        async with Client(address, cache=None) as other:
            assert await names(other) == FOR_ALL
            assert "error" in await call(other, "balance")


@pytest.mark.models
async def test_over_http_the_gate_stands_before_it(project: Path) -> None:
    key = "k" * 32
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with served(project, VOICE_AGENT_API_KEY=key) as address, httpx.AsyncClient() as client:
        assert (await client.post(address, json=hello)).status_code == 401
        foreign = {"Authorization": f"Bearer {key}", "Origin": "https://evil.example"}
        assert (await client.post(address, json=hello, headers=foreign)).status_code == 403
        with pytest.raises((MCPError, ExceptionGroup)):
            async with Client(address, cache=None):
                pass


async def test_beyond_loopback_it_needs_a_key(project: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "VOICE_AGENT_API_KEY"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command(project, "--http", "--host", "0.0.0.0", "--port", "0")),
        env={**environment, **ENVIRONMENT},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 2
    assert b"VOICE_AGENT_API_KEY" in errors


@pytest.mark.models
async def test_it_ends_with_its_client_and_writes_nothing_but_messages(project: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command(project)),
        env={**os.environ, **ENVIRONMENT},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    for message in (
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "identify", "arguments": {"pin": "1"}}},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    lines = [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for _ in range(2)]
    assert [line["id"] for line in lines] == [1, 2]
    process.stdin.close()
    rest = await asyncio.wait_for(process.stdout.read(), 30)
    assert rest == b""
    assert await asyncio.wait_for(process.wait(), 30) == 0
    with contextlib.suppress(ProcessLookupError):
        assert not is_alive(process.pid)


@pytest.mark.models
async def test_a_gate_that_an_expired_session_had_opened_is_shut_again(tmp_path: Path) -> None:
    root = write_project(tmp_path, FILES)
    async with text_agent(root, ephemeral=True) as text:
        client = ClientConversation(text)
        assert (await client.run("identify", {"pin": "1234"})).success
        assert (await client.run("balance", {})).success
        live = text.versions.open(client.id, channel="text")._conversation
        later = live._clock() + timedelta(hours=12)
        live._clock = live._turns._clock = live._core.events._clock = lambda: later
        outcome = await client.run("balance", {})
        assert not outcome.success
        assert "no tool 'balance'" in outcome.json


@pytest.mark.models
async def test_told_to_stop_it_ends_though_its_client_is_still_there(project: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command(project)),
        env={**os.environ, **ENVIRONMENT},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    process.stdin.write(json.dumps(hello).encode() + b"\n")
    await asyncio.wait_for(process.stdout.readline(), 60)
    process.send_signal(signal.SIGTERM)
    try:
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
