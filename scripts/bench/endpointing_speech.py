"""Callers' lines as sound, in parts between which they pause: by Piper, by flite, by people."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scripts.bench.endpointing_lines import LINES
from tests.support.clips import read_clip
from tests.support.debian import prompt_files, prompt_texts
from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.speech.piper import PiperSynthesizer

NOISE_RMS = 60  # -55 dBFS
TAIL_S = 1.6
Pcm = NDArray[np.int16]


def assemble(parts: Sequence[Pcm], pause_s: float) -> Pcm:
    """Return the parts with pauses between them and a long silence behind, in faint room noise."""
    pieces = [np.zeros(SAMPLE_RATE // 2, np.int16)]
    for index, part in enumerate(parts):
        pieces += [part, np.zeros(round((pause_s if index < len(parts) - 1 else TAIL_S) * SAMPLE_RATE), np.int16)]
    line = np.concatenate(pieces)
    noise = np.random.default_rng(3).normal(0, NOISE_RMS, len(line))
    return np.clip(line + noise, -32_768, 32_767).astype(np.int16)


def trimmed(pcm: Pcm) -> Pcm:
    """Return speech without the silence around it, so that a pause is as long as it says."""
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > 500)
    return pcm[loud[0] : loud[-1] + 1]


async def spoken(voice: PiperSynthesizer, line: Sequence[str]) -> list[Pcm]:
    """Speak a line as one sentence and return its parts, cut between the words."""
    speech = await voice.synthesize(" ".join(line))
    pcm = np.frombuffer(speech.pcm, np.int16)
    cuts, words = [0], 0
    for part in line[:-1]:
        words += len(part.split())
        cuts.append((speech.spans[words - 1].last + speech.spans[words].first) // 2)
    return [trimmed(pcm[start:end]) for start, end in zip(cuts, [*cuts[1:], len(pcm)], strict=True)]


def at_pauses(pcm: Pcm, least_s: float) -> list[Pcm]:
    """Return a recording as the parts between its silences of at least ``least_s``."""
    hop = SAMPLE_RATE // 100
    frames = pcm[: len(pcm) // hop * hop].reshape(-1, hop).astype(np.float64)
    level = np.sqrt((frames**2).mean(axis=1))
    loud = np.flatnonzero(level > max(60, level.max() * 0.02))
    parts, start = [], loud[0]
    for before, after in pairwise(loud):
        if (after - before) * 0.01 >= least_s:
            parts.append(pcm[start * hop : (before + 1) * hop])
            start = after
    return [*parts, pcm[start * hop : (loud[-1] + 1) * hop]]


def flite(voice: str, line: Sequence[str]) -> list[Pcm] | None:
    """Speak a line with flite; None where it does not pause where the line does."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", voice, "-t", " ".join(line), "-o", file.name], check=True, timeout=30)
        pcm = read_clip(Path(file.name))
    parts = at_pauses(pcm, 0.15) if len(line) > 1 else [trimmed(pcm)]
    return parts if len(parts) == len(line) else None


def human(count: int) -> list[tuple[str, list[Pcm]]]:
    """Return recordings of one sentence: ``count`` that pause inside, and as many that do not."""
    files, texts = prompt_files(), prompt_texts()
    names = sorted(files)
    random.Random(7).shuffle(names)
    found: dict[str, list[list[Pcm]]] = {"human, inner": [], "human, whole": []}
    for name in names:
        text = texts[name].strip()
        if len(text.split()) < 3 or re.search(r"^\.|[.?!\[(<#*].*\w|(\.\.\.|[,:])$", text):
            continue
        pcm = read_clip(files[name])
        if 0.8 < len(pcm) / SAMPLE_RATE < 10:
            parts = at_pauses(pcm, 0.12)
            found["human, inner" if len(parts) > 1 else "human, whole"].append(parts)
    return [(kind, parts) for kind, recordings in found.items() for parts in recordings[:count]]


async def recordings(voice: PiperSynthesizer, voices: Sequence[str], humans: int) -> list[tuple[str, list[Pcm]]]:
    """Return every line by every voice that can say it, as (kind, parts)."""
    said: list[tuple[str, list[Pcm]]] = human(humans) if humans else []
    for kind, lines in LINES.items():
        for line in lines:
            for name in voices:
                # Only Piper tells where a word lies, and so pauses where no comma is written.
                parts = await spoken(voice, line) if name == "joe" else None if kind == "thought" else flite(name, line)
                if parts is not None:
                    said.append((kind, parts))
    return said
