"""What waits for its turn: the caller's inputs first, then the service's own lines."""

from __future__ import annotations

import asyncio
from collections import deque

from voice_agent.call.turn import Entry
from voice_agent.dialogue.reply import UserInput

MAX_WAITING = 8
MAX_CHARACTERS = 4000
"""Longest input of one turn, typed or joined."""


class Inbox:
    """A bounded queue of entries. Inputs of one kind that wait together become one turn, so that a caller
    who goes on while the agent is busy gets one answer to everything, not an old answer and a new one."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=MAX_WAITING)
        self._arrived = asyncio.Event()
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def awaits_answer(self) -> bool:
        """Whether the caller said, typed or keyed something that waits for its turn."""
        return any(entry.from_caller for entry in self._entries)

    def add(self, entry: Entry) -> None:
        """Put an entry last. The caller's input displaces lines and intents that nobody needs any more."""
        if self._closed:
            return
        if entry.from_caller:
            kept = [e for e in self._entries if e.from_caller or e.hang_up is not None]
            self._entries = deque(kept, maxlen=MAX_WAITING)
            if self._entries and _join(self._entries[-1], entry):
                return
        self._entries.append(entry)
        self._arrived.set()

    def clear(self) -> None:
        """Forget what waits."""
        self._entries.clear()

    def close(self) -> None:
        """Forget what waits, and take nothing more."""
        self._closed = True
        self._entries.clear()

    async def next(self) -> Entry:
        """Wait for the next entry and take it."""
        while not self._entries:
            self._arrived.clear()
            await self._arrived.wait()
        return self._entries.popleft()


def _join(waiting: Entry, entry: Entry) -> bool:
    if waiting.user is None or entry.user is None or waiting.user.kind is not entry.user.kind:
        return False
    if waiting.early is not entry.early:
        # What answers a question is not put together with what was said before it.
        return False
    text = f"{waiting.user.text} {entry.user.text}"[:MAX_CHARACTERS]
    waiting.user = UserInput(text, waiting.user.kind)
    entry.timeline.speech_start = waiting.timeline.speech_start or entry.timeline.speech_start
    waiting.timeline = entry.timeline
    waiting.reply_from, waiting.may_go_on = entry.reply_from, entry.may_go_on
    return True
