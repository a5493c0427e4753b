"""Keeps what the server said where conditions and responses can read it."""

from voice_agent.dialogue.hooks import modify_tool_result


@modify_tool_result
async def keep_the_place(payload, context):
    if payload.tool == "track_parcel" and payload.success:
        context.memory.set("found", payload.result["ok"])
        context.memory.set("place", payload.result["place"] or None)
        context.memory.set("day", payload.result["day"] or None)
