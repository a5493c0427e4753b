#!/usr/bin/env python3
"""How punctually agent audio reaches many AudioSocket calls at once, and what they cost.

    scripts/bench/audiosocket.py [--calls 50] [--seconds 20] [--core 0]

The service runs in a process of its own, bound to one core, with the stub engines of ``meter_server.py``: a fixed
transcript, a fixed reply, a tone for speech, WebRTC's detector. So the framework alone is measured. The callers run on
the other cores in a process of their own; each speaks for a second and listens for five, over and over.

Lateness: how much later than 20 ms after the frame before it a frame of agent speech arrives. What a stall held up is
not sent in a burst, so a stall is one late frame. ``stalls`` are those of the callers' own loop of more than 20 ms: on
a machine with other things to do both sides are late, and the figure says little. CPU is the service's user and system
time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from voice_agent.channels import audiosocket_messages as messages

FRAME_S = 0.02
GAP_S = 0.6
"""A pause this long ends a stretch of speech."""
START_S = 60.0
SERVER = Path(__file__).with_name("meter_server.py")


def speech() -> list[bytes]:
    """A second of something that WebRTC's detector takes for a voice, at 8 kHz, in frames."""
    at = np.arange(8000) / 8000
    phase = 2 * np.pi * np.cumsum(130 + 25 * np.sin(2 * np.pi * 3 * at)) / 8000
    voice = sum(np.sin(phase * n) / n for n in range(1, 20)) * np.clip(np.sin(2 * np.pi * 4 * at) + 0.6, 0, 1)
    pcm = (voice * 6000).astype("<i2").tobytes()
    return [pcm[n : n + 320] for n in range(0, len(pcm), 320)]


@dataclass
class Caller:
    """One call. ``arrivals``: when frames with sound came in, by the monotonic clock."""

    offset_s: float
    arrivals: list[float] = field(default_factory=list)
    died: bool = False

    async def run(self, port: int, seconds: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(messages.frame(messages.IDENTITY, uuid.uuid4().bytes))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(reader))
            await self._speak(writer, seconds)
            self.died = reading.done()
            writer.write(messages.frame(messages.HANG_UP))
            reading.cancel()
        writer.close()

    async def _speak(self, writer: asyncio.StreamWriter, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        voice, silence, kind = speech(), bytes(320), 0x10
        began, sent = loop.time(), 0
        while sent * FRAME_S < seconds:
            place = sent - int((3.0 + self.offset_s) / FRAME_S)
            talking = place >= 0 and place % 300 < len(voice)
            writer.write(messages.frame(kind, voice[place % 300] if talking else silence))
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * FRAME_S - loop.time()))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                header = await reader.readexactly(messages.HEADER_BYTES)
                payload = await reader.readexactly(messages.payload_bytes(header))
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            if header[0] == messages.HANG_UP:
                return
            if payload.count(0) != len(payload):
                self.arrivals.append(time.monotonic())

    def lateness_s(self) -> list[float]:
        """Lateness of each frame after the one before it in the same stretch of speech."""
        gaps = np.diff(self.arrivals)
        return [max(0.0, float(gap) - FRAME_S) for gap in gaps if gap < GAP_S]


def project(directory: Path, http: int, port: int) -> Path:
    """Write the meter's project with AudioSocket switched on."""
    source = SERVER.with_name("meter_agent")
    for item in source.iterdir():
        if item.name != "integrations.yml":
            (directory / item.name).symlink_to(item)
    settings = (source / "integrations.yml").read_text()
    extra = f"  audiosocket:\n    enabled: true\n    port: {port}\n    turn_taking: {{silence_timeout_s: 3600}}\n"
    (directory / "integrations.yml").write_text(settings.replace("channels:\n", f"channels:\n{extra}", 1))
    return directory


async def place_calls(port: int, count: int, seconds: float, console: Console, stalls: list[float]) -> list[Caller]:
    callers = [Caller(6.0 * n / count) for n in range(count)]
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{count} calls", total=seconds)

        async def tick() -> None:
            loop = asyncio.get_running_loop()
            while True:
                due = loop.time() + FRAME_S
                await asyncio.sleep(FRAME_S)
                stalls.append(max(0.0, loop.time() - due))
                progress.advance(task, FRAME_S)

        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(tick())
            await asyncio.gather(*(caller.run(port, seconds) for caller in callers))
            ticking.cancel()
    return callers


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
        return number


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit("the service did not become ready")


def measure(calls: int, seconds: float, core: int, console: Console) -> dict[str, Any]:
    http, port, stalls = free_port(), free_port(), list[float]()
    with tempfile.TemporaryDirectory() as work:
        command = ["taskset", "-c", str(core), sys.executable, str(SERVER), "--port", str(http), "--stub"]
        command += ["--project", str(project(Path(work), http, port))]
        process = subprocess.Popen(command)
        try:
            wait_for(http, process)
            before = cpu_s(process.pid)
            began = time.monotonic()
            callers = asyncio.run(place_calls(port, calls, seconds, console, stalls))
            used, took = cpu_s(process.pid) - before, time.monotonic() - began
        finally:
            process.terminate()
            process.wait(20)
    late = np.array([each for caller in callers for each in caller.lateness_s()]) * 1000
    return {
        "calls": calls,
        "died": sum(caller.died for caller in callers),
        "frames": len(late),
        "late_ms_median": round(float(np.median(late)), 1) if len(late) else None,
        "late_ms_p99": round(float(np.percentile(late, 99)), 1) if len(late) else None,
        "late_ms_worst": round(float(late.max()), 1) if len(late) else None,
        "stalls": sum(each > FRAME_S for each in stalls),
        "core_percent_per_call": round(100 * used / took / calls, 2),
        "core_percent": round(100 * used / took, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--core", type=int, default=0, help="the core of the service")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    others = sorted(os.sched_getaffinity(0) - {options.core})
    if others:
        os.sched_setaffinity(0, others)
    found = measure(options.calls, options.seconds, options.core, Console(stderr=True))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    table = Table("what", "figure", title="AudioSocket, framework only, one core")
    for name, value in found.items():
        table.add_row(name.replace("_", " "), str(value))
    Console().print(table)


if __name__ == "__main__":
    main()
