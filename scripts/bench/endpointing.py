#!/usr/bin/env python3
"""Measure when callers are taken to have finished: how often too early, how late otherwise, over thresholds.

    scripts/bench/endpointing.py [--picture docs/images/endpointing.png]

Callers' lines with pauses inside (a comma, digits in groups, a thought) are spoken by the voice as one sentence, so
that its melody promises more, drawn apart where they pause, and laid into room noise. The detector says where the
silences are, the recogniser what was said up to each. Every silence is then judged with the endpoints of each
threshold: an utterance that ends in an inner silence is cut off; the delay is the silence waited for at the true end,
of all utterances alike. A threshold blind to the words, as many products have it, is judged on the same silences.
Recognition is taken to be in time: its cost is the subject of `scripts/bench/speech.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from voice_agent.audio.frames import FRAME_MS, FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.call.endpointing import Endpointing
from voice_agent.call.segmenter import Segmenter, Signal
from voice_agent.config import SttOptions, TtsOptions, TurnTaking, VadOptions
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.vad import DetectorFactory
from voice_agent.speech.whisper import WhisperRecognizer

LINES: dict[str, list[tuple[str, ...]]] = {
    "comma": [
        ("I want to pay my bill,", "with my credit card."),
        ("I was at the shop yesterday,", "and the lamp I bought is broken."),
        ("On Monday,", "on Tuesday,", "and on Friday."),
        ("If it is not too late,", "I would like to change my order."),
    ],
    "digits": [
        ("Four two seven,", "nine one three,", "five five."),
        ("My number is", "oh one seven two,", "three four five,", "six seven eight nine."),
        ("Zero two zero,", "seven nine four six,", "one two three four."),
        ("It is eight eight one,", "four four oh two."),
    ],
    "thought": [
        ("I would like a coffee and", "a piece of apple cake."),
        ("Can I book a table for um", "four people this evening?"),
        ("I need to speak to", "somebody about my contract."),
        ("The thing is that", "my card was stolen on the train."),
    ],
    "as spoken": [
        ("What is my balance?",),
        ("I would like to speak to a person.",),
        ("When do you open on Sunday?",),
        ("Yes, please.",),
    ],
}
"""What is said, by the kind of its inner pauses."""
PAUSES_S = (0.4, 0.6, 0.8, 1.0)
"""Each line is judged with each of these pauses between its parts."""
NOISE_RMS = 60  # -55 dBFS
TAIL_S = 3.0
SCALES = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0)
FIXED_MS = (200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1400)
Pcm = NDArray[np.int16]


@dataclass(frozen=True)
class Silence:
    """One silence of a line: its length, what was understood up to it, and whether the line was over."""

    ms: int
    text: str
    final: bool


@dataclass(frozen=True)
class Judged:
    """What a threshold makes of all lines: the share that was cut off, and the delay at the end of each."""

    cut_off: float
    delays_ms: tuple[int, ...]

    @property
    def mean_ms(self) -> float:
        return float(np.mean(self.delays_ms)) if self.delays_ms else 0.0


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


def silences(pcm: Pcm, detectors: DetectorFactory, options: TurnTaking) -> list[tuple[int, int]]:
    """Return each silence that the detector finds after voice as (sample at which it was noticed, length in ms)."""
    detector, segmenter = detectors(), Segmenter(options.pause_ms)
    found: list[tuple[int, int]] = []
    noticed, length = 0, 0
    for at in range(0, len(pcm) - FRAME_SAMPLES + 1, FRAME_SAMPLES):
        voicing = detector.push(pcm[at : at + FRAME_SAMPLES].tobytes())
        before = segmenter.silence_ms
        signal = segmenter.push(voicing.voiced, voicing.earlier_frames)
        if signal is Signal.PAUSE:
            noticed = at + FRAME_SAMPLES
        elif signal is Signal.RESUME:
            found.append((noticed, before + FRAME_MS))
        length = segmenter.silence_ms
    if segmenter.paused:
        found.append((noticed, length))
    return found


async def measure(voice: PiperSynthesizer, ears: WhisperRecognizer) -> dict[str, list[list[Silence]]]:
    """Return the silences of every line with every pause, by kind."""
    detectors, options = DetectorFactory(VadOptions()), TurnTaking()
    detectors.load()
    measured: dict[str, list[list[Silence]]] = {}
    for kind, lines in LINES.items():
        for line in lines:
            parts = await spoken(voice, line)
            for pause_s in PAUSES_S if len(parts) > 1 else PAUSES_S[:1]:
                pcm = assemble(parts, pause_s)
                found = silences(pcm, detectors, options)
                texts = [(await ears.transcribe(pcm[:at])).text for at, _ in found]
                judged = [
                    Silence(ms, text, index == len(found) - 1)
                    for index, ((_, ms), text) in enumerate(zip(found, texts, strict=True))
                ]
                measured.setdefault(kind, []).append(judged)
    return measured


def judge(lines: Sequence[Sequence[Silence]], required_ms: Callable[[str], int]) -> Judged:
    """Judge all lines with what a threshold requires after a text."""
    cut, delays = 0, []
    for line in lines:
        if any(not silence.final and silence.ms >= required_ms(silence.text) for silence in line):
            cut += 1
        if line:
            delays.append(required_ms(line[-1].text))
    return Judged(cut / len(lines), tuple(delays))


def scaled(scale: float) -> Callable[[str], int]:
    """Return the endpointing of the default options with all its silences scaled."""
    options = TurnTaking()
    endpoints = Endpointing(
        options.model_copy(
            update={
                "min_endpoint_ms": round(options.min_endpoint_ms * scale),
                "max_endpoint_ms": round(options.max_endpoint_ms * scale),
            }
        )
    )
    return lambda text: max(options.pause_ms, endpoints.required_silence_ms(text or None))


def fixed(ms: int) -> Callable[[str], int]:
    return lambda _: ms


def tables(measured: dict[str, list[list[Silence]]]) -> list[Table]:
    everything = [line for lines in measured.values() for line in lines]
    curve = Table(title=f"{len(everything)} utterances: cut-offs and mean delay at the end")
    for heading in ("endpoint", "cut off", "mean delay ms", "worst ms"):
        curve.add_column(heading, justify="right")
    rows = [(f"by words, x{scale:g}", judge(everything, scaled(scale))) for scale in SCALES]
    rows += [(f"fixed, {ms} ms", judge(everything, fixed(ms))) for ms in FIXED_MS]
    for name, judged in rows:
        worst = max(judged.delays_ms, default=0)
        curve.add_row(name, f"{judged.cut_off:.0%}", f"{judged.mean_ms:.0f}", str(worst))
    kinds = Table(title="the default endpoints, by kind of inner pause")
    for heading in ("kind", "utterances", "cut off", "mean delay ms"):
        kinds.add_column(heading, justify="right")
    for kind, lines in measured.items():
        judged = judge(lines, scaled(1.0))
        kinds.add_row(
            kind, str(len(lines)), f"{judged.cut_off:.0%}", f"{judged.mean_ms:.0f}" if judged.delays_ms else "-"
        )
    return [curve, kinds]


def cut_texts(measured: dict[str, list[list[Silence]]]) -> list[str]:
    """Return the words at which the default endpoints cut an utterance."""
    required = scaled(1.0)
    inner = [s for lines in measured.values() for line in lines for s in line if not s.final]
    return sorted({silence.text for silence in inner if silence.ms >= required(silence.text)})


def draw(measured: dict[str, list[list[Silence]]], picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    everything = [line for lines in measured.values() for line in lines]
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    by_words = [judge(everything, scaled(scale)) for scale in SCALES]
    blind = [judge(everything, fixed(ms)) for ms in FIXED_MS]
    axes.plot([j.mean_ms for j in blind], [100 * j.cut_off for j in blind], "s--", color="#999", label="fixed silence")
    axes.plot([j.mean_ms for j in by_words], [100 * j.cut_off for j in by_words], "o-", color="#06c", label="by words")
    default = judge(everything, scaled(1.0))
    axes.plot(default.mean_ms, 100 * default.cut_off, "o", ms=12, mfc="none", color="#c30", label="the default")
    axes.set_xlabel("mean silence before the answer, ms")
    axes.set_ylabel("utterances cut off, %")
    axes.set_title(f"{len(everything)} utterances with inner pauses of {min(PAUSES_S):g} to {max(PAUSES_S):g} s")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


async def main(picture: Path | None) -> None:
    pool = SpeechPool(1)
    pool.start()
    voice, ears = PiperSynthesizer(TtsOptions(), pool, 2), WhisperRecognizer(SttOptions(), pool, 2)
    voice.load()
    ears.load()
    try:
        measured = await measure(voice, ears)
    finally:
        await pool.aclose(5)
    console = Console()
    for table in tables(measured):
        console.print(table)
    console.print("cut off by the default after:", *(repr(text) for text in cut_texts(measured)), sep="\n  ")
    if picture is not None:
        draw(measured, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="draw the curve into this file")
    asyncio.run(main(parser.parse_args().picture))
