"""``python -m tests.interactions [script…]``: print what came of each script, and how much faster than real time.

For whoever writes a script: what is printed is what happened, not what is right.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import yaml

from tests.interactions.player import play, slowest_answer, slowest_stop
from tests.interactions.script import load


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(names: list[str]) -> None:
    """Play the scripts named, or all, without their expectations."""
    paths = [Path(name) for name in names] or sorted((Path(__file__).parent / "scripts").glob("*.yml"))
    audio_s = took_s = 0.0
    for path in paths:
        script = load(path)
        start = time.process_time()
        played = play(script)
        took_s += time.process_time() - start
        audio_s += played.outcome.seconds
        if not names:
            continue
        outcome = f"{played.outcome.outcome} {played.outcome.reason}"
        seen = {"audible": played.audible, "story": played.agent.story, "client": played.client, "outcome": outcome}
        seen |= {"clears": len(played.wire.clears), "seconds": round(played.outcome.seconds, 2)}
        if any(t["speech_end"] is not None and t["first_audio"] is not None for t in played.timelines):
            seen["answer_within_s"] = round(slowest_answer(played), 3)
        if played.wire.clears and played.wire.spoken:
            seen["stop_within_s"] = round(slowest_stop(played), 3)
        say(f"--- {path.name}")
        say(yaml.safe_dump(seen, sort_keys=False, width=110, allow_unicode=True))
    speed = audio_s / took_s
    say(f"{len(paths)} scripts, {audio_s:.0f} s of calls in {took_s:.2f} s of CPU: {speed:,.0f} times real time")


if __name__ == "__main__":
    main(sys.argv[1:])
