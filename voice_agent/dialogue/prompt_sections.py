"""The parts of a prompt, and how each is kept within its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from voice_agent.dialogue.offer import Offer
from voice_agent.llm.protocol import Message, ModelRequest

BYTES_PER_TOKEN = 4
"""A rule of thumb of the tokenizer's makers for English; text in other scripts comes out higher, which is right."""
MESSAGE_TOKENS = 4
"""What a message costs beyond its text."""
SHORT_RESULT_CHARS = 400


def estimate(text: str) -> int:
    """Return roughly how many tokens ``text`` is."""
    # Half a character counts like a whole one: it must not end a turn here.
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def message_tokens(message: Message) -> int:
    return MESSAGE_TOKENS + estimate(message.content) + sum(estimate(c.name + c.arguments) for c in message.tool_calls)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the system message.

    Attributes:
        key: Stable name, such as ``rules`` or ``instructions``.
        title: Heading above it; empty for none.
        omitted: Characters cut off to keep it within its tokens.
    """

    key: str
    title: str
    body: str
    omitted: int = 0

    @property
    def text(self) -> str:
        return f"## {self.title}\n{self.body}" if self.title else self.body

    @property
    def tokens(self) -> int:
        return estimate(self.text)


def lines(key: str, title: str, items: Iterable[str]) -> Section:
    """Return a section that is a list."""
    return Section(key, title, "\n".join(f"- {item}" for item in items if item))


def fit(section: Section, tokens: int) -> Section:
    """Cut ``section`` at the end of a line so that it takes at most ``tokens``, and say in it that it was cut."""
    raw = section.body.encode()
    if len(raw) <= tokens * BYTES_PER_TOKEN:
        return section
    kept = raw[: tokens * BYTES_PER_TOKEN].decode(errors="ignore")
    whole_lines = kept.rpartition("\n")[0]
    kept = whole_lines or kept
    omitted = len(section.body) - len(kept)
    return replace(section, body=f"{kept}\n[{omitted} more characters are left out here]", omitted=omitted)


def shorten(scratch: Sequence[Message], tokens: int) -> list[Message]:
    """Shorten the oldest tool results until ``scratch`` takes at most ``tokens``, or all of them are short."""
    kept = list(scratch)
    total = sum(map(message_tokens, kept))
    for index, message in enumerate(kept):
        if total <= tokens:
            break
        if message.role == "tool" and len(message.content) > SHORT_RESULT_CHARS:
            omitted = len(message.content) - SHORT_RESULT_CHARS
            content = f"{message.content[:SHORT_RESULT_CHARS]}… [{omitted} characters left out]"
            kept[index] = replace(message, content=content)
            total -= message_tokens(message) - message_tokens(kept[index])
    return kept


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: what the system message is made of, and what follows it.

    Attributes:
        conversation: Messages after the system message.
        offer: What the model may do.
    """

    sections: tuple[Section, ...]
    conversation: tuple[Message, ...]
    offer: Offer

    @property
    def messages(self) -> tuple[Message, ...]:
        system = "\n\n".join(section.text for section in self.sections)
        return (Message("system", system), *self.conversation)

    @property
    def request(self) -> ModelRequest:
        return ModelRequest(self.messages, self.offer.specs, self.offer.scope)

    @property
    def tokens(self) -> int:
        """Roughly how many tokens the messages are, tool schemas not counted."""
        return sum(map(message_tokens, self.messages))
