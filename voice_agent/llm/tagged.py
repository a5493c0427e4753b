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

from dataclasses import dataclass
from enum import Enum

from voice_agent.llm.tagged_input import looks_whole
from voice_agent.llm.tagged_syntax import TAG, cleaned, possible_tag, unclosed_input, without_broken_tag

MAX_NAME_CHARS = 200
MAX_AFTER_ACTION = 200
"""Characters between an action and its input, before it is taken to have none."""
MAX_TRIES = 16
"""Closing tags of an input that are looked at as its end while it is written."""


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
            return self._trimmed(without_broken_tag(self._buffer))
        if mode is _Mode.ACTION:
            self._act(without_broken_tag(self._name + self._buffer), None)
        elif mode is _Mode.NAMED:
            self._act(self._name, None)
        elif mode is _Mode.INPUT:
            self._act(self._name, unclosed_input(self._input + self._buffer))
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
        tag = TAG.search(self._buffer)
        if tag is None:
            kept = possible_tag(self._buffer)
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
        for tag in TAG.finditer(self._buffer, self._searched):
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
        self._searched = max(self._searched, possible_tag(self._buffer))
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
