"""All of ``integrations.yml``."""

from __future__ import annotations

from pydantic import Field

from voice_agent.config.channels import Channels
from voice_agent.config.keeping import InspectorOptions, RecordingOptions, StoreOptions
from voice_agent.config.llm import LlmOptions
from voice_agent.config.mcp import McpServerOptions, ServerName
from voice_agent.config.options import Options
from voice_agent.config.recall import RecallOptions
from voice_agent.config.server import ServerOptions
from voice_agent.config.speech import SpeechOptions
from voice_agent.config.transfers import DestinationName, TransferOptions


class Integrations(Options):
    """All of ``integrations.yml``."""

    llm: LlmOptions = LlmOptions()
    """The language model."""
    speech: SpeechOptions = SpeechOptions()
    """Speech engines, their workers, canned speech."""
    channels: Channels = Channels()
    """The ways in."""
    transfers: dict[DestinationName, TransferOptions] = Field(default_factory=dict)
    """Where callers can be put through to, each under the name that skills and models use."""
    mcp_servers: dict[ServerName, McpServerOptions] = Field(default_factory=dict)
    """Servers of tools (Model Context Protocol), each under the name that skills import from."""
    server: ServerOptions = ServerOptions()
    """Where the service listens, and to whom."""
    recording: RecordingOptions = RecordingOptions()
    """Recording of calls."""
    store: StoreOptions = StoreOptions()
    """Where conversations are kept, and for how long."""
    recall: RecallOptions = RecallOptions()
    """Memory beyond the prompt: past conversations, documents, tools that fit."""
    inspector: InspectorOptions = InspectorOptions()
    """The inspector at ``/inspect``."""
