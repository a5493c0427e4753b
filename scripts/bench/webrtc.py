#!/usr/bin/env python3
"""What a call by WebRTC costs its server, beside a plain aiortc echo in the same run.

    scripts/bench/webrtc.py [--calls 10] [--seconds 12]

Server and callers are two processes on 127.0.0.1. Both sides speak all the time. Measured in the server, by
getrusage, per call: the wire alone, without detector, recogniser and dialogue.

    plain    aiortc as it comes: decodes, encodes and paces with its own threads and tasks
    live     our wire, each frame heard for the first time: always encoded
    cached   our wire, a reply that was said before

Then `--calls` at once, cached: how late packets leave (95th, 99th percentile and worst, by arrival), and what is
left of them afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx
import numpy as np
import uvicorn
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from fastapi import FastAPI, Request

from voice_agent.audio.frames import FRAME_BYTES
from voice_agent.call.clock import MediaClock
from voice_agent.channels.webrtc.channel import WebRtcChannel
from voice_agent.channels.webrtc.line import AudioLine
from voice_agent.channels.webrtc.opus import PacketCache, SpeechEncoder
from voice_agent.config import WebRtcOptions
from voice_agent.ice_addresses import IceOptions, choose_addresses

HOST = "127.0.0.1"
LOOPBACK = IceOptions(addresses=(HOST,))
FRAME_S = 0.02


def speech(seconds: float = 6.0) -> list[bytes]:
    """Frames of something like a voice: a gliding pitch with harmonics, in syllables, with breath."""
    at = np.arange(int(seconds * 16000)) / 16000
    phase = 2 * np.pi * np.cumsum(120 + 25 * np.sin(2 * np.pi * 0.4 * at)) / 16000
    voice = sum(np.sin(phase * n) / n for n in range(1, 24))
    syllables = np.clip(np.sin(2 * np.pi * 2.2 * at) + 0.4, 0, 1)
    breath = np.random.default_rng(1).normal(0, 0.03, len(at))
    pcm = ((voice * syllables + breath) * 5000).astype("<i2").tobytes()
    return [pcm[n : n + FRAME_BYTES] for n in range(0, len(pcm), FRAME_BYTES)]


class Talker:
    """A call that speaks all the time and listens to nothing."""

    def __init__(self, clock: MediaClock, live: bool) -> None:
        self._clock, self._live = clock, live
        self._frames = speech()
        self.heard = 0

    async def take(self, request: Any, wire: Any) -> None:
        if not await request.connect(f"call-{time.monotonic_ns()}"):
            return
        at, dice = 0, np.random.default_rng()

        def say() -> None:
            nonlocal at
            frame = self._frames[at % len(self._frames)]
            at += 1
            if self._live:
                frame = (np.frombuffer(frame, "<i2") + dice.integers(-2, 3, FRAME_BYTES // 2)).astype("<i2").tobytes()
            wire.send_audio(frame)

        stop = self._clock.subscribe(say)
        try:
            await wire.run(self)
        finally:
            stop()

    def hear(self, pcm: bytes) -> None:
        self.heard += len(pcm)

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


async def serve(mode: str, port: int) -> None:
    """The server's process."""
    app = FastAPI()
    plain: set[RTCPeerConnection] = set()
    clock = MediaClock()
    talker = Talker(clock, mode == "live")
    channel = WebRtcChannel(talker, WebRtcOptions(bind_addresses=(HOST,)))

    @app.get("/usage")
    async def usage() -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "cpu_s": used.ru_utime + used.ru_stime,
            "at": time.monotonic(),
            "heard_s": talker.heard / 32000,
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks()),
            "files": open_files(),
            "rss_kib": used.ru_maxrss,
        }

    if mode == "plain":

        @app.post("/offer")
        async def offer(request: Request) -> dict[str, str]:
            given = await request.json()
            connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
            plain.add(connection)

            @connection.on("track")
            def on_track(track: MediaStreamTrack) -> None:
                connection.addTrack(track)

            await connection.setRemoteDescription(RTCSessionDescription(given["sdp"], "offer"))
            choose_addresses(connection, LOOPBACK)
            await connection.setLocalDescription(await connection.createAnswer())
            return {"sdp": connection.localDescription.sdp, "type": "answer", "call_id": ""}

    else:
        app.include_router(channel.routes())
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level="error", loop="none", lifespan="off"))
    async with clock, asyncio.TaskGroup() as group:
        carrying = group.create_task(channel.run())
        await server.serve()
        carrying.cancel()


