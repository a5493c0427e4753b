"""Tools of the outage report."""

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Open a ticket for an outage.", interruptible=False)
async def open_ticket(service: str, phone_number: str, details: str, context: ToolContext = None) -> ToolResult:
    ticket = northline.open_ticket(service, phone_number, details, key=context.idempotency_key)
    # Digits are said one by one when they stand apart.
    context.memory.set("ticket_number", " ".join(ticket))
    return ToolResult(llm_response={"ok": True, "ticket_number": ticket})
