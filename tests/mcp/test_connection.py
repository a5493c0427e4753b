"""How a connection is kept, in virtual time and without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.config import McpServerOptions
from voice_agent.mcp.connection import LIST_AGAIN_S, Connection, ServerLost


@virtual_time
async def test_a_server_whose_tools_change_without_end_is_not_asked_without_pause() -> None:
    listed = 0

    class Restless(Connection):
        async def _list(self, client: Any) -> dict[str, Any]:
            nonlocal listed
            listed += 1
            self._check()  # it says so again with each answer
            return {}

    connection = Restless("fake", McpServerOptions(command="fake"), Path())
    connection._check()
    client: Any = object()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await connection._stay(client)
    assert 2 <= listed <= 10 / LIST_AGAIN_S + 1
    connection._lose()
    with pytest.raises(ServerLost):
        await connection._stay(client)
    assert not connection.is_connected
