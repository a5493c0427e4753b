"""What tells one streaming wire from another: how its messages are read and written. Pure.

A serializer is made for one call and may keep state (stream ids, sequence numbers, media out of order). It never
sees the clock, the socket or the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from voice_agent.call.wire import WireMessage, WireTraits
from voice_agent.channels.messages import CallerHangUp, Key, Mute, Played, TypedText

DRAIN_MARK = "drain."
"""What the names of marks begin with that ask whether all audio before them has been played."""
Message = str | bytes
"""One WebSocket message: text or binary."""


@dataclass(frozen=True, slots=True)
class Started:
    """The provider says which call the stream belongs to.

    Attributes:
        call: The provider's id of the call.
        caller: Who calls, as the provider says (a number, a SIP address), or "".
        called: Whom they called, or "".
        parameters: Whatever was attached to the stream when it was set up.
    """

    call: str
    caller: str = ""
    called: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Media:
    """Caller audio: int16 mono at the serializer's rate, any even length."""

    pcm: bytes


@dataclass(frozen=True, slots=True)
class MarkReached:
    """The far end has played all audio before this mark, or dropped it: a mark is echoed after a clear as well."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the far end is owed for its message, such as a pong."""

    message: Message


@dataclass(frozen=True, slots=True)
class Farewell:
    """The far end ends the call, and waits for this last message before it goes.

    Attributes:
        reason: How the call ends, as of `voice_agent.call.wire.Wire.run`.
    """

    message: Message
    reason: str = "hang_up"


@dataclass(frozen=True, slots=True)
class FlowControl:
    """The far end has no room for more audio, or has room again.

    What is not sent meanwhile is dropped: its time has passed when there is room again.
    """

    full: bool


Inbound = (
    Started | Media | MarkReached | Key | TypedText | Played | Mute | CallerHangUp | Answer | Farewell | FlowControl
)


class Serializer(Protocol):
    """The messages of one provider, for one call."""

    @property
    def traits(self) -> WireTraits:
        """What a call must know of the wire. ``reports_position`` is found out by the wire itself."""
        ...

    @property
    def rate(self) -> int:
        """Samples per second on the wire, both ways."""
        ...

    @property
    def frame_ms(self) -> int | None:
        """Length that every piece of agent audio must have, in milliseconds; None where any will do."""
        ...

    def opening(self) -> Iterable[Message]:
        """Return what is sent as soon as the call is put through."""
        ...

    def read(self, message: Message) -> Sequence[Inbound]:
        """Read one message. What a provider sends and nobody needs gives nothing.

        Raises:
            BadMessage: It cannot be understood.
        """
        ...

    def audio(self, pcm: bytes) -> Message:
        """Write agent audio: int16 mono at `rate`."""
        ...

    def clear(self) -> Iterable[Message]:
        """Return what makes the far end drop agent audio that it has not played."""
        ...

    def message(self, message: WireMessage) -> Message | None:
        """Write one message of the call, or None where the wire has no word for it."""
        ...

    def hang_up(self, reason: str) -> Iterable[Message]:
        """Return what is said before the socket is closed."""
        ...


@runtime_checkable
class FarEndCloses(Protocol):
    """A serializer after whose `Serializer.hang_up` the far end says goodbye and closes; it is given a moment to."""

    far_end_closes: bool


@runtime_checkable
class Stamps(Protocol):
    """A serializer that completes its texts as they leave, in the order in which they do (sequence numbers)."""

    def stamp(self, text: str) -> str:
        """Return the text as it is sent."""
        ...
