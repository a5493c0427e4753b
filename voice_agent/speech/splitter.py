"""Cuts a growing reply into pieces that can be spoken: sentences, or clauses where a sentence is long.

The model's text comes in deltas of any size; a piece goes out as soon as its end is certain::

    deltas   "Sure" ", I can" " do that" ". Your bal" "ance is $3" ".50" ". Any"
    pieces                  ▲ "Sure, I can do that. "         ▲ "Your balance is $3.50. "
                            held back: "." may still be part of a number, name or address

The answer depends on the text alone, never on how it was cut into deltas. The first piece of a
message may end at a clause, so that speech starts early. What is never read out (code blocks,
tables) comes as pieces of its own, so that it can be recognised whole.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from voice_agent.speech.abbreviations import NEVER_FINAL, RARELY_FINAL, SENTENCE_OPENERS

# "Sure," or "Yes," is said in a third of a second, in which Piper makes the next clause.
FIRST_MIN_CHARS = 4
CLAUSE_AFTER_CHARS = 140
MAX_CHARS = 240

# A code block is not spoken, so it may be long; beyond this it is treated as running text.
_MAX_BLOCK_CHARS = 8000
# The longest address with a query that is kept whole. Longer words are no words, and nobody can say them.
_MAX_WORD_CHARS = 2000
# White space longer than this says no more about what follows.
_MAX_SPACE_CHARS = 12

_CANDIDATE = re.compile(r"[.!?…。！？]+|[,;:—–\n]|-(?=\s)|-$|```")
_SPACE = re.compile(r"\s")
_CLOSERS = "\"'”’»)]}*_~`"
_MAX_CLOSERS = 8
_FULL_WIDTH = "。！？"
_WORD_BEFORE = re.compile(r"[^\s(\[{\"'“”‘’*_]+$")
_WORD_AFTER = re.compile(r"[\"“‘(*_]{0,4}([^\s.,;:!?\"”)*_]*)")
# No word that opens a sentence is longer, so a longer one need not be awaited whole.
_MAX_OPENER_CHARS = 12
_BLOCK_START = re.compile(r"(?:[-*+•>#|`]|\d{1,3}[.)]\s)")
_BLOCK_LINE = re.compile(r"\s*(?:[-*+•>|]\s?|#{1,6}\s|\d{1,3}[.)]\s)")


class _Verdict(Enum):
    SENTENCE = auto()
    CLAUSE = auto()
    INSIDE = auto()
    UNDECIDED = auto()


class SentenceSplitter:
    """Splits one message. Pieces concatenate to the input exactly; white space stays with the piece before it.

    Args:
        first_clause: The first piece may end at a clause boundary after ``first_min_chars``.
        first_min_chars: Shortest first clause, in characters.
        clause_after_chars: From this length on, later pieces end at a clause boundary too.
        max_chars: Longest piece. Only a run without white space or an unspoken block may exceed it.
    """

    def __init__(
        self,
        first_clause: bool = True,
        *,
        first_min_chars: int = FIRST_MIN_CHARS,
        clause_after_chars: int = CLAUSE_AFTER_CHARS,
        max_chars: int = MAX_CHARS,
    ) -> None:
        if not 1 <= first_min_chars <= clause_after_chars <= max_chars:
            raise ValueError(
                f"need 1 <= first_min_chars <= clause_after_chars <= max_chars, not {first_min_chars}, "
                f"{clause_after_chars}, {max_chars}"
            )
        self._clause_after = first_min_chars if first_clause else clause_after_chars
        self._later_clause_after = clause_after_chars
        self._max = max_chars
        self._buffer = ""
        self._scanned = 0
        self._last_clause = 0

    def push(self, delta: str) -> list[str]:
        """Take the next characters and return the pieces whose end is now certain, often none."""
        self._buffer += delta
        return self._take(final=False)

    def flush(self) -> list[str]:
        """The message is over: return what was held back. The splitter must not be pushed again."""
        pieces = self._take(final=True)
        if self._buffer:
            pieces.append(self._cut(len(self._buffer)))
        return pieces

    def _take(self, *, final: bool) -> list[str]:
        pieces = []
        while (end := self._next_end(final)) is not None:
            pieces.append(self._cut(end))
        return pieces

    def _cut(self, end: int) -> str:
        piece, self._buffer = self._buffer[:end], self._buffer[end:]
        self._scanned = self._last_clause = 0
        if piece.strip():
            self._clause_after = self._later_clause_after
        return piece

    def _next_end(self, final: bool) -> int | None:
        """Return where the next piece ends, or None while that is uncertain."""
        text = self._buffer
        if text.lstrip().startswith("```"):
            end = _code_block_end(text, final)
            if end is None or end > 0:
                return end
        while (candidate := _CANDIDATE.search(text, self._scanned)) is not None:
            if candidate.start() >= self._max:
                break
            verdict, end = _judge(text, candidate, final)
            if verdict is _Verdict.UNDECIDED:
                return None
            self._scanned = candidate.end()
            if verdict is _Verdict.SENTENCE and text[:end].strip():
                return end
            if verdict is _Verdict.CLAUSE:
                if len(text[:end].strip()) >= self._clause_after and end <= self._max:
                    return end
                self._last_clause = end
        return self._forced_end(final) if len(text) > self._max else None

    def _forced_end(self, final: bool) -> int | None:
        """Return where an overlong piece breaks: at its last clause, else between two words."""
        text = self._buffer
        if text.lstrip().startswith("|") and len(text) <= _MAX_BLOCK_CHARS:
            return None
        if self._last_clause >= self._max // 4 and self._last_clause <= self._max:
            return self._last_clause
        for at in range(self._max, self._max // 4, -1):
            # A space between digits belongs to a phone or account number.
            between_digits = text[at - 2].isdigit() and text[at].isdigit()
            if text[at - 1].isspace() and not text[at].isspace() and not between_digits:
                return at
        # One endless word, such as an address with a query: it may run on, though not for ever.
        space = _SPACE.search(text, self._max - 1)
        if space is not None:
            end = _space_end(text, space.start())
            # A model that has lost its way sends white space by the thousand: more of it need not be awaited.
            if end < len(text) or end - space.start() >= _MAX_SPACE_CHARS:
                return min(end, _MAX_WORD_CHARS)
        return _MAX_WORD_CHARS if len(text) > _MAX_WORD_CHARS else None


def split(text: str, first_clause: bool = False) -> list[str]:
    """Split a whole text at once."""
    splitter = SentenceSplitter(first_clause)
    return splitter.push(text) + splitter.flush()


def _code_block_end(text: str, final: bool) -> int | None:
    """Return the end of the fenced block that opens ``text``; None while it is open, 0 if it is too long to be one."""
    opening = text.index("```") + 3
    closing = text.find("```", opening)
    if closing < 0 or closing > _MAX_BLOCK_CHARS:
        if len(text) > _MAX_BLOCK_CHARS:
            return 0
        return len(text) if final and text else None
    end = closing + 3
    while end < len(text) and text[end].isspace() and end - closing <= _MAX_SPACE_CHARS:
        end += 1
    return end if end < len(text) or final else None


def _judge(text: str, candidate: re.Match[str], final: bool) -> tuple[_Verdict, int]:
    """Decide whether a piece may end at ``candidate``, and where the piece would end."""
    mark, at, after = candidate[0], candidate.start(), candidate.end()
    if mark == "```":
        return _Verdict.SENTENCE, at
    if after == len(text) and not final:
        return _Verdict.UNDECIDED, after
    if mark != "\n" and _is_enclosed(text, at):
        return _Verdict.INSIDE, after
    if mark == "\n":
        return _judge_newline(text, at, final)
    if mark in ",;:-–—":
        return _judge_clause(text, at, mark, final)
    return _judge_sentence(text, at, after, mark, final)


def _is_enclosed(text: str, at: int) -> bool:
    """Whether ``at`` lies inside inline code, a link's label or its target, or a table row."""
    before = text[:at]
    if before[before.rfind("\n") + 1 :].lstrip().startswith("|"):
        return True
    if before.count("`") % 2:
        return True
    label = before.rfind("[")
    if label > before.rfind("]"):
        return True
    target = before.rfind("](")
    return target >= 0 and before.find(")", target) < 0


