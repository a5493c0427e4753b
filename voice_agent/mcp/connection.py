"""One server: a task of its own connects, lists, listens, notices loss and comes back; calls go through from anywhere.

task      ├─ connect ─┤ list ├──── listens ────x lost ├ backoff ┤─ connect …
tools                        ├─────────────────│ away            │
calls                           ├──┤   ├───────x fails as a result

A session of the protocol must be entered and left by one task, so nobody but this one does either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voice_agent.config import McpServerOptions
from voice_agent.dialogue.cancellation import stop
from voice_agent.dialogue.remote_tools import AWAY
from voice_agent.dialogue.tools import Tool, ToolContext, ToolFailed, ToolResult
from voice_agent.mcp.backoff import Backoff
from voice_agent.mcp.listing import MAX_TOOLS, ListedTool, in_one_line, read_listing
from voice_agent.mcp.process import ErrorOutput
from voice_agent.mcp.results import in_words, to_data
from voice_agent.mcp.transports import transport, watched
from voice_agent.telemetry.metrics import MCP_CONNECTED, MCP_LOST

if TYPE_CHECKING:
    from mcp import Client

log = logging.getLogger(__name__)

CLOSE_S = 6.0
"""Limit on leaving a server; the limits on ending its program lie within."""
MAX_PAGES = 50
LIST_AGAIN_S = 0.5
"""Pause between two listings: a server that says without end that its tools have changed is asked no more often."""
LISTEN_AGAIN_S = 5.0
"""Pause before a lost stream of changes is opened again."""
KEY_META = "voice-agent/idempotency-key"
"""Where a call carries what tells a repeat of it from a second one."""
_CONTEXT = "voice-agent/context"
"""Not a name that an argument can have by chance."""
_DOUBTFUL = frozenset({-32000, -32001, -32603})
"""Codes of errors (connection closed, request timed out, internal) after which the server is asked whether it lives."""


class ServerLost(Exception):
    """The connection is of no more use."""


class Connection:
    """The connection to the server ``name``. Made, started and closed by `McpServers`."""

    def __init__(self, name: str, options: McpServerOptions, root: Path, backoff: Backoff | None = None) -> None:
        self.name, self._options, self._root = name, options, root
        self._backoff = backoff or Backoff()
        self._errors = ErrorOutput(name)
        self._client: Client | None = None
        self._listed: dict[str, ListedTool] = {}
        self._tools: dict[str, Tool] = {}
        self._tried = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_lost = self._is_due = False
        self._task: asyncio.Task[None] | None = None
        self.failure = ""

    # --- what the dialogue asks ------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Its tools now, by the server's names for them; none while it is away."""
        return self._tools

    async def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResult:
        """Run ``tool`` at the server. Cancelled, it tells the server so.

        Raises:
            ToolFailed: The server says so, or cannot be reached, or was lost meanwhile.
        """
        from mcp import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult
        from pydantic import ValidationError

        client = self._client
        if client is None:
            raise ToolFailed(f"{tool}: {AWAY}", unreachable=True)
        self._errors.is_private = True
        meta: Any = {KEY_META: context.idempotency_key} if context is not None else None
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments), _meta=meta))
        try:
            # Not `call_tool`: it would check results against a schema with the server's regular expressions in it.
            result = await client.session.send_request(request, CallToolResult)
        except MCPError as fault:
            if fault.code in _DOUBTFUL:
                self._check()
            if fault.code == -32000:
                raise ToolFailed(_lost_in_the_middle(tool), unreachable=True) from None
            raise ToolFailed(in_one_line(fault.message) or "The server refused the call.") from None
        except ValidationError:
            raise ToolFailed("It may have run; what the server answered cannot be read.") from None
        except asyncio.CancelledError:
            if context is not None and context.cancel_reason == "timeout":
                self._check()
            raise
        except Exception as fault:  # noqa: BLE001 - whatever a transport raises, the call has failed and no more
            self._check()
            log.warning("a call to MCP server %s failed: %s", self.name, type(fault).__name__)
            raise ToolFailed(_lost_in_the_middle(tool), unreachable=True) from None
        if result.is_error:
            raise ToolFailed(in_words(result.content) or "The tool failed without saying why.")
        return ToolResult(to_data(result.content, result.structured_content))

    # --- its task --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect, and to stay connected."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"mcp.{self.name}")

    async def tried(self) -> None:
        """Wait until the first attempt has come to an end, either way. It takes no longer than its limit."""
        await self._tried.wait()

    async def aclose(self) -> None:
        """End the connection and the server's program, if it is one of ours. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            await stop(task, f"connection to MCP server {self.name}", CLOSE_S)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connected_at: list[float] = []
            try:
                await self._serve(connected_at)
            except Exception as fault:  # noqa: BLE001 - whatever it was, the server is tried again
                self.failure = _reason(fault)
            finally:
                self._set_client(None)
            self._tried.set()
            held_s = loop.time() - connected_at[0] if connected_at else 0.0
            wait_s = self._backoff.lost(held_s)
            if connected_at:
                MCP_LOST.labels(server=self.name).inc()
            what = "was lost" if connected_at else "cannot be reached"
            log.warning("MCP server %s %s: %s; tried again in %.1f s", self.name, what, self.failure, wait_s)
            await asyncio.sleep(wait_s)

    async def _serve(self, connected_at: list[float]) -> None:
        """Connect and stay until the server is lost. Entered and left within this task."""
        await asyncio.to_thread(import_module, "mcp")  # for seconds, at the first time: calls are not to wait for it
        from mcp import Client
        from mcp_types import Implementation

        from voice_agent import __version__

        self._is_lost = self._is_due = False
        self._wake.clear()
        self._errors = ErrorOutput(self.name)
        way = watched(transport(self.name, self._options, self._root, self._errors), self._lose)
        client = Client(
            way,
            cache=None,
            client_info=Implementation(name="voice-agent", version=__version__),
            message_handler=self._on_message,
        )
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._options.connect_timeout_s):
                await stack.enter_async_context(client)
                self._listed = await self._list(client)
            connected_at.append(asyncio.get_running_loop().time())
            self._set_client(client)
            log.info("MCP server %s is connected, with %d tools", self.name, len(self._tools))
            self._tried.set()
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen(client), name=f"mcp.{self.name}.changes")
                try:
                    await self._stay(client)
                finally:
                    listening.cancel()

    async def _stay(self, client: Client) -> None:
        """List tools anew whenever that is due; it also shows whether the server lives.

        Raises:
            ServerLost: It does not.
        """
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._is_lost:
                raise ServerLost("the connection has ended")
            if self._is_due:
                self._is_due = False
                try:
                    async with asyncio.timeout(self._options.connect_timeout_s):
                        self._listed = await self._list(client)
                except TimeoutError:
                    raise ServerLost("it does not answer any more") from None
                if not self._is_lost:
                    self._set_client(client)
                    await asyncio.sleep(LIST_AGAIN_S)

    async def _list(self, client: Client) -> dict[str, ListedTool]:
        from mcp_types import PaginatedRequestParams

        if client.server_capabilities.tools is None:
            return {}
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                break
        return await asyncio.to_thread(read_listing, self.name, found)

    async def _listen(self, client: Client) -> None:
        """Have the server say when its tools change. Older ones say so unasked, and `_on_message` hears it."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._check()
            except (ListenNotSupportedError, MCPError):
                return
            except (SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(LISTEN_AGAIN_S)
            # What changed meanwhile was not heard of.
            self._check()

    async def _on_message(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._check()

    def _check(self) -> None:
        self._is_due = True
        self._wake.set()

    def _lose(self) -> None:
        self._is_lost = True
        # Nothing is offered from now on, before the task has even noticed.
        self._set_client(None)
        self._wake.set()

    def _set_client(self, client: Client | None) -> None:
        self._client = client
        listed = self._listed if client is not None else {}
        self._tools = {name: self._as_tool(tool) for name, tool in listed.items()}
        MCP_CONNECTED.labels(server=self.name).set(client is not None)

    def _as_tool(self, listed: ListedTool) -> Tool:
        async def run(**arguments: Any) -> ToolResult:
            context = arguments.pop(_CONTEXT)
            return await self.call(listed.name, arguments, context)

        return Tool(
            listed.name,
            listed.description,
            run,
            listed.parameters,
            check=listed.check,
            takes_context=_CONTEXT,
            timeout_s=self._options.timeout_s,
        )


def _lost_in_the_middle(tool: str) -> str:
    return f"{tool}: the server was lost before it answered; it may or may not have done it. Say so calmly."


def _reason(fault: BaseException) -> str:
    """Return why a connection failed, for the log: what broke, and nothing that was said."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    if isinstance(fault, TimeoutError):
        return "it did not answer in time"
    if isinstance(fault, ServerLost | FileNotFoundError | OSError):
        return str(fault) or type(fault).__name__
    from mcp import MCPError

    if isinstance(fault, MCPError):
        return f"error {fault.code}" if fault.code != -32000 else "the connection was closed"
    return type(fault).__name__
