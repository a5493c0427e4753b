"""Calls by the microphone and speaker of the machine itself."""

from __future__ import annotations

from voice_agent.config.channel import ChannelOptions


class MicrophoneOptions(ChannelOptions):
    """Calls by this machine's own microphone and speaker (``voice-agent talk``)."""
