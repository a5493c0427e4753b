"""The agent core: caller text in, replies out. Knows nothing of audio, speech engines or wires."""

from voice_agent.dialogue.tools import ToolContext, ToolResult, tool

__all__ = ["ToolContext", "ToolResult", "tool"]
