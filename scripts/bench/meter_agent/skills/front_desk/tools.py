"""The meter's tool: takes two seconds, and tells the stub how it went."""

import asyncio
import os

import httpx

from voice_agent.dialogue import ToolContext, ToolResult, tool

SECONDS = 2.0
EVENTS = os.environ.get("METER_LLM", "http://127.0.0.1:9100") + "/event"


async def tell(event: str) -> None:
    async with httpx.AsyncClient(timeout=1) as client:
        await client.post(EVENTS, json={"ev": event})


@tool(description="Look up an order.")
async def lookup(q: str, context: ToolContext | None = None) -> ToolResult:
    await tell("tool_start")
    try:
        await asyncio.sleep(SECONDS)
    except asyncio.CancelledError:
        await tell("tool_cancelled")
        raise
    await tell("tool_done")
    return ToolResult(llm_response={"status": "shipped on Tuesday"})
