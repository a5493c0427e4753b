"""Limits of cover."""

from lib.claims.desk import LIMITS
from rasa.calm_v2.tools.context import ToolContext
from rasa.calm_v2.tools.decorator import tool
from rasa.calm_v2.tools.result import ToolResult


@tool(description="Look up the limit of cover.")
async def check_limit(kind: str, cost: float, context: ToolContext = None) -> ToolResult:
    context.memory.set("limit", LIMITS[kind])
    context.memory.set("within_limit", cost <= LIMITS[kind])
    return ToolResult(llm_response={"ok": True, "limit": LIMITS[kind]})
