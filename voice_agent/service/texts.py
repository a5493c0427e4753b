"""Conversations without audio: one turn at a time each, cancelled when their client goes.

request 1   ├── turn ──┤ commit
request 2      waits    ├── turn ──x client gone: turn cancelled, delivered text committed
request 3                 waits     ├── turn ──┤
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from voice_agent.channels.desk import CallRefused, Deliver, TextHangUp, TextOutcome, TextPiece
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import (
    Conversation,
    HangUp,
    HeardReply,
    InputKind,
    ReplyItem,
    Say,
    TurnResult,
    UserInput,
)
from voice_agent.service.readiness import Readiness
from voice_agent.telemetry.logging import bind

log = logging.getLogger(__name__)

MAX_OPEN = 1000
"""Conversations kept open at once; the one idle for longest is closed for a new one."""
IDLE_S = 1800.0
"""An open conversation without a turn for this long is closed; its id opens it again."""
MAX_TURNS = 8
"""Turns of one conversation that may run and wait."""
CLOSE_S = 5.0
"""Limit on closing a conversation; its own limits lie within."""
CANCEL_S = 3.0
"""Limit on the end of a turn whose client is gone; the turn's own grace windows lie within."""

Open = Callable[[str, str], Conversation]
"""``open(conversation_id, channel)``."""


