"""Loading a Piper voice with the lengths of its phonemes as an output.

The models compute how long each phoneme lasts but do not return it. A copy of the voice in which
that tensor is marked as an output is made once and kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voice_agent.diagnostics import RemediableError
from voice_agent.speech.atomic_file import write_atomically
from voice_agent.speech.cache_directory import cache_directory

if TYPE_CHECKING:
    from piper import PiperVoice

log = logging.getLogger(__name__)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_voice(weights: Path, config_path: Path, digest: str, threads: int) -> PiperVoice:
    """Load a voice, with phoneme lengths as a second output where that can be had. Blocks for about a second.

    Args:
        digest: SHA-256 of ``weights``; names the copy that is kept.
        threads: Threads of one synthesis.

    Raises:
        RemediableError: The files are no Piper voice.
    """
    from piper import PiperVoice
    from piper.config import PiperConfig

    try:
        config = PiperConfig.from_dict(json.loads(config_path.read_text("utf-8")))
    except (ValueError, KeyError, OSError) as error:
        raise RemediableError(
            f"speech.tts.voice: {config_path} is no configuration of a Piper voice ({error!r}).",
            "Take the .onnx.json file that belongs to the .onnx file.",
        ) from error
    aligned = aligned_model(weights, digest)
    try:
        session = _session(aligned, threads)
    except Exception as error:
        if aligned == weights:
            raise RemediableError(
                f"speech.tts.voice: {weights} cannot be loaded as a Piper voice ({error}).",
                "Give the path of a Piper .onnx file, or reinstall the bundled voice.",
            ) from error
        log.warning("the prepared voice %s cannot be loaded and is not used: %s", aligned, error)
        if isinstance(aligned, Path):
            aligned.unlink(missing_ok=True)
        session = _session(weights, threads)
    return PiperVoice(session=session, config=config)


def _session(model: Path | bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Every sentence has another length: planned memory and an arena only grow with them (over 300 MB in 240 sentences).
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    # Idle threads that spin would take the core from the media clock.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, sess_options=options, providers=["CPUExecutionProvider"])


def aligned_model(weights: Path, digest: str) -> Path | bytes:
    """Return the voice with its phoneme lengths as an output: a file in the user's cache, made once per voice.

    Returns:
        The cached copy; its bytes where the cache cannot be written; ``weights`` unchanged, with one
        warning, where the voice cannot be changed.
    """
    target = cache_directory() / "voices" / f"{weights.stem}-{digest[:16]}-aligned.onnx"
    if target.is_file():
        return target
    try:
        import onnx
        from piper.patch_voice_with_alignment import add_alignment_output

        model = onnx.load(str(weights))
        add_alignment_output(model)
        content: bytes = model.SerializeToString()
    except Exception as error:  # noqa: BLE001 - a voice without word times still speaks
        log.warning(
            "words of the voice %s are placed by their characters, which is about 0.1 s off: %s%s",
            weights.stem,
            error,
            '. Install onnx: pip install "voice-agent[piper]"' if isinstance(error, ImportError) else "",
        )
        return weights
    try:
        write_atomically(target, content)
    except OSError as error:
        log.warning("the prepared voice cannot be kept in %s and is made again at each start: %s", target.parent, error)
        return content
    return target
