"""A language model that follows a script, in virtual or real time.

An entry of the script is one model call::

    ScriptedModel([
        "Hello there.",                                   # text, streamed word by word
        tool_call("get_balance", account="42"),           # one tool call
        ["One moment. ", tool_call("listen")],            # several things in one response
        ["Your balance ", 2.5, "is 42."],                 # a number is a pause in seconds
        ["Your ", ModelError("connection lost")],         # a fault in mid-stream
        lambda request: request.messages[-1].content,     # decided from the request
    ])
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from voice_agent.llm.protocol import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)

Part = str | float | ToolCall | ModelEvent | Exception
Entry = Part | Sequence[Part] | Callable[[ModelRequest], "Part | Sequence[Part]"]


def tool_call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a complete tool call; its id is given out by the model that plays it."""
    return ToolCall("", name, json.dumps(arguments))


@dataclass
class StreamRecord:
    """What became of one stream.

    Attributes:
        started_at: Loop time of the first ``__anext__``; None while nobody iterated.
        ended_at: Loop time of its end, however it ended.
        sent: The events that reached the consumer.
        finished: The script entry was played to its end.
        closed_early: It was cancelled or closed before its end.
    """

    request: ModelRequest
    started_at: float | None = None
    ended_at: float | None = None
    sent: list[ModelEvent] = field(default_factory=list)
    finished: bool = False
    closed_early: bool = False


class ScriptedModel:
    """Implements `LanguageModel`. Each call plays the next entry of the script.

    Args:
        script: Entries in order; a call beyond the last one plays ``then``.
        first_token_s: Pause before the first event of every call.
        token_s: Pause before each further event.
        then: What calls beyond the script play; None makes them an AssertionError.
    """

    def __init__(
        self,
        script: Iterable[Entry] = (),
        *,
        first_token_s: float = 0.0,
        token_s: float = 0.0,
        then: Entry | None = None,
        name: str = "scripted",
    ) -> None:
        self._script = list(script)
        self._then = then
        self._name = name
        self.first_token_s, self.token_s = first_token_s, token_s
        self.requests: list[ModelRequest] = []
        self.streams: list[StreamRecord] = []
        self.warmed = False
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def closed_early(self) -> int:
        """Number of streams that were cancelled or closed before their end."""
        return sum(stream.closed_early for stream in self.streams)

    @property
    def open_streams(self) -> int:
        """Number of streams that were started and have not ended."""
        return sum(stream.started_at is not None and stream.ended_at is None for stream in self.streams)

    async def warm_up(self) -> None:
        self.warmed = True

    async def aclose(self) -> None:
        self.closed = True

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        entry = self._script[len(self.requests)] if len(self.requests) < len(self._script) else self._then
        self.requests.append(request)
        record = StreamRecord(request)
        self.streams.append(record)
        return self._play(entry, record)

    async def _play(self, entry: Entry | None, record: StreamRecord) -> AsyncGenerator[ModelEvent, None]:
        loop = asyncio.get_running_loop()
        record.started_at = loop.time()
        try:
            if entry is None:
                raise AssertionError(f"model call {len(self.requests)} is beyond the script of {len(self._script)}")
            parts = entry(record.request) if callable(entry) else entry
            pause = self.first_token_s
            for event in _events([parts] if isinstance(parts, _SINGLE) else parts):
                if isinstance(event, int | float):
                    await asyncio.sleep(event)
                    continue
                await asyncio.sleep(pause)
                pause = self.token_s
                if isinstance(event, Exception):
                    raise event
                record.sent.append(event)
                yield event
            record.finished = True
        except (GeneratorExit, asyncio.CancelledError):
            record.closed_early = True
            raise
        finally:
            record.ended_at = loop.time()


_SINGLE = (str, int, float, ToolCall, TextDelta, ToolCallDelta, Finished, Exception)


def _events(parts: Sequence[Part]) -> Iterator[ModelEvent | float | Exception]:
    """Spell the parts out as events, with a `Finished` at the end unless the script brings its own."""
    calls = 0
    for part in parts:
        if isinstance(part, str):
            yield from (TextDelta(word) for word in re.findall(r"\s*\S+\s*$|\s*\S+", part))
        elif isinstance(part, ToolCall):
            yield ToolCallDelta(calls, part.id or f"call_{calls}", part.name, part.arguments)
            calls += 1
        else:
            yield part
    if not any(isinstance(part, Finished | Exception) for part in parts):
        yield Finished("tool_calls" if calls else "stop")


__all__ = ["Entry", "ModelError", "Part", "ScriptedModel", "StreamRecord", "tool_call"]
