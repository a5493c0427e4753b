"""Shared tools, with the import paths of the engine they were written for."""

from lib.claims.desk import CLAIMS, MEMBERS
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult


@tool(description="Load the policy holder the call belongs to.")
async def load_member(context: ToolContext = None) -> ToolResult:
    member = MEMBERS.get(context.memory.get("member_number"))
    if member is None:
        return ToolResult(llm_response={"ok": False, "error": "unknown member"})
    context.memory.set("member_name", member.name)
    context.memory.set("cover_level", member.cover)
    return ToolResult(llm_response={"ok": True, "name": member.name})


@tool(description="Look up how a claim stands.")
async def get_claim(claim_number: str, context: ToolContext = None) -> ToolResult:
    status = CLAIMS.get(claim_number)
    context.memory.set("status", status)
    return ToolResult(llm_response={"ok": status is not None, "status": status})
