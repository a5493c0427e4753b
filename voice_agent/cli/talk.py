"""``voice-agent talk``: a call by this machine's own microphone and speaker, without a server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from voice_agent.cli.progress import progress_bars
from voice_agent.cli.run import LEVELS, run_loop
from voice_agent.diagnostics import RemediableError
from voice_agent.telemetry.logging import configure

if TYPE_CHECKING:
    from voice_agent.call.wire import WireMessage
    from voice_agent.channels.microphone.devices import SoundDevice
    from voice_agent.channels.microphone.wire import MicrophoneWire
    from voice_agent.service.service import Service

METER_S = 0.1
METER_FROM_DBFS, METER_CELLS = -60.0, 20
START_S = 300.0
"""Limit on loading the models."""


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--list", "listing", is_flag=True, help="List the sound devices and leave.")
@click.option("--input", "microphone", metavar="DEVICE", help="Microphone: its number, or a part of its name.")
@click.option("--output", "speaker", metavar="DEVICE", help="Speaker: its number, or a part of its name.")
@click.option("--headphones", is_flag=True, help="You wear headphones: say nothing of echoes.")
@click.option("--record", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Record there.")
@click.option("--log-level", type=click.Choice(LEVELS), default="error", show_default=True)
def talk(
    path: Path,
    listing: bool,
    microphone: str | None,
    speaker: str | None,
    headphones: bool,
    record: Path | None,
    log_level: str,
) -> None:
    """Talk to the agent of the project in PATH. Ctrl-C hangs up."""
    configure(log_level)
    from voice_agent.channels.microphone import devices

    sounddevice = devices.load()
    console = Console(highlight=False)
    if listing:
        console.print(_listed(devices.devices(sounddevice)))
        return
    ear = devices.choose(sounddevice, microphone, is_input=True)
    mouth = devices.choose(sounddevice, speaker, is_input=False)
    console.print(f"Microphone: {ear.name}   Speaker: {mouth.name}", style="dim", markup=False)
    if not (headphones or mouth.is_worn):
        console.print(
            "Wear headphones if you can: from a loudspeaker the agent may hear itself, and stop.", style="yellow"
        )
    from voice_agent.service.service import build_service

    with progress_bars(quiet=False) as progress:
        service = build_service(path, progress=progress)
        if record is not None:
            record_to(service, record)
        run_loop(_call(service, sounddevice, ear, mouth, console))
    if record is not None:
        console.print(f"Recorded in {record}", style="dim", markup=False)


def record_to(service: Service, directory: Path) -> None:
    """Let a service record its calls into ``directory``, whatever its settings say."""
    from voice_agent.call.recordings import Recordings

    config = service.config
    recording = config.integrations.recording.model_copy(update={"enabled": True})
    integrations = config.integrations.model_copy(update={"recording": recording})
    service.recordings = Recordings(directory.resolve())
    service.calls = replace(
        service.calls, config=replace(config, integrations=integrations), recordings=service.recordings
    )


async def _call(service: Service, sounddevice: Any, ear: SoundDevice, mouth: SoundDevice, console: Console) -> None:
    from voice_agent.channels import identifiers
    from voice_agent.channels.desk import CallRefused, CallRequest
    from voice_agent.channels.microphone.wire import CHANNEL, MicrophoneWire

    async with asyncio.TaskGroup() as group:
        running = group.create_task(service.run(), name="service")
        try:
            with console.status("Loading models …"):
                async with asyncio.timeout(START_S):
                    await service.start()
            wire = MicrophoneWire(sounddevice, ear, mouth, lambda message: _show(message, console))
            console.print("Ctrl-C hangs up.", style="dim")
            request = CallRequest(identifiers.new_conversation_id(), CHANNEL)
            meter = group.create_task(_meter(wire, console), name="meter")
            try:
                with _leaving_by_signal(wire):
                    await service.calls.take(request, wire)
            except CallRefused as refusal:
                raise RemediableError(refusal.message, "Try again in a moment.") from None
            finally:
                meter.cancel()
            if wire.lost_blocks:
                console.print(f"The sound system lost {wire.lost_blocks} blocks of 10 ms.", style="yellow")
        finally:
            await service.drain(0)
            running.cancel()
            await service.aclose()


@contextlib.contextmanager
def _leaving_by_signal(wire: MicrophoneWire) -> Iterator[None]:
    """Hang up on Ctrl-C instead of breaking off, where the system allows it."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    for number in signals:
        loop.add_signal_handler(number, wire.leave)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def _meter(wire: MicrophoneWire, console: Console) -> None:
    """Draw both levels, for people; nothing where nobody watches."""
    if not console.is_terminal:
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while True:
            live.update(meter(wire.level_in_dbfs, wire.level_out_dbfs), refresh=True)
            await asyncio.sleep(METER_S)


def meter(in_dbfs: float, out_dbfs: float) -> Text:
    """Return one line with the levels of microphone and speaker."""
    line = Text()
    for label, level in (("you ", in_dbfs), ("   agent ", out_dbfs)):
        share = min(1.0, max(0.0, 1 - level / METER_FROM_DBFS))
        cells = round(share * METER_CELLS)
        line.append(label, style="dim")
        line.append("█" * cells, style="red" if level > -3 else "green")
        line.append("·" * (METER_CELLS - cells), style="dim")
    return line


def _show(message: WireMessage, console: Console) -> None:
    from voice_agent.call.wire import ErrorMessage, TranscriptMessage

    match message:
        case TranscriptMessage("user", text, True):
            console.print(Text.assemble(("You    ", "bold cyan"), text))
        case TranscriptMessage("agent", text, True, heard):
            console.print(Text.assemble(("Agent  ", "bold green"), text if heard is None else heard or "(unheard)"))
        case ErrorMessage(_, text):
            console.print(Text(text, style="yellow"))


def _listed(found: list[SoundDevice]) -> Table | str:
    if not found:
        return "This machine has no sound devices."
    table = Table("number", "name", "microphone", "speaker", box=None)
    for device in found:
        table.add_row(
            str(device.index), Text(device.name), "yes" if device.inputs else "", "yes" if device.outputs else ""
        )
    return table
