"""The speech worker hangs when the service stops, idle or in mid-transcription.

Right: workers wake by a sentinel, closing is bounded, a worker stuck in its engine is abandoned,
logged and counted, and the process ends all the same. The same holds for a job that never returns
(where it concerns threads).
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from voice_agent.speech.pool import PoolClosed, SpeechPool
from voice_agent.speech.protocols import Priority
from voice_agent.telemetry.metrics import ABANDONED_TASKS


def workers_of(pool: SpeechPool) -> list[threading.Thread]:
    return list(pool._threads)


async def test_an_idle_pool_closes_without_audio_to_wake_it() -> None:
    pool = SpeechPool(2)
    pool.start()
    workers = workers_of(pool)
    async with asyncio.timeout(10):
        await pool.aclose(20)
    assert not any(worker.is_alive() for worker in workers)


async def test_a_pool_that_never_started_closes() -> None:
    async with asyncio.timeout(10):
        await SpeechPool(2).aclose(20)


async def test_a_worker_stuck_in_its_engine_is_abandoned_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    abandoned = ABANDONED_TASKS.labels(kind="speech worker")
    before = abandoned._value.get()
    release, running = threading.Event(), threading.Event()

    def stuck() -> None:
        running.set()
        release.wait(30)

    pool = SpeechPool(1)
    pool.start()
    (worker,) = workers_of(pool)

    async def call() -> None:
        with pytest.raises(PoolClosed, match="transcribe did not end"):
            await pool.run(stuck, priority=Priority.FINAL_TRANSCRIPT, job="transcribe")

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(call())
        await asyncio.to_thread(running.wait, 10)
        with caplog.at_level(logging.WARNING):
            await pool.aclose(0.1)
    assert abandoned._value.get() == before + 1
    assert "transcribe did not end" in caplog.text
    release.set()
    await asyncio.to_thread(worker.join, 10)
    assert not worker.is_alive()


STUCK_PROCESS = """
import asyncio, threading
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority

async def main():
    pool = SpeechPool(1)
    pool.start()
    running = threading.Event()
    def stuck():
        running.set()
        threading.Event().wait()
    async def call():
        try:
            await pool.run(stuck, priority=Priority.SPEECH, job="stuck")
        except EngineError as error:
            print(error)
    async with asyncio.TaskGroup() as group:
        group.create_task(call())
        await asyncio.to_thread(running.wait)
        await pool.aclose(0.1)

asyncio.run(main())
print("ended")
"""


def test_the_process_ends_though_a_worker_never_returns() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK_PROCESS], capture_output=True, text=True, timeout=60, check=True)
    assert "stuck did not end" in done.stdout
    assert done.stdout.rstrip().endswith("ended")


MID_TRANSCRIPTION_PROCESS = """
import asyncio
import numpy as np
from voice_agent.config import SttOptions
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority
from voice_agent.speech.whisper import WhisperRecognizer

async def main():
    pool = SpeechPool(1)
    recognizer = WhisperRecognizer(SttOptions(), pool, threads=2)
    recognizer.load()
    pool.start()
    noise = np.random.default_rng(1).normal(0, 3000, 24 * 16000).astype(np.int16)
    async def call():
        try:
            await recognizer.transcribe(noise)
        except EngineError as error:
            print(type(error).__name__)
    async with asyncio.TaskGroup() as group:
        group.create_task(call())
        while not pool.busy:
            await asyncio.sleep(0)
        await pool.aclose(0)

asyncio.run(main())
print("ended")
"""


@pytest.mark.models
def test_the_process_ends_in_mid_transcription() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MID_TRANSCRIPTION_PROCESS], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["PoolClosed", "ended"]
