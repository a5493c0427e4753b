"""An MCP server with one tool. Any program that speaks the protocol would do, in any language."""

from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("parcels")
PARCELS = {"4711": ("on the van", "today"), "4712": ("at the depot", "tomorrow")}


@server.tool(description="Find out where a parcel is.")
async def track_parcel(number: str) -> dict[str, Any]:
    """Return where the parcel is and when it comes; ``ok`` is false for a number that nobody knows."""
    place, day = PARCELS.get(number, ("", ""))
    return {"ok": bool(place), "place": place, "day": day}


if __name__ == "__main__":
    server.run("stdio")
