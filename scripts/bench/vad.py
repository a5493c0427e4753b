#!/usr/bin/env python
"""Measure the voice detector: cost per frame, delay of onset and end on human speech, false voiced frames.

Run from the repository root: ``python scripts/bench/vad.py [--clips 80]``. Speech and music come from
Debian packages (fetched once); the noises are synthesised.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support import sounds
from voice_agent.audio.frames import FRAME_SAMPLES
from voice_agent.config import VadOptions
from voice_agent.speech.vad import DetectorFactory

NOISE_DBFS = (-70, -45, -35)


class Run:
    """One detector's verdicts and cost on one sound."""

    def __init__(self, factory: DetectorFactory, pcm: sounds.Pcm) -> None:
        detector = factory()
        voiced, cost = [], []
        for frame in sounds.frames(pcm):
            began = time.perf_counter_ns()
            voicing = detector.push(frame)
            cost.append(time.perf_counter_ns() - began)
            voiced.append(voicing.voiced)
        self.voiced = np.array(voiced)
        self.cost_us = np.array(cost) / 1000

    @property
    def longest_ms(self) -> int:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self.voiced, [False]]).astype(int)))
        return int(np.diff(edges)[::2].max(initial=0)) * 20


def cost_table(factories: dict[str, DetectorFactory]) -> Table:
    table = Table(title="µs per 20 ms frame")
    for heading in ("detector", "sound", "mean", "median", "p99", "worst"):
        table.add_column(heading, justify="left" if heading in ("detector", "sound") else "right")
    lines = {
        "idle, room at -60 dBFS": sounds.to_pcm(sounds.white_noise(40, -60)),
        "speech, prompts end to end": np.concatenate(list(sounds.prompts(20).values())),
        "hold music": next(iter(sounds.hold_music(40).values())),
    }
    for detector, factory in factories.items():
        for name, pcm in lines.items():
            cost = Run(factory, pcm).cost_us
            figures = (cost.mean(), np.median(cost), np.percentile(cost, 99), cost.max())
            table.add_row(detector, name, *(f"{figure:.0f}" for figure in figures))
    return table


def delay_table(factories: dict[str, DetectorFactory], clips: int) -> Table:
    table = Table(title=f"{clips} studio prompts (peak -6 dBFS) in white noise, delays in ms")
    for heading in ("detector", "noise", "missed", "early", "onset median", "p90", "end median", "p10", "p90"):
        table.add_column(heading, justify="left" if heading == "detector" else "right")
    speech = sounds.prompts(clips)
    for detector, factory in factories.items():
        for noise in NOISE_DBFS:
            onset, end, missed, early = [], [], 0, 0
            for name, clip in speech.items():
                utterance = sounds.in_noise(name, clip, noise)
                ends = (np.flatnonzero(Run(factory, utterance.pcm).voiced) + 1) * FRAME_SAMPLES
                early += bool((ends <= utterance.clip_start).any())
                inside = ends[ends > utterance.start]
                if not len(inside):
                    missed += 1
                    continue
                onset.append((inside[0] - utterance.start) / 16)
                end.append((inside[-1] - utterance.end) / 16)
            figures = [np.median(onset), np.percentile(onset, 90), np.median(end), *np.percentile(end, (10, 90))]
            table.add_row(detector, f"{noise} dBFS", str(missed), str(early), *(f"{figure:.0f}" for figure in figures))
    return table


def false_table(factories: dict[str, DetectorFactory]) -> Table:
    table = Table(title="frames called speech where there is none")
    for heading in ("sound", *(f"{name}: frames, longest" for name in factories)):
        table.add_column(heading, justify="left" if heading == "sound" else "right")
    for name, pcm in (sounds.no_speech(40) | sounds.hold_music()).items():
        runs = [Run(factory, pcm) for factory in factories.values()]
        table.add_row(name, *(f"{run.voiced.mean():.2%} {run.longest_ms} ms" for run in runs))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=80, help="studio prompts per noise level")
    clips = parser.parse_args().clips
    factories = {name: DetectorFactory(VadOptions(name=name)) for name in ("silero", "webrtc")}
    for factory in factories.values():
        factory.load()
    console = Console()
    console.print(cost_table(factories))
    console.print(delay_table(factories, clips))
    console.print(false_table(factories))


if __name__ == "__main__":
    main()
