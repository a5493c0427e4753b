"""The clips of human speech that word error rates are measured on.

Selection rule: the studio prompts whose text has at least four words and no note in brackets and
that last 1 to 24 s, drawn with seed 7; and all ten clips of ``pocketsphinx-testdata`` that have a
transcript (five LibriVox sentences, five spoken playing cards). Prompts are 8 kHz, as on a phone line.
"""

from __future__ import annotations

import random
import re
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from tests.support.debian import LIBRIVOX, package_file, prompt_files, prompt_texts

_TRANSCRIPT = re.compile(r"<s>(?P<text>.*)</s>\s*\((?P<name>[^)]+)\)")


@dataclass(frozen=True)
class Clip:
    """16 kHz mono samples and what is said in them."""

    name: str
    text: str
    pcm: NDArray[np.int16]

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 16000


def read_clip(path: Path) -> NDArray[np.int16]:
    """Return a mono WAV file as 16 kHz samples."""
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    if rate == 16000:
        return pcm
    return np.asarray(soxr.resample(pcm, rate, 16000), dtype=np.int16)


def studio_prompts(count: int, seed: int = 7) -> list[Clip]:
    files, texts = prompt_files(), prompt_texts()
    names = [name for name in sorted(files) if len(texts[name].split()) >= 4 and not set("[(<") & set(texts[name])]
    random.Random(seed).shuffle(names)
    clips = (Clip(name, texts[name], read_clip(files[name])) for name in names)
    fitting = (clip for clip in clips if 1 <= clip.seconds <= 24)
    return [clip for clip, _ in zip(fitting, range(count), strict=False)]


def pocketsphinx_clips() -> list[Clip]:
    clips = []
    for listing in package_file(LIBRIVOX, "**/*transcription"):
        for match in _TRANSCRIPT.finditer(listing.read_text()):
            name, text = match["name"], match["text"].strip()
            clips.append(Clip(name, text, read_clip(listing.with_name(f"{name}.wav"))))
    return clips
