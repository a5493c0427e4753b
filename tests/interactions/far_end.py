"""The caller of a script: acts on cues, sends frames on the call's own clock, hears what the agent sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.fakes.wire import FRAME_S, LOUD, SECONDS_PER_WORD, FakeWire, ScriptedEars, Segment
from tests.interactions.audible import Word, word_of
from tests.interactions.script import Act, EarsScript, Line
from voice_agent.audio.frames import FRAME_SAMPLES, SILENCE
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.wire import CallInputs, TranscriptMessage, WireMessage
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.speech.protocols import EngineError, Priority, Transcript, Urgency, Voicing

MUSIC = np.full(FRAME_SAMPLES, 2000, np.int16).tobytes()
BLIP = np.full(FRAME_SAMPLES, 2001, np.int16).tobytes()
BLIP_EVERY = 15
_EPSILON_S = 1e-6


class ScriptDetector:
    """The verdicts a two-stage detector gives: sure after three loud frames, fooled by a single frame of music."""

    def __init__(self, delay_frames: int = 3) -> None:
        self._delay, self._loud = delay_frames, 0

    def push(self, frame: bytes) -> Voicing:
        value = int.from_bytes(frame[:2], "little", signed=True)
        if value < LOUD:
            self._loud = 0
            return Voicing(frame == BLIP, -30.0 if value else -70.0)
        self._loud += 1
        earlier = self._delay - 1 if self._loud == self._delay else 0
        return Voicing(self._loud >= self._delay, -20.0, earlier)

    def reset(self) -> None:
        self._loud = 0


class ScriptWire(FakeWire):
    """A `FakeWire` whose caller acts on cues.

    Args:
        clock: Frames are sent on its ticks: no second timer, and half the work for the loop.
        story: Entries of the conversation so far, as text.
        words: The words synthesised so far.

    Attributes:
        call: The call, for scripts in which the service ends it.
        played_frames: Agent frames that the far end plays: without those that were cleared on the way.
    """

    def __init__(
        self, line: Line, acts: Sequence[Act], clock: MediaClock, story: Callable[[], list[str]], words: list[Word]
    ) -> None:
        super().__init__(
            line.seconds,
            reports_position=line.reports_position,
            sends_silence=line.sends_silence,
            drain_s=line.drain_s,
            stuck=line.stuck,
            media_until=float("inf") if line.media_until is None else line.media_until,
            transfers=line.transfers,
        )
        self._clock, self._story, self._words = clock, story, words
        self._acts = list(acts)
        self._previous_end = 0.0
        self._cued: float | None = None
        self._sounded: list[tuple[float, str]] = []
        self._last_word: int | None = None
        self._searched_from = 0
        self._sound: Segment | None = None
        self._why = "closed"
        self._ticks = self._reply_frames = 0
        self._dropped = 0
        self._plays_until = 0.0
        self._ends: list[float] = []
        self.played_frames: list[tuple[float, bytes]] = []
        self.call: Call | None = None
        self._fault: Exception | None = None

    @property
    def acts_left(self) -> list[Act]:
        """What the caller never came to do."""
        return self._acts

    @property
    def spoken(self) -> list[Segment]:
        """When the caller's voice sounded."""
        return list(self._segments)

    async def run(self, call: CallInputs) -> str:
        loop = asyncio.get_running_loop()
        self.began = loop.time()

        def tick() -> None:
            try:
                self._tick(loop.time() - self.began, call)
            except Exception as error:  # noqa: BLE001 - raised by `run`, the clock would swallow it
                self._fault = error
                self._closed.set()

        unsubscribe = self._clock.subscribe(tick)
        try:
            await self._closed.wait()
        except asyncio.CancelledError:
            if self._stuck:
                await asyncio.sleep(3600)
            raise
        finally:
            unsubscribe()
        if self._fault is not None:
            raise self._fault
        return self._why

    def send_audio(self, frame: bytes) -> None:
        before = len(self.frames)
        super().send_audio(frame)
        if len(self.frames) == before:
            return
        self._reply_frames += 1
        at, _ = self.frames[-1]
        self._plays_until = max(self._plays_until, at + self._drain_s) + FRAME_S
        self._ends.append(self._plays_until)
        self.played_frames.append(self.frames[-1])
        number = word_of(frame)
        if number is not None and number != self._last_word:
            self._last_word = number
            self._sounded.append((asyncio.get_running_loop().time() - self.began, self._words[number].text))

    def send(self, message: WireMessage) -> None:
        super().send(message)
        if isinstance(message, TranscriptMessage) and message.heard is not None:
            self._reply_frames = self._dropped = 0

    def clear(self) -> None:
        # What has not begun to play never will; a frame that plays is played.
        now = asyncio.get_running_loop().time()
        while self._ends and self._ends[-1] - FRAME_S > now - _EPSILON_S:
            self.played_frames.pop()
            self._ends.pop()
            self._dropped += 1
        self._plays_until = self._ends[-1] if self._ends else 0.0
        super().clear()

    def _tick(self, now: float, call: CallInputs) -> None:
        if self._closed.is_set():
            return
        if now >= self._seconds - _EPSILON_S:
            self._leave_with("hang_up")
            return
        while self._acts and self._due(self._acts[0], now):
            self._do(self._acts.pop(0), now, call)
        if self._actions:
            self._act(now, call)
        frame = self._frame(now)
        if now < self._media_until and (frame is not SILENCE or self._sends_silence):
            call.hear(frame)
        self._ticks += 1
        if self.traits.reports_position and self._ticks % 5 == 0:
            loop_now = asyncio.get_running_loop().time()
            sent = self._reply_frames - self._dropped
            on_the_way = sum(1 for end in self._ends[-sent:] if end > loop_now + _EPSILON_S) if sent > 0 else 0
            call.played(max(0, sent - on_the_way) * FRAME_S * 1000)

    def _due(self, act: Act, now: float) -> bool:
        if act.at is not None:
            return now >= act.at - _EPSILON_S
        if act.after is not None:
            return now >= self._previous_end + act.after - _EPSILON_S
        if self._cued is None:
            self._cued = self._cue(act, now)
        return self._cued is not None and now >= self._cued + act.delay - _EPSILON_S

    def _cue(self, act: Act, now: float) -> float | None:
        if act.over is not None:
            for index in range(self._searched_from, len(self._sounded)):
                if self._sounded[index][1].strip(".,!?") == act.over:
                    self._searched_from = index + 1
                    return self._sounded[index][0]
            self._searched_from = len(self._sounded)
            return None
        return now if act.when in self._story() else None

    def _do(self, act: Act, now: float, call: CallInputs) -> None:
        self._cued = None
        end = now
        if act.says is not None:
            seconds = act.takes if act.takes is not None else SECONDS_PER_WORD * len(act.says.split())
            end = self.speak(now, act.says, seconds)
        elif act.noise is not None:
            end = self.noise(now, act.noise)
        elif act.sound is not None:
            end = now + act.sound
            self._sound = Segment(now, end, 0)
        elif act.keys is not None:
            every = act.takes if act.takes is not None else 0.2
            for index, key in enumerate(act.keys):
                end = now + index * every
                self.at(end, lambda inputs, key=key: inputs.press_key(key))  # type: ignore[misc]
        elif act.ends is not None:
            assert self.call is not None
            if act.ends == "leave":
                self.call.take_leave(6.0)
            else:
                self.call.end(CancelReason(act.ends))
        elif act.mutes is not None:
            call.mute(act.mutes)
        elif act.types is not None:
            call.type_text(act.types)
        else:
            self._leave_with(act.leaves or "hang_up")
        self._previous_end = end

    def _leave_with(self, why: str) -> None:
        self._why = why
        self._closed.set()

    def _frame(self, now: float) -> bytes:
        sound = self._sound
        if sound is not None and sound.start - _EPSILON_S <= now < sound.end - _EPSILON_S:
            return BLIP if round((now - sound.start) / FRAME_S) % BLIP_EVERY == BLIP_EVERY - 1 else MUSIC
        # Lines are said in order: only the last two can sound now.
        for segment in self._segments[-2:]:
            if segment.start - _EPSILON_S <= now < segment.end - _EPSILON_S:
                return _voice(segment.line)
        return SILENCE


def _voice(line: int, cache: dict[int, bytes] = {}) -> bytes:  # noqa: B006 - a cache of immutable frames
    if line not in cache:
        cache[line] = np.full(FRAME_SAMPLES, LOUD + line, np.int16).tobytes()
    return cache[line]


class ScriptEars(ScriptedEars):
    """A `ScriptedEars` with faults by request and words that are understood differently."""

    def __init__(self, wire: FakeWire, script: EarsScript) -> None:
        super().__init__(wire, script.seconds)
        self._script = script

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        number = len(self.requests)
        fault = self._script.requests[number] if number < len(self._script.requests) else None
        if isinstance(fault, float):
            await asyncio.sleep(max(0.0, fault - self.seconds))
        transcript = await super().transcribe(pcm, priority=priority)
        if fault == "error":
            raise EngineError("the recogniser is out of order")
        if fault == "rejected":
            return Transcript(transcript.text, transcript.seconds, accepted=False)
        text = self._script.hears.get(transcript.text, transcript.text)
        return Transcript(text, transcript.seconds, accepted=bool(text))
