"""A sound system without sound: a PulseAudio server of its own, with a virtual microphone and speaker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import debian

START_S = 10.0
RATE = 16000
_ALSA = """\
</usr/share/alsa/alsa.conf>
pcm.!default { type pulse }
ctl.!default { type pulse }
"""


@dataclass
class SoundSystem:
    """Attributes: ``environment``: what a process needs to find it; ``server``: its process."""

    environment: dict[str, str]
    server: subprocess.Popen[bytes]

    async def play(self, pcm: bytes) -> None:
        """Say something into the virtual microphone: 16 kHz int16. Returns when it was said."""
        command = ["pacat", "--device=microphone_cable", f"--rate={RATE}", "--channels=1", "--format=s16le"]
        process = await asyncio.create_subprocess_exec(
            *command, "--latency-msec=40", stdin=asyncio.subprocess.PIPE, env=self._env()
        )
        await process.communicate(pcm)

    @contextmanager
    def listen(self) -> Iterator[Recording]:
        """Record what comes out of the speaker while the body runs."""
        command = ["parec", "--device=speaker.monitor", f"--rate={RATE}", "--channels=1", "--format=s16le"]
        with (
            subprocess.Popen([*command, "--latency-msec=20"], stdout=subprocess.PIPE, env=self._env()) as process,
        ):
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            try:
                yield Recording(process)
            finally:
                process.terminate()

    def _env(self) -> dict[str, str]:
        return os.environ | self.environment


class Recording:
    """What has been recorded so far: 16 kHz int16."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._pcm = process, b""

    @property
    def pcm(self) -> bytes:
        assert self._process.stdout is not None
        while piece := self._process.stdout.read(65536):
            self._pcm += piece
        return self._pcm[: len(self._pcm) & ~1]


@contextmanager
def sound_system(directory: Path) -> Iterator[SoundSystem]:
    """Start a server in ``directory``, and stop it afterwards."""
    for package, name in (("pulseaudio", "pulseaudio"), ("pulseaudio-utils", "pacat")):
        debian.program(package, name)
    if not Path("/usr/share/alsa/alsa.conf").exists() or not list(Path("/usr/lib").glob("*/alsa-lib/*pcm_pulse*")):
        debian.installed("libasound2-plugins")
    if not list(Path("/usr/lib").glob("*/libportaudio.so.2")):
        debian.installed("libportaudio2")
    socket = directory / "native"
    alsa = directory / "alsa.conf"
    alsa.write_text(_ALSA)
    environment = {
        "PULSE_SERVER": f"unix:{socket}",
        "ALSA_CONFIG_PATH": str(alsa),
        "XDG_RUNTIME_DIR": str(directory),
        "PULSE_COOKIE": str(directory / "cookie"),
    }
    modules = [
        f"module-native-protocol-unix socket={socket} auth-anonymous=1",
        "module-null-sink sink_name=microphone_cable rate=48000 channels=1",
        "module-null-sink sink_name=speaker rate=48000 channels=1",
        "module-remap-source master=microphone_cable.monitor source_name=microphone channels=1 remix=no",
    ]
    command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--disable-shm=yes"]
    loads = [argument for module in modules for argument in ("-L", module)]
    log = (directory / "pulse.log").open("wb")
    server = subprocess.Popen([*command, *loads], env=os.environ | environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_S
        ready = ["pactl", "set-default-source", "microphone"]
        while subprocess.run(ready, env=os.environ | environment, capture_output=True, check=False).returncode:
            assert server.poll() is None and time.monotonic() < deadline, (directory / "pulse.log").read_text()
            time.sleep(0.1)
        subprocess.run(["pactl", "set-default-sink", "speaker"], env=os.environ | environment, check=True)
        yield SoundSystem(environment, server)
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(5)
        server.kill()
        log.close()
