"""Reads replies in the tagged format, for models that have no tool calls of their own.

::

    thinking … <say>One moment.</say> <action>get_balance</action><input>{"account": "42"}</input>
    thinking … <answer>Your balance is 42.</answer>

The first ``<answer>`` or ``<action>`` of a reply counts; what follows it was made up before any tool had
run. `TaggedReader` reads while the model writes and gives out only what a caller may hear: the text of
``<answer>`` and ``<say>``. Everything else is thinking, until the end shows that there was no tag at all.

Tolerated: any case, attributes, HTML-escaped tags, code fences around them, an unclosed last tag, a
closing tag inside a JSON string of the input. No event loop, no clock; never raises, whatever it is fed.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from enum import Enum

from voice_agent.llm.tagged_input import is_json, looks_whole

MAX_NAME_CHARS = 200
MAX_TAG_CHARS = 96
"""A tag with its attributes; a longer one is text."""
MAX_AFTER_ACTION = 200
"""Characters between an action and its input, before it is taken to have none."""
MAX_TRIES = 16
"""Closing tags of an input that are looked at as its end while it is written."""

_THOUGHTS = ("thought", "thoughts", "thinking", "think", "reasoning", "observation")
_NAMES = ("answer", "action", "input", "say", *_THOUGHTS)
_TAG = re.compile(
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


class _Mode(Enum):
    OUTSIDE = "outside"
    ANSWER = "answer"
    SAY = "say"
    ACTION = "action"
    NAMED = "named"
    """After the name of an action, before its input."""
    INPUT = "input"
    HIDDEN = "hidden"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class TaggedAction:
    """A tool the model wants. ``input`` is the text of its ``<input>``, None without one."""

    name: str
    input: str | None


class TaggedReader:
    """Reads one reply piece by piece.

    Attributes:
        done: Nothing that may still come counts; the stream can be closed.
        action: The tool that is asked for; complete once ``done``, or after `finish`.
        spoke: Some text was given out.
    """

    def __init__(self) -> None:
        self.action: TaggedAction | None = None
        self.spoke = False
        self._mode = _Mode.OUTSIDE
        self._back = _Mode.OUTSIDE
        """What a hidden stretch lies in."""
        self._raw: list[str] = []
        self._buffer = ""
        self._name = self._input = self._hidden = ""
        self._searched = self._tries = 0
        self._blank = ""
        self._begun = False
        self._thought: list[str] = []
        """Text of the hidden stretch that is open now."""

    @property
    def done(self) -> bool:
        return self._mode is _Mode.DONE

    def feed(self, text: str) -> str:
        """Take the next piece of the reply. Returns what may be heard of it, often nothing."""
        if self.done:
            return ""
        self._raw.append(text)
        self._buffer += text
        heard: list[str] = []
        while not self.done and self._step(heard):
            pass
        return "".join(heard)

    def finish(self) -> str:
        """The reply has ended. Returns what is still to be heard; ``action`` is set if a tool is asked for."""
        mode, self._mode = self._mode, _Mode.DONE
        if mode is _Mode.ANSWER or mode is _Mode.SAY:
            return self._trimmed(_without_broken_tag(self._buffer))
        if mode is _Mode.ACTION:
            self._act(_without_broken_tag(self._name + self._buffer), None)
        elif mode is _Mode.NAMED:
            self._act(self._name, None)
        elif mode is _Mode.INPUT:
            self._act(self._name, _unclosed_input(self._input + self._buffer))
        elif mode is _Mode.HIDDEN and self._back is _Mode.OUTSIDE:
            # A thought that is never closed may hold the tag it led to.
            return self._unclosed_thought("".join(self._thought) + self._buffer)
        if mode in (_Mode.OUTSIDE, _Mode.HIDDEN) and not self.spoke and not self._begun:
            return self._trimmed(cleaned("".join(self._raw)))
        return ""

    # --- one step of the machine ---------------------------------------------------------------

    def _step(self, heard: list[str]) -> bool:
        """Use up the buffer to the end of its next tag. Returns False when more text is needed."""
        if self._mode is _Mode.INPUT:
            return self._read_input()
        tag = _TAG.search(self._buffer)
        if tag is None:
            kept = _possible_tag(self._buffer)
            self._take(self._buffer[:kept], heard)
            self._buffer = self._buffer[kept:]
            return False
        self._take(self._buffer[: tag.start()], heard)
        self._buffer = self._buffer[tag.end() :]
        if not self.done:
            self._enter(tag.group(2).lower(), closes=bool(tag.group(1)), tag=tag.group())
        return True

    def _take(self, text: str, heard: list[str]) -> None:
        """Text that belongs to no tag."""
        if self._mode in (_Mode.ANSWER, _Mode.SAY):
            heard.append(self._trimmed(text))
        elif self._mode is _Mode.ACTION:
            self._name = (self._name + text)[: MAX_NAME_CHARS + 1]
        elif self._mode is _Mode.HIDDEN:
            self._thought.append(text)
        elif self._mode is _Mode.NAMED:
            self._searched += len(text.strip())
            if self._searched > MAX_AFTER_ACTION:
                self._act(self._name, None)

    def _enter(self, name: str, *, closes: bool, tag: str) -> None:
        mode = self._mode
        if mode is _Mode.HIDDEN:
            if closes and name == self._hidden:
                self._mode = self._back
                self._thought.clear()
            else:
                self._thought.append(tag)
        elif mode is _Mode.ANSWER:
            if closes and name == "answer":
                self._mode = _Mode.DONE
            elif not closes and name not in ("answer", "say"):
                self._hide(name, _Mode.ANSWER)
        elif mode is _Mode.SAY and closes and name in ("say", "answer"):
            self._mode = _Mode.OUTSIDE
        elif mode is _Mode.ACTION:
            self._name_ends(name, closes)
        elif mode is _Mode.NAMED:
            if name == "input" and not closes:
                self._mode, self._input, self._searched = _Mode.INPUT, "", 0
            elif not closes:
                self._act(self._name, None)
        elif not closes:
            self._open(name)

    def _open(self, name: str) -> None:
        """An opening tag outside of everything, or in words for the caller that were not closed."""
        if name in ("answer", "say"):
            self._mode, self._begun = _Mode.ANSWER if name == "answer" else _Mode.SAY, True
            self._blank = " " if self.spoke else ""
        elif name == "action":
            self._mode, self._name, self._searched = _Mode.ACTION, "", 0
        else:
            self._hide(name, _Mode.OUTSIDE)

    def _hide(self, name: str, back: _Mode) -> None:
        self._mode, self._hidden, self._back = _Mode.HIDDEN, name, back
        self._thought.clear()

    def _name_ends(self, name: str, closes: bool) -> None:
        if name == "input" and not closes:
            self._mode, self._input, self._searched = _Mode.INPUT, "", 0
        elif name == "action" and closes:
            self._mode, self._searched = _Mode.NAMED, 0
        elif not closes:
            self._act(self._name, None)

    def _read_input(self) -> bool:
        """Look for the end of the input; one inside a JSON string is part of it."""
        for tag in _TAG.finditer(self._buffer, self._searched):
            if tag.group(1) and tag.group(2).lower() == "input":
                candidate = self._buffer[: tag.start()]
                self._tries += 1
                if self._tries > MAX_TRIES:
                    # Settled at the end: each try reads the input once more.
                    self._searched = len(self._buffer)
                    return False
                if looks_whole(candidate):
                    self._act(self._name, candidate)
                    return True
                self._searched = tag.end()
        self._searched = max(self._searched, _possible_tag(self._buffer))
        return False

    # --- ends ----------------------------------------------------------------------------------

    def _act(self, name: str, given: str | None) -> None:
        self._mode = _Mode.DONE
        self.action = TaggedAction(name.strip()[:MAX_NAME_CHARS], None if given is None else given.strip())

    def _unclosed_thought(self, text: str) -> str:
        inner = TaggedReader()
        inner.spoke = self.spoke
        heard = inner.feed(text)
        if inner._mode is _Mode.OUTSIDE or (inner._mode is _Mode.HIDDEN and inner._back is _Mode.OUTSIDE):
            # Nothing but thinking to its end. What stood before it may still be an answer.
            if self.spoke or self._begun:
                return ""
            raw = "".join(self._raw)
            return self._trimmed(cleaned(raw[: max(0, len(raw) - len(text))]))
        heard += inner.finish()
        self.action, self.spoke = inner.action, inner.spoke
        return heard

    def _trimmed(self, text: str) -> str:
        """Return ``text`` without white space at the beginning and, until more follows, at the end."""
        if not self.spoke:
            text = text.lstrip()
        elif text:
            text = self._blank + text
            self._blank = ""
        kept = text.rstrip()
        if kept:
            self._blank = text[len(kept) :]
            self.spoke = True
        elif self.spoke:
            self._blank += text
        return kept


def _possible_tag(text: str) -> int:
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


def _without_broken_tag(text: str) -> str:
    """Return ``text`` without a tag that it breaks off in; a lone sign is text."""
    start = _possible_tag(text)
    return text[:start] if len(text) - start > 1 else text


def _unclosed_input(text: str) -> str:
    """Return the input out of what came after its tag when nothing closed it as it should be."""
    tag = _TAG.search(text)
    first = text[: tag.start()] if tag is not None else _without_broken_tag(text)
    # A tag inside a string of complete JSON is part of it.
    return text if first != text and is_json(text) else first


def cleaned(text: str) -> str:
    """Return what may be heard of a reply that has no answer and no action in it.

    Complete pairs of tags go with what they enclose, except those that only format; so do lines that are
    labelled as thoughts, actions or observations.
    """
    text = _TAG.sub(lambda tag: f"<{tag.group(1)}{tag.group(2).lower()}>", text)
    text = _FORMATTING.sub("", _FENCE.sub("", text))
    text = _TAG.sub(" ", _without_pairs(text))
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
