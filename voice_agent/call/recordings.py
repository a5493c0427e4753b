"""The recordings of a service: ``<directory>/<conversation>/<call>.wav``, found, kept for so long, deleted.

A conversation's recordings lie in one directory that carries its id, so that they go with it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote, unquote

from voice_agent.call.recorder import Recorder
from voice_agent.call.recording_file import Format

log = logging.getLogger(__name__)

DAY_S = 86_400.0
ORPHAN_AFTER_S = DAY_S
"""Recordings of a conversation that the store does not know are deleted once they have not changed for this long."""
AUDIO_TYPES = {".wav": "audio/wav", ".opus": "audio/ogg"}
_CALL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SAFE = "@+:"

Known = Callable[[str], Awaitable[bool]]


class Recordings:
    """Args:
    directory: Need not exist; is made by the first recording.
    retention_days: A recording older than this is deleted by `sweep`; 0 keeps it.
    clock: The calendar, as seconds since 1970: retention outlives processes.
    """

    def __init__(self, directory: Path, retention_days: float = 0, *, clock: Callable[[], float] = time.time) -> None:
        self._directory, self._retention_s, self._clock = directory, retention_days * DAY_S, clock

    def recorder(self, conversation_id: str, call_id: str, format: Format) -> Recorder:
        """Return what records a call. Nothing is made on the disk yet."""
        return Recorder(self._of(conversation_id), call_id, format)

    def find(self, conversation_id: str, call_id: str) -> Path | None:
        """Return the audio file of a call; None if there is none (any more). Looks at the disk."""
        if _CALL_ID.fullmatch(call_id) is None:
            return None
        directory = self._of(conversation_id)
        return next((p for suffix in AUDIO_TYPES if (p := directory / f"{call_id}{suffix}").is_file()), None)

    async def peaks(self, conversation_id: str, call_id: str) -> bytes:
        """Return the loudness of a recording (see `recording_file`); nothing where there is none."""
        path = await asyncio.to_thread(self.find, conversation_id, call_id)
        try:
            return b"" if path is None else await asyncio.to_thread(path.with_suffix(".peaks").read_bytes)
        except OSError:
            return b""

    async def delete(self, conversation_id: str) -> None:
        """Delete all recordings of a conversation.

        Raises:
            OSError: Some may still be there.
        """
        directory = self._of(conversation_id)
        await asyncio.to_thread(_remove, directory)

    async def sweep(self, is_known: Known | None) -> int:
        """Delete what is too old, and what belongs to no conversation any more. Returns how many files went.

        Args:
            is_known: Whether a conversation is still kept; None where conversations do not outlive the process,
                and their absence tells nothing.

        Raises:
            Exception: What ``is_known`` raises; nothing is deleted on a doubt.
        """
        gone = 0
        for directory in await asyncio.to_thread(_directories, self._directory):
            now = self._clock()
            settled = now - await asyncio.to_thread(_changed, directory) > ORPHAN_AFTER_S
            if is_known is not None and settled and not await is_known(unquote(directory.name)):
                gone += await asyncio.to_thread(_remove, directory)
                continue
            if self._retention_s:
                gone += await asyncio.to_thread(_expire, directory, now - self._retention_s)
        if gone:
            log.info("%d files of recordings were deleted", gone)
        return gone

    def _of(self, conversation_id: str) -> Path:
        return self._directory / (quote(conversation_id, safe=_SAFE).lstrip(".")[:250] or "_")


def _directories(root: Path) -> list[Path]:
    try:
        return sorted(p for p in root.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return []


def _changed(directory: Path) -> float:
    """Return when anything in the directory was last written."""
    try:
        return max(p.stat().st_mtime for p in (directory, *directory.iterdir()))
    except OSError:
        return float("inf")


def _expire(directory: Path, before: float) -> int:
    gone = 0
    try:
        for path in list(directory.iterdir()):
            if path.suffix in (*AUDIO_TYPES, ".peaks") and path.stat().st_mtime < before:
                path.unlink()
                gone += 1
        if not any(directory.iterdir()):
            directory.rmdir()
    except OSError as fault:
        log.error("recordings in %s could not be deleted: %s", directory, fault.strerror)
    return gone


def _remove(directory: Path) -> int:
    if not directory.is_dir():
        return 0
    count = sum(1 for _ in directory.iterdir())
    shutil.rmtree(directory)
    return count
