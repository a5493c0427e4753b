"""Tool results as something that can be said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.llm.embedded.choice import as_words

MAX_FACTS = 6
MAX_CHARS = 600
FAILED = "I am sorry, that did not work just now."
_SPOKEN_KEYS = ("message", "text", "say", "speech", "answer")
_SILENT_KEYS = frozenset(["ok", "success", "status_code", "hint", "error", "type", "kind"])
_TECHNICAL = re.compile(r"Traceback|\b\w*(?:Error|Exception)\b|[{}<>]|\bHTTP\b|\bnull\b|::|\bat line\b")


@dataclass(frozen=True, slots=True)
class Reading:
    """``text`` is empty when there is nothing to say; ``ok`` is False when the tool reported a failure."""

    text: str
    ok: bool


def read_result(content: str) -> Reading:
    """Return how a tool's result sounds: its own wording if it brings one, else keys and values."""
    try:
        data: Any = json.loads(content)
    except ValueError:
        return Reading("", True) if not content.strip() else _plain(content.strip())
    if not isinstance(data, dict):
        return Reading(_sentence(", ".join(_values(data))), True)
    ok = data.get("ok", data.get("success", True)) is not False and not data.get("error")
    wording = next((data[key] for key in _SPOKEN_KEYS if isinstance(data.get(key), str) and data[key].strip()), None)
    if wording is not None and not _TECHNICAL.search(wording):
        return Reading(_sentence(wording.strip()[:MAX_CHARS]), ok)
    if not ok:
        return Reading(_failure(data.get("error")), False)
    facts = [f"{_label(key)}: {value}." for key, value in _facts(data, "")]
    return Reading(" ".join(facts[:MAX_FACTS])[:MAX_CHARS], True)


def _plain(content: str) -> Reading:
    if _TECHNICAL.search(content):
        return Reading(FAILED, False)
    return Reading(_sentence(content[:MAX_CHARS]), True)


def _failure(error: Any) -> str:
    """A short reason in words may be told; anything that smells of a program may not."""
    if not isinstance(error, str) or len(error) > 160 or _TECHNICAL.search(error):
        return FAILED
    reason = error if " " in error else as_words(error)
    return f"I am sorry, that did not work: {reason.strip().rstrip('.')}."


def _facts(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if key.startswith("_") or key in _SILENT_KEYS or value is None or value == "" or value == []:
            continue
        if isinstance(value, Mapping):
            if not prefix:
                yield from _facts(value, f"{key} ")
            continue
        yield f"{prefix}{key}", ", ".join(_values(value))


def _values(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        said = [word for item in value[:MAX_FACTS] for word in _values(item)]
        return [*said, f"and {len(value) - MAX_FACTS} more"] if len(value) > MAX_FACTS else said
    if isinstance(value, Mapping):
        return [" ".join(f"{as_words(k)} {', '.join(_values(v))}" for k, v in list(value.items())[:MAX_FACTS])]
    return [] if value is None else [str(value)]


def _label(key: str) -> str:
    words = " ".join(as_words(part) for part in key.split())
    return words[:1].upper() + words[1:]


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
