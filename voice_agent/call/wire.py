"""The contract between a call and the wire its caller came in by.

A channel implements `Wire`, a call implements `CallInputs`. Audio crosses here as canonical PCM
(16 kHz mono int16); the channel converts to what its wire speaks, with resamplers that keep state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from voice_agent.digits import DigitsResult
from voice_agent.transfers import TransferResult, TransferTarget


@dataclass(frozen=True, slots=True)
class WireTraits:
    """What a call must know of a wire.

    Attributes:
        channel: Channel name for configuration, metrics and logs (``websocket``, ``webrtc`` …).
        reports_position: The far end acknowledges playout, through `CallInputs.played` or by marks. Where it
            does not, the wall clock caps what counts as heard.
        follows_state: The client asked to be told whose moment it is (`StateMessage`, `HeardMessage`).
        echoes_marks: It does so by telling which `MarkMessage` it has come to (`CallInputs.mark_reached`).
        can_transfer: The wire is a `TransferringWire` and can put this caller through to somebody else.
        can_send_digits: Behind this wire is a telephone line, on which the agent may press keys. One that is no
            `PressingWire` carries them as tones, in the audio.
    """

    channel: str
    reports_position: bool = False
    follows_state: bool = False
    echoes_marks: bool = False
    can_transfer: bool = False
    can_send_digits: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """Words for the client. ``heard`` is set on the agent's, once known."""

    role: Literal["user", "agent"]
    text: str
    final: bool
    heard: str | None = None


@dataclass(frozen=True, slots=True)
class MarkMessage:
    """A named point in the agent's audio, sent after the audio before it."""

    name: str


@dataclass(frozen=True, slots=True)
class EventMessage:
    """A tracker event, for clients that asked for them."""

    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MetricsMessage:
    """Timeline of one turn: instants in seconds since the call began (see `timeline`)."""

    turn_id: str
    timeline: Mapping[str, float | None] = field(default_factory=dict)


StateName = Literal["listening", "hearing", "thinking", "speaking", "paused"]


@dataclass(frozen=True, slots=True)
class StateMessage:
    """Whose moment it is, for clients that asked. ``paused``: the agent waits to learn whether it was interrupted."""

    state: StateName


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """What has been heard so far of the reply that is being spoken, for clients that follow the state."""

    text: str


@dataclass(frozen=True, slots=True)
class ErrorMessage:
    """One clear error for the client; the call goes on."""

    code: str
    message: str


WireMessage = (
    TranscriptMessage | MarkMessage | EventMessage | MetricsMessage | StateMessage | HeardMessage | ErrorMessage
)


class CallInputs(Protocol):
    """What a wire feeds into a call. Synchronous, called on the event loop, never blocks or raises."""

    def hear(self, pcm: bytes) -> None:
        """Caller audio, canonical PCM, any even length."""
        ...

    def type_text(self, text: str) -> None:
        """A typed utterance."""
        ...

    def press_key(self, digit: str) -> None:
        """One DTMF key: ``0``-``9``, ``*``, ``#``, ``A``-``D``."""
        ...

    def mute(self, muted: bool) -> None:
        """The caller has switched their microphone off or on. Keys and typed words work all the same."""
        ...

    def hold(self, held: bool) -> None:
        """The far end has put the call on hold, or takes it off: nobody hears the agent, and nobody is heard."""
        ...

    def played(self, ms: float) -> None:
        """The far end has played this much of the current reply, in milliseconds."""
        ...

    def mark_reached(self, name: str) -> None:
        """The far end has come to this `MarkMessage`. One of audio that was cleared meanwhile changes nothing."""
        ...


class Wire(Protocol):
    """One connection to one caller."""

    @property
    def traits(self) -> WireTraits: ...

    async def run(self, call: CallInputs) -> str:
        """Carry both directions until the far end goes or `hang_up` was called; return why.

        Owns the connection's reader and writer. A closed or failing connection is a normal end
        (``disconnected``), reported once, never an exception. Returns ``hang_up`` when the caller
        said so, ``disconnected`` when the connection went, ``closed`` after `hang_up`.
        """
        ...

    def send_audio(self, frame: bytes) -> None:
        """Queue one 20 ms frame. Ignored after the end. The queue is bounded, oldest dropped."""
        ...

    def clear(self) -> None:
        """Drop agent audio not yet played, here and at the far end. Overtakes queued audio."""
        ...

    def send(self, message: WireMessage) -> None:
        """Queue a message for the client, in order with the audio. Ignored after the end."""
        ...

    async def drain(self, timeout_s: float) -> bool:
        """Wait until the far end has all audio sent so far; False when the timeout came first."""
        ...

    async def hang_up(self, reason: str) -> None:
        """Send the wire's own hang-up and close. Idempotent; bounded by the channel's own deadline."""
        ...


@runtime_checkable
class TransferringWire(Wire, Protocol):
    """A wire that can put its caller through to somebody else, where `WireTraits.can_transfer` says so."""

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Put the caller through; return once somebody has answered, or it has failed.

        A blind transfer hands the call over; a warm one keeps it until somebody has answered. A wire that cannot do
        what is asked answers ``not_supported`` and leaves the call as it is. Audio sent meanwhile (a ringing tone) is
        carried while the media still flows this way, and dropped where it does not.

        Bounded by ``target.timeout_s``, after which the wire gives up by itself (``timeout``, or ``no_answer`` where
        it rang). When cancelled, because the caller has gone, it gives up within the call's grace; if it turns out
        then that the call was taken over, it returns ``completed``. `run` returns after this has, not before, when
        the connection ends because the caller was put through.
        """
        ...


@runtime_checkable
class PressingWire(Wire, Protocol):
    """A wire with a sign of its own for keys that the agent presses, where `WireTraits.can_send_digits` says so."""

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys and pauses (`voice_agent.digits.read_digits`) one after the other; return when that is done.

        Audio sent meanwhile may be dropped. ``not_supported``: the far end has agreed to no sign for keys, or none can
        be sent now; nothing was pressed, and tones in the audio are left. Bounded by the time that it takes to press
        them and the channel's own deadline.
        """
        ...
