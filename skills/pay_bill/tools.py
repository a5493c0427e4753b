"""Tools of the bill payment."""

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Take the whole balance as the amount to pay.")
async def choose_full_amount(balance: str, context: ToolContext = None) -> ToolResult:
    context.memory.set("amount", balance)
    return ToolResult(llm_response={"ok": True, "amount": balance})


@tool(description="Charge an amount in dollars to the card on file.", interruptible=False)
async def charge_card(amount: str, verified_account: str, context: ToolContext = None) -> ToolResult:
    account = northline.find_account(verified_account)
    paid = context.memory.get("paid_today", 0.0)
    due = northline.cents_due(account, paid=paid)
    cents = round(float(amount.strip(" $").replace(",", "")) * 100)
    if not 0 < cents <= due:
        context.memory.set("too_much", True)
        return ToolResult(llm_response={"ok": False, "error": f"between 0.01 and {northline.dollars(due)} can be paid"})
    receipt = northline.charge_card(account, cents, key=context.idempotency_key)
    context.memory.set("amount", northline.dollars(cents))
    context.memory.set("paid_today", paid + cents / 100)
    # Digits are said one by one when they stand apart.
    context.memory.set("receipt", " ".join(receipt))
    return ToolResult(llm_response={"ok": True, "receipt": receipt, "charged": northline.dollars(cents)})
