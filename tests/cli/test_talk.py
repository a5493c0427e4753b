"""``voice-agent talk`` as a person uses it: the greeting is heard, a spoken question understood, Ctrl-C hangs up."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.channels.contract import sounding
from tests.support.flite import said as said_aloud
from tests.support.lines import until
from tests.support.pulse import RATE, SoundSystem, sound_system
from voice_agent.channels.microphone import devices
from voice_agent.cli import cli
from voice_agent.cli.talk import meter
from voice_agent.diagnostics import RemediableError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sound(tmp_path: Path) -> Iterator[SoundSystem]:
    with sound_system(tmp_path) as system:
        yield system


@pytest.mark.alone
@pytest.mark.models
@pytest.mark.timeout(180)
async def test_a_person_talks_to_the_example_agent_by_microphone(sound: SoundSystem, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "talk.py", str(ROOT), "--record", str(tmp_path / "recorded")]
    environment = os.environ | sound.environment | {"PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path)}
    with sound.listen() as heard:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said: list[str] = []
        reading = asyncio.create_task(_read(process, said))
        try:
            await until(lambda: any(line.startswith("Agent") for line in said), within_s=100)
            await until(lambda: sounding(heard.pcm) and not sounding(heard.pcm[-2 * RATE :]), within_s=20)
            greeting = len(sounding(heard.pcm))
            await sound.play(said_aloud("When are you open on Saturday?").tobytes() + bytes(32000))
            try:
                # On a machine that stutters the question may come in parts, and then once more as a whole.
                await until(lambda: "when are you open on saturday" in _asked(said), within_s=30)
            except TimeoutError:
                pytest.fail(f"The question was not understood: {said}")
            await until(lambda: len(sounding(heard.pcm)) > greeting + 16000, within_s=20)
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), 20)
            await reading
    assert process.returncode == 0, said
    assert not any("Traceback" in line for line in said)
    assert list((tmp_path / "recorded").rglob("*.wav"))
    assert any("headphones" in line for line in said)


def _asked(said: list[str]) -> str:
    """The words of the caller so far."""
    return " ".join(word for line in said if line.startswith("You") for word in re.findall("[a-z]+", line.lower())[1:])


async def _read(process: asyncio.subprocess.Process, said: list[str]) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        said.append(line.decode().rstrip())


def test_a_machine_without_devices_is_told_what_to_do_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        class PortAudioError(Exception):
            pass

        @staticmethod
        def query_devices() -> list[dict[str, object]]:
            return []

    monkeypatch.setattr(devices, "load", lambda: Silent)
    listed = CliRunner().invoke(cli, ["talk", "--list"])
    assert (listed.exit_code, "no sound devices" in listed.output) == (0, True)
    refused = CliRunner().invoke(cli, ["talk", str(ROOT)])
    assert refused.exit_code == 2
    assert "This machine has no microphone." in refused.output
    assert "talk in a browser" in refused.output


@pytest.mark.parametrize(("fault", "words"), [(ImportError(), "sounddevice"), (OSError(), "PortAudio")])
def test_what_is_missing_is_named(fault: Exception, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise fault

    monkeypatch.setattr(devices.importlib, "import_module", missing)
    with pytest.raises(RemediableError, match=words):
        devices.load()


def test_the_meter_shows_silence_speech_and_too_much() -> None:
    assert meter(-96, -96).plain.count("█") == 0
    assert 5 < meter(-30, -96).plain.count("█") < 15
    assert meter(0, 0).plain.count("█") == 40