def _space_end(text: str, at: int) -> int:
    end = at
    while end < len(text) and text[end].isspace() and end - at < _MAX_SPACE_CHARS:
        end += 1
    return end


def _judge_newline(text: str, at: int, final: bool) -> tuple[_Verdict, int]:
    """A paragraph, or a line that begins or ends a list item, heading or table row, ends a piece."""
    end = _space_end(text, at)
    full = end - at >= _MAX_SPACE_CHARS
    if end == len(text) and not final and not full:
        return _Verdict.UNDECIDED, end
    if full or text.count("\n", at, end) > 1:
        return _Verdict.SENTENCE, end
    # "12" may still become "12. item", which the next three characters decide.
    following = text[end : end + 5]
    if following[:1].isdigit() and len(following) < 5 and not final:
        return _Verdict.UNDECIDED, end
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if _BLOCK_START.match(following) or _BLOCK_LINE.match(line):
        return _Verdict.SENTENCE, end
    return _Verdict.INSIDE, at + 1


def _judge_clause(text: str, at: int, mark: str, final: bool) -> tuple[_Verdict, int]:
    end = _space_end(text, at + 1)
    if end == len(text):
        return (_Verdict.INSIDE if final else _Verdict.UNDECIDED), end
    before, following = text[at - 1 : at], text[end]
    if end == at + 1 and mark != "—":
        return _Verdict.INSIDE, end
    if mark in "-–" and not before.isspace():
        return _Verdict.INSIDE, end
    # "March 3, 2024", "5 - 10" and "e.g., this" are one thing.
    enclosing = text[:at].rstrip()[-1:]
    if (enclosing.isdigit() and following.isdigit()) or enclosing in ("", "."):
        return _Verdict.INSIDE, end
    return _Verdict.CLAUSE, end


