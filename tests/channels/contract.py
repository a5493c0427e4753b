"""What every channel must do, whatever its wire. A channel joins by subclassing with a ``dial`` fixture.

    class TestMyChannel(ChannelContract):
        @pytest.fixture
        async def dial(self) -> AsyncIterator[Dial]: ...

``dial`` returns an async callable that places a call through the channel and gives both ends of it (`dialling`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pytest

from tests.support.dtmf import keys_in
from tests.support.lines import Line, RecordingDesk, until
from voice_agent.audio.dtmf import tones
from voice_agent.audio.frames import FRAME_BYTES
from voice_agent.call.wire import MarkMessage, PressingWire, TranscriptMessage
from voice_agent.digits import NO_DIGITS, DigitsReason


class FarEnd(Protocol):
    """The caller's side of the wire, in terms every wire has."""

    reports_position: bool
    tells_marks: bool
    """The wire carries marks to the far end."""
    can_clear: bool
    """The wire can make the far end drop what it has not played."""

    @property
    def audio(self) -> bytes:
        """Agent audio that has arrived and was not cleared, as canonical PCM without silence around it."""
        ...

    @property
    def clears(self) -> int: ...

    @property
    def marks(self) -> list[str]: ...

    @property
    def over(self) -> bool:
        """The wire's own hang-up or close has arrived."""
        ...

    async def speak(self, pcm: bytes) -> None: ...
    async def press(self, digit: str) -> None: ...
    async def report_played(self, ms: float) -> None: ...
    async def hang_up(self) -> None: ...

    async def vanish(self) -> None:
        """Drop the connection without a goodbye."""
        ...

    async def close(self) -> None:
        """Let go of everything, whatever has become of the call."""
        ...


class Refused(Exception):
    """The channel did not let the caller in."""


@dataclass
class Connection:
    near: Line
    far: FarEnd


Dial = Callable[..., Awaitable[Connection]]
"""``await dial(authenticated=True)``; raises `Refused`."""


@asynccontextmanager
async def dialling(
    desk: RecordingDesk, place: Callable[[bool], Awaitable[FarEnd]], *refusals: type[Exception]
) -> AsyncIterator[Dial]:
    """Give a `Dial` for calls that come to ``desk``; at the end their far ends are closed.

    Args:
        place: Places a call, with the key or without.
        refusals: What it raises for who is not let in.
    """
    placed: list[FarEnd] = []
    refused: tuple[type[Exception], ...] = (Refused, *refusals)

    async def dial(authenticated: bool = True) -> Connection:
        try:
            far = await place(authenticated)
        except refused:
            assert desk.lines == []
            raise Refused from None
        placed.append(far)
        return Connection(await desk.next_line(), far)

    yield dial
    for far in placed:
        await far.close()


def tone(seconds: float) -> bytes:
    """A 300 Hz tone at 16 kHz, half of full scale."""
    return (np.sin(np.arange(int(seconds * 16000)) * 2 * np.pi * 300 / 16000) * 16384).astype("<i2").tobytes()


def level(pcm: bytes) -> float:
    return float(np.abs(np.frombuffer(pcm, "<i2").astype(np.float64)).mean()) if pcm else 0.0


def sounding(pcm: bytes) -> bytes:
    """What was said, without the silence around it: some wires carry silence as well."""
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm[: len(pcm) & ~1], "<i2").astype(np.int32)) > 200)
    return pcm[2 * loud[0] : 2 * loud[-1] + 2] if len(loud) else b""


