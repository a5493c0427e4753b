#!/usr/bin/env python
"""What speaking costs: first piece, CPU per second of speech, cache hits, and the pure parts.

Run on an idle machine: python scripts/bench/speech.py [--threads N] [--runs N]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from voice_agent.config import CacheOptions, TtsOptions
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import Speech
from voice_agent.speech.speakable import speakable
from voice_agent.speech.splitter import SentenceSplitter
from voice_agent.speech.voice import CachedVoice

LINES = {
    "one word": "Certainly.",
    "short": "How can I help you today?",
    "reply": "Your balance is $42.50, due on March 3. Would you like to pay it now, or shall I remind you?",
    "long": (
        "I have looked into the outage that you reported: our engineers found a damaged cable in your street, and they "
        "expect to have it repaired by 5:30 p.m. today. You do not need to do anything. Is there anything else?"
    ),
}


async def timed(call: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return (wall, CPU) seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    await call()
    return time.perf_counter() - wall, time.process_time() - cpu


def median_ms(values: list[float]) -> str:
    return f"{statistics.median(values) * 1000:.1f}"


async def first_piece(voice: CachedVoice, text: str) -> None:
    stream = voice.speak(text, first=True)
    await anext(stream)
    await stream.aclose()


async def whole(voice: CachedVoice, text: str) -> list[Speech]:
    return [speech async for speech in voice.speak(text, first=True)]


async def synthesis(voice: CachedVoice, runs: int) -> Table:
    table = Table(title=f"Synthesis, median of {runs}")
    for column in ("line", "characters", "first piece ms", "all ms", "speech s", "CPU-s per s of speech"):
        table.add_column(column, justify="left" if column == "line" else "right")
    for name, text in LINES.items():
        firsts, walls, cpus = [], [], []
        seconds = 0.0
        for _ in range(runs):
            firsts.append((await timed(lambda text=text: first_piece(voice, text)))[0])  # type: ignore[misc]
            wall, cpu = time.perf_counter(), time.process_time()
            pieces = await whole(voice, text)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
            seconds += sum(piece.seconds for piece in pieces)
        share = sum(cpus) / seconds
        table.add_row(
            *(name, str(len(text)), median_ms(firsts), median_ms(walls), f"{seconds / runs:.2f}", f"{share:.3f}")
        )
    return table


async def caching(synthesizer: PiperSynthesizer, directory: Path, runs: int) -> Table:
    table = Table(title="A canned line of two sentences")
    table.add_column("where it comes from")
    table.add_column("ms", justify="right")
    text = LINES["reply"]
    options = CacheOptions(directory=directory)
    voice = CachedVoice(synthesizer, ResponseCache(options))
    table.add_row("engine, and written to disk", median_ms([(await timed(lambda: voice.warm([text])))[0]]))
    from_disk = []
    for _ in range(runs):
        restarted = CachedVoice(synthesizer, ResponseCache(options))
        from_disk.append((await timed(lambda restarted=restarted: restarted.warm([text])))[0])  # type: ignore[misc]
    table.add_row("disk, after a restart", median_ms(from_disk))
    began = time.perf_counter()
    for _ in range(1000):
        assert voice.cached(text) is not None
    table.add_row("memory: cached()", f"{time.perf_counter() - began:.3f}")
    table.add_row("memory: speak() to the first piece", median_ms([(await timed(lambda: first_piece(voice, text)))[0]]))
    return table


def pure_parts() -> Table:
    table = Table(title="Pure parts, per call")
    table.add_column("part")
    table.add_column("ms", justify="right")
    text = LINES["long"]

    def measure(name: str, call: Callable[[], object]) -> None:
        began = time.perf_counter()
        for _ in range(200):
            call()
        table.add_row(name, f"{(time.perf_counter() - began) * 5:.3f}")

    def by_deltas() -> None:
        splitter = SentenceSplitter()
        for at in range(0, len(text), 4):
            splitter.push(text[at : at + 4])
        splitter.flush()

    measure(f"speakable, {len(text)} characters", lambda: speakable(text))
    measure(f"splitter, the same in deltas of 4 ({len(text) // 4} pushes)", by_deltas)
    return table


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--threads", type=int, default=2, help="threads of one synthesis (default 2)")
    arguments.add_argument("--runs", type=int, default=5)
    options = arguments.parse_args()
    console = Console()
    pool = SpeechPool(workers=1)
    pool.start()
    synthesizer = PiperSynthesizer(TtsOptions(), pool, options.threads)
    began = time.perf_counter()
    await asyncio.to_thread(synthesizer.load)
    console.print(f"loaded and warmed in {time.perf_counter() - began:.2f} s, {options.threads} threads")
    try:
        with tempfile.TemporaryDirectory() as directory:
            voice = CachedVoice(synthesizer, ResponseCache(CacheOptions(disk_mb=0)))
            console.print(await synthesis(voice, options.runs))
            console.print(await caching(synthesizer, Path(directory), options.runs))
        console.print(pure_parts())
    finally:
        await pool.aclose(timeout_s=2)


if __name__ == "__main__":
    asyncio.run(main())
