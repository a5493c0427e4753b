"""How a model is given its tools: natively where it can, else in the tagged format.

``auto`` asks what is known of the model; where nothing is, it tries tool calls of its own and learns from a
refusal. ``native`` insists: refused, the model is asked once more without tools, but only while no tool has
run, since an answer that knows nothing of what was done would be worse than none.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from enum import Enum
from typing import Protocol

from voice_agent.config import ToolCalls
from voice_agent.llm.assemble import CUT_SHORT
from voice_agent.llm.protocol import (
    Finished,
    LanguageModel,
    Message,
    ModelError,
    ModelEvent,
    ModelRequest,
    SkillCard,
    TextDelta,
    ToolCallDelta,
    prepare,
)
from voice_agent.llm.tagged import TaggedReader
from voice_agent.llm.tagged_input import arguments_json, is_object, matched
from voice_agent.llm.tagged_prompt import plain_request, tagged_request

log = logging.getLogger(__name__)

MAX_UNSPOKEN_CHARS = 20_000
"""A model that thinks on and on is stopped here."""
NAMELESS = "(no name)"


class _Way(Enum):
    NATIVE = "native"
    TAGGED = "tagged"
    PLAIN = "plain"


class KnowsTools(Protocol):
    """A model that knows beforehand whether it takes tools."""

    async def takes_tools(self) -> bool | None:
        """Return whether it does; None if that shows only when it is asked."""
        ...


class ToolBinding:
    """Implements `LanguageModel` over ``model``, which may or may not have tool calls of its own.

    Args:
        knows: Asked about ``model`` before its first call with ``auto``.
    """

    def __init__(self, model: LanguageModel, tool_calls: ToolCalls = "auto", knows: KnowsTools | None = None) -> None:
        self._model, self._asked_for = model, tool_calls
        self._knows = knows if tool_calls == "auto" else None
        self._settled = {"tagged": _Way.TAGGED, "none": _Way.PLAIN}.get(tool_calls)

    @property
    def name(self) -> str:
        return self._model.name

    async def warm_up(self) -> None:
        await self._model.warm_up()

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        """See `Prepares.prepare`."""
        await prepare(self._model, skills, passages)

    async def aclose(self) -> None:
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel.stream`."""
        way = await self._way()
        if way is _Way.NATIVE and request.tools:
            begun = False
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ModelError as fault:
                if begun or not fault.refuses_tools:
                    raise
                refusal, way = fault, self._after_refusal(request, fault)
            async with aclosing(self._again(request, way, refusal)) as events:
                async for event in events:
                    yield event
            return
        async with aclosing(self._by(way, request)) as events:
            async for event in events:
                yield event

    async def _way(self) -> _Way:
        if self._knows is not None:
            if await self._knows.takes_tools() is False:
                log.info("%s takes no tools: they are asked for in the tagged format", self.name)
                self._settled = _Way.TAGGED
            self._knows = None
        return self._settled or _Way.NATIVE

    def _after_refusal(self, request: ModelRequest, refusal: ModelError) -> _Way:
        if self._asked_for == "auto":
            return _Way.TAGGED
        if _has_run_a_tool(request.messages):
            raise refusal
        return _Way.PLAIN

    async def _again(self, request: ModelRequest, way: _Way, refusal: ModelError) -> AsyncGenerator[ModelEvent, None]:
        """Ask once more in another way; what works is kept to from then on."""
        begun = False
        try:
            async with aclosing(self._by(way, request)) as events:
                async for event in events:
                    if not begun:
                        self._learn(way, refusal)
                    begun = True
                    yield event
        except ModelError as fault:
            if begun:
                raise
            raise refusal from fault

    def _learn(self, way: _Way, refusal: ModelError) -> None:
        if way is _Way.TAGGED:
            self._settled = way
            log.warning(
                "%s refuses tools (%s): they are asked for in the tagged format from now on", self.name, refusal
            )
        else:
            log.warning("%s refuses tools (%s): it answered without any; set llm.tool_calls", self.name, refusal)

    def _by(self, way: _Way, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if way is _Way.TAGGED:
            return self._tagged(request)
        return self._model.stream(plain_request(request) if way is _Way.PLAIN else request)

    async def _tagged(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        written = tagged_request(request)
        reader, size, finished = TaggedReader(), 0, Finished("stop")
        async with aclosing(self._model.stream(written)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    finished = event
                elif isinstance(event, TextDelta):
                    size += len(event.text)
                    if heard := reader.feed(event.text):
                        yield TextDelta(heard)
                # What the model goes on to write was made up: the stream is left, and the provider stops.
                if reader.done or size > MAX_UNSPOKEN_CHARS:
                    break
        is_cut = not reader.done and (finished.reason == "length" or size > MAX_UNSPOKEN_CHARS)
        if heard := reader.finish():
            yield TextDelta(heard)
        action = reader.action
        if action is None or not request.tools:
            yield Finished(finished.reason, finished.prompt_tokens, finished.completion_tokens)
            return
        tool = matched(action.name, request.tools)
        name = tool.name if tool is not None else action.name or NAMELESS
        # Half an input may mean something else: 100 of 1000. Only an object that is complete was cut behind its end.
        whole = not is_cut or is_object(action.input)
        arguments = arguments_json(action.input, tool) if whole else CUT_SHORT
        yield ToolCallDelta(0, f"call_{len(request.messages)}", name, arguments)
        yield Finished("tool_calls", finished.prompt_tokens, finished.completion_tokens)


def _has_run_a_tool(messages: Sequence[Message]) -> bool:
    """Return whether a tool has run since the caller spoke last."""
    for message in reversed(messages):
        if message.role in ("user", "tool"):
            return message.role == "tool"
    return False
