"""Tools of the calls abroad."""

from lib import northline
from voice_agent.dialogue import ToolResult, tool


@tool(description="Tell what a call of so many minutes costs today in a zone, from the price list.")
async def call_price(zone: str, minutes: int = 1) -> ToolResult:
    if minutes < 1:
        return ToolResult(llm_response={"ok": False, "error": "a call lasts one minute or longer"})
    rate = northline.call_rate(zone)
    if rate is None:
        known = ", ".join(northline.ZONES)
        return ToolResult(llm_response={"ok": False, "error": f"no such zone; there are {known}"})
    length = "one minute" if minutes == 1 else f"{minutes} minutes"
    return ToolResult(
        llm_response={
            "ok": True,
            "message": f"A call of {length} costs ${northline.dollars(rate.cents * minutes)}.",
            "price": northline.dollars(rate.cents * minutes),
            "per_minute": northline.dollars(rate.cents),
            "minutes": minutes,
            "price_list_of": rate.since.isoformat(),
        }
    )
