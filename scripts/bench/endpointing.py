#!/usr/bin/env python3
"""Measure when callers are taken to have finished: how often too early, how late otherwise, over thresholds.

    scripts/bench/endpointing.py [--voices joe,slt,rms] [--human 30] [--picture docs/images/endpointing.png]

Callers' lines with pauses inside (a comma, digits in groups, a thought) are spoken as one sentence, so that the melody
promises more, drawn apart where they pause, and laid into room noise. Voices: Piper's `joe`, and those of `flite`
where it is installed. Human recordings (studio prompts of one sentence) are drawn apart where their speaker pauses. The
detector says where the silences are, the recogniser what was said up to each. Every silence is then judged by each
strategy, its silences scaled: an utterance that ends in an inner silence is cut off; the delay is the silence waited
for at the true end, of all utterances alike.

- ``answer``: the silence before an answer that a model words sounds; what is judged is whether it sounds too early
- ``turn``: the silence after which the words are a turn; what follows before the answer sounds is joined to it
- ``fixed``: blind to the words, as many products have it

Recognition is taken to be in time: its cost is the subject of `scripts/bench/speech.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from scripts.bench.endpointing_speech import Pcm, assemble, recordings
from voice_agent.audio.frames import FRAME_MS, FRAME_SAMPLES
from voice_agent.call.endpointing import Endpointing
from voice_agent.call.segmenter import Segmenter, Signal
from voice_agent.config import SttOptions, TtsOptions, TurnTaking, VadOptions
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.vad import DetectorFactory
from voice_agent.speech.whisper import WhisperRecognizer

PAUSES_S = (0.4, 0.6, 0.8, 1.0)
"""Each line is judged with each of these pauses between its parts."""
MEASURED_PAUSE_S = 0.6
DRAWN_APART_MS = 450
SCALES = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0)
FIXED_MS = (200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1400)


@dataclass(frozen=True)
class Silence:
    """One silence of a line: its length, what was understood up to it, and whether the line was over."""

    ms: int
    text: str
    final: bool
    stop_probability: float | None = None


@dataclass(frozen=True)
class Judged:
    """What a strategy makes of all lines: the share of those with a pause that it cuts off, and the delay of each."""

    cut_off: float
    delays_ms: tuple[int, ...]

    @property
    def mean_ms(self) -> float:
        return float(np.mean(self.delays_ms)) if self.delays_ms else 0.0

    @property
    def p90_ms(self) -> float:
        return float(np.percentile(self.delays_ms, 90)) if self.delays_ms else 0.0


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


async def measure(
    voice: PiperSynthesizer, ears: WhisperRecognizer, voices: Sequence[str], humans: int
) -> dict[str, list[list[Silence]]]:
    """Return the silences of every line with every pause, by kind.

    What is understood up to a pause does not depend on how long it lasts, so that each line is recognised once.
    """
    detectors, options = DetectorFactory(VadOptions()), TurnTaking()
    detectors.load()
    measured: dict[str, list[list[Silence]]] = {}
    for kind, parts in track(await recordings(voice, voices, humans), description="recognising"):
        pcm = assemble(parts, MEASURED_PAUSE_S)
        found = silences(pcm, detectors, options)
        heard = [await ears.transcribe(pcm[:at]) for at, _ in found]
        for pause_s in PAUSES_S if len(parts) > 1 else PAUSES_S[:1]:
            longer_ms = round((pause_s - MEASURED_PAUSE_S) * 1000)
            measured.setdefault(kind, []).append(
                [
                    # Shorter silences are the voice's own, within a part.
                    Silence(
                        ms + (longer_ms if ms >= DRAWN_APART_MS else 0), h.text, i == len(found) - 1, h.stop_probability
                    )
                    for i, ((_, ms), h) in enumerate(zip(found, heard, strict=True))
                ]
            )
    return measured


Strategy = Callable[[Silence], int]


def judge(lines: Sequence[Sequence[Silence]], required_ms: Strategy) -> Judged:
    """Judge all lines with what a strategy requires after a silence began."""
    cut, pausing, delays = 0, 0, []
    for line in lines:
        inner = [silence for silence in line if not silence.final]
        pausing += bool(inner)
        cut += any(silence.ms >= required_ms(silence) for silence in inner)
        if line:
            delays.append(required_ms(line[-1]))
    return Judged(cut / max(1, pausing), tuple(delays))


def scaled(scale: float, which: Literal["turn_ms", "reply_ms"]) -> Strategy:
    """Return a strategy: the endpointing of the default options with all its silences scaled."""
    options = TurnTaking()
    names = ("min_endpoint_ms", "max_endpoint_ms", "reply_after_ms")
    endpoints = Endpointing(options.model_copy(update={name: round(getattr(options, name) * scale) for name in names}))

    def required_ms(silence: Silence) -> int:
        endpoint = endpoints.endpoint(silence.text or None, None, silence.stop_probability)
        return max(options.pause_ms, int(getattr(endpoint, which)))

    return required_ms


def fixed(ms: int) -> Strategy:
    return lambda _: ms


def curves() -> dict[str, list[tuple[str, Strategy]]]:
    """Return every strategy at every threshold, by name, each with the label of its threshold."""
    return {
        "answer": [(f"x{scale:g}", scaled(scale, "reply_ms")) for scale in SCALES],
        "turn": [(f"x{scale:g}", scaled(scale, "turn_ms")) for scale in SCALES],
        "fixed": [(f"{ms} ms", fixed(ms)) for ms in FIXED_MS],
    }


def tables(measured: dict[str, list[list[Silence]]]) -> list[Table]:
    everything = [line for lines in measured.values() for line in lines]
    curve = Table(title=f"{len(everything)} utterances: cut-offs of those with a pause, and delay at the end")
    for heading in ("strategy", "threshold", "cut off", "mean delay ms", "p90 ms"):
        curve.add_column(heading, justify="right")
    for name, strategies in curves().items():
        for label, strategy in strategies:
            judged = judge(everything, strategy)
            curve.add_row(name, label, f"{judged.cut_off:.0%}", f"{judged.mean_ms:.0f}", f"{judged.p90_ms:.0f}")
    kinds = Table(title="the default, by kind of inner pause")
    for heading in (
        "kind",
        "utterances",
        "answer too early",
        "turn too early",
        "mean answer ms",
        "p90",
        "mean turn ms",
    ):
        kinds.add_column(heading, justify="right")
    for kind, lines in measured.items():
        answer, turn = judge(lines, scaled(1, "reply_ms")), judge(lines, scaled(1, "turn_ms"))
        cells = (f"{answer.cut_off:.0%}", f"{turn.cut_off:.0%}", f"{answer.mean_ms:.0f}", f"{answer.p90_ms:.0f}")
        kinds.add_row(kind, str(len(lines)), *cells, f"{turn.mean_ms:.0f}")
    short = Table(title="answers too early, by length of the pause")
    for heading in ("pause ms", "utterances", "cut off"):
        short.add_column(heading, justify="right")
    for low, high in ((0, 500), (500, 700), (700, 900), (900, 1300)):
        lines = [line for line in everything if low <= max((s.ms for s in line if not s.final), default=-1) < high]
        short.add_row(f"{low} to {high}", str(len(lines)), f"{judge(lines, scaled(1, 'reply_ms')).cut_off:.0%}")
    return [curve, kinds, short]


def cut_texts(measured: dict[str, list[list[Silence]]]) -> list[str]:
    """Return the words at which an answer of the default sounds into an utterance."""
    required = scaled(1, "reply_ms")
    inner = [s for lines in measured.values() for line in lines for s in line if not s.final]
    return sorted({silence.text for silence in inner if silence.ms >= required(silence)})


def draw(measured: dict[str, list[list[Silence]]], picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    everything = [line for lines in measured.values() for line in lines]
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    looks = {"answer": ("o-", "#06c", "first sound of an answer"), "turn": ("^-", "#393", "begin of the turn")}
    for name, strategies in curves().items():
        style, colour, label = looks.get(name, ("s--", "#999", "fixed silence"))
        points = [judge(everything, strategy) for _, strategy in strategies]
        axes.plot([j.mean_ms for j in points], [100 * j.cut_off for j in points], style, color=colour, label=label)
    for default, legend in (
        (judge(everything, scaled(1, "reply_ms")), "the default"),
        (judge(everything, scaled(1, "turn_ms")), None),
    ):
        axes.plot(default.mean_ms, 100 * default.cut_off, "o", ms=12, mfc="none", color="#c30", label=legend)
    axes.set_xlim(100, 1450)
    axes.set_xlabel("mean silence at the true end, ms")
    axes.set_ylabel("utterances with a pause cut off, %")
    axes.set_title(f"{len(everything)} utterances, inner pauses of {min(PAUSES_S):g} to {max(PAUSES_S):g} s")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


async def main(voices: Sequence[str], humans: int, picture: Path | None) -> None:
    pool = SpeechPool(1)
    pool.start()
    voice, ears = PiperSynthesizer(TtsOptions(), pool, 2), WhisperRecognizer(SttOptions(), pool, 2)
    voice.load()
    ears.load()
    try:
        measured = await measure(voice, ears, voices, humans)
    finally:
        await pool.aclose(5)
    console = Console()
    for table in tables(measured):
        console.print(table)
    console.print("an answer of the default would sound after:", *map(repr, cut_texts(measured)), sep="\n  ")
    if picture is not None:
        draw(measured, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="draw the curves into this file")
    parser.add_argument("--human", type=int, default=30, help="human recordings of each kind; 0 needs no network")
    everyone = "joe,slt,rms" if shutil.which("flite") else "joe"
    parser.add_argument("--voices", default=everyone, help="joe (Piper) and voices of flite")
    given = parser.parse_args()
    asyncio.run(main(given.voices.split(","), given.human, given.picture))
