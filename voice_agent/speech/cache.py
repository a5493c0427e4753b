"""Speech that was made once and is said again: in memory, and on disk across restarts.

Both levels are bounded and drop what was used longest ago. Whatever goes wrong on disk (damage, a
full disk, no permission) costs a synthesis, never a call.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import struct
import threading
from collections import OrderedDict
from pathlib import Path

from voice_agent.config import CacheOptions
from voice_agent.speech.atomic_file import write_atomically
from voice_agent.speech.cache_directory import cache_directory
from voice_agent.speech.protocols import Speech, TextSpan

log = logging.getLogger(__name__)

_MAGIC = b"VASPEECH1\n"
_DIGEST_BYTES = 32
_HEAD_LENGTH = struct.Struct("<I")
_SUFFIX = ".speech"
_MB = 1 << 20
# A span is four integers in a tuple of objects.
_SPAN_BYTES = 200


class ResponseCache:
    """Keeps `Speech` by key. Memory is used on the event loop; the disk by worker threads."""

    def __init__(self, options: CacheOptions) -> None:
        self._memory_limit = options.memory_mb * _MB
        self._disk_limit = options.disk_mb * _MB
        self._directory = options.directory or cache_directory() / "responses"
        self._memory: OrderedDict[str, Speech] = OrderedDict()
        self._memory_bytes = 0
        self._disk_lock = threading.Lock()
        self._disk_works = self._disk_limit > 0

    @staticmethod
    def key(text: str, identity: str, language: str) -> str:
        """Return the key of ``text`` spoken by the voice ``identity`` in ``language``."""
        # Lengths keep ("ab", "c") and ("a", "bc") apart.
        parts = "".join(f"{len(part)}:{part}" for part in (text, identity, language))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    def get(self, key: str) -> Speech | None:
        """Return what memory holds. Never blocks."""
        speech = self._memory.get(key)
        if speech is not None:
            self._memory.move_to_end(key)
        return speech

    async def load(self, key: str) -> Speech | None:
        """Return what memory or disk holds, and keep it in memory from now on."""
        speech = self.get(key)
        if speech is None and self._disk_works:
            speech = await asyncio.to_thread(self._read, key)
            if speech is not None:
                self._remember(key, speech)
        return speech

    def store(self, key: str, speech: Speech) -> asyncio.Future[None]:
        """Keep speech in memory at once and begin to write it to disk. Failed speech is never kept.

        Returns:
            Done when the disk is; a caller who waits for his audio need not wait for that.
        """
        loop = asyncio.get_running_loop()
        if not speech.failed:
            self._remember(key, speech)
            if self._disk_works:
                return loop.run_in_executor(None, self._write, key, speech)
        done: asyncio.Future[None] = loop.create_future()
        done.set_result(None)
        return done

    def _remember(self, key: str, speech: Speech) -> None:
        size = _size(speech)
        if size > self._memory_limit:
            return
        replaced = self._memory.pop(key, None)
        self._memory_bytes += size - (_size(replaced) if replaced is not None else 0)
        self._memory[key] = speech
        while self._memory_bytes > self._memory_limit:
            _, dropped = self._memory.popitem(last=False)
            self._memory_bytes -= _size(dropped)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}{_SUFFIX}"

    def _read(self, key: str) -> Speech | None:
        path = self._path(key)
        try:
            content = path.read_bytes()
            # The time of last change orders what is dropped first.
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up_disk(error)
            return None
        try:
            return decode(content)
        except ValueError as error:
            log.warning("the cached speech %s is damaged (%s) and is made again", path, error)
            path.unlink(missing_ok=True)
            return None

    def _write(self, key: str, speech: Speech) -> None:
        content = encode(speech)
        if len(content) > self._disk_limit:
            return
        try:
            with self._disk_lock:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._make_room(len(content))
                write_atomically(self._path(key), content)
        except OSError as error:
            self._give_up_disk(error)

    def _make_room(self, needed: int) -> None:
        """Drop the entries used longest ago until ``needed`` bytes fit."""
        entries = []
        for path in self._directory.iterdir():
            if path.suffix != _SUFFIX:
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total + needed <= self._disk_limit:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _give_up_disk(self, error: OSError) -> None:
        if self._disk_works:
            self._disk_works = False
            log.warning(
                "the response cache in %s cannot be used (%s); speech is kept in memory only. Make the directory "
                "writable, free space, or set speech.cache.directory",
                self._directory,
                error.strerror or error,
            )


def _size(speech: Speech) -> int:
    return len(speech.pcm) + len(speech.text) + _SPAN_BYTES * len(speech.spans)


def encode(speech: Speech) -> bytes:
    """Return a file's content: magic, SHA-256 of the rest, length of the JSON head, head, PCM."""
    spans = [[span.start, span.end, span.first, span.last] for span in speech.spans]
    head = json.dumps({"text": speech.text, "spans": spans}).encode()
    body = _HEAD_LENGTH.pack(len(head)) + head + speech.pcm
    return _MAGIC + hashlib.sha256(body).digest() + body


def decode(content: bytes) -> Speech:
    """Read what `encode` wrote.

    Raises:
        ValueError: It is damaged, cut short, or something else.
    """
    start = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or len(content) < start + _HEAD_LENGTH.size:
        raise ValueError("no speech file")
    body = content[start:]
    if hashlib.sha256(body).digest() != content[len(_MAGIC) : start]:
        raise ValueError("the checksum does not match")
    (head_length,) = _HEAD_LENGTH.unpack_from(body)
    pcm_at = _HEAD_LENGTH.size + head_length
    head = json.loads(body[_HEAD_LENGTH.size : pcm_at])
    return Speech(head["text"], body[pcm_at:], tuple(TextSpan(*span) for span in head["spans"]))
