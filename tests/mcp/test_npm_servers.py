"""Servers that others have written, in another language, with another SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.debian import program
from tests.support.mcp import connected, connection, fake_options
from tests.support.npm import server_script
from voice_agent.config import McpServerOptions
from voice_agent.dialogue.tools import ArgumentsRefused


async def node(name: str, **options: object) -> McpServerOptions:
    script = await asyncio.to_thread(server_script, name)
    return fake_options(command=str(program("node", "nodejs")), args=(str(script),), **options)


async def test_the_reference_server_is_listed_and_called(tmp_path: Path) -> None:
    async with connected(tmp_path, everything=await node("everything")) as servers:
        everything = connection(servers, "everything")
        assert everything.is_connected, servers.failure("everything")
        assert (await everything.call("echo", {"message": "Hello."})).llm_response == {"text": "Echo: Hello."}
        picture = str((await everything.call("get-tiny-image", {})).llm_response)
        assert "[image, image/png" in picture
        assert len(picture) < 1000
        with pytest.raises(ArgumentsRefused, match="required"):
            everything.tools["echo"].validate({})


async def test_the_memory_server_keeps_what_it_is_given(tmp_path: Path) -> None:
    options = await node("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    async with connected(tmp_path, memory=options) as servers:
        memory = connection(servers, "memory")
        entity = {"name": "Maria", "entityType": "customer", "observations": ["moved in May"]}
        memory.tools["create_entities"].validate({"entities": [entity]})
        await memory.call("create_entities", {"entities": [entity]})
        assert "moved in May" in str((await memory.call("read_graph", {})).llm_response)
