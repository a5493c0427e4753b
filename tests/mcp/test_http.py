"""Servers that are reached by HTTP: streamable HTTP and the older SSE, real ones made with the SDK."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import PATIENCE_S, connected, connection, free_port, noted, serving, until
from voice_agent.config import McpServerOptions
from voice_agent.dialogue.tools import ToolFailed
from voice_agent.mcp.http import MAX_RESPONSE_BYTES
from voice_agent.mcp.transports import headers


def options(how: str, port: int, **more: Any) -> McpServerOptions:
    path = "mcp" if how == "http" else "sse"
    given = {"transport": how, "url": f"http://127.0.0.1:{port}/{path}", "connect_timeout_s": PATIENCE_S, **more}
    return McpServerOptions.model_validate(given)


@pytest.mark.parametrize("how", ["http", "sse"])
async def test_it_lists_calls_cancels_hears_of_changes_and_comes_back(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    async with serving(how, port) as process, connected(tmp_path, fake=options(how, port)) as servers:
        fake = connection(servers)
        assert (await fake.call("add", {"a": 2, "b": 3})).llm_response == {"result": 5}
        call = asyncio.ensure_future(fake.call("slow", {"seconds": 60}))
        await noted(fake, "begun")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await noted(fake, "cancelled")
        await fake.call("learn", {"name": "roll"})
        await until(lambda: "roll" in fake.tools, 15)
        with caplog.at_level(logging.DEBUG, "voice_agent"):
            assert len((await fake.call("huge", {"characters": 500_000})).llm_response["text"]) < 101_000
        call = asyncio.ensure_future(fake.call("slow", {"seconds": 60}))
        await noted(fake, "begun", times=2)
        process.kill()
        with pytest.raises(ToolFailed) as fault:
            await asyncio.wait_for(call, 30)
        assert fault.value.unreachable
        await until(lambda: not fake.is_connected, 30)
        async with serving(how, port):
            await until(lambda: fake.is_connected)
            assert (await fake.call("add", {"a": 1})).llm_response == {"result": 2}
            assert "roll" not in fake.tools


async def test_one_that_is_not_there_costs_no_more_than_its_limit(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        connected(tmp_path, fake=options("http", free_port(), connect_timeout_s=2)) as servers,
    ):
        assert not servers.is_connected("fake")
        assert servers.failure("fake")
        assert servers.find("fake", "add") is None


@pytest.mark.parametrize("body", [b"x" * (MAX_RESPONSE_BYTES + 1), b"not json", b'{"jsonrpc": "2.0"}'])
async def test_one_that_answers_nonsense_is_not_connected(tmp_path: Path, body: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with connected(tmp_path, fake=options("http", port, connect_timeout_s=3)) as servers:
            assert not servers.is_connected("fake")


def test_the_key_comes_from_the_environment_and_goes_into_its_header() -> None:
    bearer = options("http", 1, key_env="FAKE_BANK_KEY", headers={"X-Shop": "7"})
    assert headers(bearer, {"FAKE_BANK_KEY": "secret"}) == {"X-Shop": "7", "Authorization": "Bearer secret"}
    own = options("http", 1, key_env="FAKE_BANK_KEY", key_header="X-Api-Key", key_scheme="")
    assert headers(own, {"FAKE_BANK_KEY": "secret"}) == {"X-Api-Key": "secret"}
    assert headers(own, {}) == {}
    assert "secret" not in repr(bearer)
