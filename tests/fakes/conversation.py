"""A conversation that follows a script: one small async function per turn, and a log of everything in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled, race
from voice_agent.dialogue.reply import (
    EndingSink,
    ExpectedAnswer,
    HangUp,
    HeardReply,
    ReplySink,
    Say,
    TurnResult,
    TurnStatus,
    UserInput,
)
from voice_agent.transfers import TransferTarget


@dataclass
class Speaker:
    """What a scripted turn can do."""

    user: UserInput
    turn_id: str
    sink: ReplySink
    cancel: CancelToken
    log: list[tuple[str, Any]]
    ended: list[str] = field(default_factory=list)
    message: int = 0

    def say(self, text: str, *, source: str = "response", **delivery: Any) -> None:
        """Say one whole message; ``delivery`` as in `Say`."""
        self.sink.emit(Say(self.message, text, end=True, source=source, **delivery))  # type: ignore[arg-type]
        self.message += 1

    async def stream(self, text: str, seconds_per_word: float = 0.02) -> None:
        """Say one message word by word, as a model does; stops when the turn is cancelled."""
        words = text.split(" ")
        for index, word in enumerate(words):
            await self.wait(seconds_per_word)
            self.sink.emit(Say(self.message, word + (" " if index < len(words) - 1 else ""), source="model"))
        self.sink.emit(Say(self.message, "", end=True, source="model"))
        self.message += 1

    async def wait(self, seconds: float) -> None:
        """Wait as a model does: the token wins at once."""
        await race(asyncio.sleep(seconds), self.cancel, name="script", grace_s=0.1)

    async def tool(self, name: str, seconds: float, *, interruptible: bool = True) -> None:
        """Run a tool with a side effect at its end."""
        self.log.append(("tool_started", name))

        async def work() -> None:
            await asyncio.sleep(seconds)
            self.log.append(("tool_done", name))

        try:
            await race(work(), self.cancel, name="tool", grace_s=0.5, interruptible=interruptible)
        except TurnCancelled:
            self.log.append(("tool_cancelled", name))
            raise

    def hang_up(self, reason: str = "completed") -> None:
        self.sink.emit(HangUp(reason, lambda: self.ended.append(reason)))

    async def transfer(self, name: str, timeout_s: float = 30.0) -> bool:
        """Put the caller through; return whether they are gone."""
        assert isinstance(self.sink, EndingSink)
        result = await self.sink.transfer(TransferTarget(name, "+15550100", timeout_s=timeout_s))
        self.log.append(("transfer", f"{name} {result.reason.value}"))
        return result.completed

    async def press(self, digits: str) -> bool:
        """Press keys; return whether they were pressed."""
        assert isinstance(self.sink, EndingSink)
        result = await self.sink.send_digits(digits)
        self.log.append(("press", f"{digits} {result.reason.value}"))
        return result.sent


Script = Callable[[Speaker], Awaitable[None]]


def says(text: str, **options: Any) -> Script:
    """A turn that says one canned message."""

    async def turn(speaker: Speaker) -> None:
        speaker.say(text, **options)

    return turn


BOOKKEEPING = ("call_started", "turn_timeline", "call_ended")


class ScriptedConversation:
    """Implements `Conversation`.

    Args:
        turns: One script per turn in order; the last one repeats. ``/silence`` has its own.
        lines: The service's own lines.

    Attributes:
        expected: What would answer the open question.
        resumed: The caller comes back to what they were in the middle of: no greeting.
        log: ``("turn", text)``, ``("commit", heard)``, ``("note", kind)``, ``("close", outcome)`` and what
            the scripts add, in the order it happened.
        ended: Reasons of hang-ups that nothing could keep any more: what a tracker would hold as done.
        replies: Every committed reply by turn id, in order.
        statuses: How each turn ended.
        records: What the call noted of itself: its beginning, the times of its turns, its end.
        parallel: Most turns that ran at once; must never exceed 1.
    """

    def __init__(
        self,
        *turns: Script,
        silence: Script | None = None,
        lines: dict[str, str] | None = None,
        close_s: float = 0.0,
        id: str = "conversation",
    ) -> None:
        self._turns, self._silence = list(turns), silence
        self._lines = {"utter_could_not_hear": "Sorry, I could not hear you."} if lines is None else lines
        self._close_s = close_s
        self.id = id
        self.expected: ExpectedAnswer | None = None
        self.log: list[tuple[str, Any]] = []
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.ended: list[str] = []
        self.replies: list[tuple[str, HeardReply]] = []
        self.statuses: list[TurnStatus] = []
        self.inputs: list[UserInput] = []
        self.cancelled_with: list[Any] = []
        self.parallel = self._running = 0
        self.closed: list[str] = []
        self.resumed = False

    def line(self, name: str, nth: int = 0) -> str:
        wordings = self._lines.get(name, "").split("|")
        return wordings[nth % len(wordings)]

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        self._running += 1
        self.parallel = max(self.parallel, self._running)
        self.inputs.append(user)
        self.log.append(("turn", user.text))
        status = TurnStatus.COMPLETED
        try:
            await self._script(user)(Speaker(user, turn_id, sink, cancel, self.log, self.ended))
        except TurnCancelled as cancelled:
            status = TurnStatus.CANCELLED
            self.cancelled_with.append(cancelled.reason)
        finally:
            self._running -= 1
        self.statuses.append(status)
        return TurnResult(turn_id, status)

    def _script(self, user: UserInput) -> Script:
        if user.text == "/silence":
            return self._silence or says("Are you there?")
        if user.text == "/session_start" and self.resumed:
            return says("")
        silent = ("/silence", "/session_start") if self.resumed else ("/silence",)
        count = sum(1 for i in self.inputs if i.text not in silent)
        return self._turns[min(count, len(self._turns)) - 1]

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        self.log.append(("commit", reply.heard))
        self.replies.append((turn_id, reply))

    def note(self, kind: str, **data: Any) -> None:
        # What the call writes down of itself is no part of the story that scripts tell.
        if kind in BOOKKEEPING:
            self.records.append((kind, data))
        else:
            self.log.append(("note", kind))

    async def close(self, outcome: str) -> None:
        self.closed.append(outcome)
        self.log.append(("close", outcome))
        await asyncio.sleep(self._close_s)

    def heard(self) -> list[str]:
        """What was heard of each reply, in order."""
        return [reply.heard for _, reply in self.replies]

    def of(self, kind: str) -> list[Any]:
        return [data for name, data in self.log if name == kind]
