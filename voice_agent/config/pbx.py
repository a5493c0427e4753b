"""Calls that telephone exchanges bring over a WebSocket."""

from __future__ import annotations

from voice_agent.config.channel import ChannelOptions
from voice_agent.config.turn_taking import TurnTaking


class AsteriskOptions(ChannelOptions):
    """Calls from Asterisk's WebSocket channel driver, on ``/asterisk/media``."""

    enabled: bool = False
    """Whether callers may come in by it."""


class FreeSwitchOptions(ChannelOptions):
    """Calls from FreeSWITCH's ``mod_audio_stream``, on ``/freeswitch/stream``."""

    enabled: bool = False
    """Whether callers may come in by it."""
    turn_taking: TurnTaking = TurnTaking(lead_ms=0)
    """When the caller is listened to, answered, and yielded to. Nothing is sent ahead: only a script of the exchange
    can take it back."""


class JambonzOptions(ChannelOptions):
    """Calls from jambonz's ``listen`` verb, on ``/jambonz/stream``."""

    enabled: bool = False
    """Whether callers may come in by it."""


class GenesysOptions(ChannelOptions):
    """Calls from Genesys Cloud's Audio Connector, on ``/genesys/audiohook``."""

    enabled: bool = False
    """Whether callers may come in by it."""
    api_key_env: str = "GENESYS_API_KEY"
    """Environment variable with the integration's API key."""
    client_secret_env: str = "GENESYS_CLIENT_SECRET"
    """Environment variable with the integration's client secret, in Base64; with it every connection must be signed."""
