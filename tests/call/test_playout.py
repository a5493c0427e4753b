"""Frames leave one per tick, the first at once; a pause is silence now; a stall never bursts."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.fakes.voice import fake_speech
from tests.fakes.wire import FakeWire
from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.marks import PositionMarks
from voice_agent.call.outlet import Outlet
from voice_agent.call.playout import Playout

TEXT = "One two three four five six seven eight. "


class _Stage:
    def __init__(self, clock: MediaClock, *, lead_ms: int = 120, fade_ms: int = 20, not_before_s: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self.wire = FakeWire()
        self.playout = Playout(
            Outlet(self.wire), PositionMarks(self.wire), clock, loop.time, lead_ms=lead_ms, fade_ms=fade_ms
        )
        self.ledger = PlayoutLedger()
        self.started: list[float] = []
        self.drained: list[float] = []
        self.playout.begin(
            self.ledger,
            on_started=lambda: self.started.append(loop.time()),
            on_drained=lambda: self.drained.append(loop.time()),
            on_room=lambda: None,
            not_before=loop.time() + not_before_s,
        )

    def say(self, text: str) -> None:
        self.ledger.said(text)
        self.playout.append(fake_speech(text))

    @property
    def times(self) -> list[float]:
        return [t for t, _ in self.wire.frames]


@virtual_time
async def test_the_first_frame_leaves_at_once_and_the_rest_at_the_speed_of_speech() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock)
        await asyncio.sleep(0.207)
        begin = asyncio.get_running_loop().time()
        stage.say(TEXT)
        stage.playout.finish()
        await asyncio.sleep(5)
    seconds = len(TEXT) * 0.06
    assert stage.times[0] == stage.started[0] == begin
    assert len(stage.times) == pytest.approx(seconds / 0.02, abs=1)
    ahead = [index * 0.02 - (t - begin) for index, t in enumerate(stage.times)]
    assert max(ahead) <= 0.04
    assert stage.drained == [pytest.approx(begin + len(stage.times) * 0.02, abs=0.041)]
    assert clock.subscribers == 0


@virtual_time
async def test_without_a_lead_nothing_is_ahead_by_more_than_its_own_frame() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock, lead_ms=0)
        await asyncio.sleep(0.2)
        stage.say(TEXT)
        await asyncio.sleep(1)
    assert all(b - a >= 0.02 - 1e-9 for a, b in zip(stage.times[1:], stage.times[2:], strict=False))


@virtual_time
async def test_a_pause_silences_within_the_same_instant_and_remembers_the_position() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock)
        stage.say(TEXT)
        await asyncio.sleep(0.9)
        stage.playout.pause()
        paused = asyncio.get_running_loop().time()
        await asyncio.sleep(2.0)
        assert stage.wire.clears == [paused]
        assert sum(t >= paused for t in stage.times) == 1, "one faded frame and no more"
        heard = stage.ledger.heard(paused).heard
        stage.playout.resume()
        await asyncio.sleep(5)
    assert heard.split() == ["One", "two", "three"]
    assert stage.ledger.heard(9).heard == TEXT
    # What follows the pause is the rest from the start of the cut word: nothing is lost, at most a word repeats.
    replayed = sum(t > paused for t in stage.times) * 0.02
    rest = (len(TEXT) - len("One two three ")) * 0.06
    assert rest - 0.04 <= replayed <= rest + 0.36


@virtual_time
async def test_the_last_frame_before_silence_fades() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock, fade_ms=60)
        stage.say(TEXT)
        await asyncio.sleep(1.0)
        stage.playout.stop()
        paused = asyncio.get_running_loop().time()
        await asyncio.sleep(1.0)
    tail = np.frombuffer(b"".join(f for t, f in stage.wire.frames if t >= paused), np.int16).astype(float)
    assert len(tail) == 960
    envelope = [float(np.abs(part).max()) for part in np.split(tail, 6)]
    assert envelope == sorted(envelope, reverse=True)
    assert envelope[-1] < envelope[0] / 4


@virtual_time
async def test_stopping_drops_what_was_queued_and_what_still_comes() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock)
        stage.say(TEXT)
        stage.say(TEXT)
        await asyncio.sleep(0.5)
        stage.playout.stop()
        sent = len(stage.times)
        stage.playout.append(fake_speech(TEXT))
        stage.playout.resume()
        await asyncio.sleep(5)
    assert len(stage.times) == sent
    assert stage.drained == []


@virtual_time
async def test_held_audio_is_not_released_before_it_may_be() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock)
        stage.playout.hold()
        stage.say(TEXT)
        stage.playout.finish()
        await asyncio.sleep(1)
        assert stage.times == [] and clock.subscribers == 0
        stage.playout.resume()
        assert stage.times
        await asyncio.sleep(5)
    assert stage.ledger.heard(6).heard == TEXT


@virtual_time
async def test_audio_that_comes_late_starts_again_at_once() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock)
        stage.say("One. ")
        await asyncio.sleep(1.003)
        assert clock.subscribers == 0, "a starved mouth does not tick"
        stage.say("Two. ")
        assert stage.times[-1] == asyncio.get_running_loop().time()
        stage.playout.finish()
        await asyncio.sleep(1)
    assert stage.drained


@virtual_time
async def test_a_last_short_fragment_is_played_at_the_end_and_dropped_on_a_stop() -> None:
    for cancelled in (False, True):
        async with MediaClock() as clock:
            stage = _Stage(clock, fade_ms=0)
            stage.ledger.said("Hi")
            speech = fake_speech("Hi", seconds_per_character=0.015)
            stage.playout.append(speech)
            stage.playout.finish()
            if cancelled:
                stage.playout.stop()
            await asyncio.sleep(1)
        sent = b"".join(frame for _, frame in stage.wire.frames)
        assert (stage.ledger.heard(1).heard == "Hi") is not cancelled
        if not cancelled:
            assert sent.startswith(speech.pcm) and len(sent) == 2 * 640


class _StallingClock(MediaClock):
    """A clock of which the test owns the ticks."""

    def tick(self, now: float, missed: int) -> None:
        self.now, self.missed = now, missed
        self._tick()


@virtual_time
@pytest.mark.parametrize(("stall_ms", "lead_ms", "at_once"), [(60, 120, 3), (1000, 120, 6), (1000, 0, 1)])
async def test_a_stall_is_made_up_within_the_lead_and_never_beyond(stall_ms: int, lead_ms: int, at_once: int) -> None:
    loop, clock = asyncio.get_running_loop(), _StallingClock()
    stage = _Stage(clock, lead_ms=lead_ms)
    stage.say(TEXT)
    for _ in range(10):
        await asyncio.sleep(0.02)
        clock.tick(loop.time(), 0)
    sent = len(stage.times)
    await asyncio.sleep(stall_ms / 1000)
    clock.tick(loop.time(), stall_ms // 20 - 1)
    burst = len(stage.times) - sent
    assert burst <= at_once
    assert burst >= at_once - 1
    assert stage.ledger.ahead(loop.time()) <= max(lead_ms / 1000, 0.02) + 1e-9


@virtual_time
async def test_nothing_sounds_before_its_time_unless_it_is_said_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with MediaClock() as clock:
        begin = loop.time()
        stage = _Stage(clock, not_before_s=0.5)
        stage.say(TEXT)
        await asyncio.sleep(1)
        assert stage.started == [pytest.approx(begin + 0.5, abs=0.021)]
        other = _Stage(clock, not_before_s=0.5)
        begin = loop.time()
        other.ledger.said(TEXT)
        other.playout.append(fake_speech(TEXT), at_once=True)
        assert other.started == [begin]
        stage.playout.stop()
        other.playout.stop()


@virtual_time
async def test_a_stop_before_its_time_leaves_nothing_on_the_clock() -> None:
    async with MediaClock() as clock:
        stage = _Stage(clock, not_before_s=0.5)
        stage.say(TEXT)
        await asyncio.sleep(0.2)
        stage.playout.stop()
        await asyncio.sleep(1)
        assert stage.times == []
        assert clock.subscribers == 0
