"""The ordinary service on scripted engines: a greeting, one skill, a model that follows a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.fakes.model import Entry, ScriptedModel
from tests.fakes.recognizer import FakeRecognizer
from tests.fakes.synthesizer import FakeSynthesizer
from tests.fakes.wire import FakeDetector, voice_frame
from tests.support import dialogue_projects
from voice_agent.audio.frames import SILENCE
from voice_agent.config import CacheOptions
from voice_agent.service.engines import Engines
from voice_agent.service.service import Service, build_service
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.voice import CachedVoice

GREETING = "Welcome to the test."
FILES = {
    "agent.yml": "agent:\n  id: small\n  persona: You answer.\n",
    "responses.yml": f"responses:\n  utter_greet:\n    - text: {GREETING}\n",
    "skills/default_session_start/skill.md": (
        "---\nname: Session start\ndescription: Greet.\nrouting: {engine_managed: true}\n---\n"
        ":::ordered_block id=main\nsteps:\n  - id: greet\n    action: utter_greet\n:::\n"
    ),
    "skills/help/skill.md": "---\nname: Help\ndescription: Help with anything.\n---\nHelp the caller.\n",
}


def write_project(root: Path, settings: str = "", files: Mapping[str, str] | None = None) -> Path:
    """Write the small project into ``root``; ``settings`` is more of ``integrations.yml``."""
    integrations = {"integrations.yml": "llm: {provider: embedded}\n" + settings}
    return dialogue_projects.write_project(root, {**FILES, **integrations, **(files or {})})


def small_service(
    root: Path,
    *,
    model: Iterable[Entry] = (),
    hears: Iterable[str] = ("what is my balance",),
    loads: Mapping[str, Callable[[], None]] | None = None,
    settings: str = "",
    files: Mapping[str, str] | None = None,
) -> Service:
    engines = Engines(
        model=ScriptedModel(model, then="I see."),
        recognizer=FakeRecognizer(list(hears), seconds=0.01),
        voice=CachedVoice(FakeSynthesizer(), ResponseCache(CacheOptions(disk_mb=0))),
        detectors=FakeDetector,
        loads=loads or {},
    )
    return build_service(write_project(root, settings, files), engines=engines)


def spoken(seconds: float = 0.6, silence_s: float = 1.5) -> bytes:
    """Caller audio: voice, as the fake detector understands it, then silence."""
    return voice_frame(1) * round(seconds * 50) + SILENCE * round(silence_s * 50)
