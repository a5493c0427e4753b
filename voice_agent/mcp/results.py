"""What a server's tool returned, as data for the model: text and JSON as they are, everything else described."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

MAX_RESULT_CHARS = 100_000
"""Longer results are cut. The prompt has a limit of its own, well below."""
MAX_PARTS = 200
"""Parts of one result that are looked at."""


def to_data(content: Iterable[Any], structured: Any = None) -> Any:
    """Return the result of a call as JSON-ready data.

    Args:
        content: Content blocks of the protocol.
        structured: Its structured content, which then stands for all text.
    """
    blocks = list(content)
    parts = list(_parts(blocks[:MAX_PARTS]))
    if len(blocks) > MAX_PARTS:
        parts.append((False, f"[{len(blocks) - MAX_PARTS} more parts are left out]"))
    others = [text for is_text, text in parts if not is_text]
    if structured is not None:
        data: Any = structured if isinstance(structured, dict) else {"result": structured}
        return _bounded({**data, "attachments": others} if others else data)
    text = "\n".join(text for _, text in parts)
    if not others and text.lstrip().startswith("{") and len(text) <= MAX_RESULT_CHARS:
        # Servers without structured content send their data as text.
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
    return {"text": cut(text)}


def in_words(content: Iterable[Any]) -> str:
    """Return the content of a failed call as text."""
    return cut("\n".join(text for _, text in _parts(list(content)[:MAX_PARTS])))


def cut(text: str) -> str:
    """Return ``text`` within the limit, saying what was left out."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}… [{len(text) - MAX_RESULT_CHARS} characters left out]"


def _bounded(data: Any) -> Any:
    text = json.dumps(data, ensure_ascii=False, default=str)
    if len(text) <= MAX_RESULT_CHARS:
        return data
    return {"cut": text[:MAX_RESULT_CHARS], "left_out": len(text) - MAX_RESULT_CHARS}


def _parts(blocks: Iterable[Any]) -> Iterator[tuple[bool, str]]:
    """Yield (is text, text) of each block; data that no model could read is only named."""
    for block in blocks:
        match block.type:
            case "text":
                yield True, block.text
            case "image" | "audio":
                yield False, f"[{block.type}, {_kind(block.mime_type)}, {_size(block.data)}; not shown]"
            case "resource_link":
                yield False, f"[link to {_short(block.title or block.name)}: {_short(str(block.uri))}]"
            case "resource":
                held = block.resource
                if (text := getattr(held, "text", None)) is not None:
                    yield True, text
                else:
                    size = _size(getattr(held, "blob", ""))
                    yield False, f"[file {_short(str(held.uri))}, {_kind(held.mime_type)}, {size}; not shown]"
            case other:
                yield False, f"[{_short(str(other))}; not shown]"


def _size(base64: str) -> str:
    number = len(base64) * 3 // 4
    return f"{number / 1000:.0f} kB" if number >= 1000 else f"{number} bytes"


def _kind(mime_type: str | None) -> str:
    return _short(mime_type or "of unknown kind")


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
