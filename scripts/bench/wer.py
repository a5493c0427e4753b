#!/usr/bin/env python3
"""Word error rate and CPU of the recogniser's profiles beside stock faster-whisper.

    scripts/bench/wer.py [--clips 60] [--profile fast,accurate,stock] [--threads 1] [--json]

Clips: see tests/support/clips.py (seeded studio prompts of 8 kHz, and the pocketsphinx clips). Every clip goes
through all profiles in turn, so that a busy machine burdens them alike. CPU is the process's user and system time.

    fast        tiny.en as the service runs it
    accurate    base as the service runs it
    stock       faster_whisper.WhisperModel("tiny.en").transcribe(language="en", beam_size=1), its 30 s window
    stock-beam5 the same with its default beam of 5
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.support.clips import Clip, pocketsphinx_clips, studio_prompts
from tests.support.word_errors import normalized, word_errors

Transcribe = Callable[[NDArray[np.int16]], str]


@dataclass
class Score:
    """What one profile came to over all clips."""

    profile: str
    words: int = 0
    errors: int = 0
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    wrong: list[dict[str, Any]] = field(default_factory=list)

    @property
    def word_error_rate(self) -> float:
        return self.errors / self.words

    def add(self, clip: Clip, transcribe: Transcribe) -> None:
        wall, cpu = time.perf_counter(), cpu_seconds()
        heard = transcribe(clip.pcm)
        self.cpu_s.append(cpu_seconds() - cpu)
        self.wall_s.append(time.perf_counter() - wall)
        reference = normalized(clip.text)
        errors = word_errors(reference, normalized(heard))
        self.words += len(reference)
        self.errors += errors
        if errors:
            self.wrong.append({"clip": clip.name, "errors": errors, "said": clip.text, "heard": heard})


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def ours(model: str, threads: int) -> Transcribe:
    from voice_agent.speech.whisper_decoder import WhisperDecoder

    decoder = WhisperDecoder(model, "en", threads=threads, workers=1)
    return lambda pcm: decoder.decode(pcm).text


def stock(threads: int, beam_size: int) -> Transcribe:
    from faster_whisper import WhisperModel

    from voice_agent.speech.models import whisper_model

    model = WhisperModel(whisper_model("tiny.en"), device="cpu", compute_type="int8", cpu_threads=threads)

    def transcribe(pcm: NDArray[np.int16]) -> str:
        segments, _ = model.transcribe(pcm.astype(np.float32) / 32768, language="en", beam_size=beam_size)
        return " ".join(segment.text for segment in segments)

    return transcribe


PROFILES: dict[str, Callable[[int], Transcribe]] = {
    "fast": lambda threads: ours("tiny.en", threads),
    "accurate": lambda threads: ours("base", threads),
    "stock": lambda threads: stock(threads, 1),
    "stock-beam5": lambda threads: stock(threads, 5),
}


def measure(profiles: list[str], clips: list[Clip], threads: int, console: Console) -> list[Score]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        loading = progress.add_task("loading models", total=len(profiles))
        engines = {}
        for profile in profiles:
            engines[profile] = PROFILES[profile](threads)
            engines[profile](clips[0].pcm)
            progress.advance(loading)
        scores = [Score(profile) for profile in profiles]
        running = progress.add_task("transcribing", total=len(clips))
        for clip in clips:
            for score in scores:
                score.add(clip, engines[score.profile])
            progress.advance(running)
    return scores


def summary(score: Score, against: Score | None) -> dict[str, Any]:
    cpu = sum(score.cpu_s)
    return {
        "profile": score.profile,
        "clips": len(score.cpu_s),
        "words": score.words,
        "errors": score.errors,
        "word_error_rate_percent": round(100 * score.word_error_rate, 2),
        "cpu_s_per_clip": round(cpu / len(score.cpu_s), 3),
        "wall_s_per_clip_median": round(float(np.median(score.wall_s)), 3),
        "cpu_of_stock": round(cpu / sum(against.cpu_s), 2) if against else None,
    }


def table(rows: list[dict[str, Any]]) -> Table:
    shown = Table(title="Recogniser profiles on the same clips")
    for heading in ("profile", "clips", "words", "errors", "WER", "CPU-s a clip", "s a clip (median)", "CPU of stock"):
        shown.add_column(heading, justify="left" if heading == "profile" else "right")
    for row in rows:
        cells = list(row.values())
        cells[4] = f"{cells[4]:.2f} %"
        shown.add_row(*("–" if cell is None else str(cell) for cell in cells))
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=60, help="studio prompts (default 60)")
    parser.add_argument("--profile", default="fast,accurate,stock", help=f"of {', '.join(PROFILES)}")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of one transcription (default 1, as the service)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every clip that was misheard")
    options = parser.parse_args()
    profiles = options.profile.split(",")
    if unknown := [profile for profile in profiles if profile not in PROFILES]:
        parser.error(f"unknown profile {', '.join(unknown)}; choose from {', '.join(PROFILES)}")
    if options.clips < 1:
        parser.error("--clips must be at least 1")
    clips = studio_prompts(options.clips) + pocketsphinx_clips()
    scores = measure(profiles, clips, options.threads, Console(stderr=True))
    against = next((score for score in scores if score.profile == "stock"), None)
    rows = [summary(score, against) for score in scores]
    if options.json:
        print(json.dumps({"profiles": rows, "scores": [asdict(score) for score in scores]}, indent=2))
    else:
        Console().print(table(rows))


if __name__ == "__main__":
    main()
