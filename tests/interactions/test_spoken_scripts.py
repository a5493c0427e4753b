"""Scripts in `spoken/`: a call with the real voice, detector and recogniser, and callers who are really heard."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tests.interactions.agent import ScriptAgent
from tests.interactions.script import AgentTurn, Expected, Script
from tests.support import inline_pool, sounds
from tests.support.acoustic_wire import AcousticWire
from tests.support.calls import OPTIONS, place
from tests.support.flite import said
from tests.support.virtual_time import virtual_time
from voice_agent.call.vocabulary import words
from voice_agent.config import TurnTaking

pytestmark = pytest.mark.models

SCRIPTS = sorted((Path(__file__).parent / "spoken").glob("*.yml"))


class Sound(BaseModel):
    """What the caller's side sounds like from ``at`` on; one of the fields after ``dbfs``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    at: float
    dbfs: float = -24
    says: str | None = None
    voice: Literal["slt", "rms"] = "slt"
    prompt: str | None = None
    """Name of a studio prompt, a human voice."""
    noise: Literal["cough", "door"] | None = None
    music: float | None = None
    """Seconds of hold music."""

    def pcm(self) -> NDArray[np.int16]:
        if self.says is not None:
            return said(self.says, self.voice)
        if self.prompt is not None:
            return sounds.prompt(self.prompt)
        if self.music is not None:
            return next(iter(sounds.hold_music(self.music).values()))
        seconds, decay_s = (0.25, 0.08) if self.noise == "cough" else (0.4, 0.05)
        wave = sounds.pink_noise(seconds, -12) * np.exp(-np.arange(round(seconds * 16000)) / 16000 / decay_s)
        return sounds.to_pcm(wave)


class Spoken(BaseModel):
    """One script. ``turns``: words that each turn of the caller holds; ``whole``, ``cut``: replies by number."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    about: str
    real: Literal[True]
    seconds: float
    echo_db: float | None = None
    options: dict[str, Any] = {}
    agent: tuple[AgentTurn, ...]
    caller: tuple[Sound, ...] = ()
    turns: tuple[str, ...]
    whole: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


def _load(path: Path) -> Spoken:
    return Spoken.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@virtual_time
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
async def test_a_spoken_script_does_what_it_says(path: Path) -> None:
    script = _load(path)
    wire = AcousticWire(script.seconds, echo_db=script.echo_db)
    for sound in script.caller:
        wire.voice(sound.at, sound.pcm(), sound.dbfs)
    agent = ScriptAgent(Script(about="", agent=script.agent, expect=Expected(audible=(), story=(), outcome="")))
    await place(
        wire,
        agent,
        voice=inline_pool.voice(),
        recognizer=inline_pool.recognizer(),
        detector=inline_pool.detector(),
        options=TurnTaking.model_validate({**OPTIONS.model_dump(), **script.options}),
        calls=[],
    )
    story = agent.story
    turns = [words(entry["turn"]) for entry in story if "turn" in entry and not entry["turn"].startswith("/")]
    assert len(turns) == len(script.turns), story
    for found, wanted in zip(turns, script.turns, strict=True):
        assert set(words(wanted)) <= set(found), story
    replies = [entry["heard"] for entry in story if "heard" in entry]
    for number in script.whole:
        assert "|" not in replies[number], story
    for number in script.cut:
        assert "|" in replies[number], story
