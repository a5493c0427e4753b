"""The messages of our own wire: PCM in binary messages both ways, JSON in text messages beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from voice_agent.call.wire import EventMessage, MetricsMessage, WireMessage, WireTraits
from voice_agent.channels import messages
from voice_agent.channels.streaming.serializer import Inbound, Media, Message

CHANNEL = "websocket"


class PlainSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`."""

    frame_ms = None

    def __init__(
        self, conversation_id: str, rate: int, *, events: bool = False, metrics: bool = False, states: bool = False
    ) -> None:
        """Args: ``rate`` in Hz; ``events``, ``metrics``, ``states``: the client asked for these messages."""
        self.traits = WireTraits(CHANNEL, follows_state=states)
        self.rate = rate
        self._conversation_id = conversation_id
        self._unwanted = tuple(t for t, wanted in ((EventMessage, events), (MetricsMessage, metrics)) if not wanted)

    def opening(self) -> Iterable[Message]:
        return (messages.ready(self._conversation_id, self.rate),)

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes) and message:
            return (Media(message),)
        # An empty binary message counts as text that is no JSON.
        return (messages.decode(message if isinstance(message, str) else ""),)

    def audio(self, pcm: bytes) -> Message:
        return pcm

    def clear(self) -> Iterable[Message]:
        return (messages.CLEAR,)

    def message(self, message: WireMessage) -> Message | None:
        return None if isinstance(message, self._unwanted) else messages.encode(message)

    def hang_up(self, reason: str) -> Iterable[Message]:
        return (messages.hang_up(reason),)
