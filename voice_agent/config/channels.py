"""The ways in."""

from __future__ import annotations

from voice_agent.config.channel import ChannelOptions, TextChannelOptions
from voice_agent.config.options import Options
from voice_agent.config.telephony import AudioSocketOptions
from voice_agent.config.webrtc import WebRtcOptions


class Channels(Options):
    """The ways in."""

    websocket: ChannelOptions = ChannelOptions()
    """Calls on ``/ws``."""
    webrtc: WebRtcOptions = WebRtcOptions()
    """Calls from browsers, on ``/offer``."""
    audiosocket: AudioSocketOptions = AudioSocketOptions()
    """Calls from Asterisk's AudioSocket."""
    text: TextChannelOptions = TextChannelOptions()
    """Messages by HTTP."""
