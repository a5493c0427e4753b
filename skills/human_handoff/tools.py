"""Tools of the skill that brings callers and people together."""

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Ask a colleague to call the caller back.", interruptible=False)
async def request_call_back(phone_number: str, context: ToolContext = None) -> ToolResult:
    request = northline.request_callback(phone_number, key=context.idempotency_key)
    context.memory.set("requested", True)
    return ToolResult(llm_response={"ok": True, "request": request})
