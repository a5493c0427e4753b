"""An agent without an id gets one, written back into agent.yml so that it stays."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from pathlib import Path

from voice_agent.diagnostics import Problem, Severity

_FIRST = ("amber", "brisk", "calm", "clear", "early", "gentle", "green", "keen", "lucky", "quiet", "swift", "warm")
_SECOND = ("birch", "brook", "cedar", "cove", "finch", "harbor", "lark", "maple", "meadow", "otter", "river", "stone")


def new_id(now: datetime) -> str:
    """Return ``YYYYMMDD-HHMMSS-<two words>``."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}"


def keep_id(path: Path, now: datetime) -> tuple[str, Problem]:
    """Make an id and write it into ``path`` as the first line of ``agent:``; nothing else of the file changes.

    Returns:
        The id, and a warning that says what was done.
    """
    made = new_id(now)
    try:
        text = path.read_bytes().decode("utf-8")
        section = re.search(r"^agent:[ \t]*(#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*([ \t]+)\S", text, re.MULTILINE)
        if section is None:
            raise OSError("`agent:` is not written as a block")
        at, indent = section.start(2), section.group(2)
        end = "\r\n" if "\r\n" in text else "\n"
        path.write_bytes(f"{text[:at]}{indent}id: {made}{end}{text[at:]}".encode())
    except (OSError, UnicodeDecodeError) as fault:
        message = f"`agent.id` is missing, and {made!r}, made for this run, could not be written: {fault}."
        return made, Problem("agent.id", message, "Add `id:` under `agent:`.", path, None, Severity.WARNING)
    message = f"`agent.id` was missing; {made!r} has been written there."
    line = text[:at].count("\n") + 1
    return made, Problem("agent.id", message, "Keep it under version control.", path, line, Severity.WARNING)
