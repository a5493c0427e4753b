"""One turn of a call: its id, its cancel token, its ledger, and what it still owes the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.timeline import Timeline
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import SILENCE, HangUp, InputKind, ReplyItem, TurnStatus, UserInput
from voice_agent.digits import NO_DIGITS, DigitsResult
from voice_agent.transfers import NOT_SUPPORTED, TransferResult, TransferTarget


@dataclass(frozen=True, slots=True)
class SpokenOver:
    """Where words fell into a reply that they did not interrupt.

    Attributes:
        ledger: That of the reply.
        at: Its position at their first voice, in samples; before its first sound below 0.
    """

    ledger: PlayoutLedger
    at: int

    @property
    def early(self) -> bool:
        """Whether they fell before its last message; certain once the reply is complete."""
        return self.ledger.precedes_last_message(self.at)


@dataclass(slots=True)
class Entry:
    """Something that wants a turn: the caller's input, or one of the service's own lines.

    Attributes:
        user: What goes to the dialogue; None for a line.
        line: Name of the configured wording that is said without the dialogue.
        hang_up: Reason to hang up with once the line was heard. What the service itself ends stays ended.
        when_quiet: It is not worth speaking over the caller for: dropped if somebody speaks when its turn comes.
        heard: Something of what was said to it was heard.
        timeline: What is known of the turn's beginning.
        may_go_on: The words may be half a sentence.
        reply_from: Loop time before which an answer that a model words does not sound: the caller may go on.
        over: The reply that they were spoken over and that went on.
    """

    user: UserInput | None = None
    line: str | None = None
    hang_up: str | None = None
    when_quiet: bool = False
    heard: bool = False
    timeline: Timeline = field(default_factory=Timeline)
    may_go_on: bool = False
    reply_from: float = 0.0
    over: SpokenOver | None = None

    @property
    def early(self) -> bool:
        """Whether the words fell before what the reply before them asks at its end."""
        return self.over is not None and self.over.early

    @property
    def from_caller(self) -> bool:
        return self.user is not None and self.user.kind is not InputKind.INTENT


PutThrough = Callable[["Turn", TransferTarget], Awaitable[TransferResult]]
Press = Callable[["Turn", str], Awaitable[DigitsResult]]


@dataclass(eq=False)
class Turn:
    """A turn in flight. It is the `EndingSink` of its own reply: what comes after its end is dropped.

    Attributes:
        started: Loop time of the commit that opened it.
        first: Nothing was audible in the call before it: the greeting.
        over: Set when the reply was heard to its end, or the turn was cancelled.
        hang_up: The dialogue wants the call to end after this reply; holds the reason.
        ended: Records that it has ended, once nothing can keep it any more.
        put_through: Transfers the caller; None where the wire cannot.
        press: Presses keys; None where there is no telephone line.
        transferred: The destination that has taken the call over.
        status: How the dialogue's part ended; None while it runs.
        closed: Nothing of this turn may reach the caller any more.
        begun: The dialogue has been asked; before that there is nothing to commit.
        draining: Everything was played here, and the far end still plays.
    """

    id: str
    entry: Entry
    ledger: PlayoutLedger
    take: Callable[[Turn, ReplyItem], None]
    started: float
    first: bool = False
    token: CancelToken = field(default_factory=CancelToken)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    hang_up: str | None = None
    ended: Callable[[], None] | None = None
    put_through: PutThrough | None = None
    press: Press | None = None
    transferred: str | None = None
    closed: bool = False
    begun: bool = False
    draining: bool = False
    status: TurnStatus | None = None

    @property
    def timeline(self) -> Timeline:
        return self.entry.timeline

    @property
    def checks_in(self) -> bool:
        """It asks a silent caller whether they are there: any word is the answer."""
        return self.entry.user == SILENCE

    def emit(self, item: ReplyItem) -> None:
        """Take the next piece of the reply."""
        if self.closed or self.token.is_cancelled:
            return
        if isinstance(item, HangUp):
            self.hang_up, self.ended = item.reason, item.ended
            return
        self.take(self, item)

    @property
    def can_transfer(self) -> bool:
        """Whether the caller can be put through to somebody else."""
        return self.put_through is not None

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Put the caller through once what was said has been heard.

        Raises:
            TurnCancelled: The caller objected in time, or has gone.
        """
        return NOT_SUPPORTED if self.put_through is None else await self.put_through(self, target)

    @property
    def can_send_digits(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        return self.press is not None

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys once what was said has been heard.

        Raises:
            TurnCancelled: The other side spoke before that, or has gone.
        """
        return NO_DIGITS if self.press is None else await self.press(self, digits)
