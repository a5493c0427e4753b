"""A reply sink that collects what a turn says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from voice_agent.dialogue.cancellation import CancelToken, race
from voice_agent.dialogue.reply import HangUp, HeardReply, ReplyItem, Say
from voice_agent.digits import DigitsReason, DigitsResult
from voice_agent.transfers import TransferReason, TransferResult, TransferTarget


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


class CallSink(CollectingSink):
    """An `EndingSink` whose transfers come to ``reason`` after ``seconds``, and keys to ``digits`` as fast.

    ``ends``: the callback of each `HangUp`.
    """

    def __init__(
        self,
        reason: TransferReason = TransferReason.BUSY,
        seconds: float = 0.0,
        *,
        digits: DigitsReason | None = DigitsReason.SENT,
    ) -> None:
        super().__init__()
        self.reason, self.seconds, self.digits = reason, seconds, digits
        self.pressed: list[str] = []
        self.cancel = CancelToken()
        self.targets: list[TransferTarget] = []
        self.ends: list[Any] = []

    @property
    def can_transfer(self) -> bool:
        return True

    async def transfer(self, target: TransferTarget) -> TransferResult:
        self.targets.append(target)
        await race(asyncio.sleep(self.seconds), self.cancel, name="ring")
        return TransferResult(self.reason)

    @property
    def can_send_digits(self) -> bool:
        return self.digits is not None

    async def send_digits(self, digits: str) -> DigitsResult:
        assert self.digits is not None
        self.pressed.append(digits)
        await race(asyncio.sleep(self.seconds), self.cancel, name="digits")
        return DigitsResult(self.digits)

    def emit(self, item: Any) -> None:
        super().emit(item)
        if isinstance(item, HangUp):
            self.ends.append(item.ended)
