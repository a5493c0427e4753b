"""One turn in progress: its input, its reply so far, and what it has used of its limits."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.reply import InputKind, UserInput
from voice_agent.dialogue.reply_writer import ReplyWriter
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
