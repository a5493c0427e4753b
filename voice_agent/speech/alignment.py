"""Which samples belong to which word, from the lengths an engine gives for its phonemes.

The engine hears spoken text ("forty-two dollars"), reports phonemes with their lengths, and runs
some words together ("of the" becomes one group). The caller's side needs display words ("$42")::

    display    $42                      of the
    spoken     forty-two dollars        of the
    phonemes   f ɔ ɹ t i t u · d ɑ l ɚ z · ʌ v ð ə      ("·" parts groups)
    samples    |-----------|-|---------|-|---|-----|

Words are matched to groups by aligning two phoneme strings: the sentence's, and that of its words
said one by one. All positions are samples of the engine's own rate unless said otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from voice_agent.speech.edit_distance import BAND, SPACE, edit_distance, edit_path
from voice_agent.speech.protocols import TextSpan
from voice_agent.speech.speakable import SpeakableText, SpokenSpan

_WORD = re.compile(r"\S+")
# Marks of stress, length and linking differ between a word alone and in its sentence.
_UNSTABLE = frozenset("ˈˌːˑʲ‿͡'-")
_PAUSES = frozenset(',.;:!?…—–^$_"()#')


@dataclass(frozen=True, slots=True)
class Phoneme:
    """One phoneme, word gap (a space) or pause mark, and how many samples it lasts."""

    symbol: str
    samples: int


Range = tuple[int, int]


def word_ranges(spoken: str, phonemes: Sequence[Phoneme], phonemize: Callable[[str], str]) -> list[Range] | None:
    """Return the samples ``[first, last)`` of each white-space-separated word of ``spoken``.

    Ranges ascend and do not overlap; pauses belong to no word. A word that has no sound (a lone
    dash) gets an empty range.

    Args:
        phonemize: Gives the phonemes of one word said alone.

    Returns:
        None if the phonemes cannot be those of the text.
    """
    words = _WORD.findall(spoken)
    ends = _ends(phonemes)
    sounds = [at for at, phoneme in enumerate(phonemes) if _is_sound(phoneme.symbol)]
    if not words or not sounds:
        return None
    groups = _groups(phonemes)
    alone = [_stable(phonemize(word)) for word in words]
    said = [word for word, symbols in enumerate(alone) if symbols]
    if len(said) == len(groups) and all(
        _alike(alone[word], _stable("".join(phonemes[at].symbol for at in group)))
        for word, group in zip(said, groups, strict=True)
    ):
        owners = {at: word for word, group in zip(said, groups, strict=True) for at in group}
    else:
        found = _align(alone, phonemes)
        if found is None:
            return None
        owners = found
    return _ranges(len(words), owners, ends)


def display_spans(speakable: SpeakableText, ranges: Sequence[Range]) -> tuple[TextSpan, ...]:
    """Carry the ranges of spoken words over to the display words they stand for.

    A display word said as several spoken ones spans them all; display words said together share
    their range by length; one that is not said lies, empty, where the one before it ends.
    """
    bounds = [match.span() for match in _WORD.finditer(speakable.text)]
    starts = [start for start, _ in bounds]
    spans: list[TextSpan] = []
    reached = ranges[0][0] if ranges else 0
    for run in _shared_runs(speakable):
        if run[0].first == run[0].last or not bounds:
            spans += [TextSpan(span.start, span.end, reached, reached) for span in run]
            continue
        low = max(0, bisect_right(starts, run[0].first) - 1)
        high = max(low, bisect_right(starts, run[0].last - 1) - 1)
        first = max(reached, _inside(run[0].first, bounds[low], ranges[low]))
        last = max(first, _inside(run[0].last, bounds[high], ranges[high]))
        total = sum(span.end - span.start for span in run)
        done = 0
        for span in run:
            begin, done = done, done + span.end - span.start
            spans.append(_share(span.start, span.end, first, last, begin, done, total))
        reached = last
    return tuple(spans)


def spans_by_characters(speakable: SpeakableText, first: int, last: int) -> tuple[TextSpan, ...]:
    """Without phoneme lengths: give each spoken character an equal share of ``[first, last)``.

    Measured against the exact ones, ends of words are 0.1 s off (median), and up to 0.5 s where pauses
    lie between: enough to cut a sentence about where it was heard.
    """
    length = max(1, len(speakable.text))
    ranges = [
        (first + (last - first) * match.start() // length, first + (last - first) * match.end() // length)
        for match in _WORD.finditer(speakable.text)
    ]
    return display_spans(speakable, ranges or [(first, first)])


def shift_spans(spans: Sequence[TextSpan], characters: int, samples: int) -> tuple[TextSpan, ...]:
    """Move spans by so many characters and samples, for text and audio that follow others."""
    return tuple(
        TextSpan(span.start + characters, span.end + characters, span.first + samples, span.last + samples)
        for span in spans
    )


def _share(start: int, end: int, first: int, last: int, begin: int, done: int, total: int) -> TextSpan:
    return TextSpan(start, end, first + (last - first) * begin // total, first + (last - first) * done // total)


def _shared_runs(speakable: SpeakableText) -> list[list[SpokenSpan]]:
    """Group display words that are said by the same stretch of spoken text."""
    runs: list[list[SpokenSpan]] = []
    for span in speakable.spans:
        if runs and (runs[-1][0].first, runs[-1][0].last) == (span.first, span.last):
            runs[-1].append(span)
        else:
            runs.append([span])
    return runs


def _inside(at: int, word: tuple[int, int], samples: Range) -> int:
    """Place a character of a spoken word inside the word's samples."""
    start, end = word
    at = min(max(at, start), end)
    return samples[0] + (samples[1] - samples[0]) * (at - start) // max(1, end - start)


