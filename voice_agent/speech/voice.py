"""What a call speaks with: pieces from the cache or the engine, with retry, a second engine and an apology.

While one piece is played the next is made, never more than one ahead::

    make   piece 1 │ piece 2 │         │ piece 3 │
    hand         1 ▲ ───── played ─────▲ 2 ──────▲ 3
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from voice_agent.audio.wav import read_wav_16k
from voice_agent.speech.alignment import shift_spans
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.pcm import check_pcm
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority, Speech, Synthesizer, TextSpan
from voice_agent.speech.speakable import speakable
from voice_agent.speech.splitter import split
from voice_agent.telemetry.metrics import ABANDONED_TASKS, ENGINE_FAILURES

log = logging.getLogger(__name__)

SYNTHESIS_TIMEOUT_S = 10.0
"""An engine that takes longer for one piece counts as failed."""
MAX_PIECE_BYTES = 300 * 16_000 * 2
"""Five minutes of speech. No piece of text is that long; an engine that makes more of one has run away."""
DISK_TIMEOUT_S = 0.5
"""A cached piece that the disk does not give by then is made again."""
STOP_TIMEOUT_S = 0.5
"""How long the piece made ahead may take to give up when its generator closes."""


class CachedVoice:
    """Implements `voice_agent.speech.protocols.Voice`. One instance serves all calls.

    Args:
        synthesizer: The engine.
        cache: Where canned speech is kept.
        fallback: A second engine, for pieces on which the first has failed twice.
        language: Language of the texts; part of the cache's keys.
    """

    def __init__(
        self,
        synthesizer: Synthesizer,
        cache: ResponseCache,
        *,
        fallback: Synthesizer | None = None,
        language: str = "en",
        timeout_s: float = SYNTHESIS_TIMEOUT_S,
    ) -> None:
        self._synthesizer = synthesizer
        self._cache = cache
        self._fallback = fallback
        self._language = language
        self._timeout_s = timeout_s
        self._apology = fallback_audio()
        self._in_flight: dict[str, tuple[Priority, asyncio.Future[None]]] = {}

    def cached(self, text: str) -> Speech | None:
        """Return the whole of ``text`` as one `Speech` if all its pieces are in memory. Never blocks."""
        pieces = []
        for piece in split(text):
            speech = _silent(piece) if _is_mute(piece) else self._cache.get(self._key(piece.strip()))
            if speech is None:
                return None
            pieces.append(_fit(speech, piece))
        return join(text, pieces) if pieces else None

    async def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        whole = self.cached(text)
        if whole is not None:
            yield whole
            return
        # Canned text is cut as `cached` and `warm` cut it, or its pieces would not be found again.
        pieces = split(text, first_clause=first and not canned)
        ahead: asyncio.Task[Speech] | None = None
        try:
            for index in range(len(pieces)):
                task = ahead or self._start(pieces[index], canned, first and not index)
                ahead = task
                speech = await task
                ahead = self._start(pieces[index + 1], canned, False) if index + 1 < len(pieces) else None
                yield speech
        finally:
            if ahead is not None:
                await _stop(ahead)

    async def warm(self, texts: Iterable[str], progress: Callable[[int, int], None] | None = None) -> None:
        """Make or load the speech of canned texts, one after another, behind all other work.

        Faults are logged and counted, not raised: an unwarmed text is made when it is first said.

        Args:
            progress: Called with (texts done, texts in all) after each.
        """
        wanted = list(dict.fromkeys(texts))
        for done, text in enumerate(wanted, 1):
            for piece in split(text):
                if _is_mute(piece):
                    continue
                try:
                    await self._canned(piece.strip(), Priority.WARM_UP)
                except EngineError as error:
                    log.warning("a canned response could not be spoken in advance: %s", error)
            if progress is not None:
                progress(done, len(wanted))

    def _key(self, piece: str) -> str:
        return self._cache.key(piece, self._synthesizer.identity, self._language)

    def _start(self, piece: str, canned: bool, first: bool) -> asyncio.Task[Speech]:
        """Begin a piece. The generator that asked for it owns the task and stops it in its ``finally``."""
        priority = Priority.FIRST_AUDIO if first else Priority.SPEECH
        work: Coroutine[Any, Any, Speech] = self._piece(piece, canned, priority)
        return asyncio.get_running_loop().create_task(work, name="speech.piece")

    async def _piece(self, piece: str, canned: bool, priority: Priority) -> Speech:
        """Return one piece, whatever happens to the engines."""
        if _is_mute(piece):
            return _silent(piece)
        # Without the white space around it a sentence is the same wherever it stands.
        bare = piece.strip()
        try:
            if canned:
                return _fit(await self._canned(bare, priority), piece)
            return _fit(self._cache.get(self._key(bare)) or await self._make(bare, priority), piece)
        except EngineError as error:
            log.error("no engine could speak a piece of %d characters: %s", len(piece), error)
            return Speech(piece, self._apology, (), failed=True)

    async def _canned(self, piece: str, priority: Priority) -> Speech:
        """Take a piece from the cache or make it; of several who ask at once, one makes it.

        Whoever waits tries again by itself if the maker was cancelled or failed, so nobody depends
        on the life of another call. Nobody waits for work less urgent than his own.
        """
        key = self._key(piece)
        while (maker := self._in_flight.get(key)) is not None and maker[0] <= priority:
            await asyncio.wait({maker[1]})
        known = self._cache.get(key)
        if known is not None:
            return known
        made = asyncio.get_running_loop().create_future()
        self._in_flight[key] = mine = (priority, made)
        try:
            known = await self._load(key)
            if known is not None:
                return known
            speech = await self._make(piece, priority)
            written = self._cache.store(key, speech)
            if priority is Priority.WARM_UP:
                await written
            return speech
        finally:
            if self._in_flight.get(key) is mine:
                del self._in_flight[key]
            made.set_result(None)

    async def _load(self, key: str) -> Speech | None:
        try:
            async with asyncio.timeout(DISK_TIMEOUT_S):
                return await self._cache.load(key)
        except TimeoutError:
            log.warning("the response cache's disk took more than %s s", DISK_TIMEOUT_S)
            return None

    async def _make(self, piece: str, priority: Priority) -> Speech:
        """Ask the engine, once more, then the fallback engine.

        Raises:
            EngineError: All failed; the last cause.
        """
        engines = [self._synthesizer, self._synthesizer]
        if self._fallback is not None:
            engines.append(self._fallback)
        last: EngineError | None = None
        for engine in engines:
            if isinstance(last, PoolOverloaded) and engine is self._synthesizer:
                # A full queue is not emptier a moment later, and asking again would not help it.
                continue
            try:
                return await self._attempt(engine, piece, priority)
            except EngineError as error:
                ENGINE_FAILURES.labels(engine="tts").inc()
                log.warning("speech engine: %s", error)
                last = error
        assert last is not None
        raise last

    async def _attempt(self, engine: Synthesizer, piece: str, priority: Priority) -> Speech:
        try:
            async with asyncio.timeout(self._timeout_s):
                speech = await engine.synthesize(piece, priority=priority)
        except EngineError:
            raise
        except TimeoutError as error:
            raise EngineError(f"no speech within {self._timeout_s} s") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody cancelled us: the engine lost something of its own.
            raise EngineError("the engine cancelled itself") from error
        except Exception as error:
            # An engine that breaks its contract must not end a call.
            raise EngineError(f"unexpected {error!r}") from error
        if not isinstance(speech, Speech) or not isinstance(speech.pcm, bytes):
            raise EngineError(f"the engine returned {type(speech).__name__} that is no speech")
        if len(speech.pcm) > MAX_PIECE_BYTES:
            raise EngineError(f"the engine made {len(speech.pcm)} bytes of a piece of {len(piece)} characters")
        if speech.pcm or speakable(piece, self._language).text:
            check_pcm(speech.pcm)
        return speech


def join(text: str, pieces: Sequence[Speech]) -> Speech:
    """Join the speech of consecutive pieces of ``text`` into one."""
    if len(pieces) == 1:
        return pieces[0]
    spans: list[TextSpan] = []
    characters = samples = 0
    for piece in pieces:
        spans += shift_spans(piece.spans, characters, samples)
        characters += len(piece.text)
        samples += len(piece.pcm) // 2
    return Speech(text, b"".join(piece.pcm for piece in pieces), tuple(spans))


@functools.cache
def fallback_audio() -> bytes:
    """Return the spoken apology that is played when no engine can speak, as canonical PCM.

    "I'm sorry, I'm having trouble speaking right now. One moment, please.", made by
    ``scripts/make_fallback_audio.py`` with Piper's voice en_US-joe-medium (CC0).
    """
    return read_wav_16k(str(files("voice_agent.speech").joinpath("assets/fallback.wav")))


def _fit(speech: Speech, piece: str) -> Speech:
    """Return the speech of ``piece.strip()`` as that of ``piece``."""
    if speech.text == piece:
        return speech
    indent = len(piece) - len(piece.lstrip())
    return replace(speech, text=piece, spans=shift_spans(speech.spans, indent, 0) if indent else speech.spans)


def _is_mute(piece: str) -> bool:
    """Whether not even a letter could be said, so that no engine need be asked."""
    return not any(character.isalnum() for character in piece)


def _silent(piece: str) -> Speech:
    return Speech(piece, b"", tuple(TextSpan(word.start(), word.end(), 0, 0) for word in re.finditer(r"\S+", piece)))


async def _stop(task: asyncio.Task[Speech]) -> None:
    """Drop the piece made ahead. A job that waits in the pool is taken out of its queue."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=STOP_TIMEOUT_S)
    finally:
        if not task.done():
            ABANDONED_TASKS.labels(kind="speech.piece").inc()
            log.warning("abandoned a speech job: its engine ignored the cancellation")
        elif not task.cancelled():
            # Retrieved, so that the loop does not report it as unhandled.
            task.exception()
