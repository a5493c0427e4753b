"""Where the far end plays from a buffer of its own and echoes marks, they say what was heard."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FRAME_S, FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.wire import CallInputs, MarkMessage, WireMessage, WireTraits
from voice_agent.dialogue.reply import Heard

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."


class MarkEchoingWire(FakeWire):
    """A carrier: plays ``late_s`` behind us, echoes each mark when it comes to it, and all of them at a clear."""

    def __init__(self, seconds: float, late_s: float, *, speed: float = 1.0) -> None:
        super().__init__(seconds)
        self.traits = WireTraits("fake", reports_position=True, echoes_marks=True)
        self._late_s, self._speed = late_s, speed
        self._call: CallInputs | None = None
        self._pending: list[tuple[float, str]] = []
        self._plays_until = 0.0
        self.echoed: list[str] = []

    async def run(self, call: CallInputs) -> str:
        self._call = call
        try:
            return await super().run(call)
        finally:
            self._call = None

    def send_audio(self, frame: bytes) -> None:
        super().send_audio(frame)
        start = asyncio.get_running_loop().time() + self._late_s
        self._plays_until = max(self._plays_until, start) + FRAME_S / self._speed

    def send(self, message: WireMessage) -> None:
        super().send(message)
        if isinstance(message, MarkMessage):
            self._pending.append((self._plays_until, message.name))

    def clear(self) -> None:
        super().clear()
        self._plays_until = 0.0
        for _, name in self._pending:
            self._echo(name)
        self._pending.clear()

    def _act(self, now: float, call: CallInputs) -> None:
        time = asyncio.get_running_loop().time()
        while self._pending and self._pending[0][0] <= time:
            self._echo(self._pending.pop(0)[1])
        super()._act(now, call)

    def _acknowledge(self, call: CallInputs, now: float) -> None:
        """Positions come by marks alone."""

    def _echo(self, name: str) -> None:
        if self._call is None:
            return
        self.echoed.append(name)
        asyncio.get_running_loop().call_later(0.03, self._call.mark_reached, name)


@virtual_time
@pytest.mark.parametrize("late_s", [0.0, 0.15, 0.6])
@pytest.mark.parametrize("at", [1.3, 2.0, 3.1, 4.4])
async def test_the_heard_words_are_those_that_the_far_end_came_to(at: float, late_s: float) -> None:
    wire = MarkEchoingWire(12, late_s)
    wire.at(at, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(says(WORDS), says("Yes?"))
    await place(wire, talk)
    truth = WORDS[: int((at - late_s) / 0.06)].rsplit(" ", 1)[0].split()
    heard = talk.heard()[0].split()
    assert heard == WORDS.split()[: len(heard)]
    # Between two marks the position is carried on by the clock; the echo itself is on its way for 30 ms.
    assert len(heard) == pytest.approx(len(truth), abs=1)


@virtual_time
async def test_marks_echoed_after_a_clear_do_not_count_as_heard() -> None:
    wire = MarkEchoingWire(6, late_s=1.0)
    wire.at(0.5, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(says(WORDS), says("Yes?"))
    await place(wire, talk)
    assert wire.echoed
    assert talk.replies[0][1].extent is Heard.NOT


@virtual_time
async def test_a_reply_that_was_played_to_its_end_was_heard_whole() -> None:
    wire = MarkEchoingWire(12, late_s=0.4)
    talk = ScriptedConversation(says(WORDS))
    await place(wire, talk)
    assert talk.replies[0][1].extent is Heard.FULLY


@virtual_time
async def test_a_pause_and_a_false_interruption_lose_no_word_to_stale_marks() -> None:
    wire = MarkEchoingWire(14, late_s=0.3)
    wire.noise(2.0, 0.12)
    wire.noise(3.5, 0.12)
    talk = ScriptedConversation(says(WORDS))
    await place(wire, talk)
    assert len(wire.clears) == 2
    assert talk.replies[0][1].extent is Heard.FULLY
    assert wire.echoed[-1].endswith(".end")
