"""A scripted `Voice`: a tone of known length per character, in the loop's (virtual) time.

    first_byte_s │ piece 1 │ piece_s │ piece 2 │ …
    ─────────────┤         ├─────────┤         ├──▶ loop time until each piece is handed out

The audio itself takes no loop time: like a real engine, the fake is faster than speech.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Collection

import numpy as np

from voice_agent.speech.protocols import Speech, TextSpan

SAMPLE_RATE = 16_000
SECONDS_PER_CHARACTER = 0.06
_PIECES = re.compile(r".+?(?:[.!?…]+\s+|$)", re.DOTALL)
_WORDS = re.compile(r"\S+")


def fake_speech(text: str, *, seconds_per_character: float = SECONDS_PER_CHARACTER, failed: bool = False) -> Speech:
    """Return a 200 Hz tone (peak -12 dBFS) as long as ``text``, with one span per word.

    A word and the white space after it sound during their share of the audio; the word's span ends with its last
    character. Text without words has no audio.
    """
    per_character = round(seconds_per_character * SAMPLE_RATE)
    length = per_character * len(text) if text.strip() else 0
    tone = 8192 * np.sin(2 * np.pi * 200 * np.arange(length) / SAMPLE_RATE)
    spans = tuple(
        TextSpan(word.start(), word.end(), word.start() * per_character, word.end() * per_character)
        for word in _WORDS.finditer(text)
    )
    return Speech(text, tone.astype("<i2").tobytes(), () if failed else spans, failed=failed)


class FakeVoice:
    """Implements `voice_agent.speech.protocols.Voice`.

    Attributes:
        spoken: Texts handed to `speak`, in order.
        pieces: Pieces actually handed out.
        closed: Generators that reached their ``finally`` (finished, closed or cancelled).
        open: Generators that have started and not ended.
    """

    def __init__(
        self,
        *,
        first_byte_s: float = 0.0,
        piece_s: float = 0.0,
        seconds_per_character: float = SECONDS_PER_CHARACTER,
        cached: Collection[str] = (),
        fail_pieces: Collection[int] = (),
        ignore_cancel: bool = False,
    ) -> None:
        """Script the fake.

        Args:
            first_byte_s: Delay before the first piece of every `speak` that is not cached.
            piece_s: Delay before every later piece.
            cached: Texts that `cached` knows; they are spoken without delay.
            fail_pieces: Pieces (counted from 0 over the fake's life) that come as ``failed``.
            ignore_cancel: Swallow cancellation and go on sending, as some engines do.
        """
        self._first_byte_s, self._piece_s = first_byte_s, piece_s
        self._seconds_per_character = seconds_per_character
        self._cached = frozenset(cached)
        self._fail_pieces = frozenset(fail_pieces)
        self._ignore_cancel = ignore_cancel
        self.spoken: list[str] = []
        self.pieces: list[str] = []
        self.closed = 0
        self.open = 0

    def cached(self, text: str) -> Speech | None:
        return self._speech(text) if text in self._cached else None

    async def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        self.spoken.append(text)
        self.open += 1
        try:
            if text in self._cached:
                self.pieces.append(text)
                yield self._speech(text)
                return
            for index, piece in enumerate(_PIECES.findall(text)):
                await self._wait(self._piece_s if index else self._first_byte_s)
                failed = len(self.pieces) in self._fail_pieces
                self.pieces.append(piece)
                yield self._speech(piece, failed=failed)
        finally:
            self.open -= 1
            self.closed += 1

    async def _wait(self, seconds: float) -> None:
        """Sleep; with ``ignore_cancel`` until the time is over, however often cancelled."""
        until = asyncio.get_running_loop().time() + seconds
        while (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not self._ignore_cancel:
                    raise

    def _speech(self, text: str, *, failed: bool = False) -> Speech:
        return fake_speech(text, seconds_per_character=self._seconds_per_character, failed=failed)
