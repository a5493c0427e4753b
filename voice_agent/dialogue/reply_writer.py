"""What a turn says, on its way to the sink: numbered, held back while something looks at it, and remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import EndingSink, HangUp, ReplySink, Say
from voice_agent.dialogue.responses import Wording
from voice_agent.digits import NO_DIGITS, DigitsResult
from voice_agent.transfers import NOT_SUPPORTED, TransferResult, TransferTarget


class ReplyWriter:
    """Numbers messages, emits their pieces, and remembers what was said. Silent once the turn is cancelled.

    A message that something still has to look at (`Speaker`: hooks, rewording) becomes a draft, and so
    does everything after it, so that the order stays; `flush` sends them off.
    """

    def __init__(self, sink: ReplySink, cancel: CancelToken) -> None:
        self._sink, self._cancel = sink, cancel
        self._message = 0
        self._open: list[str] = []
        self._drafts: list[tuple[int, Wording] | Callable[[], None]] = []
        self._too_late: list[Wording] = []
        self.needs_finishing: Callable[[Wording], bool] = lambda wording: False
        self.on_spoken: Callable[[Wording], None] | None = None
        self.said: list[str] = []
        self.configured: list[str] = []

    def _emit(self, item: Say | HangUp) -> None:
        if not self._cancel.is_cancelled:
            self._sink.emit(item)

    def deliver(self, wording: Wording) -> None:
        """Say a whole message."""
        self.end()
        if not wording.text:
            return
        if self._cancel.is_cancelled:
            self._too_late.append(wording)
            return
        self.said.append(wording.text)
        if wording.template:
            self.configured.append(wording.template)
        if self._drafts or self.needs_finishing(wording):
            self._drafts.append((len(self.said) - 1, wording))
        else:
            self._say(wording)

    def _say(self, wording: Wording) -> None:
        source: Literal["response", "model"] = "response" if wording.name else "model"
        say = Say(
            self._message,
            wording.text,
            True,
            source,
            wording.name or None,
            wording.interruptible,
            wording.while_uninterruptible,
            wording.record,
        )
        self._emit(say)
        self._message += 1
        if self.on_spoken is not None:
            self.on_spoken(wording)

    @property
    def owed(self) -> list[Wording]:
        """Wording that is to be known whole, and that the turn was cancelled before it could say."""
        waiting = [draft[1] for draft in self._drafts if isinstance(draft, tuple)]
        return [wording for wording in (*waiting, *self._too_late) if wording.record == "full"]

    @property
    def has_drafts(self) -> bool:
        return bool(self._drafts)

    async def flush(self, finish: Callable[[Wording], Awaitable[Wording]]) -> None:
        """Send off the drafts, each after ``finish`` has looked at it; one that comes back empty is not said.

        Raises:
            TurnCancelled: From ``finish``; the rest stays unsaid.
        """
        while self._drafts:
            draft = self._drafts[0]
            if callable(draft):
                draft()
            else:
                index, wording = draft
                wording = await finish(wording)
                self.said[index] = wording.text
                if wording.text:
                    self._say(wording)
            self._drafts.pop(0)

    def delta(self, text: str) -> None:
        """Say the next piece of a generated message."""
        if not text or (not self._open and not text.strip()):
            return
        self._open.append(text)
        self._emit(Say(self._message, text))

    def end(self) -> None:
        """Close the generated message, if one is open."""
        if self._open:
            self._emit(Say(self._message, "", True))
            text = "".join(self._open).strip()
            self.said.append(text)
            self._open.clear()
            self._message += 1
            if self.on_spoken is not None:
                self.on_spoken(Wording("", text))

    def hang_up(self, reason: str, ended: Callable[[], None]) -> None:
        """Ask for the end of the call after everything said before; ``ended`` is called when it is certain."""
        self.end()

        def send() -> None:
            if isinstance(self._sink, EndingSink):
                self._emit(HangUp(reason, ended))
            else:
                self._emit(HangUp(reason))
                ended()

        if self._drafts:
            self._drafts.append(send)
        else:
            send()

    @property
    def can_transfer(self) -> bool:
        """Whether the caller can be put through to somebody else."""
        return isinstance(self._sink, EndingSink) and self._sink.can_transfer

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Put the caller through after everything said before; see `EndingSink`. There must be no drafts.

        Raises:
            TurnCancelled: The caller objected in time, or has gone.
        """
        self.end()
        self._cancel.check()
        return await self._sink.transfer(target) if isinstance(self._sink, EndingSink) else NOT_SUPPORTED

    @property
    def can_send_digits(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        return isinstance(self._sink, EndingSink) and self._sink.can_send_digits

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys after everything said before; see `EndingSink`. There must be no drafts.

        Raises:
            TurnCancelled: The other side spoke in time, or has gone.
        """
        self.end()
        self._cancel.check()
        return await self._sink.send_digits(digits) if isinstance(self._sink, EndingSink) else NO_DIGITS

    @property
    def is_question(self) -> bool:
        """The last thing said asks something."""
        return bool(self.said) and self.said[-1].rstrip("\"')* ").endswith("?")
