"""Where released audio goes: to the wire, into the recording, and to what knows the agent's own voice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.wire import Wire

if TYPE_CHECKING:
    from voice_agent.call.own_voice import OwnVoice
    from voice_agent.call.recorder import Recorder


class Outlet:
    """That of one call."""

    def __init__(self, wire: Wire, recorder: Recorder | None = None, own_voice: OwnVoice | None = None) -> None:
        self._wire, self._recorder, self._own_voice = wire, recorder, own_voice

    def begin(self, ledger: PlayoutLedger) -> None:
        """A reply begins to be released."""
        if self._own_voice is not None:
            self._own_voice.begin(ledger)

    def aside(self, text: str) -> None:
        """Words that are no part of the reply will sound."""
        if self._own_voice is not None:
            self._own_voice.aside(text)

    def send(self, frame: bytes, plays_at: float) -> None:
        """Let go of one frame, which sounds at ``plays_at`` in loop time."""
        self._wire.send_audio(frame)
        if self._recorder is not None:
            self._recorder.agent(frame, plays_at)
        if self._own_voice is not None:
            self._own_voice.played(frame, plays_at)

    def clear(self, now: float) -> None:
        """What was let go of and has not sounded yet is not to be heard, nor recorded as heard."""
        self._wire.clear()
        if self._recorder is not None:
            self._recorder.clear(now)

    def clear_far_end(self) -> None:
        """Drop what the far end still plays beyond what counts as heard."""
        self._wire.clear()
