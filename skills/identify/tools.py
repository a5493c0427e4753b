"""Tools of the identification."""

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Look up a customer's account by its six-digit number.")
async def look_up_account(account_number: str, context: ToolContext = None) -> ToolResult:
    account = northline.find_account(account_number)
    context.memory.set("tries", context.memory.get("tries") + 1)
    context.memory.set("found", account is not None)
    if account is None:
        return ToolResult(llm_response={"ok": False, "error": "no such account", "hint": "ask for the number again"})
    context.memory.set("customer_name", account.name)
    context.memory.set("verified_account", account.number)
    return ToolResult(llm_response={"ok": True, "name": account.name})
