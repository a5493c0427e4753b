"""A reply sink that collects what a turn says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from voice_agent.dialogue.reply import HangUp, HeardReply, ReplyItem, Say


@dataclass
class CollectingSink:
    """Implements `ReplySink`. ``times`` holds the loop time at which each item came."""

    items: list[ReplyItem] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def emit(self, item: ReplyItem) -> None:
        self.items.append(item)
        self.times.append(asyncio.get_running_loop().time())

    @property
    def messages(self) -> list[str]:
        """The texts, one per message, pieces joined."""
        found: dict[int, str] = {}
        for item in self.items:
            if isinstance(item, Say):
                found[item.message] = found.get(item.message, "") + item.text
        return list(found.values())

    @property
    def text(self) -> str:
        return " ".join(self.messages)

    @property
    def responses(self) -> list[str]:
        """Names of the configured responses that were said, in order."""
        return [item.response for item in self.items if isinstance(item, Say) and item.response]

    @property
    def hung_up(self) -> bool:
        return any(isinstance(item, HangUp) for item in self.items)

    def heard(self) -> HeardReply:
        """All of it, as heard by a caller who let it play to the end."""
        return HeardReply(self.text)
