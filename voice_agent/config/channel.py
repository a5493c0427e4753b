"""What every channel has."""

from __future__ import annotations

from voice_agent.config.options import Options
from voice_agent.config.turn_taking import TurnTaking


class ChannelOptions(Options):
    """A channel on which the caller is heard."""

    enabled: bool = True
    """Whether callers may come in by it."""
    turn_taking: TurnTaking = TurnTaking()
    """When the caller is listened to, answered, and yielded to."""


class TextChannelOptions(Options):
    """A channel on which the caller writes: there are no turns to take."""

    enabled: bool = True
    """Whether callers may come in by it."""