class Caller:
    """Speaks packets that were encoded beforehand, and notes when the agent's arrive."""

    def __init__(self, packets: list[bytes]) -> None:
        self._packets = packets
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._open = asyncio.Event()
        self._line = AudioLine(self._connection.addTransceiver("audio"), self._hear, self._open.set)
        self._channel = self._connection.createDataChannel("voice-agent")
        self.arrivals: list[tuple[float, int]] = []
        self.first_at: float | None = None
        self.connect_s = 0.0

    def _hear(self, sequence: int, timestamp: int, payload: bytes) -> None:
        now = time.monotonic()
        if self.first_at is None and len(payload) > 20:
            self.first_at = now
        self.arrivals.append((now, timestamp))

    async def call(self, port: int, seconds: float) -> None:
        choose_addresses(self._connection, LOOPBACK)
        await self._connection.setLocalDescription(await self._connection.createOffer())
        body = {"sdp": self._connection.localDescription.sdp, "type": "offer"}
        began = time.monotonic()
        async with httpx.AsyncClient(trust_env=False) as web:
            answer = (await web.post(f"http://{HOST}:{port}/offer", json=body)).json()
        await self._connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
        async with asyncio.timeout(20):
            await self._open.wait()
        connected = time.monotonic()
        self.connect_s = connected - began
        loop = asyncio.get_running_loop()
        start = loop.time()
        for n in range(int(seconds / FRAME_S)):
            self._line.send(self._packets[n % len(self._packets)], n * FRAME_S, first=n == 0)
            await asyncio.sleep(max(0.0, start + (n + 1) * FRAME_S - loop.time()))
        if self.first_at is not None:
            self.first_at -= connected

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._connection.close(), 5)

    def lateness_ms(self) -> list[float]:
        """How late each packet came, by its own timestamp, against the earliest of them."""
        settled = self.arrivals[50:]
        if not settled:
            return []
        t0 = settled[0][1]
        offsets = [(at - ((ts - t0) & 0xFFFFFFFF) / 48000) for at, ts in settled]
        least = min(offsets)
        return [(offset - least) * 1000 for offset in offsets]


async def usage(port: int) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False) as web:
        return dict((await web.get(f"http://{HOST}:{port}/usage")).json())


def started(mode: str, port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "--serve", mode, "--port", str(port)])


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def answering(port: int) -> None:
    """Wait until the server at ``port`` answers."""
    for _ in range(200):
        with contextlib.suppress(httpx.HTTPError):
            await usage(port)
            return
        await asyncio.sleep(0.1)


async def measure(mode: str, port: int, calls: int, seconds: float, packets: list[bytes]) -> dict[str, Any]:
    """Run a server in ``mode`` and ``calls`` callers; return the server's CPU per call and how late packets came."""
    child = started(mode, port)
    try:
        await answering(port)
        if mode == "cached":  # said once before
            await place(port, 1, 8.0, packets)
        await asyncio.sleep(1)
        if mode != "plain":
            await place(port, 1, 0.5, packets)
        await asyncio.sleep(1)
        before_all = await usage(port)
        waiting = asyncio.ensure_future(place(port, calls, seconds + 3, packets))
        await asyncio.sleep(2.5)
        before = await usage(port)
        await asyncio.sleep(seconds)
        after = await usage(port)
        callers = await waiting
        await asyncio.sleep(3)
        left = await usage(port)
    finally:
        child.terminate()
        child.wait(10)
    core = (after["cpu_s"] - before["cpu_s"]) / (after["at"] - before["at"])
    late = sorted(ms for caller in callers for ms in caller.lateness_ms())
    firsts = [caller.first_at for caller in callers if caller.first_at is not None]
    return {
        "mode": mode,
        "calls": calls,
        "core_per_call": round(core / calls, 4),
        "late_ms_p95_p99_worst": [round(late[min(len(late) - 1, int(len(late) * q))], 1) for q in (0.95, 0.99, 1)],
        "connect_ms": round(statistics.median(c.connect_s for c in callers) * 1000),
        "first_speech_ms": round(statistics.median(firsts) * 1000) if firsts else None,
        "left": {name: left[name] - before_all[name] for name in ("threads", "tasks", "files")},
    }


async def place(port: int, calls: int, seconds: float, packets: list[bytes]) -> list[Caller]:
    callers = [Caller(packets) for _ in range(calls)]
    await asyncio.gather(*(caller.call(port, seconds) for caller in callers))
    for caller in callers:
        await caller.close()
    return callers


async def leftovers(port: int, calls: int, packets: list[bytes]) -> dict[str, Any]:
    """Place ``calls`` short calls one after another; return what the server holds more afterwards than after five."""
    child = started("cached", port)
    try:
        await answering(port)
        await asyncio.sleep(1.5)
        counts = []
        for rounds in (5, calls):
            for _ in range(rounds):
                await place(port, 1, 0.2, packets)
            await asyncio.sleep(2)
            counts.append(await usage(port))
    finally:
        child.terminate()
        child.wait(10)
    names = ("threads", "tasks", "files", "rss_kib")
    return {"calls": calls, "left": {name: counts[1][name] - counts[0][name] for name in names}}


async def run(arguments: argparse.Namespace) -> None:
    encoder = SpeechEncoder(PacketCache())
    packets = [encoder.encode(frame) for frame in speech()]
    for mode in ("plain", "live", "cached"):
        print(json.dumps(await measure(mode, arguments.port, 1, arguments.seconds, packets)), flush=True)
    for mode in ("live", "cached"):
        print(json.dumps(await measure(mode, arguments.port, arguments.calls, arguments.seconds, packets)), flush=True)
    print(json.dumps(await leftovers(arguments.port, 50, packets)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--port", type=int, default=21450)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        import uvloop

        uvloop.run(serve(arguments.serve, arguments.port))
    else:
        asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
