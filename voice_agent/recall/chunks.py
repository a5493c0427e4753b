"""Cuts texts into passages: at headings, then at blank lines, then between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

from voice_agent.recall.entries import Passage

MAX_PASSAGE_CHARS = 600
"""About as much as the bundled sentence model sees (128 tokens); what lies beyond would not be found by meaning."""
MAX_TITLE_CHARS = 200

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_SENTENCE_END = re.compile(r"[.!?…]['\")\]]*\s+")


def passages(text: str, source: str, fallback_title: str, *, headings: bool = True) -> list[Passage]:
    """Cut a text into passages: at headings of markdown, and long sections at blank lines and sentences.

    Args:
        headings: False for text in which a line that begins with "#" is a line like any other.
    """
    found: list[Passage] = []
    above: list[tuple[int, str]] = []
    lines: list[str] = []

    def flush() -> None:
        title = " - ".join(name for _, name in above) or fallback_title
        for piece in _pieces("\n".join(lines).strip()):
            found.append(Passage(title[:MAX_TITLE_CHARS], piece, source))
        lines.clear()

    for line in text.splitlines():
        # A heading longer than any title is a line of text; the pattern must not run over it.
        is_short = headings and line.startswith("#") and len(line) <= 2 * MAX_TITLE_CHARS
        heading = _HEADING.match(line) if is_short else None
        if heading is None:
            lines.append(line)
            continue
        flush()
        level = len(heading.group(1))
        above = [(depth, name) for depth, name in above if depth < level]
        above.append((level, heading.group(2)))
    flush()
    return found


def embedded_text(title: str, text: str) -> str:
    """Return what a passage's vector is made of: its text under its title, since "It is closed" means little alone."""
    return f"{title}: {text}" if title else text


def title_of(stem: str) -> str:
    """Return what a file's name says of its content."""
    return stem.replace("_", " ").replace("-", " ")


def _pieces(text: str) -> Iterable[str]:
    piece = ""
    for paragraph in _paragraphs(text):
        if piece and len(piece) + 2 + len(paragraph) > MAX_PASSAGE_CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}" if piece else paragraph
    if piece.strip():
        yield piece


def _paragraphs(text: str) -> Iterable[str]:
    """Return the paragraphs; one too long for a passage is cut between sentences, else at a space, else anywhere."""
    for paragraph in re.split(r"\n\s*\n", text):
        start = 0
        while len(paragraph) - start > MAX_PASSAGE_CHARS:
            end = start + _cut(paragraph[start : start + MAX_PASSAGE_CHARS + 1])
            yield paragraph[start:end].rstrip()
            start = end
            while start < len(paragraph) and paragraph[start].isspace():
                start += 1
        yield paragraph[start:]


def _cut(window: str) -> int:
    """Return where to cut a window that is one character longer than a passage may be."""
    ends = [match.end() for match in _SENTENCE_END.finditer(window) if match.end() <= MAX_PASSAGE_CHARS]
    if ends and ends[-1] >= MAX_PASSAGE_CHARS // 3:
        return ends[-1]
    at = window.rfind(" ", 1, MAX_PASSAGE_CHARS + 1)
    return at if at > 0 else MAX_PASSAGE_CHARS
