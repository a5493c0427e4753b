"""Tools that more than one skill may import."""

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Read what the identified customer owes and when it is due.")
async def read_balance(verified_account: str, context: ToolContext = None) -> ToolResult:
    account = northline.find_account(verified_account)
    due = northline.cents_due(account, paid=context.memory.get("paid_today", 0.0))
    context.memory.set("balance", northline.dollars(due))
    context.memory.set("is_paid", due == 0)
    context.memory.set("due_date", account.due_date)
    return ToolResult(llm_response={"ok": True, "balance": northline.dollars(due), "due_date": account.due_date})
