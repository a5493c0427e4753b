"""Filing a claim."""

from lib.claims import desk
from rasa.calm_v2.tools import ToolContext, ToolResult, tool


@tool(description="File the claim.")
async def submit_claim(kind: str, cost: float, story: str = "", context: ToolContext = None) -> ToolResult:
    filed = desk.file(kind, cost)
    context.memory.set("claim_number", filed["number"])
    return ToolResult(llm_response={"ok": True, **filed})
