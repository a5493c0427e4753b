"""One turn in progress: its input, its reply so far, and what it has used of its limits."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.reply import EndingSink, HangUp, InputKind, ReplySink, Say, UserInput
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.stepper import Budget
from voice_agent.digits import NO_DIGITS, DigitsResult
from voice_agent.llm.protocol import Message, ToolCall
from voice_agent.recall.entries import Found
from voice_agent.transfers import NOT_SUPPORTED, TransferResult, TransferTarget

if TYPE_CHECKING:
    from voice_agent.dialogue.recalling import Recollection

MAX_IDENTICAL_CALLS = 3
"""The same tool with the same arguments this often within a turn ends the turn."""
MAX_RESULT_CHARS = 8000
"""A tool result is cut here for the prompt; the tracker keeps it whole."""


class ReplyWriter:
    """Numbers messages, emits their pieces, and remembers what was said. Silent once the turn is cancelled.

    A message that something still has to look at (`Speaker`: hooks, rewording) becomes a draft, and so
    does everything after it, so that the order stays; `flush` sends them off.
    """

    def __init__(self, sink: ReplySink, cancel: CancelToken) -> None:
        self._sink, self._cancel = sink, cancel
        self._message = 0
        self._open: list[str] = []
        self._drafts: list[tuple[int, Wording] | Callable[[], None]] = []
        self._too_late: list[Wording] = []
        self.needs_finishing: Callable[[Wording], bool] = lambda wording: False
        self.on_spoken: Callable[[Wording], None] | None = None
        self.said: list[str] = []
        self.configured: list[str] = []

    def _emit(self, item: Say | HangUp) -> None:
        if not self._cancel.is_cancelled:
            self._sink.emit(item)

    def deliver(self, wording: Wording) -> None:
        """Say a whole message."""
        self.end()
        if not wording.text:
            return
        if self._cancel.is_cancelled:
            self._too_late.append(wording)
            return
        self.said.append(wording.text)
        if wording.template:
            self.configured.append(wording.template)
        if self._drafts or self.needs_finishing(wording):
            self._drafts.append((len(self.said) - 1, wording))
        else:
            self._say(wording)

    def _say(self, wording: Wording) -> None:
        source: Literal["response", "model"] = "response" if wording.name else "model"
        say = Say(
            self._message,
            wording.text,
            True,
            source,
            wording.name or None,
            wording.interruptible,
            wording.while_uninterruptible,
            wording.record,
        )
        self._emit(say)
        self._message += 1
        if self.on_spoken is not None:
            self.on_spoken(wording)

    @property
    def owed(self) -> list[Wording]:
        """Wording that is to be known whole, and that the turn was cancelled before it could say."""
        waiting = [draft[1] for draft in self._drafts if isinstance(draft, tuple)]
        return [wording for wording in (*waiting, *self._too_late) if wording.record == "full"]

    @property
    def has_drafts(self) -> bool:
        return bool(self._drafts)

    async def flush(self, finish: Callable[[Wording], Awaitable[Wording]]) -> None:
        """Send off the drafts, each after ``finish`` has looked at it; one that comes back empty is not said.

        Raises:
            TurnCancelled: From ``finish``; the rest stays unsaid.
        """
        while self._drafts:
            draft = self._drafts[0]
            if callable(draft):
                draft()
            else:
                index, wording = draft
                wording = await finish(wording)
                self.said[index] = wording.text
                if wording.text:
                    self._say(wording)
            self._drafts.pop(0)

    def delta(self, text: str) -> None:
        """Say the next piece of a generated message."""
        if not text or (not self._open and not text.strip()):
            return
        self._open.append(text)
        self._emit(Say(self._message, text))

    def end(self) -> None:
        """Close the generated message, if one is open."""
        if self._open:
            self._emit(Say(self._message, "", True))
            text = "".join(self._open).strip()
            self.said.append(text)
            self._open.clear()
            self._message += 1
            if self.on_spoken is not None:
                self.on_spoken(Wording("", text))

    def hang_up(self, reason: str, ended: Callable[[], None]) -> None:
        """Ask for the end of the call after everything said before; ``ended`` is called when it is certain."""
        self.end()

        def send() -> None:
            if isinstance(self._sink, EndingSink):
                self._emit(HangUp(reason, ended))
            else:
                self._emit(HangUp(reason))
                ended()

        if self._drafts:
            self._drafts.append(send)
        else:
            send()

    @property
    def can_transfer(self) -> bool:
        """Whether the caller can be put through to somebody else."""
        return isinstance(self._sink, EndingSink) and self._sink.can_transfer

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Put the caller through after everything said before; see `EndingSink`. There must be no drafts.

        Raises:
            TurnCancelled: The caller objected in time, or has gone.
        """
        self.end()
        self._cancel.check()
        return await self._sink.transfer(target) if isinstance(self._sink, EndingSink) else NOT_SUPPORTED

    @property
    def can_send_digits(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        return isinstance(self._sink, EndingSink) and self._sink.can_send_digits

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys after everything said before; see `EndingSink`. There must be no drafts.

        Raises:
            TurnCancelled: The other side spoke in time, or has gone.
        """
        self.end()
        self._cancel.check()
        return await self._sink.send_digits(digits) if isinstance(self._sink, EndingSink) else NO_DIGITS

    @property
    def is_question(self) -> bool:
        """The last thing said asks something."""
        return bool(self.said) and self.said[-1].rstrip("\"')* ").endswith("?")


@dataclass(slots=True)
class Turn:
    """One run of the runtime loop.

    Attributes:
        number: Counts turns of the conversation from 1.
        answer_due: The caller said, or a tool found, something that nothing has answered yet.
        considered: The caller's words have been used: by a model call, or by a listen step that
            waited for them. Until then, wording that a block says on its own answers nothing.
        fill_due: A skill was started by what the caller said, and may find field values in it.
        silent: Nothing is to be said: the model called `listen` and nothing else, or pressed keys.
        searched: `search_knowledge` has run in this turn.
        prepared: Tools that steps of this turn have run, as messages; they stand before the caller's words.
        scratch: Messages of this turn for the prompt, after the caller's words.
        correction: What a hook had against the model's last reply.
        procedure_limit: Tools the model may still be given the run of in this turn; None for any number.
        procedures: Tools that the model has had run.
        refused_procedures: Calls beyond that limit, which were not made.
        limit_hit: Which limit of its workflow the turn has reached.
        said_unreachable: The caller was told that what they need cannot be reached at present.
        carried: What led to a held call, as (turn in which it was held, its messages).
        results: What the tools that ran came to, by skill, activation, step and arguments.
        results_before: The same of the turn that this one goes on with: what ran there is not run again.
        made_good: Responses said in it that the turn before was cancelled before it could say.
        recollection: What is being recalled for it, beside its other work.
        recalled: What was, once it is there.
        fitting: Names of tools and skills, those that fit the caller's words best first; empty where not asked.
        error: Why the turn failed, for the operator.
    """

    id: str
    number: int
    user: UserInput
    reply: ReplyWriter
    cancel: CancelToken
    answer_due: bool = False
    considered: bool = False
    fill_due: bool = False
    silent: bool = False
    searched: bool = False
    prepared: list[Message] = field(default_factory=list)
    scratch: list[Message] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    model_calls: int = 0
    empty_replies: int = 0
    retries: int = 0
    correction: str = ""
    procedure_limit: int | None = None
    procedures: int = 0
    refused_procedures: int = 0
    limit_hit: str | None = None
    said_unreachable: bool = False
    carried: tuple[str, tuple[Message, ...]] | None = None
    results: dict[str, Outcome] = field(default_factory=dict)
    results_before: dict[str, Outcome] = field(default_factory=dict)
    made_good: list[str] = field(default_factory=list)
    recollection: Recollection | None = None
    recalled: tuple[Found, ...] = ()
    fitting: tuple[str, ...] = ()
    marks: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    _calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def utterance(self) -> str:
        """The caller's words; empty for a shell's own message."""
        return "" if self.user.kind is InputKind.INTENT else self.user.text

    @property
    def has_said(self) -> bool:
        """Something of its own was said in it, beside what the turn before still owed."""
        return len(self.reply.said) > len(self.made_good)

    @property
    def is_owed_words(self) -> bool:
        """The caller has spoken and nothing has been said to it, nor decided that nothing is to be."""
        return bool(self.utterance) and not self.has_said and not self.silent

    def note_tool(self, name: str, arguments: str, result: str) -> None:
        """Let the model see, beside the caller's words, a tool that a step of this turn has run."""
        if self.user.kind is InputKind.INTENT:
            # What the engine prepares by itself ends up in memory; the model has not asked for it.
            return
        call = ToolCall(f"call_s{len(self.prepared)}", name, arguments)
        self.prepared.append(Message("assistant", tool_calls=(call,)))
        self.prepared.append(Message("tool", cut(result), tool_call_id=call.id, name=name))

    @property
    def may_run_tools(self) -> bool:
        """The workflow's limit on tools is not reached."""
        return self.procedure_limit is None or self.procedures < self.procedure_limit

    def note_limit(self, limit: str, events: EventLog) -> None:
        """Record that a limit was reached, for whoever looks at why the turn ended as it did."""
        self.limit_hit = limit
        events.append("limit_hit", {"limit": limit, "model_calls": self.model_calls, "tools": self.procedures})

    def is_repeat(self, name: str, arguments: str) -> bool:
        """Count a tool call; True when the same one has now been made too often."""
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.dumps(json.loads(arguments), sort_keys=True)
        self._calls[name, arguments] += 1
        return self._calls[name, arguments] >= MAX_IDENTICAL_CALLS


class _Nowhere:
    """An `EndingSink` of a reply that nobody is to hear."""

    def __init__(self, can_transfer: bool, can_send_digits: bool) -> None:
        self.can_transfer, self.can_send_digits = can_transfer, can_send_digits

    def emit(self, item: object) -> None:
        pass

    async def transfer(self, target: TransferTarget) -> TransferResult:
        return NOT_SUPPORTED

    async def send_digits(self, digits: str) -> DigitsResult:
        return NO_DIGITS


def unheard_turn(user: UserInput, number: int, *, can_transfer: bool = False, can_send_digits: bool = False) -> Turn:
    """Return a turn that says nothing to anybody, to look at what one would be given."""
    cancel = CancelToken()
    return Turn("preview", number, user, ReplyWriter(_Nowhere(can_transfer, can_send_digits), cancel), cancel)


def cut(text: str, limit: int = MAX_RESULT_CHARS) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} characters left out]"