@dataclass(eq=False)
class _Entry:
    conversation: Conversation
    used_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    turns: int = 0
    """Turns that run or wait."""

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Wait for the turns that came before."""
        if self.turns >= MAX_TURNS:
            raise CallRefused("too_many_turns", "Too many messages of this conversation wait already.")
        self.turns += 1
        try:
            async with self.lock:
                yield
        finally:
            self.turns -= 1
            self.used_at = asyncio.get_running_loop().time()


class TextConversations:
    """Implements `voice_agent.channels.desk.TextDesk`.

    Args:
        is_on_call: Whether a call holds this conversation; text then stays out of it.
        enabled: The project answers text.
    """

    def __init__(
        self,
        open_conversation: Open,
        readiness: Readiness,
        is_on_call: Callable[[str], bool],
        *,
        enabled: bool = True,
    ) -> None:
        self._open, self._readiness, self._is_on_call = open_conversation, readiness, is_on_call
        self._enabled = enabled
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def turn(
        self, conversation_id: str, text: str, deliver: Deliver, *, intent: bool = False, channel: str = "text"
    ) -> TextOutcome:
        self._check(conversation_id)
        user = UserInput(text, InputKind.INTENT if intent else InputKind.TEXT)
        with bind(conversation=conversation_id):
            while True:
                entry = await self._entry(conversation_id, channel)
                async with entry.waiting():
                    # The turn before this one may have ended the conversation: then open it anew.
                    if self._entries.get(conversation_id) is not entry:
                        continue
                    turn = _TextTurn(entry.conversation, deliver)
                    result = await turn.run(user)
                    if turn.hung_up:
                        await self._close(conversation_id, "completed")
                    return TextOutcome(result.turn_id, result.status.value)

    async def release(self, conversation_id: str) -> None:
        """Let go of a conversation that goes on as a call.

        Raises:
            CallRefused: A text turn of it runs right now.
        """
        entry = self._entries.get(conversation_id)
        if entry and entry.turns:
            raise CallRefused("conversation_busy", "This conversation is in the middle of a text turn.")
        await self._close(conversation_id, "disconnected")

    async def close_idle(self) -> None:
        """Close conversations that nobody has used for `IDLE_S`."""
        long_ago = asyncio.get_running_loop().time() - IDLE_S
        for conversation_id in [c for c, e in self._entries.items() if not e.turns and e.used_at < long_ago]:
            await self._close(conversation_id, "disconnected")

    async def aclose(self) -> None:
        """Close every conversation, all at once: within `CLOSE_S`, however many there are."""
        async with asyncio.TaskGroup() as group:
            for conversation_id in list(self._entries):
                group.create_task(self._close(conversation_id, "shutdown"), name="text.close")

    def _check(self, conversation_id: str) -> None:
        if not self._enabled:
            raise CallRefused("channel_off", "This channel is switched off.", retry=False)
        if not self._readiness.is_ready:
            raise CallRefused("not_ready", f"Not ready: {', '.join(self._readiness.missing)}.")
        if self._is_on_call(conversation_id):
            raise CallRefused("conversation_busy", "This conversation is on a call.", retry=False)

    async def _entry(self, conversation_id: str, channel: str) -> _Entry:
        if entry := self._entries.get(conversation_id):
            return entry
        if len(self._entries) >= MAX_OPEN:
            await self._make_room()
        now = asyncio.get_running_loop().time()
        return self._entries.setdefault(conversation_id, _Entry(self._open(conversation_id, channel), now))

    async def _make_room(self) -> None:
        idle = [(entry.used_at, name) for name, entry in self._entries.items() if not entry.turns]
        if not idle:
            raise CallRefused("full", "Too many conversations are open.")
        await self._close(min(idle)[1], "disconnected")

    async def _close(self, conversation_id: str, outcome: str) -> None:
        entry = self._entries.pop(conversation_id, None)
        if entry is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await entry.conversation.close(outcome)
        except Exception:
            # One conversation's fault must end neither the service nor the conversation that needs its place.
            log.exception("a conversation could not be closed")


class _TextTurn:
    """One turn: hands its items to the client as they arise, and commits what was handed over."""

    def __init__(self, conversation: Conversation, deliver: Deliver) -> None:
        self._conversation, self._deliver = conversation, deliver
        self._items: asyncio.Queue[ReplyItem | None] = asyncio.Queue()
        self._delivered: list[Say] = []
        self._undelivered: list[Say] = []
        self._times: dict[str, float] = {}
        """Instants of the loop's clock, named as those of a call."""
        self.hung_up = False

    def emit(self, item: ReplyItem) -> None:
        """`ReplySink`."""
        self._items.put_nowait(item)

    async def run(self, user: UserInput) -> TurnResult:
        turn_id, cancel = uuid.uuid4().hex[:12], CancelToken()
        began = asyncio.get_running_loop().time()
        with bind(turn=turn_id):
            try:
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(self._work(user, turn_id, cancel), name="text.turn")
                    try:
                        await self._hand_over()
                    except BaseException:
                        # The client is gone. The turn ends by its own token, so that it ends as cancelled.
                        cancel.cancel(CancelReason.DISCONNECTED)
                        await asyncio.wait({work}, timeout=CANCEL_S)
                        raise
            except ExceptionGroup as faults:
                raise faults.exceptions[0] from None
            finally:
                try:
                    self._note_times(turn_id, began)
                finally:
                    self._commit(turn_id)
        return work.result()

    def _note_times(self, turn_id: str, began: float) -> None:
        """Record where the time went, in seconds since the words came; nothing of a turn in which nothing happened."""
        if self._times:
            times = {**self._times, "endpoint": began, "teardown": asyncio.get_running_loop().time()}
            since = {name: round(instant - began, 4) for name, instant in times.items()}
            self._conversation.note("turn_timeline", turn_id=turn_id, **dict(sorted(since.items(), key=lambda t: t[1])))

    async def _work(self, user: UserInput, turn_id: str, cancel: CancelToken) -> TurnResult:
        try:
            result = await self._conversation.turn(user, turn_id=turn_id, sink=self, cancel=cancel)
            self._times.update(result.marks)
            return result
        finally:
            self._items.put_nowait(None)

    async def _hand_over(self) -> None:
        while (item := await self._items.get()) is not None:
            if isinstance(item, HangUp):
                self.hung_up = True
                await self._deliver(TextHangUp(item.reason))
                continue
            self._undelivered.append(item)
            await self._deliver(TextPiece(item.message, item.text, item.end))
            self._delivered.append(self._undelivered.pop())
            if item.text:
                self._times["last_text"] = asyncio.get_running_loop().time()
                self._times.setdefault("first_text", self._times["last_text"])

    def _commit(self, turn_id: str) -> None:
        while not self._items.empty():
            item = self._items.get_nowait()
            if item is not None and not isinstance(item, HangUp):
                self._undelivered.append(item)
        self._conversation.commit_reply(turn_id, HeardReply(_joined(self._delivered), _joined(self._undelivered)))


def _joined(pieces: list[Say]) -> str:
    """Return pieces as they are recorded: messages are kept apart by a space."""
    return "".join(f"{piece.text} " if piece.end and piece is not pieces[-1] else piece.text for piece in pieces)