def _is_sound(symbol: str) -> bool:
    return not symbol.isspace() and symbol not in _PAUSES


def _stable(symbols: str) -> str:
    """Keep what a word sounds like wherever it stands."""
    decomposed = unicodedata.normalize("NFD", symbols)
    return "".join(
        symbol
        for symbol in decomposed
        if symbol not in _UNSTABLE and _is_sound(symbol) and not unicodedata.combining(symbol)
    )


def _ends(phonemes: Sequence[Phoneme]) -> list[int]:
    """``ends[i]`` is where phoneme ``i - 1`` ends and phoneme ``i`` begins."""
    ends = [0]
    for phoneme in phonemes:
        ends.append(ends[-1] + phoneme.samples)
    return ends


def _groups(phonemes: Sequence[Phoneme]) -> list[list[int]]:
    groups: list[list[int]] = [[]]
    for at, phoneme in enumerate(phonemes):
        if _is_sound(phoneme.symbol):
            groups[-1].append(at)
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


def _alike(alone: str, said: str) -> bool:
    """Whether a group sounds enough like a word to be it."""
    if not said:
        return False
    return edit_distance(alone, said) <= max(1, max(len(alone), len(said)) // 2)


def _align(alone: Sequence[str], phonemes: Sequence[Phoneme]) -> dict[int, int] | None:
    """Return the word each sounding phoneme belongs to, by aligning the two strings of phonemes."""
    symbols: list[str] = []
    owner: list[int] = []
    for word, sounds in enumerate(alone):
        if symbols and sounds:
            symbols.append(SPACE)
            owner.append(word)
        symbols += sounds
        owner += [word] * len(sounds)
    said: list[str] = []
    places: list[int] = []
    for at, phoneme in enumerate(phonemes):
        stable = _stable(phoneme.symbol)
        is_gap = not _is_sound(phoneme.symbol)
        if is_gap and said and said[-1] != SPACE:
            said.append(SPACE)
            places.append(at)
        elif not is_gap and stable:
            said.append(stable[0])
            places.append(at)
    if not symbols or not said or abs(len(symbols) - len(said)) > BAND:
        return None
    partners = edit_path(symbols, said)
    owners: dict[int, int] = {}
    for j, at in enumerate(places):
        if said[j] != SPACE:
            owners[at] = owner[partners[j]]
    return _spread(owners, phonemes)


def _spread(owners: dict[int, int], phonemes: Sequence[Phoneme]) -> dict[int, int]:
    """Give stress and length marks to the word whose sound they belong to: the next sound's, else the last's."""
    word = max(owners.values(), default=0)
    spread: dict[int, int] = {}
    for at in range(len(phonemes) - 1, -1, -1):
        symbol = phonemes[at].symbol
        if at in owners:
            word = owners[at]
        if _is_sound(symbol):
            spread[at] = word
    # A length mark follows its sound.
    previous = None
    for at in sorted(spread):
        if phonemes[at].symbol in "ːˑʲ" and previous is not None:
            spread[at] = spread[previous]
        previous = at
    return spread


def _ranges(words: int, owners: dict[int, int], ends: Sequence[int]) -> list[Range]:
    places: dict[int, list[int]] = {}
    for at, word in owners.items():
        places.setdefault(word, []).append(at)
    ranges: list[Range] = []
    reached = ends[min(owners)] if owners else 0
    for word in range(words):
        if word in places:
            first, last = max(reached, ends[min(places[word])]), ends[max(places[word]) + 1]
            ranges.append((first, max(first, last)))
            reached = ranges[-1][1]
        else:
            ranges.append((reached, reached))
    return ranges
