"""Short ways to write the requests that the dialogue makes of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from voice_agent.llm.protocol import FieldCard, Message, ModelRequest, Scope, SkillCard, ToolCall, ToolSpec

SKILLS = (
    SkillCard("balance_enquiry", "Tell the customer the balance of their account.", ("What is my balance?",)),
    SkillCard("report_outage", "Report an outage when the phone line or the internet is not working."),
    SkillCard("cancel_contract", "Cancel the contract or end a subscription."),
)


def tool(name: str, description: str = "", required: Sequence[str] = (), **properties: Any) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object", "properties": properties, "required": list(required)})


def start_skill(skills: Sequence[SkillCard] = SKILLS) -> ToolSpec:
    return tool("start_skill", skill={"type": "string", "enum": [skill.id for skill in skills]})


def set_fields(*cards: FieldCard) -> ToolSpec:
    return tool("set_fields", "", (), **{card.name: {} for card in cards})


CONFIRM, DENY, COMPLETE, CANCEL = tool("confirm"), tool("deny"), tool("complete"), tool("cancel_skill")
LISTEN, HANG_UP, CANNOT_HELP = tool("listen"), tool("hangup"), tool("cannot_help", reason={"type": "string"})
SEARCH = tool("search_knowledge", query={"type": "string"})


def agent(text: str) -> Message:
    return Message("assistant", text)


def caller(text: str) -> Message:
    return Message("user", text)


def ran(name: str, arguments: dict[str, Any] | None = None, result: Any = None) -> list[Message]:
    """Return a tool call and its result, as they stand in a prompt."""
    call = ToolCall(f"id_{name}", name, json.dumps(arguments or {}))
    content = json.dumps({"ok": True} if result is None else result)
    return [Message("assistant", tool_calls=(call,)), Message("tool", content, tool_call_id=call.id, name=name)]


def request(*messages: Message | list[Message], tools: Sequence[ToolSpec] = (), **scope: Any) -> ModelRequest:
    """Return a request; ``scope.utterance`` is the caller's last words unless given."""
    flat = [one for message in messages for one in (message if isinstance(message, list) else [message])]
    spoken = [message.content for message in flat if message.role == "user"]
    scope.setdefault("utterance", spoken[-1] if spoken else "")
    if any(tool.name == "start_skill" for tool in tools):
        scope.setdefault("skills", SKILLS)
    return ModelRequest(flat, tools, Scope(**scope))
