"""Agent audio that tells by its samples which word it is, so that the wire's frames alone say what was audible.

Every word of every synthesis has a number, and its frames hold nothing but that number; the white space after it is a
frame value of its own. A faded frame is not constant and belongs to no word.

::

    wire     Hello, ▁ this ▁ is ▁ the ▁ fr ▁▁▁▁▁▁▁▁ front ▁ desk.
    audible  "Hello, this is the front~"            "front desk."        ~ cut
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tests.fakes.voice import _PIECES
from tests.interactions.script import VoiceScript
from voice_agent.audio.frames import FRAME_SAMPLES
from voice_agent.speech.protocols import Speech, TextSpan

FRAMES_PER_CHARACTER = 3
FIRST_WORD = 1000
GAP = 900
FALLBACK = "(fallback)"
STRETCH_S = 0.1
"""A silence this long ends a stretch of speech."""
_WORDS = re.compile(r"\S+")


@lru_cache(maxsize=4096)
def _frame(value: int) -> bytes:
    return value.to_bytes(2, "little") * FRAME_SAMPLES


GAP_FRAME = _frame(GAP)
"""White space between two words."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of one synthesis; ``turn`` counts the replies, ``frames`` is its whole length.

    ``aside``: It is of a filler, and no word of the reply.
    """

    text: str
    turn: int
    frames: int
    aside: bool = False


class MarkedVoice:
    """Implements `Voice` with audio whose words can be read from the frames.

    Args:
        turn: Tells how many replies were settled before the one that speaks now.
        asides: Texts of fillers. They are always in the cache, as the service sees to.
    """

    def __init__(self, script: VoiceScript, turn: Callable[[], int], asides: Collection[str] = ()) -> None:
        self._script, self._turn, self._asides = script, turn, asides
        self._pieces = 0
        self.words: list[Word] = []
        self.open = 0

    def cached(self, text: str) -> Speech | None:
        ready = self._script.cached or (text in self._asides and not self._script.cold)
        return self._speech(text, self._turn(), aside=text in self._asides) if ready else None

    async def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        turn = self._turn()
        self.open += 1
        try:
            for index, piece in enumerate(_PIECES.findall(text)):
                await self._wait(self._script.piece_s if index else self._script.first_byte_s)
                number, self._pieces = self._pieces, self._pieces + 1
                if number in self._script.silent_pieces:
                    await asyncio.sleep(3600)
                failed = number in self._script.fail_pieces
                yield self._speech(piece, turn, failed=failed, aside=text in self._asides)
        finally:
            self.open -= 1

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not self._script.ignore_cancel:
                    raise

    def _speech(self, text: str, turn: int, *, failed: bool = False, aside: bool = False) -> Speech:
        if failed:
            return Speech(text, self._word(FALLBACK, turn), (), failed=True)
        pcm: list[bytes] = []
        spans: list[TextSpan] = []
        at = 0
        for word in _WORDS.finditer(text):
            gap = (word.start() - at) * FRAMES_PER_CHARACTER
            pcm.append(_frame(GAP) * gap + self._word(word.group(), turn, aside))
            first = word.start() * FRAMES_PER_CHARACTER * FRAME_SAMPLES
            last = word.end() * FRAMES_PER_CHARACTER * FRAME_SAMPLES
            spans.append(TextSpan(word.start(), word.end(), first, last))
            at = word.end()
        trailing = (len(text) - at) * FRAMES_PER_CHARACTER if spans else 0
        return Speech(text, b"".join(pcm) + _frame(GAP) * trailing, tuple(spans))

    def _word(self, text: str, turn: int, aside: bool = False) -> bytes:
        frames = len(text) * FRAMES_PER_CHARACTER
        self.words.append(Word(text, turn, frames, aside))
        return _frame(FIRST_WORD + len(self.words) - 1) * frames


def word_of(frame: bytes) -> int | None:
    """Return the number of the word this frame is of; None for gaps, fades and silence."""
    value = int.from_bytes(frame[:2], "little", signed=True)
    if value < FIRST_WORD or frame[:2] != frame[-2:]:
        return None
    return value - FIRST_WORD


@dataclass(slots=True)
class Sounding:
    """One uninterrupted sounding of a word."""

    number: int
    start: float
    end: float
    frames: int = 1


def soundings(frames: Sequence[tuple[float, bytes]]) -> list[Sounding]:
    """Return which words sounded, in order; a word that was cut and said again is there twice."""
    found: list[Sounding] = []
    for at, frame in frames:
        number = word_of(frame)
        if number is None:
            continue
        last = found[-1] if found else None
        if last is not None and last.number == number and at - last.end < STRETCH_S:
            last.end, last.frames = at, last.frames + 1
        else:
            found.append(Sounding(number, at, at))
    return found


def stretches(sounded: Sequence[Sounding], words: Sequence[Word]) -> list[str]:
    """Return what was audible, one string per uninterrupted stretch of one reply; ``~`` marks a word that was cut."""
    found: list[list[str]] = []
    last: Sounding | None = None
    for one in sounded:
        word = words[one.number]
        # White space between two sentences sounds as silence does, and is no interruption.
        if last is None or one.start - last.end > STRETCH_S + 0.08 or words[last.number].turn != word.turn:
            found.append([])
        found[-1].append(word.text + ("" if one.frames >= word.frames else "~"))
        last = one
    return [" ".join(stretch) for stretch in found]
