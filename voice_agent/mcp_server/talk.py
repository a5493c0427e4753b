"""One client's conversation: what it says, what the agent answers, and the tools that are open in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallRefused, TextHangUp, TextItem, TextPiece
from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, stop
from voice_agent.dialogue.direct_tools import DirectTool
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.reply import SESSION_START
from voice_agent.service.text_agent import TextAgent

T = TypeVar("T")

CHANNEL = "text"
MAX_TEXT_CHARS = 16_000
CANCEL_S = 5.0
"""How long a cancelled turn or tool may take to end; its own grace windows lie within."""


class Refused(Exception):
    """What the client asked for makes no sense. The message is fit for it to read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent said.

    Attributes:
        ended: It has ended the conversation; the next words begin a new one.
    """

    reply: str
    conversation_id: str
    ended: bool


class ClientConversation:
    """What one client says and runs. Its tools' gates read the memory of its own conversation and of no other."""

    def __init__(self, agent: TextAgent, conversation_id: str | None = None) -> None:
        self._agent = agent
        self.id = conversation_id or identifiers.new_conversation_id()

    def tools(self) -> Mapping[str, DirectTool]:
        """Return the tools that are open now, by name."""
        return self._agent.versions.open(self.id, channel=CHANNEL).direct_tools()

    async def talk(self, text: str, conversation_id: str | None = None) -> Answer:
        """Say something and return the whole reply. Cancelled, it cancels the turn.

        Raises:
            Refused: Nothing was said, too much, or in a conversation that cannot be.
        """
        if not text.strip():
            raise Refused("`text` is empty.")
        if len(text) > MAX_TEXT_CHARS:
            raise Refused(f"`text` has {len(text)} characters; at most {MAX_TEXT_CHARS}.")
        if conversation_id is not None and conversation_id != self.id:
            if not identifiers.is_conversation_id(conversation_id):
                raise Refused(f"`conversation_id` must be {identifiers.RULE}.")
            self.id = conversation_id
        return await self._turn(text, intent=False)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Run a tool that is open. A session begins as a caller's does; an expired one opens no gate any more."""
        conversation = self._agent.versions.open(self.id, channel=CHANNEL)
        if conversation.is_expired:
            await self._turn(SESSION_START.text, intent=True)
        cancel = CancelToken()
        try:
            return await _owned(conversation.run_tool(name, arguments, cancel), "tool of an MCP client", cancel)
        except TurnCancelled:
            return Outcome(False, '{"error": "Cancelled."}')

    async def _turn(self, text: str, *, intent: bool) -> Answer:
        messages: dict[int, str] = {}
        ended = False
        conversation_id = self.id

        async def deliver(item: TextItem) -> None:
            nonlocal ended
            if isinstance(item, TextPiece):
                messages[item.message] = messages.get(item.message, "") + item.text
            elif isinstance(item, TextHangUp):
                ended = True

        turn = self._agent.texts.turn(conversation_id, text, deliver, intent=intent, channel=CHANNEL)
        try:
            await _owned(turn, "turn of an MCP client")
        except CallRefused as refusal:
            raise Refused(refusal.message) from None
        reply = "\n".join(message.strip() for message in messages.values() if message.strip())
        return Answer(reply, conversation_id, ended)


async def _owned(work: Awaitable[T], name: str, cancel: CancelToken | None = None) -> T:
    """Await ``work`` in a task of its own: the SDK cancels at every await, and a turn must be able to end in order."""
    import anyio

    task: asyncio.Task[T] = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            if cancel is not None:
                cancel.cancel(CancelReason.DISCONNECTED)
                await asyncio.wait({task}, timeout=CANCEL_S)
            if not task.done():
                await stop(task, name, CANCEL_S)
            elif not task.cancelled():
                task.exception()  # whatever it was, nobody waits for it any more
        raise
