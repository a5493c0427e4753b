"""The end of a call: decided once, and carried out within limits.

::

    decided ─▶ hang-up        ≤ HANG_UP_SHARE of the closing time
            ─▶ last turn      ≤ TURN_SHARE of it, and the grace window
            ─▶ conversation   ≤ what is left of it, at least half of what the turn was not to have
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from voice_agent.call.bounded import HALF_OPEN_S, HANG_UP_SHARE, TEARDOWN_GRACE_S, TURN_SHARE, bounded
from voice_agent.call.outcome import SUPERSEDED, TRANSFERRED, CallOutcome, closing
from voice_agent.call.recorder import Recorder
from voice_agent.call.timeline import Times
from voice_agent.call.turns import TurnRunner
from voice_agent.call.wire import Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import Conversation

log = logging.getLogger(__name__)


class Ending:
    """How one call ends, and its last things."""

    def __init__(
        self,
        call_id: str,
        conversation: Conversation,
        wire: Wire,
        runner: TurnRunner,
        options: TurnTaking,
        times: Times,
        recorder: Recorder | None,
    ) -> None:
        self._id, self._conversation, self._wire, self._runner = call_id, conversation, wire, runner
        self._options, self._times, self._recorder = options, times, recorder
        self._outcome, self._reason = "", ""
        self._decided = asyncio.Event()
        self._began_at = 0.0

    @property
    def is_decided(self) -> bool:
        """The call is over but for its last things."""
        return self._decided.is_set()

    def decide(self, outcome: str, reason: str) -> bool:
        """Settle how the call ends. False, and nothing changes, once it is settled."""
        if self.is_decided:
            return False
        self._outcome, self._reason = outcome, reason
        self._began_at = self._times.now()
        self._decided.set()
        return True

    def was_transfer(self, destination: str) -> None:
        """The connection had ended because of a transfer, and a moment before that was known."""
        self._outcome, self._reason = TRANSFERRED, destination

    async def decided(self) -> None:
        """Wait until the call is to end."""
        await self._decided.wait()

    async def wind_down(self) -> None:
        """Hang up and let the turn finish, both within their shares of the closing time."""
        superseded = self._reason == SUPERSEDED
        limit_s = HALF_OPEN_S if superseded else self._options.close_timeout_s * HANG_UP_SHARE
        said = self._outcome if self._outcome == TRANSFERRED else self._reason
        await bounded(self._wire.hang_up(said), "hang_up", limit_s)
        grace_s = self._options.grace_ms / 1000
        left = self._began_at + self._options.close_timeout_s * TURN_SHARE + grace_s - self._times.now()
        await bounded(self._runner.idle(), "last_turn", max(0.0, left))
        if self._recorder is not None:
            await bounded(self._recorder.close(), "recorder", TEARDOWN_GRACE_S * 2)

    async def close_conversation(self) -> None:
        """Note the end in the tracker and close the conversation."""
        limit = self._began_at + self._options.close_timeout_s - self._times.now()
        shortest = self._options.close_timeout_s * (1 - TURN_SHARE) / 2
        kept = {} if self._recorder is None else {"recording_whole": not self._recorder.failed}
        seconds = round(self._times.since(), 3)
        ended = {"outcome": self._outcome, "reason": self._reason, "seconds": seconds, "turns": self._runner.ended}
        self.note("call_ended", **ended, **kept)
        closed_as = closing(self._outcome, self._reason)
        await bounded(self._conversation.close(closed_as), "conversation_close", max(limit, shortest))

    def result(self) -> CallOutcome:
        """What became of the call, once all is done."""
        return CallOutcome(self._outcome, self._reason, self._times.since(), self._runner.ended)

    def note(self, kind: str, **data: Any) -> None:
        """Record something about the call in the tracker. Never raises."""
        try:
            self._conversation.note(kind, call_id=self._id, **data)
        except Exception:
            log.exception("a note could not be recorded")