def _judge_sentence(text: str, at: int, after: int, mark: str, final: bool) -> tuple[_Verdict, int]:
    closed = after
    while closed < len(text) and text[closed] in _CLOSERS and closed - after < _MAX_CLOSERS:
        closed += 1
    end = _space_end(text, closed)
    if end == len(text):
        return (_Verdict.INSIDE if final else _Verdict.UNDECIDED), end
    if end == closed:
        ends_here = mark[-1] in _FULL_WIDTH
        return (_Verdict.SENTENCE if ends_here else _Verdict.INSIDE), end
    if "\n" in text[closed:end]:
        # Left to the newline's own rule, which sees the next line.
        return (_Verdict.SENTENCE if text.count("\n", closed, end) > 1 else _Verdict.INSIDE), end
    if mark == ".":
        return _judge_full_stop(text, at, closed > after, end, final)
    # A lower-case letter goes on after "Wait..." and after a quoted question.
    goes_on = text[end].islower() and (mark[-1] in ".…" or closed > after)
    return (_Verdict.INSIDE if goes_on else _Verdict.SENTENCE), end


def _judge_full_stop(text: str, at: int, quoted: bool, end: int, final: bool) -> tuple[_Verdict, int]:
    """Judge a single "." with white space behind it."""
    found = _WORD_BEFORE.search(text, max(0, at - 40), at)
    word = found[0] if found else ""
    next_word = _WORD_AFTER.match(text, end)
    following = next_word[1] if next_word else ""
    if next_word is not None and next_word.end() == len(text) and not final and len(following) < _MAX_OPENER_CHARS:
        return _Verdict.UNDECIDED, end
    ends = _Verdict.SENTENCE, end
    inside = _Verdict.INSIDE, end
    bare = word.rstrip(".").lower()
    if bare in NEVER_FINAL or (bare == "no" and following[:1].isdigit()):
        return inside
    if word.isdigit() and not text[text.rfind("\n", 0, at) + 1 : at - len(word)].strip():
        return inside
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    is_acronym = "." in word and all(len(part) <= 2 and part.isalpha() for part in word.split("."))
    if bare in RARELY_FINAL or is_initial or is_acronym:
        return ends if following.lower() in SENTENCE_OPENERS and following[:1].isupper() else inside
    if following[:1].islower():
        return ends if len(word) >= 4 and word.isalpha() and not quoted else inside
    return ends
