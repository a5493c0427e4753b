"""A scripted `Conversation` for text: says its pieces with pauses, and records what became of them."""

from __future__ import annotations

import asyncio
from typing import Any

from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled, race
from voice_agent.dialogue.reply import HangUp, HeardReply, ReplySink, Say, TurnResult, TurnStatus, UserInput


class TextConversation:
    """Answers each turn with ``pieces``, one every ``pause_s``; ``bye`` hangs up."""

    def __init__(self, id: str, pieces: tuple[str, ...] = ("Hello ", "there."), pause_s: float = 1.0) -> None:
        self.id = id
        self.pieces, self.pause_s = pieces, pause_s
        self.turns: list[UserInput] = []
        self.replies: list[HeardReply] = []
        self.results: list[TurnStatus] = []
        self.closed: list[str] = []
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.running = 0

    def line(self, name: str, nth: int = 0) -> str:
        return name

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        self.running += 1
        assert self.running == 1, "two turns of one conversation ran at once"
        assert len(self.replies) == len(self.turns), "the reply before was not committed"
        self.turns.append(user)
        try:
            await race(self._say(sink), cancel, name="text-conversation")
            status = TurnStatus.COMPLETED
        except TurnCancelled:
            status = TurnStatus.CANCELLED
        finally:
            self.running -= 1
        if user.text == "bye":
            sink.emit(HangUp("completed"))
        self.results.append(status)
        return TurnResult(turn_id, status)

    async def _say(self, sink: ReplySink) -> None:
        for number, piece in enumerate(self.pieces, 1):
            await asyncio.sleep(self.pause_s)
            sink.emit(Say(0, piece, end=number == len(self.pieces)))

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        self.replies.append(reply)

    def note(self, kind: str, **data: Any) -> None:
        assert len(self.replies) < len(self.turns), "what is noted after the reply is stored with the next turn only"
        self.notes.append((kind, data))

    async def close(self, outcome: str) -> None:
        self.closed.append(outcome)
