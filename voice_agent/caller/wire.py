"""The caller's end of a wire: what the session needs of WebSocket, and of every wire that joins it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from voice_agent.diagnostics import RemediableError


class ConnectionFailed(RemediableError):
    """The call could not be placed."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Whom to call, and as whom.

    Attributes:
        url: Address in the wire's own scheme.
        rate: Sample rate of both directions in Hz.
        token: Key that callers must present, if any.
        conversation: Conversation to resume, or None for a new one.
    """

    url: str
    rate: int = 16000
    token: str | None = None
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The agent took the call."""

    conversation: str | None
    rate: int | None


@dataclass(frozen=True, slots=True)
class AgentAudio:
    """Agent audio: PCM16 mono at the wire's rate, whole samples, any length."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Agent audio not yet played is to be dropped."""


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one side. ``heard`` is the part of the agent's words that was played, once known."""

    role: str
    text: str
    final: bool
    heard: str | None = None


@dataclass(frozen=True, slots=True)
class TurnTimeline:
    """The agent's own account of a turn: instants in seconds since its call began."""

    turn_id: str
    instants: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """The agent reported an error, or sent what cannot be read. The call goes on."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class AgentHangUp:
    """The agent ended the call."""

    reason: str


@dataclass(frozen=True, slots=True)
class Other:
    """A message that is fine and of no concern to the caller, such as a mark or a tracker event."""

    kind: str
    body: Mapping[str, Any]


WireItem = Ready | AgentAudio | Clear | Words | TurnTimeline | Fault | AgentHangUp | Other


class CallerWire(Protocol):
    """One connection to an agent. Used by one session, once."""

    signals_clear: bool
    """The wire tells the caller when agent audio is to be dropped."""

    async def connect(self) -> None:
        """Open the connection.

        Raises:
            ConnectionFailed: Nobody answers, the call is refused, or the address is no address.
        """
        ...

    def receive(self) -> AsyncIterator[WireItem]:
        """Yield what the agent sends until the connection ends. Never raises for a lost connection."""
        ...

    @property
    def closed_because(self) -> str:
        """How the connection ended, in a few words; empty while it lives."""
        ...

    async def send_audio(self, frame: bytes) -> bool:
        """Send one 20 ms frame; False when the connection is gone."""
        ...

    async def hang_up(self) -> None:
        """Say goodbye in the wire's way and close, bounded by a deadline. Idempotent."""
        ...
