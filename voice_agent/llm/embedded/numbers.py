"""Numbers as people say them and as recognisers write them.

"four two seven nine", "double five", "twenty-five", "one hundred and five", "2 thousand",
"427-913", "$42.50", "forty two fifty". All functions are pure and bounded by the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_UNIT_NAMES = "one two three four five six seven eight nine"
_TEEN_NAMES = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS_NAMES = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = frozenset(_UNIT_NAMES.split())
_VALUES = (
    {word: value for value, word in enumerate(_UNIT_NAMES.split(), 1)}
    | {word: value for value, word in enumerate(_TEEN_NAMES.split(), 10)}
    | {word: value * 10 for value, word in enumerate(_TENS_NAMES.split(), 2)}
    | {"fourty": 40, "dozen": 12}
)
_ZEROS = frozenset(["zero", "oh", "o", "nought", "naught", "nil"])
_SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_REPEATS = {"double": 2, "triple": 3, "treble": 3}
_FILLERS = frozenset(["uh", "um", "er", "erm", "dash", "hyphen", "space", "then", "and", "a", "comma"])
_TOKEN = re.compile(r"\d+(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+\.\d+|\d+|[a-z]+(?:'[a-z]+)?|[-$£€%+]")
_MINUS = frozenset(["minus", "negative"])
MAX_DIGITS = 32
MAX_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of number words. ``chunks`` are the digit strings it falls into, in order.

    "one hundred and five" is one chunk, "four two seven" three, "nineteen eighty four" two.
    ``start`` and ``end`` are token positions.
    """

    chunks: tuple[str, ...]
    start: int
    end: int
    fraction: str = ""
    negative: bool = False

    @property
    def digits(self) -> str:
        return "".join(self.chunks)[:MAX_DIGITS]

    @property
    def value(self) -> float:
        """The run as one number; several chunks count as digits said one by one."""
        number = float(f"{self.digits or '0'}.{self.fraction or '0'}")
        return -number if self.negative else number


def tokens(text: str) -> list[str]:
    """Return lower-case words, numbers and signs. A hyphen between words or digits separates."""
    return _TOKEN.findall(text[:MAX_TEXT].lower().replace("’", "'"))


def number_runs(words: Sequence[str]) -> list[Run]:
    """Return every stretch of number words in ``words``, in order."""
    runs, position = [], 0
    while position < len(words):
        run = _run_at(words, position)
        if run is None:
            position += 1
        else:
            runs.append(run)
            position = run.end
    return runs


def parse_digits(text: str, *, least: int = 1) -> str | None:
    """Return the longest string of digits said in ``text``, or None if none has ``least`` digits."""
    best = max((run.digits for run in number_runs(tokens(text)) if not run.fraction), key=len, default="")
    return best if len(best) >= least else None


def parse_number(text: str) -> float | None:
    """Return the first number in ``text`` ("two and a half" is 2.5), or None."""
    words = tokens(text)
    runs = number_runs(words)
    if not runs:
        halves = {"half": 0.5, "quarter": 0.25}
        return next((value for word, value in halves.items() if word in words), None)
    run = runs[0]
    if list(words[run.end : run.end + 3]) == ["and", "a", "half"]:
        return run.value + 0.5
    return run.value


def parse_int(text: str) -> int | None:
    """Return the first number in ``text`` if it is whole."""
    number = parse_number(text)
    return int(number) if number is not None and number == int(number) else None


_MAJOR = frozenset(["dollar", "dollars", "buck", "bucks", "pound", "pounds", "euro", "euros", "usd", "eur", "gbp"])
_MINOR = frozenset(["cent", "cents", "pence", "penny", "pennies"])
_SIGNS = frozenset("$£€")


def parse_money(text: str, *, explicit: bool = False) -> float | None:
    """Return an amount in major units, or None. ``explicit`` asks for a currency sign or word.

    Without a currency, two chunks of which the second has two digits read as major and minor
    units: "forty two fifty" is 42.50.
    """
    words = tokens(text)
    major: float | None = None
    minor = 0.0
    plain: Run | None = None
    for run in number_runs(words):
        after = words[run.end] if run.end < len(words) else ""
        before = words[run.start - 1] if run.start else ""
        if after in _MINOR:
            minor = run.value / 100
        elif after in _MAJOR or before in _SIGNS:
            major = run.value if major is None else major
        elif major is not None and not minor and len(run.digits) == 2:
            minor = run.value / 100
        else:
            plain = plain or run
    if major is not None or minor:
        return round((major or 0) + minor, 2)
    if explicit or plain is None:
        return None
    if len(plain.chunks) == 2 and len(plain.chunks[1]) == 2 and not plain.fraction:
        return float(f"{plain.chunks[0]}.{plain.chunks[1]}")
    return plain.value


