"""Calls from telephone lines and exchanges."""

from __future__ import annotations

from pydantic import Field

from voice_agent.config.channel import ChannelOptions
from voice_agent.config.turn_taking import TurnTaking


class AudioSocketOptions(ChannelOptions):
    """Calls that Asterisk brings to a port of their own."""

    enabled: bool = False
    """Whether the port is opened."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(9092, ge=0, le=65_535)
    """Port to listen on; 0 takes any that is free."""
    registered_only: bool | None = None
    """Refuse calls that were not announced by ``POST /v1/calls``. By default beyond loopback, where it cannot be
    switched off."""
    turn_taking: TurnTaking = TurnTaking(lead_ms=0)
    """When the caller is listened to, answered, and yielded to. Nothing is sent ahead: the wire cannot take it back."""
