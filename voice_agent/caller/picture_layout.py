"""What stands where in the timeline picture: rows, captions and marks. Pure; knows seconds and pixels, no drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
from typing import Any

from voice_agent.caller.display import INTERRUPTION, ONSET, SPEECH_END, STEPS

ROW_S = 24.0
"""Longest stretch of the call in one row; longer calls continue below, at the same scale."""

SHORTEST_ROW_S = 8.0
_STRETCHES = (1.0, 1.1, 1.2, 1.3)

MAX_ROWS = 40
"""Beyond this the rows grow longer instead of more: a picture stays a picture."""

MAX_CAPTION_LINES = 4


class Side(Enum):
    """Whose sound it is."""

    CALLER = "caller"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a caption, and whether it was heard."""

    text: str
    heard: bool = True


@dataclass(frozen=True, slots=True)
class Caption:
    """Words that begin to be said at ``at`` seconds."""

    side: Side
    at: float
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A measured stretch of time between two things, in seconds of the caller's clock."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One instant of the agent's own account, on the caller's clock. ``kind`` is a key of `MARK_KINDS`."""

    at: float
    kind: str


MARK_KINDS = (*STEPS, *INTERRUPTION)
"""In the order in which they are stacked, so that marks close in time do not cover each other."""


@dataclass(slots=True)
class Layout:
    """All that is drawn, from the account of a call."""

    rows: list[tuple[float, float]]
    captions: list[Caption] = field(default_factory=list)
    responses: list[Span] = field(default_factory=list)
    stops: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


def lay_out(account: Mapping[str, Any], seconds: float) -> Layout:
    """Arrange a call of ``seconds`` from its account (see `account.as_json`)."""
    turns: Sequence[Mapping[str, Any]] = account["turns"]
    lines = [t for t in turns if t["speech_start"] is not None]
    # A barge-in belongs into the row of what it interrupts, so only ordinary lines may open a row.
    openings = [t["speech_start"] - 0.4 for t in lines if t["barge_in_at"] is None]
    layout = Layout(break_rows(seconds, openings))
    offset = account.get("agent_clock_offset_s") or 0.0
    for turn in turns:
        _add_captions(layout, turn)
        _add_spans(layout, turn)
        layout.marks += _marks(turn["agent_instants"], offset)
    return layout


def break_rows(seconds: float, openings: Iterable[float], row_s: float = ROW_S) -> list[tuple[float, float]]:
    """Divide a call into rows of equal scale, broken where the caller begins a line, if one begins in time.

    Rows grow a little longer than ``row_s`` where that spares a last row with next to nothing in it.
    """
    openings = sorted(openings)
    row_s = max(row_s, seconds / MAX_ROWS * 2)
    for stretch in _STRETCHES:
        rows = _rows_of(seconds, openings, row_s * stretch)
        if len(rows) == 1 or rows[-1][1] - rows[-1][0] >= row_s / 4:
            return rows
    return _rows_of(seconds, openings, row_s)


def _rows_of(seconds: float, openings: Sequence[float], row_s: float) -> list[tuple[float, float]]:
    if seconds <= row_s:
        return [(0.0, max(seconds, SHORTEST_ROW_S))]
    rows, start = [], 0.0
    while seconds - start > row_s:
        fitting = [at for at in openings if start + row_s / 2 < at <= start + row_s]
        following = fitting[-1] if fitting else start + row_s
        rows.append((start, following))
        start = following
    return [*rows, (start, seconds)]


def wrap(widths: Sequence[float], space: float, width: float) -> list[list[int]]:
    """Break words of the given widths into lines no wider than ``width``; return the words' indices by line.

    A word wider than the line stands alone. At most `MAX_CAPTION_LINES` lines; the rest is left out.
    """
    lines: list[list[int]] = []
    used = 0.0
    for index, word in enumerate(widths):
        if lines and used + space + word <= width:
            lines[-1].append(index)
            used += space + word
            continue
        if len(lines) == MAX_CAPTION_LINES:
            break
        lines.append([index])
        used = word
    return lines


def caption_width(
    caption: Caption, others: Iterable[Caption], row: tuple[float, float], to_px: Callable[[float], float]
) -> float:
    """Return the pixels a caption has until the next one of its side, or until the row's end."""
    following = min((c.at for c in others if c.side is caption.side and c.at > caption.at), default=row[1])
    return to_px(min(following, row[1])) - to_px(caption.at)


def axis_step(seconds: float) -> float:
    """Return a round distance between the labels of an axis ``seconds`` long."""
    return next((step for step in (1.0, 2.0, 5.0, 10.0) if ceil(seconds / step) <= 26), 30.0)


def _add_captions(layout: Layout, turn: Mapping[str, Any]) -> None:
    if turn["line"] and turn["speech_start"] is not None:
        words = tuple(Word(word) for word in turn["line"].split())
        layout.captions.append(Caption(Side.CALLER, turn["speech_start"], words))
    words = tuple(word for piece in turn["said"] for word in _heard_words(piece["text"], piece["heard"]))
    if words and turn["reply_start"] is not None:
        layout.captions.append(Caption(Side.AGENT, turn["reply_start"], words))


def _heard_words(text: str, heard: str | None) -> list[Word]:
    words = text.split()
    count = len(words) if heard is None else len(heard.split())
    return [Word(word, index < count) for index, word in enumerate(words)]


def _add_spans(layout: Layout, turn: Mapping[str, Any]) -> None:
    end, response, onset, stop = (turn[key] for key in ("speech_end", "response_s", "speech_start", "heard_stop_s"))
    if end is not None and response is not None and response > 0:
        layout.responses.append(Span(end, end + response, f"{response:.2f} s"))
    if onset is not None and stop is not None and stop > 0:
        layout.stops.append(Span(onset, onset + stop, f"{turn['stop_s'] or stop:.2f} s"))


def _marks(instants: Mapping[str, float], offset: float) -> list[Mark]:
    # Without an end of speech or an onset the instants are a greeting's: they say nothing that the sound does not.
    return [
        Mark(instants[key] + offset, name)
        for origin, steps in ((SPEECH_END, STEPS), (ONSET, INTERRUPTION))
        for name, key in steps.items()
        if origin in instants and key in instants
    ]
