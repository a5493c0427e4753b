"""Reads the carriers' messages of `golden/`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Line:
    """One line; the fields are described in ``golden/README.md``."""

    at_ms: float
    send: Any
    gives: str
    do: str
    sends: Any
    repeat: int


def golden(channel: str, **values: str) -> list[Line]:
    """Return the lines of a carrier with ``$NAME`` replaced."""
    lines = []
    for text in (FOLDER / f"{channel}.jsonl").read_text().splitlines():
        for name, value in values.items():
            text = text.replace(f"${name}", value)
        line = json.loads(text)
        send = bytes.fromhex(line["send_hex"]) if "send_hex" in line else line.get("send")
        said = line.get("at_ms", 0), send, line.get("gives", ""), line.get("do", ""), line.get("sends")
        lines.append(Line(*said, line.get("repeat", 1)))
    return lines
