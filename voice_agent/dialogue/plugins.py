"""What plugins are written with.

::

    from voice_agent.dialogue.plugins import hook

    @hook(priority=5)
    def agent_prompt_suffix(suffix, context):
        return suffix + "\\nToday the office in Basel is closed."
"""

from voice_agent.dialogue.hook_context import HistoryLine, HookContext
from voice_agent.dialogue.plugin_points import POINTS, AllowedTool, hook
from voice_agent.dialogue.tools import ToolContext, ToolResult, tool
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig, Workflow
from voice_agent.dialogue.workflows.react import ReAct, ReActAgentConfig
from voice_agent.dialogue.workflows.thinker import Thinker, Thought

__all__ = [
    "POINTS",
    "AgenticWorkflowConfig",
    "AllowedTool",
    "HistoryLine",
    "HookContext",
    "ReAct",
    "ReActAgentConfig",
    "Thinker",
    "Thought",
    "ToolContext",
    "ToolResult",
    "Workflow",
    "hook",
    "tool",
]
