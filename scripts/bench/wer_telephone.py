#!/usr/bin/env python3
"""Word error rate over a telephone: studio prompts at 8 kHz, clean and through G.711 with missing frames.

    scripts/bench/wer_telephone.py [--clips 40] [--loss 3] [--json]

Wires here run over TCP, which loses nothing; what an exchange lost before comes as shorter audio: nothing is in
its place. So a missing frame is left out, which is what our wires do with it. The recogniser is the service's.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from scripts.bench.wer import Score, ours
from tests.support.clips import Clip, studio_prompts
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample


def telephone(clip: Clip, loss: float, dice: random.Random) -> Clip:
    """Return a clip as it comes out of G.711 at 8 kHz with a share of its 20 ms frames left out."""
    codes = ulaw_encode(resample(clip.pcm.tobytes(), 16000, 8000))
    frames = [codes[at : at + 160] for at in range(0, len(codes), 160)]
    kept = b"".join(frame for frame in frames if dice.random() >= loss)
    return replace(clip, pcm=np.frombuffer(resample(ulaw_decode(kept), 8000, 16000), np.int16))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--loss", type=float, default=3.0, help="missing frames in percent")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    transcribe, dice = ours("tiny.en", 1), random.Random(1)
    clean, telephoned = Score("clean"), Score(f"G.711, {options.loss:g} % missing")
    for clip in track(studio_prompts(options.clips), "transcribing", console=Console(stderr=True)):
        clean.add(clip, transcribe)
        telephoned.add(telephone(clip, options.loss / 100, dice), transcribe)
    if options.json:
        print(json.dumps({each.profile: 100 * each.word_error_rate for each in (clean, telephoned)}, indent=2))
        return
    table = Table("way", "words", "errors", "WER", title=f"{options.clips} studio prompts")
    for each in (clean, telephoned):
        table.add_row(each.profile, str(each.words), str(each.errors), f"{100 * each.word_error_rate:.2f} %")
    Console().print(table)


if __name__ == "__main__":
    main()
