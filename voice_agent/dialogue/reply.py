"""What a turn says and what became of it: the contract between the dialogue and whoever speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.digits import DigitsResult
from voice_agent.transfers import TransferResult, TransferTarget


class InputKind(Enum):
    """Where the words of a turn came from."""

    SPEECH = "speech"
    TEXT = "text"
    DTMF = "dtmf"
    INTENT = "intent"
    """A shell's own message such as ``/session_start`` or ``/silence``; never shown to a model."""


@dataclass(frozen=True, slots=True)
class UserInput:
    """What a turn answers.

    Attributes:
        early: The words fell before the last message of the reply before them had begun to sound: whatever that
            message asks, they do not answer it.
    """

    text: str
    kind: InputKind = InputKind.TEXT
    early: bool = False


SESSION_START = UserInput("/session_start", InputKind.INTENT)
SILENCE = UserInput("/silence", InputKind.INTENT)


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of a message. Messages of a turn are numbered from 0; pieces of one come in order.

    Attributes:
        message: Number of the message within the turn.
        text: Text as it should be displayed, possibly a token-sized delta.
        end: No more pieces of this message follow.
        source: ``response`` for configured wording, ``model`` for generated text.
        response: The ``utter_*`` name where there is one.
        interruptible: False for wording that must be heard whole (a legal notice).
        while_uninterruptible: What becomes of the caller's words meanwhile: kept and answered after it, or discarded.
        record: ``full`` for wording that a model is to know of even if it was cut (an action that was done).
    """

    message: int
    text: str
    end: bool = False
    source: Literal["response", "model"] = "model"
    response: str | None = None
    interruptible: bool = True
    while_uninterruptible: Literal["keep", "discard"] = "keep"
    record: Literal["heard", "full"] = "heard"


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the call once everything said before has been heard.

    Attributes:
        ended: Called by an `EndingSink` when nothing can keep the call any more; records the end.
    """

    reason: str = "completed"
    ended: Callable[[], None] | None = field(default=None, compare=False, repr=False)


ReplyItem = Say | HangUp


class ReplySink(Protocol):
    """Takes a turn's reply as it arises. Called on the event loop; must not block."""

    def emit(self, item: ReplyItem) -> None: ...


@runtime_checkable
class EndingSink(ReplySink, Protocol):
    """The sink of a live call: what ends the call has a point of no return, and only the call knows when it is passed.

    For every other sink a `HangUp` is final as it is emitted.
    """

    @property
    def can_transfer(self) -> bool:
        """Whether the caller's wire can put them through to somebody else."""
        ...

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Put the caller through once everything said so far has been heard; return what came of it.

        Until then the caller can object. From then on nothing rolls it back; the caller hears a ringing tone.

        Raises:
            TurnCancelled: The caller objected or has gone; nothing was, or is any more, transferred.
        """
        ...

    @property
    def can_send_digits(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        ...

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys once everything said so far has been heard; return when that is done.

        Until then the other side's words come first. From the first key on all are pressed.

        Args:
            digits: As `voice_agent.digits.read_digits` returns them.

        Raises:
            TurnCancelled: The other side spoke before the first key, or has gone.
        """
        ...


class Heard(Enum):
    FULLY = "fully"
    PARTLY = "partly"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class HeardReply:
    """What the caller heard of one turn's reply, cut at a word.

    Attributes:
        heard: The text that was played, as written in ``Say.text``.
        unheard: The rest.
        context: What a model is to know of it, where that is more than was heard.
    """

    heard: str
    unheard: str = ""
    context: str | None = None

    @property
    def extent(self) -> Heard:
        if self.unheard.strip():
            return Heard.PARTLY if self.heard.strip() else Heard.NOT
        return Heard.FULLY


class TurnStatus(Enum):
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. ``error`` is for the operator; the caller got the configured line."""

    turn_id: str
    status: TurnStatus
    error: str | None = None
    model_calls: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    """Loop-time instants for the timeline: ``model_request``, ``first_token``."""
    limit_hit: str | None = None
    """The limit of its workflow that the turn has reached: ``iterations``, ``procedures`` or ``repeats``."""


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """What would answer the question that the caller was asked last.

    Attributes:
        kind: ``digits`` are said one by one (an account number), a ``number`` is a quantity.
        length: How many digits, where the project says so.
        choices: What may be chosen from, as declared.
    """

    kind: Literal["digits", "number", "date", "yes_no", "choice", "text"]
    length: int | None = None
    choices: tuple[str, ...] = ()


@runtime_checkable
class Speculating(Protocol):
    """A conversation whose model may begin on words that are not certain yet."""

    @property
    def speculations_per_utterance(self) -> int:
        """How often it may, for one utterance; 0 where nothing is gained by it."""
        ...

    async def speculate(
        self, user: UserInput, *, can_transfer: bool, can_send_digits: bool = False, cancel: CancelToken
    ) -> None:
        """Make the first model call of a turn with ``user``, if that is certain to be the first thing such a turn does.

        Read-only: no tool runs, nothing is recorded, written or said. Returns when the model has answered, or
        ``cancel`` came. The turn takes it over if its first request is the same.
        """
        ...


class Conversation(Protocol):
    """The dialogue as a call sees it. One turn at a time; a call never runs two in parallel."""

    @property
    def id(self) -> str: ...

    @property
    def expected(self) -> ExpectedAnswer | None:
        """What would answer the open question; None while none of a known kind is open. Cheap: read at each pause."""
        ...

    def line(self, name: str, nth: int = 0) -> str:
        """Return the configured wording of one of the service's own lines, such as ``utter_could_not_hear``.

        Args:
            nth: Which of several wordings that fit, round and round.
        """
        ...

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        """Run one turn. Returns when everything is decided; the reply may still be playing.

        Waits (never fails) while an earlier turn of this conversation is in its grace window.
        Never raises for faults of tools, models or skills: those end as ``TurnStatus.ERROR``
        after the configured apology was emitted. A cancelled turn returns ``CANCELLED``.
        """
        ...

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        """Record, once per turn, what was heard of its reply. Later calls for the turn do nothing.

        Must be called before the next turn starts, so that the order is reply, then caller.
        A reply of which nothing was heard leaves no message in the model's history.
        """
        ...

    def note(self, kind: str, **data: Any) -> None:
        """Record something that happened beside the turns (a backchannel, a disconnect)."""
        ...

    async def close(self, outcome: str) -> None:
        """The call is over: expire what must not survive, flush the store. Idempotent."""
        ...
