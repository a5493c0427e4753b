"""The service with the meter's profile: how fast it answers, what a call costs.

    scripts/bench/meter_server.py --port 9300 [--stub] [--llm http://127.0.0.1:9100]

Real engines by default. With ``--stub`` only the framework is measured: a fixed transcript, a fixed reply of
15 words, a 300 Hz tone of 60 ms per character for speech, and voice detection by WebRTC alone. Either way it is
the ordinary service, given other engines and one more route: ``GET /stats`` returns ``{"tasks": n, "objs": n}``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from voice_agent.cli.run import freeze_heap, run_loop  # noqa: E402
from voice_agent.config import CacheOptions, VadOptions  # noqa: E402
from voice_agent.llm.protocol import Finished, ModelEvent, ModelRequest, TextDelta  # noqa: E402
from voice_agent.server import serve  # noqa: E402
from voice_agent.service.engines import Engines  # noqa: E402
from voice_agent.service.service import build_service  # noqa: E402
from voice_agent.speech.cache import ResponseCache  # noqa: E402
from voice_agent.speech.protocols import Priority, Speech, TextSpan, Transcript, Urgency  # noqa: E402
from voice_agent.speech.vad import DetectorFactory  # noqa: E402
from voice_agent.speech.voice import CachedVoice  # noqa: E402
from voice_agent.store.memory import MemoryStore  # noqa: E402
from voice_agent.telemetry.logging import configure  # noqa: E402

PROJECT = Path(__file__).parent / "meter_agent"
TRANSCRIPT = "hello there my friend"
REPLY = "Sure, I can help you with that. What day would you like to come in?"
RATE = 16000
CHARACTER_SAMPLES = int(RATE * 0.06)


class FixedRecognizer:
    """Hears the same words in everything."""

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        return Transcript(TRANSCRIPT, len(pcm) / RATE)


class ToneSynthesizer:
    """Says everything as a 300 Hz tone, 60 ms for each character."""

    identity = "tone-300-60ms"

    def __init__(self) -> None:
        second = np.sin(np.arange(RATE) * 2 * np.pi * 300 / RATE) * 8000
        self._tone = np.tile(second.astype("<i2"), 60)

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        spans, at = [], 0
        for word in text.split(" "):
            end = at + len(word)
            if word:
                spans.append(TextSpan(at, end, at * CHARACTER_SAMPLES, end * CHARACTER_SAMPLES))
            at = end + 1
        return Speech(
            text, self._tone[: len(text) * CHARACTER_SAMPLES].tobytes(), tuple(s for s in spans if s.end > s.start)
        )


class FixedModel:
    """Answers everything with the same words, one delta each."""

    name = "stub"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for word in REPLY.split(" "):
            yield TextDelta(word + " ")
        yield Finished("stop")

    async def warm_up(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def stub_engines() -> Engines:
    return Engines(
        model=FixedModel(),
        recognizer=FixedRecognizer(),
        voice=CachedVoice(ToneSynthesizer(), ResponseCache(CacheOptions(disk_mb=0))),
        detectors=DetectorFactory(VadOptions(name="webrtc")),
    )


def add_stats(app: FastAPI) -> None:
    @app.get("/stats")
    async def stats() -> dict[str, int]:
        gc.collect()
        return {"tasks": len(asyncio.all_tasks()), "objs": len(gc.get_objects())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stub", action="store_true", help="measure the framework alone")
    parser.add_argument("--llm", default="http://127.0.0.1:9100", help="address of the language model stub")
    parser.add_argument("--project", type=Path, default=PROJECT, help="another project than the meter's")
    parser.add_argument("--log-level", default="warning")
    given = parser.parse_args()
    configure(given.log_level)
    os.environ["METER_LLM"] = given.llm
    # A store that soon forgets: conversations kept on purpose must not look like objects left behind.
    store = MemoryStore(max_conversations=8)
    service = build_service(given.project, engines=stub_engines() if given.stub else None, store=store)
    options = service.config.integrations.server.model_copy(update={"port": given.port})
    run_loop(serve(service, options, channels=service.channels, ready=freeze_heap, extend=add_stats))


if __name__ == "__main__":
    main()
