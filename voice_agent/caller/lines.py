"""What the simulated caller says, in which order, and which lines barge in.

Options keep their command-line order, and a barge-in binds to the line after it::

    --say A --barge-in-at 1.5 --say B

    caller   A A A .                     B B B .            A is answered; B starts 1.5 s after
    agent            r e p l y   r e p l y x      answer    the reply to A began, over that reply
                     ├──── 1.5 s ───┤
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAX_LINES = 100
MAX_TEXT = 1000
MAX_BARGE_IN_S = 120.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line as it was asked for: ``text`` to be spoken, or a ``wav`` file.

    Attributes:
        barge_in_at: Seconds after the agent's reply to the previous line (or its greeting) began
            at which this line is spoken; None waits until that reply has ended.
    """

    text: str | None = None
    wav: Path | None = None
    barge_in_at: float | None = None

    @property
    def label(self) -> str:
        """What to call the line in front of a person."""
        return self.text if self.text is not None else f"[{self.wav.name}]" if self.wav else ""


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line as sound, ready to be sent.

    Attributes:
        pcm: Mono int16 at the wire's rate.
        voice_start: Seconds into ``pcm`` of the first voiced sample.
        voice_end: Seconds into ``pcm`` one past the last voiced sample.
        seconds: Length of ``pcm``.
    """

    line: Line
    pcm: NDArray[np.int16]
    voice_start: float
    voice_end: float
    seconds: float


class LineError(ValueError):
    """The options do not make a sequence of lines."""


def order_lines(options: Iterable[tuple[str, str | Path | float]]) -> tuple[Line, ...]:
    """Make lines of ``(option, value)`` pairs in command-line order; options are ``say``, ``wav``, ``barge_in_at``.

    Raises:
        LineError: A barge-in without a line after it, two in a row, an empty or overlong text,
            a moment that is no sensible number of seconds, or too many lines.
    """
    lines: list[Line] = []
    barge_in: float | None = None
    for option, value in options:
        if option == "barge_in_at":
            if barge_in is not None:
                raise LineError(f"--barge-in-at {value} follows another --barge-in-at; put a --say or --wav between.")
            barge_in = _moment(float(str(value)))
        else:
            lines.append(_line(option, value, barge_in))
            barge_in = None
    if barge_in is not None:
        raise LineError(
            f"--barge-in-at {barge_in:g} has no line after it; it binds to the next --say or --wav, "
            f"as in --say 'First line' --barge-in-at {barge_in:g} --say 'Interruption'."
        )
    if len(lines) > MAX_LINES:
        raise LineError(f"{len(lines)} lines are too many for one call; at most {MAX_LINES} are spoken.")
    return tuple(lines)


def _moment(seconds: float) -> float:
    if not 0 <= seconds <= MAX_BARGE_IN_S:
        raise LineError(f"--barge-in-at {seconds:g} is not a moment; give seconds from 0 to {MAX_BARGE_IN_S:g}.")
    return seconds


def _line(option: str, value: str | Path | float, barge_in_at: float | None) -> Line:
    if option == "wav":
        return Line(wav=Path(str(value)), barge_in_at=barge_in_at)
    text = " ".join(str(value).split())
    if not text:
        raise LineError("--say is empty; give the words the caller says.")
    if len(text) > MAX_TEXT:
        raise LineError(f"--say has {len(text)} characters; at most {MAX_TEXT} are spoken in one line.")
    return Line(text=text, barge_in_at=barge_in_at)
