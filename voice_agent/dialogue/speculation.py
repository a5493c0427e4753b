"""A model call made before it is certain that the caller has finished: read-only, bounded, thrown away if it was wrong.

::

    caller      ▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
    words              ├ stable        ├ committed: the turn's first request is the same one
    model                └─ request ── first tokens wait here ─▶ said at once
                                        ▲ speech goes on: the stream is closed, nothing has happened
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from voice_agent.dialogue.blocks import CollectStep, InstructionsStep
from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, race
from voice_agent.dialogue.state import DialogueState, PendingCall
from voice_agent.llm.protocol import LanguageModel, ModelEvent, ModelRequest

CLOSE_S = 0.2
"""How long a stream may take to close."""
MAX_EVENTS = 400
"""Events kept before anybody wants them: more than is said in the half second that this is about."""


class Speculation:
    """One model call, begun early. The task that awaits `run` reads the stream, and closes it."""

    def __init__(self, model: LanguageModel, request: ModelRequest) -> None:
        self._model, self.request = model, request
        self._events: deque[ModelEvent] = deque()
        self._moved, self._room = asyncio.Event(), asyncio.Event()
        self._done = False
        self._fault: Exception | None = None
        self._token = CancelToken()
        self.adopted = False

    @property
    def usable(self) -> bool:
        """Whether a turn may still take it over: it has not failed, and nobody has taken it."""
        return self._fault is None and not self.adopted and not self._token.is_cancelled

    async def run(self, cancel: CancelToken) -> None:
        """Read the stream to its end, or until ``cancel``. Its faults are the taker's, if there is one."""
        forget = cancel.on_cancel(self.drop)
        try:
            await race(self._read(), self._token, name="speculation", grace_s=CLOSE_S)
        except TurnCancelled:
            pass
        finally:
            forget()
            self._done = True
            self._moved.set()

    async def _read(self) -> None:
        try:
            async with aclosing(self._model.stream(self.request)) as stream:
                async for event in stream:
                    while len(self._events) >= MAX_EVENTS:
                        self._room.clear()
                        await self._room.wait()
                    self._events.append(event)
                    self._moved.set()
        except Exception as fault:  # noqa: BLE001 - raised again where the events are wanted
            self._fault = fault

    def drop(self) -> None:
        """Nobody wants it: close the stream."""
        self._token.cancel(CancelReason.SUPERSEDED)

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        """Take it over: yield what has come and what is still to come. Leaving early closes the stream.

        Raises:
            ModelError: As the model's own stream would.
        """
        self.adopted = True
        try:
            while True:
                while self._events:
                    event = self._events.popleft()
                    self._room.set()
                    yield event
                if self._fault is not None:
                    raise self._fault
                if self._done:
                    return
                self._moved.clear()
                await self._moved.wait()
        finally:
            self._token.cancel(CancelReason.SUPERSEDED)


def is_pure(state: DialogueState) -> bool:
    """Return whether a turn of the caller's would come to its first model call without doing anything before it."""
    question, top = state.question, state.top
    if question is not None:
        return not (isinstance(question, PendingCall) and question.scratch)
    if top is None:
        return state.farewell is None
    read = state.memory.read
    if any(
        trigger.when is not None and index not in top.fired and trigger.when.holds(read)
        for index, trigger in enumerate(top.skill.triggers)
    ):
        return False
    cursor = top.cursor
    if cursor is None:
        complete = None if top.skill.criteria else top.skill.complete_when
        return complete is None or not complete.holds(read)
    step = cursor.step
    if isinstance(step, CollectStep):
        return cursor.since is not None and read(step.field.namespace, step.field.name) is None
    if isinstance(step, InstructionsStep) and step.id not in cursor.again:
        return not (step.complete_when.holds(read) if step.complete_when is not None else cursor.answered)
    return False
