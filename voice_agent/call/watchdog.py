"""The slow clock of a call: everything that is measured in seconds, looked at four times a second.

Silence of the caller, keys that wait for more keys, a wire without media, a voice that gives no
audio, and the longest call. Nothing here runs per frame, and nothing outlives the call's task group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from voice_agent.call.floor import State
from voice_agent.call.floor_keeper import FloorKeeper
from voice_agent.call.idle import IdleClock
from voice_agent.call.inputs import Inputs
from voice_agent.call.intake import Intake
from voice_agent.call.mouth import Mouth
from voice_agent.call.timeline import Times
from voice_agent.call.turn import Entry
from voice_agent.call.turns import TurnRunner
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import SILENCE, InputKind
from voice_agent.telemetry.metrics import ENGINE_FAILURES

log = logging.getLogger(__name__)

PERIOD_S = 0.25
STALLED_VOICE_S = 10.0
"""Text that waits this long for audio fails its turn."""
WARNING_S = 60.0
"""How long before the longest call its end is announced."""
MAX_WARNINGS = 3
"""How often it is tried to be announced."""
FAREWELL_S = 15.0
"""Limit on the goodbye of a call that became too long."""
CALL_ENDING = "utter_call_ending_soon"
GOODBYE = "utter_hangup_goodbye"


class Watchdog:
    """Watches one call.

    Args:
        end: Ends the call; takes the cancel reason and the reason for the operator.
    """

    def __init__(
        self,
        runner: TurnRunner,
        floor: FloorKeeper,
        intake: Intake,
        mouth: Mouth,
        options: TurnTaking,
        times: Times,
        inputs: Inputs,
        *,
        end: Callable[[CancelReason, str], None],
    ) -> None:
        self._runner, self._floor, self._intake = runner, floor, intake
        self._mouth, self._options, self._times = mouth, options, times
        self._inputs, self._end = inputs, end
        self._idle = IdleClock(options.silence_timeout_s)
        self._seen, self._seen_at = 0, times.now()
        self._warnings = 0
        self._warning: Entry | None = None
        self._leaving = False

    @property
    def quiet_s(self) -> float:
        """For how long nothing has come in by the wire, looked at with each `PERIOD_S`."""
        return self._times.now() - self._seen_at

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            now = self._times.now()
            self._watch_media(now)
            self._watch_keys(now)
            self._watch_voice()
            self._watch_silence(now)
            self._watch_length()

    def _watch_media(self, now: float) -> None:
        signs = self._inputs.count
        if signs != self._seen:
            self._seen, self._seen_at = signs, now
        elif 0 < self._options.media_timeout_s <= now - self._seen_at and not self._inputs.is_muted:
            # Who has switched their microphone off may send nothing at all.
            self._end(CancelReason.TIMEOUT, "media_timeout")

    def _watch_keys(self, now: float) -> None:
        digits = self._inputs.keys.expired(now)
        if digits:
            self._intake.typed(digits, InputKind.DTMF)

    def _watch_voice(self) -> None:
        if self._mouth.stalled_s() >= STALLED_VOICE_S:
            ENGINE_FAILURES.labels(engine="tts").inc()
            log.warning("the voice gave no audio for %.0f s; the turn was given up", STALLED_VOICE_S)
            self._runner.cancel(CancelReason.TIMEOUT)

    def _is_quiet(self) -> bool:
        """Whether nobody speaks, nothing is pending and playout is drained."""
        listening = self._floor.state is State.LISTENING and self._runner.current is None
        return listening and not self._runner.inbox and not self._inputs.keys

    def _watch_silence(self, now: float) -> None:
        if self._idle.update(now, self._is_quiet() and not self._inputs.is_muted):
            self._runner.inbox.add(Entry(SILENCE, when_quiet=True))

    def _watch_length(self) -> None:
        limit, age = self._options.max_call_s, self._times.since()
        if limit <= 0:
            return
        if max(limit - WARNING_S, limit / 2) <= age < limit:
            self._warn()
        if not self._leaving and age >= limit:
            self._leaving = True
            self._runner.cancel(CancelReason.TIMEOUT)
            self._runner.inbox.clear()
            self._runner.inbox.add(Entry(line=GOODBYE, hang_up="max_duration"))
        if age >= limit + FAREWELL_S:
            self._end(CancelReason.TIMEOUT, "max_duration")

    def _warn(self) -> None:
        """Announce the end at a moment when nobody speaks; once more where the caller spoke into it at once."""
        was_heard = self._warning is not None and self._warning.heard
        if not was_heard and self._warnings < MAX_WARNINGS and self._is_quiet():
            self._warnings += 1
            self._warning = Entry(line=CALL_ENDING, when_quiet=True)
            self._runner.inbox.add(self._warning)
