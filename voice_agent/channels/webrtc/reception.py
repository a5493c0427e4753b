"""The caller's packets on their way to the call: in order, decoded, losses filled, no faster than real time."""

from __future__ import annotations

import asyncio

from voice_agent.call.wire import CallInputs
from voice_agent.channels.controls import Controls
from voice_agent.channels.intake import Intake
from voice_agent.channels.limits import TokenBucket
from voice_agent.channels.webrtc.opus import OPUS_RATE, SpeechDecoder
from voice_agent.channels.webrtc.reorder import Reorder
from voice_agent.telemetry.metrics import AUDIO_DROPPED

PACKETS = (150.0, 120.0)
"""Audio packets a client may send: at once, and per second after that. 20 ms packets need 50."""
MAX_GAP_S = 1.0
"""A gap in the caller's audio this long becomes silence of the same length; a longer one counts as a pause."""


class Reception:
    """Hands the audio of RTP packets to a call. Make it on the event loop; it owns one timer until `stop`.

    Args:
        controls: Tells the client, now and then, what is wrong with its audio.
        channel: The name under which dropped audio is counted.
    """

    def __init__(self, controls: Controls, channel: str) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._controls = controls
        self._dropped = AUDIO_DROPPED.labels(channel=channel)
        self._packets = TokenBucket(*PACKETS, now)
        self._reorder: Reorder[tuple[int, bytes]] = Reorder()
        self._decoder = SpeechDecoder()
        self._intake = Intake(OPUS_RATE, now)
        self._next_timestamp: int | None = None
        self._dropped_s = 0.0
        self._backlog: asyncio.TimerHandle | None = None
        self._stopped = False

    def take(self, sequence: int, timestamp: int, payload: bytes, call: CallInputs) -> None:
        """Take one packet; ``call`` hears what is complete and due, now or a little later."""
        if self._stopped or not self._packets.take(1, self._loop.time()):
            return
        for at, packet in self._reorder.push(sequence, (timestamp, payload)):
            pcm = self._decoder.decode(packet)
            if not pcm:
                continue
            self._hear(self._gap(at) + pcm, call)
            self._next_timestamp = (at + len(pcm) // 2) & 0xFFFFFFFF

    def stop(self) -> None:
        """Nothing more reaches the call."""
        self._stopped = True
        if self._backlog is not None:
            self._backlog.cancel()
            self._backlog = None

    def _gap(self, timestamp: int) -> bytes:
        """Silence in place of audio that was lost, so that the caller's clock goes on."""
        if self._next_timestamp is None:
            return b""
        missing = (timestamp - self._next_timestamp) & 0xFFFFFFFF
        return bytes(missing * 2) if missing <= MAX_GAP_S * OPUS_RATE else b""

    def _hear(self, pcm: bytes, call: CallInputs) -> None:
        now = self._loop.time()
        if heard := self._intake.push(pcm, now):
            call.hear(heard)
        if self._intake.waiting:
            self._hold_back(now, call)

    def _hold_back(self, now: float, call: CallInputs) -> None:
        """Audio came faster than real time: hand the rest over when its time has come."""
        dropped_s = self._intake.dropped_s - self._dropped_s
        if dropped_s:
            self._dropped.inc(dropped_s)
            self._controls.complain("audio_too_fast", "Audio must come in real time; some of it was dropped.", now)
            self._dropped_s += dropped_s
        if self._backlog is None and not self._stopped:
            self._backlog = self._loop.call_later(self._intake.wait_s(now) or 0.0, self._catch_up, call)

    def _catch_up(self, call: CallInputs) -> None:
        self._backlog = None
        if heard := self._intake.release(self._loop.time()):
            call.hear(heard)
        wait_s = self._intake.wait_s(self._loop.time())
        if wait_s is not None and not self._stopped:
            self._backlog = self._loop.call_later(wait_s, self._catch_up, call)
