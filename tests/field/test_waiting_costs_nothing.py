"""The process burns a whole core while a caller waits.

Right: waiting is one sleeping task; neither a slow turn, nor a starved voice, nor a silent call
ticks or spins.
"""

from __future__ import annotations

import asyncio

from tests.fakes.conversation import ScriptedConversation, Speaker
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call
from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock


class _CountingLoop:
    """Counts the callbacks the loop runs."""

    def __init__(self) -> None:
        self.steps = 0
        self._loop = asyncio.get_running_loop()
        self._run_once = self._loop._run_once  # type: ignore[attr-defined]
        self._loop._run_once = self._count  # type: ignore[attr-defined]

    def _count(self) -> None:
        self.steps += 1
        self._run_once()

    def stop(self) -> int:
        self._loop._run_once = self._run_once  # type: ignore[attr-defined]
        return self.steps


async def _iterations(seconds: float, *, voice_s: float, turn_s: float) -> tuple[int, int]:
    """Return loop iterations of a call that waits, and the same without a call: its clock and its wire."""

    async def slow(speaker: Speaker) -> None:
        await speaker.wait(turn_s)
        speaker.say("At last, a word from the agent.")

    wire, most = FakeWire(seconds), 0
    counter = _CountingLoop()
    async with MediaClock() as clock:
        call = make_call(wire, ScriptedConversation(slow), clock, voice=FakeVoice(first_byte_s=voice_s))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(call.run())
            await asyncio.sleep(seconds / 2)
            most = clock.subscribers
            await running
    return counter.stop(), most


@virtual_time
async def test_a_slow_turn_a_slow_voice_and_a_silent_call_do_not_spin() -> None:
    seconds = 8.0
    # The wire's frames and the clock's ticks, and a few iterations of the call itself.
    allowed = 2 * seconds / 0.02 + seconds * 20
    for voice_s, turn_s in ((0.0, 100.0), (100.0, 0.0), (0.0, 0.0)):
        iterations, subscribers = await _iterations(seconds, voice_s=voice_s, turn_s=turn_s)
        assert iterations <= allowed
        assert subscribers == 0
