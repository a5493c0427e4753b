"""What MCP clients see of the agent: `talk`, and the tools that are open in the client's own conversation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from voice_agent import __version__
from voice_agent.mcp_server.talk import ClientConversation, Refused
from voice_agent.service.text_agent import TextAgent

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

log = logging.getLogger(__name__)

TALK = "talk"
MAX_CLIENTS = 200
"""Conversations of clients that are remembered; the one unused for longest is forgotten for a new one."""
_TALK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say to the agent, as a caller would say it."},
        "conversation_id": {
            "type": "string",
            "description": "The conversation to go on with; the last one by default, or a new one.",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}


class AgentServer:
    """Handles the requests of all clients.

    Args:
        conversation_id: Name of the conversation of a client that comes by standard input.
    """

    def __init__(self, agent: TextAgent, conversation_id: str | None = None) -> None:
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._agent, self._given = agent, conversation_id
        self._clients: OrderedDict[str, ClientConversation] = OrderedDict()
        self._listed: dict[str, tuple[str, ...]] = {}
        self._changes = InMemorySubscriptionBus()
        about = agent.versions.current.config.agent.agent
        self.server: Server[Any] = Server(
            "voice-agent",
            version=__version__,
            title=about.name,
            instructions=f"Talk to {about.name} with `{TALK}`. Other tools appear as the conversation opens them.",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._changes, max_subscriptions=MAX_CLIENTS),
        )
        self.options = self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def _list(self, context: ServerRequestContext[Any, Any], params: Any) -> ListToolsResult:
        from mcp_types import ListToolsResult

        key = _client(context)
        tools = self._tools(self._conversation(key))
        self._listed[key] = tuple(tool.name for tool in tools)
        return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    def _tools(self, conversation: ClientConversation) -> list[Tool]:
        from mcp_types import Tool, ToolAnnotations

        about = self._agent.versions.current.config.agent.agent
        talk = Tool(
            name=TALK,
            description=f"Say something to {about.name} and get the reply. {about.persona.strip()}"[:1000],
            input_schema=_TALK_SCHEMA,
            annotations=ToolAnnotations(open_world_hint=False),
        )
        found = [
            Tool(name=name, description=open.description, input_schema=dict(open.tool.parameters))
            for name, open in conversation.tools().items()
            if name != TALK
        ]
        return [talk, *found]

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        key = _client(context)
        conversation = self._conversation(key)
        arguments = dict(params.arguments or {})
        try:
            if params.name == TALK:
                return await self._talk(conversation, arguments)
            outcome = await conversation.run(params.name, arguments)
            return _result(json.loads(outcome.json), is_error=not outcome.success)
        except Refused as refusal:
            return _result({"error": str(refusal)}, is_error=True)
        except Exception:
            log.exception("a request of an MCP client failed")
            return _result({"error": "Something went wrong here."}, is_error=True)
        finally:
            await self._tell_changes(key, context)

    @staticmethod
    async def _talk(conversation: ClientConversation, arguments: dict[str, Any]) -> CallToolResult:
        text, conversation_id = arguments.pop("text", None), arguments.pop("conversation_id", None)
        if not isinstance(text, str) or not isinstance(conversation_id, str | None) or arguments:
            raise Refused("`talk` takes `text` and `conversation_id`, both text.")
        answer = await conversation.talk(text, conversation_id)
        return _result(
            {"reply": answer.reply, "conversation_id": answer.conversation_id, "ended": answer.ended}, text=answer.reply
        )

    async def _tell_changes(self, key: str, context: ServerRequestContext[Any, Any]) -> None:
        """Say so if what the client was listed is not what is open to it now."""
        from mcp.shared.subscriptions import ToolsListChanged
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        listed, conversation = self._listed.get(key), self._clients.get(key)
        task = asyncio.current_task()
        if listed is None or conversation is None or (task is not None and task.cancelling()):
            return
        now = (TALK, *(name for name in conversation.tools() if name != TALK))
        if now == listed:
            return
        self._listed[key] = now
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self._changes.publish(ToolsListChanged())
        else:
            await context.session.send_tool_list_changed()

    def _conversation(self, key: str) -> ClientConversation:
        found = self._clients.get(key)
        if found is None:
            while len(self._clients) >= MAX_CLIENTS:
                forgotten, _ = self._clients.popitem(last=False)
                self._listed.pop(forgotten, None)
            found = self._clients[key] = ClientConversation(self._agent, None if key else self._given)
        self._clients.move_to_end(key)
        return found


def _client(context: ServerRequestContext[Any, Any]) -> str:
    """Return what tells clients apart: the session of HTTP; there is only one by standard input."""
    request = context.request
    return "" if request is None else str(request.headers.get("mcp-session-id", "none"))


def _result(data: Any, *, text: str | None = None, is_error: bool = False) -> CallToolResult:
    from mcp_types import CallToolResult, TextContent

    structured = data if isinstance(data, dict) else {"result": data}
    written = text if text is not None else json.dumps(data, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=written)], structured_content=structured, is_error=is_error
    )
