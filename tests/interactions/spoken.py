"""Scripts in `spoken/`: callers who are really heard, a voice that is really spoken, and the real call between them.

``python -m tests.interactions.spoken`` plays them in real time with the shared speech pool, as a service has it, and
prints what came of each.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.interactions.agent import ScriptAgent
from tests.interactions.script import AgentTurn, Expected, Script
from tests.support import sounds
from tests.support.acoustic_wire import AcousticWire
from tests.support.calls import OPTIONS, place
from tests.support.flite import said
from voice_agent.call.vocabulary import words
from voice_agent.config import CacheOptions, PoolOptions, SttOptions, TtsOptions, TurnTaking, VadOptions
from voice_agent.service.engines import usable_cores
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool, pool_plan
from voice_agent.speech.protocols import Recognizer, Voice, VoiceDetector
from voice_agent.speech.vad import DetectorFactory
from voice_agent.speech.voice import CachedVoice
from voice_agent.speech.whisper import WhisperRecognizer

SCRIPTS = sorted((Path(__file__).parent / "spoken").glob("*.yml"))


class Sound(BaseModel):
    """What the caller's side sounds like from ``at`` on; one of the fields after ``dbfs``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    at: float
    dbfs: float = -24
    says: str | None = None
    voice: Literal["slt", "rms"] = "slt"
    prompt: str | None = None
    """Name of a studio prompt, a human voice."""
    noise: Literal["cough", "door"] | None = None
    music: float | None = None
    """Seconds of hold music."""

    def pcm(self) -> NDArray[np.int16]:
        if self.says is not None:
            return said(self.says, self.voice)
        if self.prompt is not None:
            return sounds.prompt(self.prompt)
        if self.music is not None:
            return next(iter(sounds.hold_music(self.music).values()))
        seconds, decay_s = (0.25, 0.08) if self.noise == "cough" else (0.4, 0.05)
        wave = sounds.pink_noise(seconds, -12) * np.exp(-np.arange(round(seconds * 16000)) / 16000 / decay_s)
        return sounds.to_pcm(wave)


class Spoken(BaseModel):
    """One script. ``turns``: words that each turn of the caller holds; ``whole``, ``cut``: replies by number."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    about: str
    real: Literal[True]
    seconds: float
    echo_db: float | None = None
    options: dict[str, Any] = {}
    agent: tuple[AgentTurn, ...]
    caller: tuple[Sound, ...] = ()
    turns: tuple[str, ...]
    whole: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


def load(path: Path) -> Spoken:
    """Read a script."""
    return Spoken.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


async def play(
    script: Spoken, *, voice: Voice, recognizer: Recognizer, detector: VoiceDetector
) -> list[dict[str, Any]]:
    """Play one call on the running loop, whose time it takes; return its story."""
    wire = AcousticWire(script.seconds, echo_db=script.echo_db)
    for sound in script.caller:
        wire.voice(sound.at, sound.pcm(), sound.dbfs)
    agent = ScriptAgent(Script(about="", agent=script.agent, expect=Expected(audible=(), story=(), outcome="")))
    options = TurnTaking.model_validate({**OPTIONS.model_dump(), **script.options})
    await place(wire, agent, voice=voice, recognizer=recognizer, detector=detector, options=options, calls=[])
    return agent.story


def faults(script: Spoken, story: list[dict[str, Any]]) -> list[str]:
    """Return what of the story is not as the script says."""
    turns = [words(entry["turn"]) for entry in story if "turn" in entry and not entry["turn"].startswith("/")]
    found = []
    if len(turns) != len(script.turns):
        found.append(f"{len(turns)} turns, not {len(script.turns)}")
    for said_words, wanted in zip(turns, script.turns, strict=False):
        if missing := set(words(wanted)) - set(said_words):
            found.append(f"not heard: {', '.join(sorted(missing))}")
    replies = [entry["heard"] for entry in story if "heard" in entry]
    for numbers, is_cut in ((script.whole, False), (script.cut, True)):
        for number in numbers:
            if number >= len(replies) or ("|" in replies[number]) is not is_cut:
                found.append(f"reply {number} should be {'cut' if is_cut else 'whole'}")
    return found


async def _in_real_time(paths: list[Path]) -> int:
    """Play scripts one after the other with engines in the shared pool. Returns how many went wrong."""
    workers, threads = pool_plan(PoolOptions(), usable_cores())
    pool = SpeechPool(workers)
    pool.start()
    recognizer, synthesizer = (
        WhisperRecognizer(SttOptions(), pool, threads),
        PiperSynthesizer(TtsOptions(), pool, threads),
    )
    detectors = DetectorFactory(VadOptions())
    for engine in (recognizer, synthesizer, detectors):
        await asyncio.to_thread(engine.load)
    table, wrong = Table("script", "result", "story"), 0
    try:
        for path in track(paths, "calls in real time"):
            script = load(path)
            voice = CachedVoice(synthesizer, ResponseCache(CacheOptions(disk_mb=0)))
            story = await play(script, voice=voice, recognizer=recognizer, detector=detectors())
            fault = faults(script, story)
            wrong += bool(fault)
            told = "\n".join(f"{key}: {value}" for entry in story for key, value in entry.items())
            table.add_row(path.stem, "; ".join(fault) or "as it says", told)
    finally:
        await pool.aclose(2)
    Console().print(table)
    return wrong


if __name__ == "__main__":
    sys.exit(asyncio.run(_in_real_time([Path(name) for name in sys.argv[1:]] or SCRIPTS)))
