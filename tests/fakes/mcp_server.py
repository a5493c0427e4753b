"""A real MCP server made with the SDK, for tests: ``python mcp_server.py [stdio | http PORT | sse PORT]``.

It does well what it is asked, and badly what it is asked to do badly.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink, TextContent

server = MCPServer("fake")
NOTES: list[str] = []


@server.tool(description="Add two numbers.")
async def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool(description="Look an account up.")
async def balance(account: str) -> dict[str, Any]:
    return {"ok": True, "account": account, "balance": 12.5}


@server.tool(description="Say something back.", structured_output=False)
async def echo(text: str) -> str:
    return text


@server.tool(description="Take a while.", structured_output=False)
async def slow(seconds: float) -> str:
    NOTES.append("begun")
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        NOTES.append("cancelled")
        raise
    NOTES.append("done")
    return "done"


@server.tool(description="What has happened.")
async def notes() -> dict[str, Any]:
    return {
        "notes": NOTES,
        "pid": os.getpid(),
        "key": os.environ.get("FAKE_KEY", ""),
        "home": os.environ.get("OTHER", ""),
    }


@server.tool(description="What the caller sent beside the arguments.", structured_output=False)
async def meta(ctx: Context) -> str:
    found = ctx.request_context.meta or {}
    return str(dict(found).get("voice-agent/idempotency-key", ""))


@server.tool(description="What the client can be asked for.", structured_output=False)
async def abilities(ctx: Context) -> str:
    given = ctx.session.client_capabilities
    return "none" if given is None else str(given.model_dump(exclude_none=True))


@server.tool(description="A picture.", structured_output=False)
async def picture() -> list[Any]:
    data = base64.b64encode(b"\x89PNG" + bytes(4000)).decode()
    return [
        TextContent(type="text", text="Here it is."),
        ImageContent(type="image", data=data, mime_type="image/png"),
        AudioContent(type="audio", data=data, mime_type="audio/wav"),
        ResourceLink(type="resource_link", name="Terms", uri="https://example.org/terms"),
        EmbeddedResource(
            type="resource", resource=BlobResourceContents(uri="file:///a.pdf", mime_type="application/pdf", blob=data)
        ),
    ]


@server.tool(description="A great deal.", structured_output=False)
async def huge(characters: int) -> str:
    return "x" * characters


@server.tool(description="Always fails.")
async def fail() -> str:
    raise ValueError("the account is closed")


@server.tool(description="End the process in the middle of the call.")
async def die() -> str:
    os._exit(1)


@server.tool(description="Stop answering anything at all.")
async def hang() -> str:
    import time

    time.sleep(600)  # noqa: ASYNC251 - the whole server is to stand still
    return ""


@server.tool(description="Learn a new trick.", structured_output=False)
async def learn(name: str, ctx: Context) -> str:
    async def trick() -> str:
        return f"this is {name}"

    server.add_tool(trick, name=name, description=f"The trick {name}.", structured_output=False)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "learnt"


if __name__ == "__main__":
    how = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    sys.stderr.write("the fake server starts\n")
    if how == "stdio":
        server.run("stdio")
    elif how == "http":
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("sse", port=int(sys.argv[2]))
