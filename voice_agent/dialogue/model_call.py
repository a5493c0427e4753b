"""One model call: hooks before and after, streamed to the caller as it arrives, raced against cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from voice_agent.dialogue.cancellation import DEFAULT_GRACE_S, TurnCancelled, limited, race
from voice_agent.dialogue.hook_runner import HookFailed, HookRunner
from voice_agent.dialogue.hooks import ModelRequestPayload, ModelResponsePayload, Point
from voice_agent.dialogue.prompt_sections import Section
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.speculation import Speculation
from voice_agent.dialogue.turn import Turn
from voice_agent.llm.assemble import ToolCallAssembler
from voice_agent.llm.protocol import (
    Finished,
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from voice_agent.telemetry.metrics import SPECULATIONS

log = logging.getLogger(__name__)

MAX_REPLY_CHARS = 20_000
"""A reply longer than this is cut: a model that never stops must not talk for ever."""

TURN, SET_FIELDS, REPHRASE, CONFIRM_REPHRASE = "turn", "set_fields", "rephrase", "confirm_rephrase"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came of a model call. ``withheld`` names the tools that a hook took away from it."""

    text: str
    calls: tuple[ToolCall, ...]
    withheld: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not self.text.strip() and not self.calls


@dataclass(frozen=True, slots=True)
class ModelCallRecord:
    """One model call as it was made, for whoever wants to look at prompts.

    Attributes:
        purpose: ``turn``, ``set_fields``, ``rephrase`` or ``confirm_rephrase``.
        request: Exactly what the model was given, hooks included.
        sections: What the system message was made of; empty for side calls.
        reply: None when the call failed or was cancelled.
    """

    turn_id: str
    purpose: str
    model: str
    request: ModelRequest
    sections: tuple[Section, ...] = ()
    reply: ModelReply | None = None


CallListener = Callable[[ModelCallRecord], None]


class ModelCaller:
    """Makes the model calls of one conversation."""

    def __init__(self, hooks: HookRunner) -> None:
        self._hooks = hooks
        self._listeners: list[CallListener] = []
        self.speculation: Speculation | None = None

    def on_call(self, listener: CallListener) -> Callable[[], None]:
        """Call back with each model call once it has ended. Returns an unsubscriber."""
        self._listeners.append(listener)

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return forget

    async def call(
        self,
        model: LanguageModel,
        request: ModelRequest,
        turn: Turn,
        *,
        purpose: str = TURN,
        sections: tuple[Section, ...] = (),
        limit_s: float | None = None,
    ) -> ModelReply:
        """Run one model call. Text of a ``turn`` call is said as it arrives, or whole if a hook may change it.

        Raises:
            TurnCancelled: The turn was cancelled; nothing the model asked for is done.
            ModelError: The model failed or took longer than ``limit_s``, or a hook stood in the way.
            RetryModel: A hook wants another reply; nothing of this one was said.
        """
        if purpose in (TURN, SET_FIELDS):
            turn.model_calls += 1
            turn.marks.setdefault("model_request", asyncio.get_running_loop().time())
        request, withheld = await self._before(request, turn, purpose)
        reply: ModelReply | None = None
        try:
            whole = purpose != TURN or self._hooks.modifies(Point.MODEL_RESPONSE)
            whole = whole or self._hooks.modifies(Point.OUTGOING_MESSAGE)
            stream = self._begun(request) or model.stream(request)
            reply = await _stream(stream, turn, speak=not whole, limit_s=limit_s)
            reply = replace(await self._after(reply, turn, purpose), withheld=withheld)
        finally:
            self._tell(ModelCallRecord(turn.id, purpose, model.name, request, sections, reply))
        if purpose == TURN and whole and reply.text.strip():
            turn.reply.deliver(Wording("", reply.text.strip()))
        return reply

    def _begun(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None] | None:
        """Return the stream of this very request, if it was begun early. Any other is of no use any more."""
        speculation = self.speculation
        if speculation is None or not speculation.usable or speculation.request != request:
            self.discard()
            return None
        self.speculation = None
        SPECULATIONS.labels(outcome="used").inc()
        return speculation.events()

    def discard(self) -> None:
        """Nobody wants what was begun early any more."""
        speculation, self.speculation = self.speculation, None
        if speculation is not None:
            speculation.drop()
            SPECULATIONS.labels(outcome="discarded").inc()

    async def _before(self, request: ModelRequest, turn: Turn, purpose: str) -> tuple[ModelRequest, frozenset[str]]:
        if not self._hooks.watches(Point.MODEL_REQUEST):
            return request, frozenset()
        given = ModelRequestPayload(purpose, tuple(request.messages), tuple(request.tools))
        try:
            changed = await self._hooks.run(Point.MODEL_REQUEST, given, turn.cancel)
        except HookFailed as fault:
            raise ModelError(f"the prompt was not sent: {fault}", "hook") from fault
        kept = {tool.name for tool in changed.tools}
        # A hook may take tools away; what the engine has not offered, it cannot add.
        tools = tuple(tool for tool in request.tools if tool.name in kept)
        withheld = frozenset(tool.name for tool in request.tools if tool.name not in kept)
        return replace(request, messages=tuple(changed.messages), tools=tools), withheld

    async def _after(self, reply: ModelReply, turn: Turn, purpose: str) -> ModelReply:
        if not self._hooks.watches(Point.MODEL_RESPONSE):
            return reply
        given = ModelResponsePayload(purpose, reply.text, reply.calls)
        try:
            changed = await self._hooks.run(Point.MODEL_RESPONSE, given, turn.cancel)
        except HookFailed as fault:
            raise ModelError(f"the reply was not used: {fault}", "hook") from fault
        return ModelReply(changed.text, tuple(changed.tool_calls))

    def _tell(self, record: ModelCallRecord) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(record)
            except Exception:
                log.exception("a listener to model calls failed")


async def _stream(
    source: AsyncGenerator[ModelEvent, None], turn: Turn, *, speak: bool, limit_s: float | None
) -> ModelReply:
    loop = asyncio.get_running_loop()

    async def consume() -> ModelReply:
        text: list[str] = []
        size, is_cut = 0, False
        assembler = ToolCallAssembler()
        async with aclosing(source) as stream:
            async for event in stream:
                turn.marks.setdefault("first_token", loop.time())
                if isinstance(event, TextDelta):
                    text.append(event.text)
                    size += len(event.text)
                    if speak:
                        turn.reply.delta(event.text)
                    if size > MAX_REPLY_CHARS:
                        is_cut = True
                        break
                elif isinstance(event, ToolCallDelta):
                    assembler.add(event)
                elif isinstance(event, Finished):
                    is_cut = event.reason == "length"
        return ModelReply("".join(text), assembler.calls(is_cut=is_cut))

    try:
        with limited(turn.cancel, limit_s) as own:
            done = await race(consume(), own, name="model", grace_s=DEFAULT_GRACE_S)
    except TurnCancelled:
        turn.cancel.check()
        raise ModelError(f"no reply within {limit_s or 0:g} s", "timeout") from None
    finally:
        if speak:
            turn.reply.end()
    # A reply that was finished only inside the grace window belongs to a turn that no longer exists.
    turn.cancel.check()
    return done.value
