"""The caller's end of WebRTC: a plain aiortc client, as a browser would be, with our JSON on a data channel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from voice_agent.audio.resample import Resampler
from voice_agent.caller.audio import frame_samples
from voice_agent.caller.websocket import read_message
from voice_agent.caller.wire import AgentAudio, ConnectionFailed, Destination, Ready, WireItem
from voice_agent.ice_addresses import IceOptions, choose_addresses

CONNECT_TIMEOUT_S = 20.0
HANG_UP_TIMEOUT_S = 2.0
MAX_QUEUED_FRAMES = 50
FAINT = 40
"""Samples fainter than this are what a codec and a resampler make of silence."""
_WEBRTC_RATE = 48_000
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_START_REMEDY = "Start the service with `voice-agent run`, or name another address with --url."


class WebRtcWire:
    """Implements `CallerWire`."""

    signals_clear = True

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._items: asyncio.Queue[WireItem | None] = asyncio.Queue()
        self._connection: RTCPeerConnection | None = None
        self._channel: RTCDataChannel | None = None
        self._ears: asyncio.Task[None] | None = None
        self._resampler = Resampler(_WEBRTC_RATE, destination.rate)
        self._microphone = _Microphone(destination.rate)
        self._opened, self._gone = asyncio.Event(), asyncio.Event()
        self._closed_because = ""
        self._hung_up = False

    @property
    def closed_because(self) -> str:
        return self._closed_because

    async def connect(self) -> None:
        url = offer_address(self._destination.url)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S), httpx.AsyncClient(trust_env=False) as client:
                await self._dial(client, url)
                await self._opened.wait()
        except TimeoutError:
            raise ConnectionFailed(
                f"No media came through from {url} within {CONNECT_TIMEOUT_S:g} s.",
                "Open UDP between the two machines, or configure STUN and TURN servers in channels.webrtc.ice_servers.",
            ) from None
        except httpx.HTTPError as error:
            raise ConnectionFailed(f"Cannot reach {url} ({error}).", _START_REMEDY) from error
        finally:
            if not self._opened.is_set() and self._connection is not None:
                await self._connection.close()

    async def _dial(self, client: httpx.AsyncClient, url: str) -> None:
        headers = {"authorization": f"Bearer {self._destination.token}"} if self._destination.token else {}
        given = await _json(await client.get(url.removesuffix("offer") + "webrtc/config", headers=headers))
        servers = [RTCIceServer(**server) for server in given["iceServers"]]
        self._connection = connection = RTCPeerConnection(RTCConfiguration(iceServers=servers))
        self._channel = connection.createDataChannel("voice-agent")
        self._channel.on("open", self._opened.set)
        self._channel.on("message", self._take)
        connection.addTrack(self._microphone)
        connection.on("track", self._listen)
        connection.on("connectionstatechange", self._has_changed)
        choose_addresses(connection, IceOptions(loopback=urlsplit(url).hostname in _LOOPBACK))
        await connection.setLocalDescription(await connection.createOffer())
        body: dict[str, Any] = {"sdp": connection.localDescription.sdp, "type": "offer", "metrics": True}
        if self._destination.conversation:
            body["conversation"] = self._destination.conversation
        answer = await _json(await client.post(url, json=body, headers=headers))
        await connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))

    async def receive(self) -> AsyncIterator[WireItem]:
        while (item := await self._items.get()) is not None:
            yield item

    async def send_audio(self, frame: bytes) -> bool:
        self._microphone.put(frame)
        return not self._gone.is_set()

    async def hang_up(self) -> None:
        if self._hung_up or self._connection is None or self._channel is None:
            return
        self._hung_up = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_TIMEOUT_S):
                if self._channel.readyState == "open":
                    self._channel.send('{"type":"hangup"}')
                    await self._gone.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_TIMEOUT_S):
                await self._connection.close()
        self._end("connection closed")
        if self._ears is not None:
            self._ears.cancel()

    def _take(self, text: object) -> None:
        item = read_message(text if isinstance(text, str) else "")
        # Both ends convert to 48 kHz: the rate of the caller's audio is its own.
        self._items.put_nowait(Ready(item.conversation, None) if isinstance(item, Ready) else item)

    def _listen(self, track: MediaStreamTrack) -> None:
        self._ears = asyncio.get_running_loop().create_task(self._hear(track), name="caller.ears")

    async def _hear(self, track: MediaStreamTrack) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                if not isinstance(frame, AudioFrame):
                    continue
                mono = np.ascontiguousarray(frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0])
                if pcm := self._resampler.push(mono.tobytes()):
                    self._items.put_nowait(AgentAudio(without_traces(pcm)))

    def _has_changed(self) -> None:
        state = "closed" if self._connection is None else self._connection.connectionState
        if state in ("closed", "failed"):
            self._end("connection closed" if state == "closed" else "the connection broke")

    def _end(self, because: str) -> None:
        if not self._gone.is_set():
            self._gone.set()
            self._closed_because = because
            self._items.put_nowait(None)


class _Microphone(MediaStreamTrack):
    """Gives aiortc what is put in, in stereo: its encoder makes stereo of mono 3 dB softer."""

    kind = "audio"

    def __init__(self, rate: int) -> None:
        super().__init__()
        self._rate, self._samples = rate, frame_samples(rate)
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(MAX_QUEUED_FRAMES)
        self._given = 0

    def put(self, frame: bytes) -> None:
        """Queue one frame; the oldest goes when there are too many."""
        if self._frames.full():
            self._frames.get_nowait()
        self._frames.put_nowait(frame)

    async def recv(self) -> AudioFrame:
        mono = np.frombuffer(await self._frames.get(), "<i2")
        frame = AudioFrame(format="s16", layout="stereo", samples=len(mono))
        frame.planes[0].update(np.repeat(mono, 2).tobytes())
        frame.sample_rate, frame.time_base = self._rate, Fraction(1, self._rate)
        frame.pts = self._given * self._samples
        self._given += 1
        return frame


def without_traces(pcm: bytes) -> bytes:
    """Return digital silence in place of what a codec and a resampler make of it; anything louder as it is."""
    samples = np.frombuffer(pcm, "<i2")
    return pcm if samples.max() >= FAINT or samples.min() <= -FAINT else bytes(len(pcm))


def offer_address(url: str) -> str:
    """Return where offers are posted: the address itself, or the one beside a WebSocket's.

    Raises:
        ConnectionFailed: It is no address.
    """
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    if scheme not in ("http", "https") or not parts.hostname:
        raise ConnectionFailed(f"{url!r} is no address to post offers to.", "Give one such as http://127.0.0.1:8080.")
    path = parts.path.rstrip("/").removesuffix("/ws").removesuffix("/offer")
    return urlunsplit((scheme, parts.netloc, f"{path}/offer", "", ""))


async def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.status_code == 200 and isinstance(body, dict):
        return body
    detail = body.get("message", "") if isinstance(body, dict) else ""
    remedies = {
        401: "Give the key with --token or in VOICE_AGENT_API_KEY.",
        404: "Check the address, and that channels.webrtc is enabled.",
        503: "The service takes no more calls now; try again, or raise server.max_calls.",
    }
    raise ConnectionFailed(
        f"{response.url} refused the call with status {response.status_code}: {detail}".rstrip(": "),
        remedies.get(response.status_code, "Look at the service's log for the cause."),
    )
