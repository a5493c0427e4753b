"""A plain aiortc client in the terms of the channel contract: its own decoder, jitter buffer and encoder."""

from __future__ import annotations

import asyncio
import contextlib
import json
from fractions import Fraction
from typing import Any

import httpx
import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from voice_agent.audio.frames import FRAME_BYTES, FRAME_SAMPLES, SILENCE
from voice_agent.audio.resample import Resampler
from voice_agent.ice_addresses import IceOptions, choose_addresses

LOOPBACK = IceOptions(addresses=("127.0.0.1",))


class Refusal(Exception):
    """The answer to an offer was an error. ``body`` is its JSON."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Mouth(MediaStreamTrack):
    """Says what is queued, in real time; silence otherwise."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[bytes] = []
        self._start: float | None = None
        self._frames = 0

    async def recv(self) -> AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        loop = asyncio.get_running_loop()
        if self._start is None:
            self._start = loop.time()
        await asyncio.sleep(max(0.0, self._start + self._frames * 0.02 - loop.time()))
        # Stereo, since aiortc's encoder makes stereo of mono 3 dB softer.
        frame = AudioFrame(format="s16", layout="stereo", samples=FRAME_SAMPLES)
        mono = np.frombuffer(self.queue.pop(0) if self.queue else SILENCE, "<i2")
        frame.planes[0].update(np.repeat(mono, 2).tobytes())
        frame.sample_rate, frame.pts, frame.time_base = 16000, self._frames * FRAME_SAMPLES, Fraction(1, 16000)
        self._frames += 1
        return frame


class WebRtcCaller:
    """Collects what the agent sends. ``messages`` are the JSON messages."""

    reports_position = tells_marks = can_clear = True

    def __init__(self) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.mouth = Mouth()
        self.channel: RTCDataChannel = self.connection.createDataChannel("voice-agent")
        self.messages: list[dict[str, Any]] = []
        self.heard = bytearray()
        self.first_sound_at: float | None = None
        self.connected_at: float | None = None
        self.opened = asyncio.Event()
        self.over = False
        self.call_id = self.conversation = ""
        self.answer = ""
        self._address = ""
        self._resampler = Resampler(48000, 16000)
        self._ears: asyncio.Task[None] | None = None
        self.connection.addTrack(self.mouth)
        self.connection.on("track", self._has_track)
        self.connection.on("connectionstatechange", self._has_changed)
        self.channel.on("open", self.opened.set)
        self.channel.on("message", self._has_message)

    @classmethod
    async def dial(cls, address: str, *, key: str = "", **fields: Any) -> WebRtcCaller:
        """Raises: `Refusal`."""
        caller = cls()
        try:
            await caller.offer(address, key=key, **fields)
            async with asyncio.timeout(10):
                await caller.opened.wait()
        except BaseException:
            await caller.close()
            raise
        return caller

    async def offer(self, address: str, *, key: str = "", **fields: Any) -> None:
        """Make an offer, post it, and take the answer."""
        self._address, self._key = address, key
        choose_addresses(self.connection, LOOPBACK)
        await self.connection.setLocalDescription(await self.connection.createOffer())
        body = {"sdp": self.connection.localDescription.sdp, "type": "offer", **fields}
        response = await self.request("POST", "/offer", json=body)
        if response.status_code != 200:
            raise Refusal(response.status_code, response.json())
        given = response.json()
        self.call_id, self.conversation, self.answer = given["call_id"], given["conversation"], given["sdp"]
        await self.connection.setRemoteDescription(RTCSessionDescription(given["sdp"], given["type"]))

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        async with httpx.AsyncClient() as client:
            return await client.request(method, f"http://{self._address}{path}", headers=headers, **options)

    def _has_track(self, track: MediaStreamTrack) -> None:
        self._ears = asyncio.get_running_loop().create_task(self._listen(track), name="test.caller")

    async def _listen(self, track: MediaStreamTrack) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                assert isinstance(frame, AudioFrame)
                mono = frame.to_ndarray().reshape(-1, 2)[:, 0]
                if self.first_sound_at is None and np.abs(mono).max() > 200:
                    self.first_sound_at = loop.time()
                self.heard += self._resampler.push(np.ascontiguousarray(mono).tobytes())

    def _has_message(self, message: str) -> None:
        given = json.loads(message)
        self.messages.append(given)
        if given["type"] == "clear":
            self.heard.clear()
        if given["type"] == "hangup":
            self.over = True

    def _has_changed(self) -> None:
        if self.connection.connectionState == "connected" and self.connected_at is None:
            self.connected_at = asyncio.get_running_loop().time()
        if self.connection.connectionState in ("closed", "failed"):
            self.over = True

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["type"] == kind]

    @property
    def audio(self) -> bytes:
        """What was heard, without the silence around speech."""
        samples = np.frombuffer(bytes(self.heard), "<i2")
        loud = np.flatnonzero(np.abs(samples) > 200)
        return samples[loud[0] : loud[-1] + 1].tobytes() if len(loud) else b""

    @property
    def clears(self) -> int:
        return len(self.of("clear"))

    @property
    def marks(self) -> list[str]:
        return [m["name"] for m in self.of("mark")]

    async def speak(self, pcm: bytes) -> None:
        frames = [pcm[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0") for at in range(0, len(pcm), FRAME_BYTES)]
        self.mouth.queue += frames

    async def say(self, **message: Any) -> None:
        self.channel.send(json.dumps(message))

    async def press(self, digit: str) -> None:
        await self.say(type="dtmf", digit=digit)

    async def report_played(self, ms: float) -> None:
        await self.say(type="played", ms=ms)

    async def hang_up(self) -> None:
        await self.say(type="hangup")

    async def vanish(self) -> None:
        """Close as a browser tab does: a DTLS alert and no word."""
        await self.close()

    async def close(self) -> None:
        await self.connection.close()
        if self._ears is not None:
            await self._ears
