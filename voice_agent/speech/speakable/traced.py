"""A text under rewriting that remembers, for each character, what it was made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace characters ``[start, end)`` of the current text by ``new`` (empty deletes)."""

    start: int
    end: int
    new: str


Rewrite = str | Iterable[Edit] | None


class TracedText:
    """Text plus, per character, the range of the original text it stands for.

    Rules rewrite it one after another; each sees the result of those before it.
    """

    __slots__ = ("origins", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.origins: list[tuple[int, int]] = [(at, at + 1) for at in range(len(text))]

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply edits that are in order and do not overlap."""
        parts: list[str] = []
        origins: list[tuple[int, int]] = []
        at = 0
        for edit in edits:
            parts += (self.text[at : edit.start], edit.new)
            origins += self.origins[at : edit.start]
            origins += [self._origin(edit)] * len(edit.new)
            at = edit.end
        if parts:
            self.text = "".join(parts) + self.text[at:]
            self.origins = origins + self.origins[at:]

    def clear(self) -> None:
        """There is nothing to say after all."""
        self.text, self.origins = "", []

    def sub(self, pattern: re.Pattern[str], rewrite: Callable[[re.Match[str]], Rewrite]) -> None:
        """Rewrite each match: by one string, by edits inside the match, or not at all (None)."""
        edits: list[Edit] = []
        for match in pattern.finditer(self.text):
            new = rewrite(match)
            if isinstance(new, str):
                edits.append(Edit(match.start(), match.end(), new))
            elif new is not None:
                edits += new
        self.apply(edits)

    def _origin(self, edit: Edit) -> tuple[int, int]:
        replaced = self.origins[edit.start : edit.end]
        if not replaced:
            # An insertion belongs to what stands before it.
            before = self.origins[edit.start - 1][1] if edit.start else 0
            return before, before
        return min(start for start, _ in replaced), max(end for _, end in replaced)
