"""The tags of the tagged format: where one is, where one may begin, and what is left of a text without them.

Pure; never raises. Read by `voice_agent.llm.tagged`, which see for the format.
"""

from __future__ import annotations

import bisect
import re

from voice_agent.llm.tagged_input import is_json

MAX_TAG_CHARS = 96
"""A tag with its attributes; a longer one is text."""
_THOUGHTS = ("thought", "thoughts", "thinking", "think", "reasoning", "observation")
_NAMES = ("answer", "action", "input", "say", *_THOUGHTS)
TAG = re.compile(
    rf"(?:<|&lt;)\s{{0,3}}(/?)\s{{0,3}}({'|'.join(sorted(_NAMES, key=len, reverse=True))})"
    rf"(?:[\s/][^<>&]{{0,{MAX_TAG_CHARS - 32}}})?(?:>|&gt;)",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"<(/?)([a-z][\w-]{0,40})(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_MARKUP = "b|i|u|em|strong|p|br|span|div|a|ul|ol|li|h[1-6]|code|pre|q|small|sub|sup"
_FORMATTING = re.compile(rf"</?(?:{_MARKUP})(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE)
_LABELLED = re.compile(
    r"^[ \t*#>-]*(?:thought|thinking|reasoning|observation|action(?: input)?)[ \t]*\**:.*$", re.I | re.M
)
_ANSWER_LABEL = re.compile(r"^[ \t*#>-]*(?:final )?answer[ \t]*\**:[ \t*]*", re.I | re.M)
_FENCE = re.compile(r"^[ \t]*```.*$", re.M)


def possible_tag(text: str) -> int:
    """Return where the end of ``text`` may be the beginning of a tag; its length if nowhere."""
    last = text.rfind("&")
    # A tag has one "<" and, when it is escaped, two "&".
    starts = sorted({text.rfind("<"), last, text.rfind("&", 0, max(last, 0))})
    for start in starts:
        if start >= max(0, len(text) - MAX_TAG_CHARS) and _may_become_tag(text[start:]):
            return start
    return len(text)


def _may_become_tag(text: str) -> bool:
    lowered = text.lower()
    for opening in ("<", "&lt;"):
        if len(lowered) < len(opening):
            if opening.startswith(lowered):
                return True
            continue
        if not lowered.startswith(opening):
            continue
        rest = re.sub(r"^\s{0,3}/?\s{0,3}", "", lowered[len(opening) :])
        if any(name.startswith(rest) for name in _NAMES):
            return True
        named = next((name for name in _NAMES if re.match(rf"{name}(?:[\s/&]|$)", rest)), None)
        if named is not None and re.fullmatch(r"[^<>&]*(?:&(?:g(?:t)?)?)?", rest):
            return True
    return False


def without_broken_tag(text: str) -> str:
    """Return ``text`` without a tag that it breaks off in; a lone sign is text."""
    start = possible_tag(text)
    return text[:start] if len(text) - start > 1 else text


def unclosed_input(text: str) -> str:
    """Return the input out of what came after its tag when nothing closed it as it should be."""
    tag = TAG.search(text)
    first = text[: tag.start()] if tag is not None else without_broken_tag(text)
    # A tag inside a string of complete JSON is part of it.
    return text if first != text and is_json(text) else first


def cleaned(text: str) -> str:
    """Return what may be heard of a reply that has no answer and no action in it.

    Complete pairs of tags go with what they enclose, except those that only format; so do lines that are
    labelled as thoughts, actions or observations.
    """
    text = TAG.sub(lambda tag: f"<{tag.group(1)}{tag.group(2).lower()}>", text)
    text = _FORMATTING.sub("", _FENCE.sub("", text))
    text = TAG.sub(" ", _without_pairs(text))
    text = _ANSWER_LABEL.sub("", _LABELLED.sub("", text))
    return "\n".join(line for line in map(str.rstrip, text.splitlines()) if line.strip()).strip()


def _without_pairs(text: str) -> str:
    """Return ``text`` without tags that are closed and what stands between them."""
    tags = list(_ANY_TAG.finditer(text))
    closings: dict[str, list[int]] = {}
    for number, tag in enumerate(tags):
        if tag.group(1):
            closings.setdefault(tag.group(2).lower(), []).append(number)
    kept, at, number = [], 0, 0
    while number < len(tags):
        ends = closings.get(tags[number].group(2).lower(), [])
        closing = bisect.bisect_right(ends, number)
        if tags[number].group(1) or closing == len(ends):
            number += 1
            continue
        kept.append(text[at : tags[number].start()])
        at, number = tags[ends[closing]].end(), ends[closing] + 1
    return " ".join((*kept, text[at:]))
