"""Tools of the plan advice."""

from voice_agent.dialogue import ToolContext, ToolResult, tool

_BASIC_PEOPLE = 2


@tool(description="Find the internet plan that suits a household.")
async def recommend_plan(people: int, streams: bool, context: ToolContext = None) -> ToolResult:
    is_small = people <= _BASIC_PEOPLE and not streams
    plan, price = ("Northline Basic", 20) if is_small else ("Northline Fast", 40)
    context.memory.set("plan", plan)
    context.memory.set("price", price)
    return ToolResult(llm_response={"ok": True, "plan": plan, "dollars_a_month": price})
