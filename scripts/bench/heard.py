#!/usr/bin/env python3
"""Say callers' lines with the voice, hear them with the recogniser, and keep what it wrote.

    scripts/bench/heard.py [FILE]          tests/llm/embedded/heard_lines.yml by default

Each entry's ``said`` is spoken and heard as it is, over a telephone line (8 kHz, mu-law), and over that line with
faint noise. ``heard`` is replaced by the different transcripts, so that the tests of the embedded model read callers
as the recogniser writes them: digits grouped, words for sounds, marks missing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import yaml
from numpy.typing import NDArray

from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.config import SttOptions, TtsOptions
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.whisper import WhisperRecognizer

LINES = Path(__file__).resolve().parents[2] / "tests" / "llm" / "embedded" / "heard_lines.yml"
CANONICAL_HZ, TELEPHONE_HZ = 16_000, 8_000
NOISE_RMS = 250  # -42 dBFS
HEAD = "# What callers said and what the recogniser wrote. `heard` is made by scripts/bench/heard.py.\n"


def main(path: Path) -> None:
    entries: dict[str, list[dict[str, Any]]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    asyncio.run(hear([entry for group in entries.values() for entry in group]))
    text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=120)
    path.write_text(HEAD + text, encoding="utf-8")


async def hear(entries: list[dict[str, Any]]) -> None:
    """Fill ``heard`` of each entry with what the recogniser makes of ``said``."""
    pool = SpeechPool(1)
    pool.start()
    voice, ears = PiperSynthesizer(TtsOptions(), pool, 2), WhisperRecognizer(SttOptions(), pool, 2)
    voice.load()
    ears.load()
    try:
        for entry in entries:
            speech = await voice.synthesize(entry["said"])
            heard = [(await ears.transcribe(pcm)).text for pcm in lines_of(speech.pcm)]
            entry["heard"] = list(dict.fromkeys(text for text in heard if text))
            print(f"{entry['said']!r}: {entry['heard']}", flush=True)
    finally:
        await pool.aclose(5)


def lines_of(speech: bytes) -> list[NDArray[np.int16]]:
    """Return the speech over a good line, a telephone line, and a noisy one; half a second of quiet around each."""
    clean = np.frombuffer(speech, dtype=np.int16)
    narrow = resample(speech, CANONICAL_HZ, TELEPHONE_HZ)
    phone = np.frombuffer(resample(ulaw_decode(ulaw_encode(narrow)), TELEPHONE_HZ, CANONICAL_HZ), dtype=np.int16)
    quiet = np.zeros(CANONICAL_HZ // 2, dtype=np.int16)
    calls = [np.concatenate([quiet, pcm, quiet]) for pcm in (clean, phone)]
    noise = np.random.default_rng(7).normal(0, NOISE_RMS, len(calls[1]))
    return [*calls, np.clip(calls[1] + noise, -32_768, 32_767).astype(np.int16)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=LINES, help="rewritten with what was heard")
    main(parser.parse_args().file)
