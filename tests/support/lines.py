"""A service whose calls only record what their wires deliver, behind the real server on a real port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from voice_agent.call.wire import Wire
from voice_agent.channels.desk import (
    CallRefused,
    CallRequest,
    Deliver,
    Invitation,
    LearntText,
    NotNow,
    TextOutcome,
    UnknownSetting,
)
from voice_agent.channels.tokens import CallTokens
from voice_agent.config import Channels, ServerOptions
from voice_agent.server import serve


class RecordedInputs:
    """`CallInputs` that keeps everything, and lets a test wait for it."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.chunks: list[bytes] = []
        self.texts: list[str] = []
        self.keys: list[str] = []
        self.positions: list[float] = []
        self.mutes: list[bool] = []
        self.holds: list[bool] = []
        self.marks: list[str] = []

    def hear(self, pcm: bytes) -> None:
        assert pcm, "a wire hands over no empty audio"
        assert len(pcm) % 2 == 0, "a wire hands over whole samples"
        self.heard += pcm
        self.chunks.append(pcm)

    def type_text(self, text: str) -> None:
        self.texts.append(text)

    def press_key(self, digit: str) -> None:
        self.keys.append(digit)

    def played(self, ms: float) -> None:
        self.positions.append(ms)

    def mute(self, muted: bool) -> None:
        self.mutes.append(muted)

    def hold(self, held: bool) -> None:
        self.holds.append(held)

    def mark_reached(self, name: str) -> None:
        self.marks.append(name)


@dataclass
class Line:
    """One call as the near side sees it. ``ended`` is set with what `Wire.run` returned."""

    request: CallRequest
    wire: Wire
    inputs: RecordedInputs
    ended: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass
class ReservedPlace:
    """Attributes: ``free``: it was given back before anybody came for it."""

    taken: bool = False
    free: bool = False
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)

    def give_back(self) -> None:
        self.free = self.free or not self.taken


class RecordingDesk:
    """`CallDesk` that puts callers through to a `Line` each."""

    def __init__(self) -> None:
        self.refuse: CallRefused | None = None
        self.lines: list[Line] = []
        self._new: asyncio.Queue[Line] = asyncio.Queue()
        self.tokens = CallTokens(time.monotonic)
        self.full: CallRefused | None = None
        self.places: list[ReservedPlace] = []
        self.notes: list[tuple[str, str, dict[str, Any]]] = []

    def reserve(self, conversation_id: str, channel: str) -> ReservedPlace:
        if self.full:
            raise self.full
        self.places.append(ReservedPlace())
        return self.places[-1]

    def note(self, conversation_id: str, kind: str, **data: Any) -> None:
        self.notes.append((conversation_id, kind, data))

    def invite(self, conversation_id: str, metadata: Mapping[str, Any], expires_in_s: float) -> Invitation:
        token, grant = self.tokens.issue(conversation_id, metadata, expires_in_s)
        return Invitation(token, grant, expires_in_s)

    async def take(self, request: CallRequest, wire: Wire) -> None:
        if self.refuse:
            raise self.refuse
        if isinstance(request.place, ReservedPlace):
            assert not request.place.taken and not request.place.free
            request.place.taken = True
        if request.connect is not None and not await request.connect(uuid4().hex):
            raise CallRefused("not_connected", "The media did not come through.")
        line = Line(request, wire, RecordedInputs())
        self.lines.append(line)
        self._new.put_nowait(line)
        line.ended.set_result(await wire.run(line.inputs))

    def forget(self) -> None:
        """Begin anew, for another test on the same server."""
        self.refuse = self.full = None
        for kept in (self.lines, self.places, self.notes):
            kept.clear()
        while not self._new.empty():
            self._new.get_nowait()

    async def next_line(self) -> Line:
        async with asyncio.timeout(5):
            return await self._new.get()


class NoTexts:
    async def turn(
        self, conversation_id: str, text: str, deliver: Deliver, *, intent: bool = False, channel: str = "text"
    ) -> TextOutcome:
        raise CallRefused("no_text", "There is no text here.")


class NoSettings:
    def all(self) -> dict[str, Any]:
        return {"settings": [], "selected_configuration": ""}

    async def changes(self, limit: int) -> dict[str, Any]:
        return {"kept": False, "changes": []}

    def one(self, name: str) -> dict[str, Any]:
        raise UnknownSetting(name, ())

    async def put(self, name: str, value: Mapping[str, Any], *, who: str) -> dict[str, Any]:
        raise UnknownSetting(name, ())


class NoKnowledge:
    async def learn(self, id: str, media_type: str, data: bytes, title: str) -> LearntText:
        raise NotNow("Nothing is learnt here.")

    async def texts(self) -> Sequence[LearntText]:
        return []

    async def unlearn(self, id: str) -> bool:
        return False

    async def forget(
        self, *, conversation: str | None, caller: str | None, older_than_days: float | None
    ) -> Mapping[str, int]:
        return {"conversations": 0, "exchanges": 0}


class RecordingService:
    """The part of the service that the server sees."""

    def __init__(
        self, calls: RecordingDesk | None = None, texts: object | None = None, channels: Channels | None = None
    ) -> None:
        self.calls = calls or RecordingDesk()
        self.texts = NoTexts() if texts is None else texts
        self.tokens = self.calls.tokens
        self.channels = channels or Channels()
        self.inspector = None
        self.introduction = {"name": "Nora", "language": "en"}
        self.missing: tuple[str, ...] = ()
        self.settings = NoSettings()
        self.knowledge = NoKnowledge()
        self.done: list[str] = []

    async def start(self) -> None:
        self.done.append("started")

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def drain(self, timeout_s: float) -> None:
        self.done.append("drained")

    async def aclose(self) -> None:
        self.done.append("closed")


@asynccontextmanager
async def serving(
    service: object, options: ServerOptions | None = None, channels: Channels | None = None
) -> AsyncIterator[str]:
    """Serve on a free port; yields ``127.0.0.1:PORT``."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    options = (options or ServerOptions()).model_copy(update={"port": 0})
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(service, options, channels=channels, stop=stop, listening=ready.set_result))  # type: ignore[arg-type]
        try:
            yield f"127.0.0.1:{await ready}"
        finally:
            stop.set()


async def until(condition: Callable[[], object], *, within_s: float = 20.0) -> None:
    """Wait until ``condition()`` is true; fail when it takes too long."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - any condition, not only ours to signal
            await asyncio.sleep(0.005)
