"""Throws calls: a seed becomes a script with a random agent, caller, line, voice and recogniser.

Every word that a caller says or types is said once in a call, so that it can be followed to its turn. The call ends
with a probe: after a long silence the caller says something clear. An agent that does not answer it is stuck.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.interactions.script import Script

AGREEMENTS = ("mm-hm", "yeah", "okay")
STOPS = ("stop", "wait", "no")
PROBE = "probe question now please."
QUIET_S = 30.0
"""Silence before the probe: longer than anything an agent of these says, rings or works."""
MAX_ACTS = 7


def throw(seed: int) -> Script:
    """Return the call that ``seed`` stands for."""
    dice = random.Random(seed)
    words = _Words(dice)
    transfers = dice.random() < 0.3
    agent = [_turn(dice, first=True, transfers=False)]
    agent += [_turn(dice, first=False, transfers=transfers) for _ in range(dice.randint(1, 4))]
    acts, until = _acts(dice, words)
    ending = dice.random()
    line: dict[str, Any] = {"reports_position": dice.random() < 0.4, "sends_silence": dice.random() < 0.8}
    # A far end that is late and does not say so cannot be known to be.
    line["drain_s"] = dice.choice((0.0, 0.0, 0.1, 0.6)) if line["reports_position"] else 0.0
    if transfers:
        reasons = ("busy", "no_answer", "trunk_error", "completed") if dice.random() < 0.3 else ("busy", "no_answer")
        line["transfers"] = [[round(dice.uniform(0.0, 4.0), 2), dice.choice(reasons)] for _ in range(2)]
    if ending < 0.3:
        line["seconds"] = round(dice.uniform(0.0, until + 6.0), 3)
    else:
        if dice.random() < 0.15:
            acts.append({"at": round(dice.uniform(0.5, until), 2), "ends": "leave"})
            acts.sort(key=lambda act: act["at"])
        acts.append({"at": until + QUIET_S - 0.2, "mutes": False})
        acts.append({"at": until + QUIET_S, "says": PROBE})
        line["seconds"] = until + QUIET_S + 12.0
    return Script.model_validate(
        {
            "about": f"Throw {seed}",
            "line": line,
            "options": _options(dice),
            "voice": _voice(dice),
            "ears": {"seconds": dice.choice((0.05, 0.2, 0.2, 0.5, 0.9)), "requests": _recognitions(dice)},
            "lines": _lines(dice),
            "agent": agent,
            "silence": [[{"say": "Are you there?"}], [{"say": "Hello, anybody?"}]],
            "caller": acts,
            "expect": {"audible": (), "story": (), "outcome": ""},
        }
    )


class _Words:
    """Words of a caller, each but agreements and stop words only once."""

    def __init__(self, dice: random.Random) -> None:
        self._dice, self._said = dice, 0

    def some(self, most: int = 5) -> str:
        text = " ".join(self._one() for _ in range(self._dice.randint(1, most)))
        kind = self._dice.random()
        if kind < 0.15:
            return self._dice.choice(AGREEMENTS)
        if kind < 0.25:
            return self._dice.choice(STOPS) + "."
        if kind < 0.35:
            return f"{self._dice.choice(STOPS)} {text}."
        return text + self._dice.choice((".", ".", "?", ",", " and"))

    def _one(self) -> str:
        self._said += 1
        return f"topic{self._said}"


def _acts(dice: random.Random, words: _Words) -> tuple[list[dict[str, Any]], float]:
    acts: list[dict[str, Any]] = []
    at = dice.choice((0.0, 0.3, 1.0, 2.0))
    muted = False
    for _ in range(dice.randint(1, MAX_ACTS)):
        at = round(at + dice.choice((0.02, 0.1, 0.25, 0.35, 0.5, 0.7, 0.9, 1.1, 1.5, 2.5, 4.0, 9.0)), 2)
        act: dict[str, Any] = {"at": at}
        kind = dice.random()
        if kind < 0.55:
            act["says"] = words.some()
            at += 0.3 * len(act["says"].split())
        elif kind < 0.67:
            act["noise"] = dice.choice((0.04, 0.1, 0.2, 0.3, 0.6, 1.2))
            at += act["noise"]
        elif kind < 0.72:
            act["sound"] = 1.5
            at += 1.5
        elif kind < 0.82:
            act["keys"] = dice.choice(("1", "12#", "4711", "#"))
            at += 0.2 * len(act["keys"])
        elif kind < 0.9:
            act["types"] = words.some()
        else:
            muted = not muted
            act["mutes"] = muted
        acts.append(act)
    return acts, at


def _turn(dice: random.Random, *, first: bool, transfers: bool) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for _ in range(dice.randint(1, 3)):
        makers: tuple[Callable[[], dict[str, Any]], ...] = (
            lambda: {"say": _sentence(dice)},
            lambda: {"say": _sentence(dice)},
            lambda: {"stream": _sentence(dice)},
            lambda: {"stream": f"{_sentence(dice)} {_sentence(dice)}"},
            lambda: {"protected": _sentence(dice)},
            lambda: {"discarding": _sentence(dice)},
            lambda: {"recorded": _sentence(dice)},
            lambda: {"wait": dice.choice((0.05, 0.4, 0.95, 1.6))},
            lambda: {
                "tool": {
                    "name": f"tool{dice.randrange(10**6)}",
                    "seconds": dice.choice((0.02, 0.3, 1.2, 2.5)),
                    "interruptible": dice.random() < 0.7,
                }
            },
        )
        steps.append(dice.choice(makers)())
    if transfers and dice.random() < 0.5:
        steps += [{"say": "One moment."}, {"transfer": "billing"}, {"say": "Nobody answers there."}]
    if not first and dice.random() < 0.1:
        steps.append({"hang_up": "completed"})
    if dice.random() < 0.8 and not {"say", "stream", "protected", "recorded"} & {key for s in steps for key in s}:
        steps.append({"say": _sentence(dice)})
    return steps


def _sentence(dice: random.Random) -> str:
    nouns = ("Monday", "garden", "letter", "river", "window", "number", "office", "morning")
    words = [dice.choice(nouns) for _ in range(dice.randint(1, 7))]
    return " ".join(words) + dice.choice((".", ".", "?"))


def _options(dice: random.Random) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if dice.random() < 0.3:
        chosen["silence_timeout_s"] = 8
    if dice.random() < 0.3:
        chosen["greeting_guard_s"] = 3
    if dice.random() < 0.1:
        chosen["barge_in"] = False
        chosen["stop_words_always"] = dice.random() < 0.5
    if dice.random() < 0.1:
        chosen["interruptible_goodbye"] = False
    if dice.random() < 0.15:
        chosen["reply_after_ms"] = dice.choice((0, 300, 1500))
    if dice.random() < 0.1:
        chosen["echo_guard"] = False
    return chosen


def _lines(dice: random.Random) -> dict[str, str]:
    chosen = {"utter_service_ending": "I have to end this call."}
    if dice.random() < 0.7:
        chosen["utter_filler"] = "Bear with me.|Just a second."
    return chosen


def _voice(dice: random.Random) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "first_byte_s": dice.choice((0.0, 0.0, 0.1, 0.4, 1.2)),
        "piece_s": dice.choice((0.0, 0.1, 0.5)),
        "cached": dice.random() < 0.2,
        "cold": dice.random() < 0.1,
        "ignore_cancel": dice.random() < 0.05,
    }
    if chosen["ignore_cancel"]:
        # Beyond the grace it would be abandoned, as it should, and outlive the call.
        chosen |= {"first_byte_s": min(chosen["first_byte_s"], 0.4), "piece_s": min(chosen["piece_s"], 0.1)}
    if dice.random() < 0.1:
        chosen["fail_pieces"] = (dice.randrange(4),)
    if dice.random() < 0.03:
        chosen["silent_pieces"] = (dice.randrange(4),)
    return chosen


def _recognitions(dice: random.Random) -> list[Any]:
    if dice.random() < 0.75:
        return []
    return [dice.choice((None, None, 1.5, 3.0, 7.0, "error", "rejected")) for _ in range(4)]
