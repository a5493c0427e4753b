"""Files to text: markdown, plain text, HTML and PDF, bounded and with a reason where one cannot be read.

PDF and larger pages are read in a process of their own with limits on time and memory: parsers of them can be made to
run for ever, and those written in C hold up every call meanwhile.
Nothing is fetched: links in documents are not followed.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from voice_agent.diagnostics import missing_package
from voice_agent.recall.chunks import passages, title_of
from voice_agent.recall.entries import Passage
from voice_agent.recall.page_text import page_text
from voice_agent.recall.readers import READ_PAGE, READ_PDF, Unreadable, read_apart

MAX_BYTES = 32 * 2**20
MAX_TEXT_CHARS = 4_000_000
"""Some two thousand pages. Longer texts are refused, not cut: half a manual would answer wrongly."""
PDF_LIMIT_S = 120.0
PAGE_LIMIT_S = 30.0
SMALL_PAGE_CHARS = 16_000
"""Pages up to here are read at once: nested as deeply as they can be, they take 0.03 s of the parser."""
_SHORT = 0.5
"""Share of a page's longest line below which a line has not ended because the paper did."""
MARKDOWN, TEXT, HTML, PDF = "text/markdown", "text/plain", "text/html", "application/pdf"
TYPES = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".txt": TEXT, ".text": TEXT, ".html": HTML, ".htm": HTML, ".xhtml": HTML,
    ".pdf": PDF,
}  # fmt: skip
"""Suffixes that are learnt."""
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_NO_CHARSETS = frozenset(("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7"))
"""Of Python's codecs, by its own names: no page is written in them, and some take very long."""
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    Attributes:
        name: Path or id it is known by.
        digest: Hash of its bytes and of how they are read.
    """

    name: str
    digest: str
    passages: tuple[Passage, ...]


def digest_of(data: bytes, media_type: str) -> str:
    """Return what tells whether a document has to be learnt anew. A new way of cutting changes it too."""
    return hashlib.sha256(f"2 {media_type} ".encode() + data).hexdigest()


def type_of(name: str) -> str | None:
    """Return the media type that a file's suffix stands for; None if such files are not learnt."""
    return TYPES.get(PurePath(name).suffix.lower())


def read_document(name: str, data: bytes, media_type: str, title: str = "", *, digest: str = "") -> Document:
    """Return the passages of a document. Blocks for as long as its parser takes.

    Args:
        title: What stands above passages that have no heading; made of ``name`` by default.
        digest: Kept instead of `digest_of`.

    Raises:
        Unreadable: With the reason.
        RemediableError: The parser's package is not installed.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"it has {len(data) / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are learnt")
    if not data.strip():
        raise Unreadable("it is empty")
    title = title or title_of(PurePath(name).stem)
    if media_type == PDF:
        found = _pdf(name, data, title)
    else:
        text = _decoded(data, is_html=media_type == HTML)
        if media_type == HTML:
            text, page_title = _html(text)
            title = page_title or title
        found = passages(_bounded(text), name, title, headings=media_type != TEXT)
    if not any(re.search(r"\w", passage.text) for passage in found):
        raise Unreadable("there is no text in it" + (" (a scan?)" if media_type == PDF else ""))
    return Document(name, digest or digest_of(data, media_type), tuple(found))


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise Unreadable(f"it holds more than {MAX_TEXT_CHARS} characters; split it")
    return text


def _decoded(data: bytes, *, is_html: bool) -> str:
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if encoding is None and is_html and (found := _CHARSET.search(data[:4096])):
        encoding = _charset(found[1].decode())
    if encoding is None and b"\x00" in data[:65_536]:
        raise Unreadable("it is binary, no text")
    for candidate in (encoding, "utf-8"):
        if candidate is not None:
            # A page may name an encoding that it does not have, or one of bytes and not of text.
            with contextlib.suppress(UnicodeError, LookupError):
                return data.decode(candidate)
    return _western(data)


def _charset(named: str) -> str | None:
    """Return the encoding that a page names; None for one that nobody knows."""
    try:
        name = codecs.lookup(named).name
    except LookupError:
        return None
    # A name that could be read as it stands there is not written in two or four bytes a character.
    return None if name.replace("-", "_") in _NO_CHARSETS or name.startswith(("utf-16", "utf-32")) else name


def _western(data: bytes) -> str:
    """Windows-1252 is what text without a mark is where it is not UTF-8; control characters say that it is none."""
    text = data.decode("cp1252", errors="replace")
    odd = sum(c == "\ufffd" or (c < " " and c not in "\t\n\r\f") for c in text)
    if odd * 50 > len(text):
        raise Unreadable("its encoding is not known; save it as UTF-8")
    return text


def _html(source: str) -> tuple[str, str]:
    """Return the text of a page as markdown, and its title."""
    if len(source) <= SMALL_PAGE_CHARS:
        try:
            return page_text(source)
        except ImportError as error:
            raise missing_package("selectolax", "documents") from error
    read = read_apart(READ_PAGE, source.encode("utf-8", "replace"), PAGE_LIMIT_S, "page", "selectolax")
    title, _, text = read.partition("\x0c")
    return text, title


def _pdf(name: str, data: bytes, title: str) -> list[Passage]:
    found: list[Passage] = []
    head, *pages = _bounded(read_apart(READ_PDF, data, PDF_LIMIT_S, "PDF", "pypdf")).split("\x0c")
    title = " ".join(head.split())[:200] or title
    for number, page in enumerate(pages, 1):
        found += passages(_unwrapped(page), f"{name}#page={number}", title, headings=False)
    return found


def _unwrapped(page: str) -> str:
    """Join the lines of a page: a PDF ends them where the paper does. A word parted at the end becomes whole."""
    page = page.replace("\x00", "")
    page = re.sub(r"(\w)-\n(?=[a-z])", r"\1", page)
    page = re.sub(r"\n[ \t]*(?=\n)", "\n", page)
    page = _headings_apart(page)
    return re.sub(r"(?<=[^\n.!?:])\n(?=[^\n])", " ", page)


def _headings_apart(page: str) -> str:
    """Put an empty line behind each heading: a short line with no stop at its end, before one that begins anew."""
    lines = page.split("\n")
    short = _SHORT * max(map(len, lines))
    for at, (line, following) in enumerate(pairwise(lines)):
        is_open = bool(line.strip()) and line.rstrip()[-1] not in ".,;:!?-"
        if is_open and len(line) < short and following.lstrip()[:1].isupper():
            lines[at] = f"{line}\n"
    return "\n".join(lines)