def speak(near: Line, pcm: bytes) -> None:
    for at in range(0, len(pcm), FRAME_BYTES):
        near.wire.send_audio(pcm[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0"))


def pressed_to(far: FarEnd) -> str:
    """Return the keys that a far end was told by other signs than tones."""
    return str(getattr(far, "pressed", ""))


async def ended(near: Line) -> str:
    async with asyncio.timeout(5):
        return await asyncio.shield(near.ended)


class ChannelContract:
    """Subclass as ``TestX`` and give it a ``dial`` fixture."""

    async def test_what_the_caller_says_arrives_whole(self, dial: Dial) -> None:
        call = await dial()
        said = tone(0.5)
        await call.far.speak(said)
        heard = call.near.inputs
        await until(lambda: len(sounding(bytes(heard.heard))) >= len(said) * 0.9)
        assert level(sounding(bytes(heard.heard))) == pytest.approx(level(said), rel=0.1)

    async def test_what_the_agent_says_arrives_whole(self, dial: Dial) -> None:
        call = await dial()
        said = tone(0.5)
        speak(call.near, said)
        await call.near.wire.drain(2)
        await until(lambda: len(call.far.audio) >= len(said) * 0.95)
        assert level(call.far.audio) == pytest.approx(level(said), rel=0.1)

    async def test_a_clear_drops_what_was_not_played_and_later_speech_is_heard(self, dial: Dial) -> None:
        call = await dial()
        speak(call.near, tone(1.0))
        call.near.wire.clear()
        speak(call.near, tone(0.2))
        call.near.wire.send(MarkMessage("after"))
        if call.far.tells_marks:
            await until(lambda: "after" in call.far.marks)
        else:
            await call.near.wire.drain(2)
            await until(lambda: len(call.far.audio) >= len(tone(0.15)))
        assert call.far.clears == (1 if call.far.can_clear else 0)
        assert len(call.far.audio) <= len(tone(0.25))

    async def test_a_mark_comes_after_the_audio_before_it(self, dial: Dial) -> None:
        call = await dial()
        speak(call.near, tone(0.3))
        call.near.wire.send(MarkMessage("said"))
        if not call.far.tells_marks:
            await call.near.wire.drain(2)
            assert call.far.marks == []
            return
        await until(lambda: "said" in call.far.marks)
        assert len(call.far.audio) >= len(tone(0.2))

    async def test_marks_of_cleared_audio_are_not_sent(self, dial: Dial) -> None:
        call = await dial()
        if not call.far.tells_marks:
            return
        speak(call.near, tone(0.3))
        call.near.wire.send(MarkMessage("cleared"))
        call.near.wire.clear()
        call.near.wire.send(MarkMessage("next"))
        await until(lambda: "next" in call.far.marks)
        assert call.far.marks == ["next"]

    async def test_drain_waits_for_the_audio_to_be_played(self, dial: Dial) -> None:
        call = await dial()
        started = asyncio.get_running_loop().time()
        speak(call.near, tone(0.3))
        assert await call.near.wire.drain(3) is True
        assert asyncio.get_running_loop().time() - started >= 0.29

    async def test_drain_gives_up_at_its_limit(self, dial: Dial) -> None:
        call = await dial()
        speak(call.near, tone(1.5))
        assert await call.near.wire.drain(0.05) is False

    async def test_drain_after_the_end_reports_that_it_was_not_played(self, dial: Dial) -> None:
        call = await dial()
        await call.far.vanish()
        await ended(call.near)
        assert await call.near.wire.drain(1) is False

    async def test_positions_reach_the_call_where_the_wire_reports_them(self, dial: Dial) -> None:
        call = await dial()
        if not call.far.reports_position:
            # Positions come with marks that are echoed, or not at all.
            assert call.near.wire.traits.reports_position is call.near.wire.traits.echoes_marks
            return
        await call.far.report_played(240)
        await until(lambda: call.near.inputs.positions)
        assert call.near.inputs.positions == [240.0]
        assert call.near.wire.traits.reports_position is True

    async def test_keys_reach_the_call_in_order(self, dial: Dial) -> None:
        call = await dial()
        for digit in "5*0#":
            await call.far.press(digit)
        await until(lambda: len(call.near.inputs.keys) == 4)
        assert call.near.inputs.keys == list("5*0#")

    async def test_keys_that_the_agent_presses_arrive_in_order(self, dial: Dial) -> None:
        call = await dial()
        if not call.near.wire.traits.can_send_digits:
            return
        result = NO_DIGITS
        if isinstance(call.near.wire, PressingWire):
            result = await call.near.wire.send_digits("5*0#")
        if result.reason is DigitsReason.SENT:
            await until(lambda: pressed_to(call.far) == "5*0#")
            return
        # Where there is no other sign for a key, its tones are audio like any other.
        assert result.reason is DigitsReason.NOT_SUPPORTED
        for key in "5*0#":
            for frame in tones(key):
                call.near.wire.send_audio(frame)
            await call.near.wire.drain(2)
        await until(lambda: keys_in(call.far.audio) == "5*0#")

    async def test_the_agents_hang_up_closes_the_wire_after_what_was_said(self, dial: Dial) -> None:
        call = await dial()
        speak(call.near, tone(0.2))
        await call.near.wire.hang_up("completed")
        assert await ended(call.near) == "closed"
        await until(lambda: call.far.over)
        assert len(call.far.audio) >= len(tone(0.15))

    async def test_hanging_up_twice_and_after_the_end_is_harmless(self, dial: Dial) -> None:
        call = await dial()
        await asyncio.gather(call.near.wire.hang_up("completed"), call.near.wire.hang_up("completed"))
        await call.near.wire.hang_up("completed")
        assert await ended(call.near) == "closed"

    async def test_the_callers_hang_up_ends_the_run(self, dial: Dial) -> None:
        call = await dial()
        await call.far.hang_up()
        assert await ended(call.near) in ("hang_up", "disconnected")

    async def test_a_caller_who_vanishes_while_the_agent_speaks_is_one_normal_end(
        self, dial: Dial, caplog: pytest.LogCaptureFixture
    ) -> None:
        call = await dial()
        speak(call.near, tone(0.2))
        await call.far.vanish()
        assert await ended(call.near) == "disconnected"
        speak(call.near, tone(0.2))
        call.near.wire.clear()
        call.near.wire.send(TranscriptMessage("agent", "Are you there?", final=True))
        await asyncio.sleep(0.05)
        assert [r for r in caplog.records if r.levelname in ("ERROR", "CRITICAL")] == []

    async def test_nothing_of_a_call_is_left_after_it(self, dial: Dial) -> None:
        before = set(asyncio.all_tasks())
        call = await dial()
        speak(call.near, tone(0.1))
        await call.far.vanish()
        await ended(call.near)

        def left() -> set[str]:
            own = {t for t in asyncio.all_tasks() - before if not t.done()}
            return {t.get_name() for t in own if t.get_name().startswith(call.near.wire.traits.channel)}

        await until(lambda: not left())

    async def test_a_caller_without_the_key_is_refused_before_a_call_exists(self, dial: Dial) -> None:
        with pytest.raises(Refused):
            await dial(authenticated=False)
