"""Files to text: markdown, plain text, HTML and PDF, bounded and with a reason where one cannot be read.

PDF is read in a process of its own with limits on time and memory: parsers of it have been made to run for ever.
Nothing is fetched: links in documents are not followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import PurePath

from voice_agent.diagnostics import missing_package
from voice_agent.recall.chunks import passages, title_of
from voice_agent.recall.entries import Passage

MAX_BYTES = 32 * 2**20
MAX_TEXT_CHARS = 4_000_000
"""Some two thousand pages. Longer texts are refused, not cut: half a manual would answer wrongly."""
PDF_LIMIT_S = 120.0
MARKDOWN, TEXT, HTML, PDF = "text/markdown", "text/plain", "text/html", "application/pdf"
TYPES = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".txt": TEXT, ".text": TEXT, ".html": HTML, ".htm": HTML, ".xhtml": HTML,
    ".pdf": PDF,
}  # fmt: skip
"""Suffixes that are learnt."""
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_LEFT_OUT = ("script", "style", "noscript", "template", "svg", "iframe", "object", "nav", "form", "button", "head")
_BLOCK_TAGS = (
    "address article aside blockquote body dd div dl dt fieldset figcaption figure footer header hr html li main ol p "
    "pre section table tbody td tfoot th thead tr ul br"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())


class Unreadable(Exception):
    """A document cannot be learnt; the message is the reason, for whoever gave it."""


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
    return hashlib.sha256(f"1 {media_type} ".encode() + data).hexdigest()


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
        encoding = found[1].decode()
    if encoding is None and b"\x00" in data[:65_536]:
        raise Unreadable("it is binary, no text")
    for candidate in (encoding, "utf-8"):
        if candidate is not None:
            # A page may name an encoding that it does not have, or that nobody knows.
            with contextlib.suppress(UnicodeDecodeError, LookupError):
                return data.decode(candidate)
    return _western(data)


def _western(data: bytes) -> str:
    """Windows-1252 is what text without a mark is where it is not UTF-8; control characters say that it is none."""
    text = data.decode("cp1252", errors="replace")
    odd = sum(c == "\ufffd" or (c < " " and c not in "\t\n\r\f") for c in text)
    if odd * 50 > len(text):
        raise Unreadable("its encoding is not known; save it as UTF-8")
    return text


def _html(source: str) -> tuple[str, str]:
    """Return the text of a page as markdown, with its headings, and its title."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise missing_package("selectolax", "documents") from error
    tree = LexborHTMLParser(source)
    heading = tree.css_first("title")
    title = " ".join(heading.text().split())[:200] if heading is not None else ""
    tree.strip_tags(list(_LEFT_OUT))
    parts: list[str] = []
    for node in tree.root.traverse(include_text=True) if tree.root is not None else ():
        tag = node.tag or ""
        if tag == "-text":
            parts.append(re.sub(r"\s+", " ", node.text(deep=False) or ""))
        elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            parts.append(f"\n\n\x00{tag[1]}")
        elif tag in _BLOCKS or tag.startswith("-"):
            parts.append("\n- " if tag == "li" else " | " if tag in ("td", "th") else "\n\n")
    return _headed("".join(parts)), title


def _headed(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("\x00"):
            lines.append(f"{'#' * int(line[1])} {line[2:].strip()}" if line[2:].strip() else "")
        else:
            # A mark of markdown at the beginning of a line is text in a page.
            lines.append(f"\\{line}" if line.startswith("#") else line.strip("| ") if "|" in line else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).replace("\x00", "")


def _pdf(name: str, data: bytes, title: str) -> list[Passage]:
    command = [sys.executable, "-I", "-c", _READER, os.pathsep.join(sys.path)]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=PDF_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"reading it took longer than {PDF_LIMIT_S:g} s") from None
    if done.returncode == 3:
        raise missing_package("pypdf", "documents")
    if done.returncode == 4:
        raise Unreadable(done.stdout.decode("utf-8", "replace").strip()[:200])
    if done.returncode:
        raise Unreadable("the PDF reader ran out of its limits of time or memory, or crashed")
    found: list[Passage] = []
    head, *pages = _bounded(done.stdout.decode("utf-8", "replace")).split("\x0c")
    title = " ".join(head.split())[:200] or title
    for number, page in enumerate(pages, 1):
        found += passages(_unwrapped(page), f"{name}#page={number}", title, headings=False)
    return found


def _unwrapped(page: str) -> str:
    """Join the lines of a page: a PDF ends them where the paper does. A word parted at the end becomes whole."""
    page = page.replace("\x00", "")
    page = re.sub(r"(\w)-\n(?=[a-z])", r"\1", page)
    page = re.sub(r"\n[ \t]*(?=\n)", "\n", page)
    return re.sub(r"(?<=[^\n.!?:])\n(?=[^\n])", " ", page)


_READER = r"""
import io, sys
sys.path[:] = [p for p in sys.argv[1].split(__import__("os").pathsep) if p]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (100, 110))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
except (ImportError, ValueError, OSError):
    pass
try:
    import logging
    import pypdf
except ImportError:
    sys.exit(3)
logging.disable(logging.CRITICAL)
out = open(sys.stdout.fileno(), "w", encoding="utf-8", errors="replace", newline="")
def refuse(reason):
    out.write(reason); out.flush(); sys.exit(4)
try:
    reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
    if reader.is_encrypted and not reader.decrypt(""):
        refuse("it is encrypted with a password")
    texts, total = [], 0
    for page in reader.pages:
        text = (page.extract_text() or "").replace("\x0c", "\n")
        total += len(text)
        if total > 4_000_000 or len(texts) > 5000:
            refuse("it holds more than 4000000 characters or 5000 pages; split it")
        texts.append(text)
    title = str((reader.metadata or {}).get("/Title") or "").replace("\x0c", " ")
except MemoryError:
    refuse("reading it takes more than 2 GB of memory")
except SystemExit:
    raise
except BaseException as fault:
    refuse("it is no PDF that can be read (%s)" % type(fault).__name__)
out.write("\x0c".join([title, *texts])); out.flush()
"""
