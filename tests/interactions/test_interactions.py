"""Every interaction script does what it says. The format is described in README.md beside this file."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from tests.interactions.player import Played, play, slowest_answer, slowest_stop
from tests.interactions.script import Script, load

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.yml"))
FAMILIES = [path for path in SCRIPTS if load(path).hangs_up_at_random is not None]
AT_THE_END = {"heard", "known", "cancelled", "tool_cancelled", "tool_done", "line", "close"}
"""What a hang-up may add to a story that it cuts."""


def _members() -> list[tuple[Path, float]]:
    members = []
    for path in FAMILIES:
        family = load(path).hangs_up_at_random
        assert family is not None
        chosen = random.Random(family.seed)
        members += [(path, round(chosen.uniform(0.0, family.until), 3)) for _ in range(family.count)]
    return members


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_does_what_it_says(path: Path) -> None:
    script = load(path)
    _compare(play(script), script)


@pytest.mark.parametrize(("path", "at"), _members(), ids=lambda value: getattr(value, "stem", value))
def test_a_hang_up_at_any_instant_cuts_the_story_and_leaves_nothing(path: Path, at: float) -> None:
    script = load(path)
    whole, cut = _whole(path), play(script, hang_up_at=at)
    common = 0
    for told, would in zip(cut.agent.story, whole.agent.story, strict=False):
        if told != would:
            break
        common += 1
    rest = [kind for entry in cut.agent.story[common:] for kind in entry]
    assert set(rest) <= AT_THE_END and rest.count("heard") + rest.count("line") <= 1
    assert cut.agent.story[-1] == {"close": "disconnected"}
    assert cut.outcome.reason == "caller_hang_up"
    spoken, would_be = " ".join(cut.audible).removesuffix("~"), " ".join(whole.audible)
    assert would_be.startswith(spoken)
    assert cut.outcome.seconds <= at + 5.0 + 0.02


def test_there_are_at_least_sixty_scripts_and_no_two_are_about_the_same() -> None:
    about = [load(path).about for path in SCRIPTS]
    assert len(about) >= 60
    assert len(set(about)) == len(about)


@cache
def _whole(path: Path) -> Played:
    return play(load(path))


def _compare(played: Played, script: Script) -> None:
    expect = script.expect
    assert played.audible == list(expect.audible)
    assert played.agent.story == list(expect.story)
    assert f"{played.outcome.outcome} {played.outcome.reason}" == expect.outcome
    if expect.client is not None:
        assert played.client == list(expect.client)
    if expect.clears is not None:
        assert len(played.wire.clears) == expect.clears
    if expect.answer_within_s is not None:
        assert slowest_answer(played) <= expect.answer_within_s + 1e-6
    if expect.stop_within_s is not None:
        assert slowest_stop(played) <= expect.stop_within_s + 1e-6
    if expect.seconds is not None:
        assert expect.seconds[0] <= played.outcome.seconds <= expect.seconds[1]
    if expect.never_asked:
        assert not played.ears.requests
