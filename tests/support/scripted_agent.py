"""A real WebSocket server that plays an agent from a script: it greets with a tone, answers after each line of the
caller, and clears when it hears voice while it speaks. Knows nothing of the agent's code, only the wire."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

FRAME_S = 0.02
LEAD_S = 0.06
VOICE_DBFS = -45.0


@dataclass
class Script:
    """How the agent behaves."""

    greeting_s: float = 0.6
    """Length of the greeting's tone; 0 stays silent."""
    replies_s: tuple[float, ...] = (0.6,)
    """Length of each reply; the last repeats, 0 stays silent."""
    endpoint_s: float = 0.3
    """Silence of the caller that ends a line."""
    clears: bool = True
    """Whether the caller's voice makes it stop."""
    speaks_at: int | None = None
    """Rate it claims to speak at; None is what was asked for."""
    hangs_up_after: int | None = None
    """Number of replies (the greeting counts) after which it hangs up."""
    breaks_after: int | None = None
    """Number of replies after which the connection is torn down without a word."""
    garbage: tuple[str | bytes, ...] = ()
    """Messages sent at the beginning."""
    token: str | None = None
    """Key that callers must present."""
    whole_replies: bool = False
    """Send each reply's audio at once instead of paced."""


@dataclass
class Heard:
    """What the agent received on one call."""

    query: dict[str, str] = field(default_factory=dict)
    frames: list[tuple[float, bytes]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    cleared: int = 0
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the caller's audio has been coming for a while."""


@dataclass
class ScriptedAgent:
    url: str
    calls: list[Heard] = field(default_factory=list)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first call."""


@contextlib.asynccontextmanager
async def scripted_agent(script: Script | None = None, port: int = 0) -> AsyncIterator[ScriptedAgent]:
    """Serve ``script`` on ``port`` of the loopback (0: any that is free); ``/readyz`` answers as a service's does."""
    script = script or Script()
    agent = ScriptedAgent("")

    async def refuse(connection: ServerConnection, request: Any) -> Any:
        if request.path == "/readyz":
            return connection.respond(200, "{}")
        if script.token is not None and request.headers.get("Authorization") != f"Bearer {script.token}":
            return connection.respond(401, "who is there?\n")
        return None

    async def handle(connection: ServerConnection) -> None:
        heard = Heard()
        agent.calls.append(heard)
        agent.answered.set()
        with contextlib.suppress(ConnectionClosed):
            await _Call(connection, script, heard).run()

    server: Server
    async with serve(handle, "127.0.0.1", port, process_request=refuse, compression=None) as server:
        agent.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        yield agent


class _Call:
    def __init__(self, connection: ServerConnection, script: Script, heard: Heard) -> None:
        self.connection, self.script, self.heard = connection, script, heard
        assert connection.request is not None
        heard.query = {k: v[0] for k, v in parse_qs(urlsplit(connection.request.path).query).items()}
        self.rate = int(heard.query["rate"])
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.replies = 0
        self.stop = asyncio.Event()
        self.line_ended = asyncio.Event()
        self.speaking = False
        self.speech_end: float | None = None

    async def run(self) -> None:
        await self.send({"type": "ready", "conversation": "scripted", "rate": self.script.speaks_at or self.rate})
        for message in self.script.garbage:
            await self.connection.send(message)
        speaker = asyncio.ensure_future(self.speak_replies())
        try:
            await self.listen()
        finally:
            speaker.cancel()
            await asyncio.gather(speaker, return_exceptions=True)

    async def send(self, body: dict[str, Any]) -> None:
        await self.connection.send(json.dumps(body))

    async def listen(self) -> None:
        voiced, silent, in_line = 0.0, 0.0, False
        async for message in self.connection:
            if isinstance(message, str):
                self.heard.messages.append(json.loads(message))
                if self.heard.messages[-1].get("type") == "hangup":
                    return
                continue
            self.heard.frames.append((self.loop.time(), message))
            if len(self.heard.frames) == 20:
                self.heard.flowing.set()
            samples = np.frombuffer(message, "<i2").astype(np.float64)
            if 20 * np.log10(np.sqrt(np.mean(samples**2)) / 32768 + 1e-9) > VOICE_DBFS:
                voiced, silent = voiced + FRAME_S, 0.0
                in_line = in_line or voiced >= 0.08
                if voiced >= 0.08 and self.speaking and self.script.clears and not self.stop.is_set():
                    self.heard.cleared += 1
                    self.stop.set()
                    await self.send({"type": "clear"})
            else:
                silent += FRAME_S
                if silent >= 0.1:
                    voiced = 0.0
                if in_line and silent >= self.script.endpoint_s:
                    in_line = False
                    self.speech_end = self.loop.time() - self.began - silent
                    await self.send({"type": "transcript", "role": "user", "text": "a tone", "final": True})
                    self.line_ended.set()

    async def speak_replies(self) -> None:
        await self.reply(self.script.greeting_s)
        while True:
            await self.line_ended.wait()
            self.line_ended.clear()
            index = min(self.replies - 1, len(self.script.replies_s) - 1)
            await self.reply(self.script.replies_s[index])

    async def reply(self, seconds: float) -> None:
        text = f"reply {self.replies} with some more words"
        timeline = {"first_audio": self.loop.time() - self.began}
        if self.speech_end is not None:
            timeline["speech_end"] = self.speech_end
        played = await self.tone(seconds)
        heard = text if played >= seconds else text[: int(len(text) * played / max(seconds, 1e-9))]
        self.replies += 1
        if seconds:
            await self.send({"type": "transcript", "role": "agent", "text": text, "final": True, "heard": heard})
            await self.send({"type": "metrics", "turn_id": str(self.replies), "timeline": timeline})
        if self.replies == self.script.hangs_up_after:
            await self.send({"type": "hangup", "reason": "goodbye"})
            await self.connection.close()
        if self.replies == self.script.breaks_after:
            self.connection.transport.abort()

    async def tone(self, seconds: float) -> float:
        """Play a tone until done or stopped; return the seconds sent."""
        if not seconds:
            return 0.0
        n = int(seconds * self.rate)
        wave = (np.sin(np.arange(n) * 2 * np.pi * 300 / self.rate) * 8000 + 200).astype("<i2").tobytes()
        if self.script.whole_replies:
            await self.connection.send(wave)
            return seconds
        self.stop.clear()
        self.speaking = True
        began, size, at = self.loop.time(), int(self.rate * FRAME_S) * 2, 0
        while at < len(wave) and not self.stop.is_set():
            await self.connection.send(wave[at : at + size])
            at += size
            due = began + at / (self.rate * 2) - LEAD_S
            await asyncio.sleep(max(0.0, due - self.loop.time()))
        self.speaking = False
        return min(at / (self.rate * 2), seconds)
