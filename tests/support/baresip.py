"""A real telephone: Debian's baresip, which speaks a WAV file and writes down what it hears."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.debian import program

CODECS = {"pcmu": "PCMU/8000/1", "pcma": "PCMA/8000/1", "g722": "G722/16000/1"}


class Baresip:
    """One telephone, steered by its control port."""

    def __init__(self, directory: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.directory, self._reader, self._writer = directory, reader, writer
        self.events: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def command(self, name: str, parameters: str = "") -> None:
        message = json.dumps({"command": name, "params": parameters}).encode()
        self._writer.write(b"%d:%s," % (len(message), message))
        await self._writer.drain()

    async def dial(self, uri: str) -> None:
        await self.command("dial", uri)

    async def press(self, keys: str) -> None:
        for key in keys:
            await self.command("sndcode", key)
            await asyncio.sleep(0.25)

    async def hang_up(self) -> None:
        await self.command("hangup")

    async def event(self, kind: str, within_s: float = 10.0) -> dict[str, Any]:
        """Wait until baresip has told of something."""
        async with asyncio.timeout(within_s):
            while True:
                for event in self.events:
                    if event["type"] == kind:
                        return event
                self._changed.clear()
                await self._changed.wait()

    def heard(self) -> Path:
        """The WAV file of what it heard. It is whole once the call is over."""
        (file,) = sorted(self.directory.glob("dump-*-dec.wav"))[-1:]
        return file

    def sent(self) -> Path:
        """The WAV file of what it sent, from the same instant on."""
        (file,) = sorted(self.directory.glob("dump-*-enc.wav"))[-1:]
        return file

    async def _read(self) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                size = int((await self._reader.readuntil(b":"))[:-1])
                message = json.loads((await self._reader.readexactly(size + 1))[:-1])
                (self.events if message.get("event") else self.answers).append(message)
                self._changed.set()

    async def close(self) -> None:
        self._writer.close()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading


@asynccontextmanager
async def baresip(
    directory: Path, port: int, *, codec: str = "pcmu", speaks: Path | None = None, account: str = ""
) -> AsyncIterator[Baresip]:
    """Start one.

    Args:
        port: Of its SIP; TLS takes the next one, its control the one after that, media those above.
        speaks: WAV at the codec's rate, mono, from the moment it is connected on.
        account: More of its account, such as ``;outbound="sip:127.0.0.1:5060;lr"``.
    """
    path = program("baresip-core", "baresip")
    _write(directory, port, codec, speaks, account)
    log = (directory / "log.txt").open("wb")
    process = await asyncio.create_subprocess_exec(
        str(path), "-f", str(directory), "-v", stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory
    )
    phone = None
    try:
        phone = Baresip(directory, *await _connected(port + 2, process))
        yield phone
    finally:
        if phone is not None:
            with suppress(OSError):
                await phone.command("quit")
            await phone.close()
        try:
            async with asyncio.timeout(3):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        log.close()


def _write(directory: Path, port: int, codec: str, speaks: Path | None, account: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    source = f"audio_source aufile,{speaks}" if speaks else "audio_source ausine,400"
    modules = ["g711", "g722", "aubridge", "sndfile", "aufile" if speaks else "ausine"]
    lines = [
        "poll_method epoll",
        f"sip_listen 127.0.0.1:{port}",
        "net_interface 127.0.0.1",
        "audio_player aubridge,nil",
        source,
        "ausrc_format s16",
        "auplay_format s16",
        f"rtp_ports {port + 4}-{port + 40}",
        "rtp_timeout 0",
        "jitter_buffer_type fixed",
        "audio_jitter_buffer_type fixed",
        "jitter_buffer_delay 1-5",
        f"snd_path {directory}",
        "module_path /usr/lib/baresip/modules",
        *(f"module {name}.so" for name in modules),
        "module_app account.so",
        "module_app menu.so",
        "module_app ctrl_tcp.so",
        f"ctrl_tcp_listen 127.0.0.1:{port + 2}",
        "call_max_calls 4",
    ]
    (directory / "config").write_text("\n".join(lines) + "\n")
    identity = f"<sip:+15550123@127.0.0.1:{port}>;regint=0;answermode=auto;audio_codecs={CODECS[codec]}"
    (directory / "accounts").write_text(f"{identity}{account}\n")
    (directory / "contacts").write_text("")


async def _connected(
    port: int, process: asyncio.subprocess.Process
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(10):
        while process.returncode is None:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
    raise RuntimeError("baresip did not start: see log.txt in its directory")