@dataclass
class _Chunk:
    """One number being built by the grammar of English cardinals."""

    total: int = 0
    current: int = 0
    last: str = "start"
    text: str | None = None
    """Digits as written, kept with their leading zeros."""

    def take(self, word: str) -> bool:
        """Extend the number by ``word``. Returns False if ``word`` begins a number of its own."""
        if word == "hundred":
            return self._hundred()
        if word in _SCALES:
            return self._scale(_SCALES[word])
        value = _VALUES.get(word)
        if value is None:
            return self._written(word)
        kind = "unit" if value < 10 else "tens" if value >= 20 else "teen"
        allowed = {"start", "hundred", "scale"} | ({"tens"} if kind == "unit" else set())
        if self.last not in allowed:
            return False
        self.current += value
        self.last, self.text = kind, None
        return True

    def _hundred(self) -> bool:
        if self.last not in {"start", "unit", "teen", "tens", "written"}:
            return False
        self.current = 100 * (self.current if self.last != "start" else 1)  # "a hundred"
        self.last, self.text = "hundred", None
        return True

    def _scale(self, scale: int) -> bool:
        if self.last in {"scale", "zero"}:
            return False
        self.total += scale * (self.current if self.last != "start" else 1)
        self.current = 0
        self.last, self.text = "scale", None
        return True

    def _written(self, word: str) -> bool:
        if word in _ZEROS:
            if self.last != "start":
                return False
            self.last, self.text = "zero", "0"
            return True
        whole = word.replace(",", "")
        if not whole.isdigit() or self.last not in {"start", "hundred", "scale"}:
            return False
        self.current += int(whole)
        self.text = whole if self.last == "start" else None
        self.last = "written"
        return True

    @property
    def digits(self) -> str:
        return self.text if self.text is not None else str(self.total + self.current)


def _run_at(words: Sequence[str], start: int) -> Run | None:
    chunks: list[str] = []
    chunk = _Chunk()
    position, end, fraction = start, start, ""
    while position < len(words) and len(chunks) <= MAX_DIGITS:
        word = words[position]
        if word in _REPEATS and (digit := _digit(words, position + 1)) is not None:
            chunk = _close(chunk, chunks)
            chunks += [digit] * _REPEATS[word]
            position += 2
            end = position
        elif re.fullmatch(r"[\d,]+\.\d+", word):
            if end > start:
                break
            whole, fraction = word.replace(",", "").split(".")
            chunks.append(whole)
            end = position + 1
            break
        elif chunk.take(word):
            position += 1
            end = position
        elif word == "point" and end > start and (fraction := _digits_after(words, position + 1)):
            end = position + 1 + len(fraction)
            break
        elif chunk.last != "start" and _Chunk().take(word):
            chunk = _close(chunk, chunks)
        elif end > start and (word in _FILLERS or word == "-") and _continues(words, position, chunk):
            position += 1
        else:
            break
    _close(chunk, chunks)
    if end == start or not chunks:
        return None
    negative = start > 0 and words[start - 1] in _MINUS
    return Run(tuple(chunks), start, end, fraction, negative)


def _close(chunk: _Chunk, chunks: list[str]) -> _Chunk:
    if chunk.last != "start":
        chunks.append(chunk.digits)
    return _Chunk()


def _continues(words: Sequence[str], position: int, chunk: _Chunk) -> bool:
    """Whether the number goes on after the filler at ``position``.

    "and" only joins within a cardinal ("one hundred and five") or between single digits.
    """
    following = next((word for word in words[position + 1 : position + 4] if word not in _FILLERS and word != "-"), "")
    if not (_Chunk().take(following) or following in _REPEATS):
        return False
    return words[position] != "and" or chunk.last in {"hundred", "scale", "unit", "zero"}


def _digit(words: Sequence[str], position: int) -> str | None:
    if position >= len(words):
        return None
    word = words[position]
    if word in _ZEROS:
        return "0"
    if word in _UNITS:
        return str(_VALUES[word])
    return word if len(word) == 1 and word.isdigit() else None


def _digits_after(words: Sequence[str], position: int) -> str:
    found = ""
    while (digit := _digit(words, position + len(found))) is not None:
        found += digit
    return found
