"""From the text of an ``<input>`` to the arguments of a tool, as JSON text. Pure; never raises.

An object is the arguments. Anything else, a bare text too, is the argument of a tool that has exactly
one. What fits neither is passed on as it is, for whoever runs the call to say what would be right.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from voice_agent.llm.protocol import ToolSpec

MAX_LITERAL_CHARS = 20_000
"""Python notation is read up to here; parsing it costs more than JSON."""
_FENCED = re.compile(r"\A\s*```[a-z0-9_-]*[ \t]*\n?(.*?)\n?[ \t]*```\s*\Z", re.IGNORECASE | re.DOTALL)
_STRUCTURED = ("{", "[", '"', "```")
_NOTHING = object()


def unfenced(text: str) -> str:
    """Return ``text`` without a code fence around it."""
    found = _FENCED.match(text)
    return found.group(1) if found else text


def looks_whole(text: str) -> bool:
    """Return whether an input may end here: it is no JSON, or JSON that is complete."""
    return not text.strip().startswith(_STRUCTURED) or is_json(text)


def is_json(text: str) -> bool:
    """Return whether ``text`` is complete JSON, or nearly."""
    return _read(text) is not _NOTHING


def is_object(given: str | None) -> bool:
    """Return whether an input is a complete object, as arguments should be."""
    return given is not None and isinstance(_read(given), dict)


def _read(text: str) -> Any:
    """Return the value that ``text`` is in JSON or in Python's notation, or `_NOTHING`."""
    text = unfenced(text).strip()
    for candidate in (text, _without_trailing_commas(text)):
        try:
            return json.loads(candidate, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError):
            continue
    if text[:1] not in ("{", "[", "(", "'", '"') or len(text) > MAX_LITERAL_CHARS:
        return _NOTHING
    try:
        with warnings.catch_warnings():
            # What a model writes is no code of ours: odd escapes in it are nobody's to mend.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
        # Sets, bytes and the like have no form in JSON.
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOTHING


def _finite(number: str) -> float:
    """Return a number; raises `ValueError` for infinities and NaN, which Python reads and JSON has no form for."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no number of JSON")
    return value


def _without_trailing_commas(text: str) -> str:
    """Return ``text`` without commas before a closing bracket; those inside strings stay."""
    kept: list[str] = []
    in_string = escaped = False
    for sign in text:
        if in_string:
            if sign == '"' and not escaped:
                in_string = False
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            in_string, escaped = True, False
        elif sign in "}]":
            end = len(kept)
            while end and kept[end - 1].isspace():
                end -= 1
            if end and kept[end - 1] == ",":
                del kept[end - 1]
        kept.append(sign)
    return "".join(kept)


def arguments_json(given: str | None, tool: ToolSpec | None) -> str:
    """Return the arguments of a call as JSON text; what is none comes back as it is.

    Args:
        given: The input; None if there was none.
        tool: None when the name is unknown; the call is refused for that.
    """
    properties = tool.parameters.get("properties") if tool is not None else None
    names = list(properties) if isinstance(properties, Mapping) else []
    text = "" if given is None else given.strip()
    value = _read(text) if text else None
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if not text or (tool is not None and not names):
        return "{}"
    if len(names) == 1:
        return json.dumps({names[0]: unfenced(text).strip() if value is _NOTHING else value}, ensure_ascii=False)
    return json.dumps(text if value is _NOTHING else value, ensure_ascii=False)


def matched(name: str, tools: Iterable[ToolSpec]) -> ToolSpec | None:
    """Return the tool that ``name`` means: its own name, in whatever case, quotes or parentheses."""
    bare = re.sub(r"\(\s*\)$", "", name.strip().strip("`'\"").strip())
    known = list(tools)
    exact = [tool for tool in known if tool.name == bare]
    alike = exact or [tool for tool in known if tool.name.casefold() == bare.casefold()]
    return alike[0] if len(alike) == 1 else None
