"""What a client may say beside its audio, and how much of it. Pure: time comes in as seconds.

One per connection. Messages are acted on in order; those that cannot be used, and a flood of them, are
complained about at a bounded rate.
"""

from __future__ import annotations

from collections.abc import Callable

from voice_agent.call.wire import CallInputs
from voice_agent.channels import messages
from voice_agent.channels.limits import TokenBucket

ERRORS = (5.0, 0.5)
"""Error messages a client can provoke: at once, and per second after that."""
MESSAGES = (100.0, 60.0)
"""Text or empty messages a client may send: at once, and per second after that."""
FLOOD = 500
"""Messages beyond that limit after which the client is hung up on."""


class Controls:
    """Attributes: ``reports_position``: the client reports what it played; ``refused``: messages ignored."""

    def __init__(self, complain: Callable[[str, str], None], now: float) -> None:
        """Args: ``complain``: tells the client of an error, by code and sentence."""
        self._complain = complain
        self._errors = TokenBucket(*ERRORS, now)
        self._messages = TokenBucket(*MESSAGES, now)
        self.reports_position = False
        self.refused = 0

    @property
    def floods(self) -> bool:
        """Whether the client is to be hung up on for the number of its messages."""
        return self.refused > FLOOD

    def admit(self, now: float) -> bool:
        """Whether one more message that is no audio is acted on. If not, it is counted and complained about."""
        if self._messages.take(1, now):
            return True
        self.refused += 1
        self.complain("too_many_messages", "Too many messages; some were ignored.", now)
        return False

    def act(self, message: messages.ClientMessage, call: CallInputs) -> str | None:
        """Act on a message. Returns why the connection ends, where it does: a reason as of `Wire.run`."""
        match message:
            case messages.TypedText(words):
                call.type_text(words)
            case messages.Key(digit):
                call.press_key(digit)
            case messages.Played(ms):
                self.reports_position = True
                call.played(ms)
            case messages.Mute(muted):
                call.mute(muted)
            case messages.CallerHangUp():
                return "hang_up"
        return None

    def read(self, text: str, call: CallInputs, now: float) -> str | None:
        """Read a message of our own wires and act on it, within the limits. Returns as `act`."""
        if not self.admit(now):
            return "disconnected" if self.floods else None
        try:
            message = messages.decode(text)
        except messages.BadMessage as error:
            self.complain(error.code, error.message, now)
            return None
        return self.act(message, call)

    def complain(self, code: str, text: str, now: float) -> None:
        """Tell the client of an error, unless it was told of many."""
        if self._errors.take(1, now):
            self._complain(code, text)
