"""Tools of the technician visit."""

from datetime import date

from lib import northline
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Check whether a technician can come on a day, given as YYYY-MM-DD.")
async def check_day(visit_date: date, context: ToolContext = None) -> ToolResult:
    problem = northline.day_problem(visit_date)
    context.memory.set("day_problem", problem)
    return ToolResult(llm_response={"ok": problem is None, "error": problem})


@tool(description="Book a technician for a day, given as YYYY-MM-DD, in the morning or afternoon.", interruptible=False)
async def book_visit(
    visit_date: date, part_of_day: str, verified_account: str, context: ToolContext = None
) -> ToolResult:
    # The day may have been changed since it was checked.
    problem = northline.day_problem(visit_date)
    context.memory.set("day_problem", problem)
    if problem is not None:
        return ToolResult(llm_response={"ok": False, "error": problem})
    account = northline.find_account(verified_account)
    visit = northline.book_visit(account, visit_date, part_of_day, key=context.idempotency_key)
    context.memory.set("visit_number", " ".join(visit))
    return ToolResult(llm_response={"ok": True, "visit_number": visit})
