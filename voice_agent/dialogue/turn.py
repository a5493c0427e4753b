"""One turn in progress: its input, its reply so far, and what it has used of its limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import HangUp, InputKind, ReplySink, Say, UserInput
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.stepper import Budget
from voice_agent.llm.protocol import Message, ToolCall

MAX_IDENTICAL_CALLS = 3
"""The same tool with the same arguments this often within a turn ends the turn."""
MAX_RESULT_CHARS = 8000
"""A tool result is cut here for the prompt; the tracker keeps it whole."""


class ReplyWriter:
    """Numbers messages, emits their pieces, and remembers what was said. Silent once the turn is cancelled."""

    def __init__(self, sink: ReplySink, cancel: CancelToken) -> None:
        self._sink, self._cancel = sink, cancel
        self._message = 0
        self._open: list[str] = []
        self._open_source: Literal["response", "model"] = "model"
        self.said: list[str] = []
        self.first_text_at: float | None = None

    def _emit(self, item: Say | HangUp) -> None:
        if not self._cancel.is_cancelled:
            self._sink.emit(item)

    def _mark(self) -> None:
        if self.first_text_at is None:
            self.first_text_at = asyncio.get_running_loop().time()

    def deliver(self, wording: Wording) -> None:
        """Say a whole configured message."""
        self.end()
        if not wording.text:
            return
        self._mark()
        say = Say(self._message, wording.text, True, "response", wording.name, wording.interruptible)
        self._emit(say)
        self.said.append(wording.text)
        self._message += 1

    def delta(self, text: str) -> None:
        """Say the next piece of a generated message."""
        if not text or (not self._open and not text.strip()):
            return
        self._mark()
        self._open.append(text)
        self._emit(Say(self._message, text))

    def end(self) -> None:
        """Close the generated message, if one is open."""
        if self._open:
            self._emit(Say(self._message, "", True))
            self.said.append("".join(self._open).strip())
            self._open.clear()
            self._message += 1

    def hang_up(self, reason: str) -> None:
        self.end()
        self._emit(HangUp(reason))

    @property
    def is_question(self) -> bool:
        """The last thing said asks something."""
        return bool(self.said) and self.said[-1].rstrip("\"')* ").endswith("?")

    @property
    def text(self) -> str:
        return " ".join([*self.said, *(["".join(self._open).strip()] if self._open else [])])


@dataclass(slots=True)
class Turn:
    """One run of the runtime loop.

    Attributes:
        number: Counts turns of the conversation from 1.
        answer_due: The caller said, or a tool found, something that nothing has answered yet.
        considered: The caller's words have been used: by a model call, or by a listen step that
            waited for them. Until then, wording that a block says on its own answers nothing.
        fill_due: A skill was started by what the caller said, and may find field values in it.
        searched: `search_knowledge` has run in this turn.
        scratch: Messages of this turn for the prompt, after the caller's words.
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
    searched: bool = False
    scratch: list[Message] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    model_calls: int = 0
    empty_replies: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    _calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def utterance(self) -> str:
        """The caller's words; empty for a shell's own message."""
        return "" if self.user.kind is InputKind.INTENT else self.user.text

    def note_tool(self, name: str, arguments: str, result: str) -> None:
        """Add a tool run to what the model sees of this turn."""
        call = ToolCall(f"call_{len(self.scratch)}", name, arguments)
        self.scratch.append(Message("assistant", tool_calls=(call,)))
        self.scratch.append(Message("tool", cut(result), tool_call_id=call.id, name=name))

    def is_repeat(self, name: str, arguments: str) -> bool:
        """Count a tool call; True when the same one has now been made too often."""
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.dumps(json.loads(arguments), sort_keys=True)
        self._calls[name, arguments] += 1
        return self._calls[name, arguments] >= MAX_IDENTICAL_CALLS


def cut(text: str, limit: int = MAX_RESULT_CHARS) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} characters left out]"
