"""The sound devices of this machine, by PortAudio. Imported on first need: it opens the machine's sound system."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from voice_agent.diagnostics import RemediableError

RATES = (16000, 48000, 44100, 32000, 24000, 8000)
"""Rates that are tried, in this order: that of the call, then what sound cards have."""
_ON_THE_HEAD = ("head", "ear", "pods", "buds")


@dataclass(frozen=True, slots=True)
class SoundDevice:
    """A device. ``inputs`` and ``outputs`` are channels."""

    index: int
    name: str
    inputs: int
    outputs: int

    @property
    def is_worn(self) -> bool:
        """Whether its name says that it is worn on the head: then the microphone does not hear the speaker."""
        return any(word in self.name.lower() for word in _ON_THE_HEAD)


def load() -> ModuleType:
    """Return the module ``sounddevice``.

    Raises:
        RemediableError: It is not installed, or there is no PortAudio.
    """
    try:
        return importlib.import_module("sounddevice")
    except ImportError:
        raise RemediableError(
            "Talking by microphone needs the package sounddevice.", 'Install it: pip install -e ".[microphone]"'
        ) from None
    except OSError:
        raise RemediableError(
            "There is no PortAudio on this machine.",
            "Install it: apt install libportaudio2 (macOS: portaudio).",
        ) from None


def devices(sounddevice: Any) -> list[SoundDevice]:
    """Return all devices."""
    try:
        found = list(sounddevice.query_devices())
    except sounddevice.PortAudioError:
        return []
    return [
        SoundDevice(index, str(each["name"]), int(each["max_input_channels"]), int(each["max_output_channels"]))
        for index, each in enumerate(found)
    ]


def choose(sounddevice: Any, wanted: str | None, *, is_input: bool) -> SoundDevice:
    """Return the device to use.

    Args:
        wanted: Its number, or a part of its name; None for the machine's own choice.

    Raises:
        RemediableError: There is no such device, or none at all.
    """
    side, option = ("microphone", "--input") if is_input else ("speaker", "--output")
    usable = [each for each in devices(sounddevice) if (each.inputs if is_input else each.outputs)]
    if not usable:
        raise RemediableError(
            f"This machine has no {side}.",
            "Connect one, or talk in a browser (voice-agent run) or by text (voice-agent chat).",
        )
    if wanted is None:
        default = sounddevice.default.device[0 if is_input else 1]
        return next((each for each in usable if each.index == default), usable[0])
    matching = [each for each in usable if wanted == str(each.index) or wanted.lower() in each.name.lower()]
    exact = [each for each in matching if wanted in (str(each.index), each.name)]
    if len(exact or matching) != 1:
        what = "No" if not matching else "More than one"
        raise RemediableError(f"{what} {side} is called {wanted!r}.", f"Give {option} a number out of --list.")
    return (exact or matching)[0]


def rate_of(sounddevice: Any, device: SoundDevice, *, is_input: bool) -> int:
    """Return the first of `RATES` that a device can be opened with.

    Raises:
        RemediableError: None of them.
    """
    check = sounddevice.check_input_settings if is_input else sounddevice.check_output_settings
    for rate in RATES:
        try:
            check(device=device.index, samplerate=rate, channels=1, dtype="int16")
        except (sounddevice.PortAudioError, ValueError):
            continue
        return rate
    raise RemediableError(f"{device.name} cannot be opened.", "Choose another device out of --list.")
