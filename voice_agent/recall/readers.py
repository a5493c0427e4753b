"""Runs parsers of foreign formats in a process of their own, with limits on time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from voice_agent.diagnostics import missing_package


class Unreadable(Exception):
    """A document cannot be learnt; the message is the reason, for whoever gave it."""


def read_apart(script: str, data: bytes, limit_s: float, what: str, package: str) -> str:
    """Return what ``script`` makes of ``data``. Blocks for as long as it takes.

    Args:
        what: Such as "PDF", for the reason.
        package: Of the parser.

    Raises:
        Unreadable: With the reason.
        RemediableError: The parser's package is not installed.
    """
    places = (str(Path(__file__).parents[2]), *sys.path)
    command = [sys.executable, "-I", "-c", script, os.pathsep.join(places)]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"reading it took longer than {limit_s:g} s") from None
    if done.returncode == 3:
        raise missing_package(package, "documents")
    if done.returncode == 4:
        raise Unreadable(done.stdout.decode("utf-8", "replace").strip()[:200])
    if done.returncode:
        raise Unreadable(f"the {what} reader ran out of its limits of time or memory, or crashed")
    return done.stdout.decode("utf-8", "replace")


_BEGIN = r"""
import io, sys
sys.path[:] = [p for p in sys.argv[1].split(__import__("os").pathsep) if p]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (100, 110))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
except (ImportError, ValueError, OSError):
    pass
out = open(sys.stdout.fileno(), "w", encoding="utf-8", errors="replace", newline="")
def refuse(reason):
    out.write(reason); out.flush(); sys.exit(4)
"""

READ_PDF = (
    _BEGIN
    + r"""
try:
    import logging
    import pypdf
except ImportError:
    sys.exit(3)
logging.disable(logging.CRITICAL)
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
)

READ_PAGE = (
    _BEGIN
    + r"""
try:
    import selectolax.lexbor
except ImportError:
    sys.exit(3)
from voice_agent.recall.page_text import page_text
try:
    text, title = page_text(sys.stdin.buffer.read().decode("utf-8", "replace"))
except MemoryError:
    refuse("reading it takes more than 2 GB of memory")
out.write(title + "\x0c" + text); out.flush()
"""
)
