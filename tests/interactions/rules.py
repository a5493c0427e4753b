"""What must hold for every call that is thrown, beside what the player checks of every script."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from tests.interactions.agent import ScriptAgent
from tests.interactions.dice import PROBE
from tests.interactions.player import Played
from tests.interactions.script import Script
from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled, race
from voice_agent.dialogue.reply import UserInput

_WORD = re.compile(r"topic\d+")


class DiceAgent(ScriptAgent):
    """An agent whose model begins on words that are stable, and which tells when it does so at a wrong time."""

    speculations_per_utterance = 2

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.speculating = 0
        self.wrong: list[str] = []

    async def speculate(
        self, user: UserInput, *, can_transfer: bool, can_send_digits: bool = False, cancel: CancelToken
    ) -> None:
        if self.speculating or self._running:
            self.wrong.append(f"speculated on {user.text!r} while something else was at work")
        self.speculating += 1
        try:
            await race(asyncio.sleep(1.0), cancel, name="speculation", grace_s=0.1)
        except TurnCancelled:
            pass
        finally:
            self.speculating -= 1


def check(played: Played, script: Script) -> None:
    """Raises AssertionError if a rule is broken."""
    assert isinstance(played.agent, DiceAgent)
    assert not played.agent.wrong and not played.agent.speculating, played.agent.wrong
    _answered_once(played)
    _tools_ran_once(played)
    _not_stuck(played, script)
    _times_in_order(played)


def _turns(played: Played) -> list[tuple[str, str]]:
    """Words of each turn, and why it was cancelled."""
    turns: list[tuple[str, str]] = []
    for kind, data in played.agent.log:
        if kind == "turn":
            turns.append((data, ""))
        elif kind == "cancelled" and turns:
            turns[-1] = (turns[-1][0], data)
    return turns


def _answered_once(played: Played) -> None:
    answered = Counter(w for text, why in _turns(played) if why != "superseded" for w in set(_WORD.findall(text)))
    twice = [word for word, count in answered.items() if count > 1]
    assert not twice, f"{twice} came to two turns"
    for text, _ in _turns(played):
        repeated = [word for word, count in Counter(_WORD.findall(text)).items() if count > 1]
        assert not repeated, f"{repeated} stand twice in one turn"


def _tools_ran_once(played: Played) -> None:
    started = 0
    for kind, _ in played.agent.log:
        if kind == "tool_started":
            started += 1
        elif kind in ("tool_done", "tool_cancelled"):
            started -= 1
        assert started in (0, 1), "a tool was still at work when the next began, or ended twice"


def _not_stuck(played: Played, script: Script) -> None:
    probe = next((act for act in script.caller if act.says == PROBE), None)
    if probe is None or played.outcome.seconds < script.line.seconds - 0.5:
        return
    told = [data for kind, data in played.agent.log if kind in ("turn", "line")]
    answers = [text for text in told if "probe" in text or "utter_could_not_hear" in text]
    # What a recogniser rejects was no speech to it: nobody is asked to say it again.
    assert answers or "rejected" in script.ears.requests, f"the agent does not answer any more: {told}"


def _times_in_order(played: Played) -> None:
    for times in played.timelines:
        if times["filler"] is not None and times["first_audio"] is not None:
            assert times["filler"] <= times["first_audio"], "a filler after the answer"
