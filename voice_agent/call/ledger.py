"""What of a reply was played: text spans beside audio spans, and the position the caller has heard.

One ledger per turn. Positions are samples of the turn's audio (16 kHz), instants are seconds of one clock::

    text      "Your balance is fifty dollars. "      "Anything else?"
    pieces    ├──────────────────────────────┤       ├─────────────┤
    audio     0 ───────────────▲────▲─────────────────────────────▶
                           heard    released
                               └────┘ on the way: at most what the wall clock has not yet played

Audio released counts as heard when the wall clock has had the time to play it, or, where the wire
acknowledges playout, when it did so as well. What was cleared was not heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.dialogue.reply import HeardReply
from voice_agent.speech.protocols import Speech, TextSpan

ACK_HORIZON_S = 0.5
"""How far playout is extrapolated from the last acknowledged position."""
ACK_TAIL_S = 1.0
"""How long after the wall clock an acknowledging wire may confirm the last sample."""
_FRAME_S = FRAME_SAMPLES / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class _Piece:
    """``text`` starts at character ``start`` of the reply and sounds from sample ``first`` for ``length`` samples."""

    text: str
    start: int
    first: int
    length: int
    spans: Sequence[TextSpan]
    spoken: bool
    protected: bool
    discards: bool

    def heard_until(self, position: int) -> int:
        """Return how many characters were heard at ``position``, cut between words."""
        if position >= self.first + self.length or not self.text:
            # Audio without text, such as a filler's, has spans of its own words, and none of the reply's.
            return len(self.text)
        into = position - self.first
        if self.spans:
            end = max((s.end for s in self.spans if into * 2 >= s.first + s.last), default=0)
        else:
            end = len(self.text) * max(0, into) // max(1, self.length)
            end = end if end <= 0 else self.text.rfind(" ", 0, end + 1) + 1
        while 0 < end < len(self.text) and not self.text[end].isspace() and not self.text[end - 1].isspace():
            end += 1
        return end

    def between(self, first: int, last: int) -> str:
        """Return the words that sound between two positions."""
        first, last = max(0, first - self.first), min(self.length, last - self.first)
        if first >= last or not self.text:
            return ""
        if self.spans:
            return " ".join(self.text[s.start : s.end] for s in self.spans if s.last > first and s.first < last)
        start, end = (len(self.text) * at // self.length for at in (first, last))
        return self.text[self.text.rfind(" ", 0, start + 1) + 1 : (self.text + " ").find(" ", end)]

    def word_start(self, position: int) -> int:
        """Return the sample at which the word that sounds at ``position`` begins, on a frame boundary."""
        into = position - self.first
        starts = [s.first for s in self.spans if s.first <= into < s.last]
        into = starts[-1] if starts else into
        return self.first + into // FRAME_SAMPLES * FRAME_SAMPLES


class PlayoutLedger:
    """The ledger of one turn.

    Args:
        reports_position: The wire acknowledges playout; what it has not acknowledged was not heard.
    """

    def __init__(self, *, reports_position: bool = False) -> None:
        self._reports = reports_position
        self._text = ""
        self._cursor = 0
        self._pieces: list[_Piece] = []
        self._length = 0
        self._released = 0
        self._play_until = 0.0
        self._highest = 0
        self._acked: tuple[int, float] | None = None
        self._stands_still = False
        self._stream = self._stream_base = self._content_base = 0
        self._committed = False
        self._whole: list[tuple[int, int]] = []
        self._last_message = 0

    @property
    def text(self) -> str:
        """All text of the reply so far, spoken or not."""
        return self._text

    @property
    def length(self) -> int:
        """Samples of audio known so far, whole frames per piece."""
        return self._length

    @property
    def released(self) -> int:
        """Position up to which audio was handed to the wire."""
        return self._released

    @property
    def play_until(self) -> float:
        """When the wall clock will have played what was released."""
        return self._play_until

    @property
    def committed(self) -> bool:
        return self._committed

    def said(self, text: str, *, whole: bool = False) -> None:
        """The dialogue said this much more; ``whole``: a model is to know of it even if it is cut."""
        if whole:
            self._whole.append((len(self._text), len(self._text) + len(text)))
        self._text += text

    def message_begins(self) -> None:
        """What is said from now on is another message."""
        self._last_message = len(self._text)

    def append(self, speech: Speech, samples: int, *, protected: bool = False, discards: bool = False) -> None:
        """Audio for the next piece of text.

        Args:
            samples: Its length as it will be released, padded to frames.
            protected: It must be heard whole.
            discards: What the caller says while it sounds is not listened to.
        """
        found = self._text.find(speech.text, self._cursor)
        start = found if found >= 0 else min(self._cursor, len(self._text))
        text = speech.text if found >= 0 else ""
        self._cursor = start + len(text)
        length = min(samples, len(speech.pcm) // 2)
        spoken = not speech.failed
        self._pieces.append(_Piece(text, start, self._length, length, speech.spans, spoken, protected, discards))
        self._length += samples

    def release(self, now: float) -> None:
        """One frame went to the wire."""
        if self._play_until < now:
            self._play_until = now
        self._play_until += _FRAME_S
        self._released += FRAME_SAMPLES
        self._stream += FRAME_SAMPLES

    def ahead(self, now: float) -> float:
        """Return how many seconds of released audio the wall clock has not yet played."""
        return max(0.0, self._play_until - now)

    def acked(self, ms: float, now: float) -> None:
        """The far end has played ``ms`` of this reply. Late and impossible acknowledgements do not count."""
        samples = round(ms * SAMPLE_RATE / 1000)
        if not 0 <= samples <= self._stream + FRAME_SAMPLES:
            return
        content = min(self._released, self._content_base + samples - self._stream_base)
        # The same position once more says that playout stands still: nothing is extrapolated from the first.
        if content >= 0 and (self._acked is None or content >= self._acked[0]):
            self._stands_still = self._acked is not None and content == self._acked[0]
            self._acked = (content, now)

    def confirmed(self, position: int, now: float) -> None:
        """The far end has come to ``position``, in samples of this reply, since the last `clear`."""
        if 0 <= position <= self._released and (self._acked is None or position >= self._acked[0]):
            self._acked = (position, now)

    def position(self, now: float) -> int:
        """Return how far the caller has heard the reply."""
        reached = self._released - round(self.ahead(now) * SAMPLE_RATE)
        sure = reached
        if self._acked is not None:
            at, when = self._acked
            since_s = 0.0 if self._stands_still else min(max(0.0, now - when), ACK_HORIZON_S)
            sure, reached = min(reached, at), min(reached, at + round(since_s * SAMPLE_RATE))
        elif self._reports:
            sure = reached = 0
        # What is only extrapolated may prove wrong: a far end that then reports less has played less.
        self._highest = max(self._highest, min(sure, self._length))
        return max(self._highest, min(reached, self._length))

    def clear(self, now: float) -> int:
        """What was released and not yet played is dropped, here and at the far end. Returns the heard position."""
        reached = self._highest = self.position(now)
        # Before its first acknowledgement the far end plays all the same: the wall clock says how much it will count.
        counted = reached if self._acked is not None else self._released - round(self.ahead(now) * SAMPLE_RATE)
        self._stream_base = self._stream - max(0, self._released - counted)
        self._stream = self._stream_base
        self._released = self._content_base = reached
        self._play_until = min(self._play_until, now)
        self._acked = (reached, now) if self._acked is not None else None
        return reached

    def faded(self, samples: int) -> None:
        """So much was sent that is no part of the reply: a fade, a ringing tone. The far end counts it all the same."""
        self._stream += samples
        self._stream_base += samples

    def rewind(self) -> int:
        """After `clear`: return where playout goes on, the start of the cut word."""
        at = self._released
        for piece in self._pieces:
            if piece.first <= at < piece.first + piece.length:
                at = piece.word_start(at)
                break
        self._released = self._content_base = at
        return at

    def said_since(self, instant: float) -> str:
        """Return the words that sounded after ``instant``, the one that is being released included."""
        first = self._released - round((self._play_until - instant) * SAMPLE_RATE)
        return " ".join(piece.between(first, self._released) for piece in self._pieces if piece.spoken)

    def drained(self, now: float) -> bool:
        """Whether the caller has heard all audio known so far, or must have by any clock."""
        if self._released < self._length or now < self._play_until:
            return False
        confirmed = self._acked is not None and self._acked[0] >= self._length - FRAME_SAMPLES
        return not self._reports or confirmed or not self._length or now >= self._play_until + ACK_TAIL_S

    def precedes_last_message(self, at: int) -> bool:
        """Whether nothing of the last message has sounded at the position ``at``, which may lie before the reply."""
        first = next((p.first for p in self._pieces if p.start >= self._last_message and p.spoken), None)
        return bool(self._text[self._last_message :].strip()) and (first is None or at < first)

    def protects(self, now: float) -> bool:
        """Whether wording that must be heard whole is known and not yet heard."""
        last = next((p for p in reversed(self._pieces) if p.protected), None)
        return last is not None and self.position(now) < last.first + last.length

    def discards(self, now: float) -> bool:
        """Whether wording sounds over which the caller is not listened to."""
        at = self.position(now)
        return any(p.discards and p.first < self._released and p.first <= at < p.first + p.length for p in self._pieces)

    def heard(self, now: float) -> HeardReply:
        """Return what was heard and what was not, each as it was written, and what a model is to know of it."""
        stretches = self._stretches(now)
        heard = self._joined([(a, b) for a, b, was_heard in stretches if was_heard])
        unheard = "".join(self._text[a:b] for a, b, was_heard in stretches if not was_heard)
        context: list[str] = []
        for start, end, was_heard in stretches if self._whole else ():
            kept = [(start, end)] if was_heard else [(max(start, a), min(end, b)) for a, b in self._whole]
            context.extend(self._text[a:b] for a, b in kept)
        return HeardReply(heard, unheard, "".join(context) if unheard.strip() and self._whole else None)

    def _joined(self, stretches: list[tuple[int, int]]) -> str:
        """Return stretches of the text as one; where something between two was left out, their words stay apart."""
        joined, end = "", 0
        for start, stop in stretches:
            if not (words := self._text[start:stop]):
                continue
            left_out = start > end and joined and not (joined[-1].isspace() or words[0].isspace())
            joined, end = joined + (" " if left_out else "") + words, stop
        return joined

    def _stretches(self, now: float) -> list[tuple[int, int, bool]]:
        """Return the text as stretches ``(start, end, heard)``."""
        position, at = self.position(now), 0
        found: list[tuple[int, int, bool]] = []
        for piece in self._pieces:
            reached = position if position or not self._length else -1
            cut = piece.start + (piece.heard_until(reached) if piece.spoken else 0)
            # Words between pieces were never spoken; the white space before a piece goes with it.
            spoken = at + len(self._text[at : piece.start].rstrip())
            found += [(at, spoken, False), (spoken, piece.start, cut > piece.start), (piece.start, cut, True)]
            at = piece.start + len(piece.text)
            found.append((cut, at, False))
        all_heard = not any(self._text[a:b].strip() for a, b, was in found if not was)
        found.append((at, len(self._text), all_heard and not self._text[at:].strip()))
        return found

    def commit(self, now: float) -> HeardReply | None:
        """Return what was heard, once; None ever after."""
        if self._committed:
            return None
        self._committed = True
        return self.heard(now)
