"""The typed settings of a project: ``agent.yml``, ``integrations.yml`` and the environment.

Every option carries its unit in its name and its default beside it. Files are read and reported
on by `voice_agent.config_files`; this package only says what may stand in them, one module a section.
"""

from voice_agent.config.agent import (
    AgentFile,
    AgentIdentity,
    ConversationOptions,
    PromptOptions,
    ReactOptions,
    SessionOptions,
    StyleOptions,
)
from voice_agent.config.carriers import CarrierOptions, PlivoOptions, TelnyxOptions, TwilioOptions, VonageOptions
from voice_agent.config.channel import ChannelOptions, TextChannelOptions
from voice_agent.config.channels import Channels
from voice_agent.config.integrations import Integrations
from voice_agent.config.keeping import InspectorOptions, RecordingOptions, StoreOptions
from voice_agent.config.llm import LlmOptions, ToolCalls
from voice_agent.config.mcp import McpServerOptions
from voice_agent.config.microphone import MicrophoneOptions
from voice_agent.config.options import Milliseconds, Options, Seconds
from voice_agent.config.outbound import OutboundOptions
from voice_agent.config.pbx import AsteriskOptions, FreeSwitchOptions, GenesysOptions, JambonzOptions
from voice_agent.config.recall import EmbeddingOptions, IndexOptions, RecallOptions
from voice_agent.config.server import ServerOptions
from voice_agent.config.sip import SipOptions, SipRegistration
from voice_agent.config.speech import (
    CacheOptions,
    EndOfTurnOptions,
    PoolOptions,
    SpeechOptions,
    SttOptions,
    TtsOptions,
    VadOptions,
)
from voice_agent.config.telephony import AudioSocketOptions
from voice_agent.config.transfers import TransferOptions
from voice_agent.config.turn_taking import TurnTaking
from voice_agent.config.webrtc import IceServer, WebRtcOptions

__all__ = [
    "AgentFile",
    "AgentIdentity",
    "AsteriskOptions",
    "AudioSocketOptions",
    "CacheOptions",
    "CarrierOptions",
    "ChannelOptions",
    "Channels",
    "ConversationOptions",
    "EmbeddingOptions",
    "EndOfTurnOptions",
    "FreeSwitchOptions",
    "GenesysOptions",
    "IceServer",
    "IndexOptions",
    "InspectorOptions",
    "Integrations",
    "JambonzOptions",
    "LlmOptions",
    "McpServerOptions",
    "MicrophoneOptions",
    "Milliseconds",
    "Options",
    "OutboundOptions",
    "PlivoOptions",
    "PoolOptions",
    "PromptOptions",
    "ReactOptions",
    "RecallOptions",
    "RecordingOptions",
    "Seconds",
    "ServerOptions",
    "SessionOptions",
    "SipOptions",
    "SipRegistration",
    "SpeechOptions",
    "StoreOptions",
    "SttOptions",
    "StyleOptions",
    "TelnyxOptions",
    "TextChannelOptions",
    "ToolCalls",
    "TransferOptions",
    "TtsOptions",
    "TurnTaking",
    "TwilioOptions",
    "VadOptions",
    "VonageOptions",
    "WebRtcOptions",
]
