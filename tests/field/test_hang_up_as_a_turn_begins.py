"""The caller hangs up in the very moment in which a turn begins: it runs all the same, or ends before it began.

Right: the caller's words are what comes first, nothing of an answer is committed before them, and nobody is answered.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.dialogue_projects import caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.call.call import Call
from voice_agent.call.wire import CallInputs
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus

STEPS_OF_THE_LOOP = 8


@pytest.mark.parametrize("steps", range(STEPS_OF_THE_LOOP))
@virtual_time
async def test_whatever_lies_between_the_words_and_the_hang_up(steps: int) -> None:
    tools: list[str] = []

    async def answer(speaker: Speaker) -> None:
        await speaker.wait(0.5)
        tools.append("ran")
        speaker.say("Fifty dollars.")

    wire, calls = FakeWire(5), list[Call]()

    def type_and_leave(call: CallInputs) -> None:
        call.type_text("what is my balance?")
        loop = asyncio.get_running_loop()

        def later(left: int) -> None:
            if left:
                loop.call_soon(later, left - 1)
            else:
                calls[0].end(CancelReason.HANG_UP)

        later(steps)

    wire.at(2.0, type_and_leave)
    talk = ScriptedConversation(says("Hello."), answer)
    await place(wire, talk, calls=calls)
    order = [kind for kind, _ in talk.log if kind in ("turn", "commit")]
    assert order == ["turn", "commit"] * (len(order) // 2)
    assert not tools
    assert talk.heard()[1:] in ([], [""])


async def test_a_turn_that_was_cancelled_before_it_began_keeps_the_words_and_does_nothing(tmp_path: Path) -> None:
    bench = caller(tmp_path, {"skills/talk/skill.md": skill("Chat.")})
    await bench.connects()
    for reason, kept in ((CancelReason.DISCONNECTED, 1), (CancelReason.SUPERSEDED, 1)):
        cancel = CancelToken()
        cancel.cancel(reason)
        said = await bench.says("my last words", cancel=cancel)
        assert (said.messages, said.result.status) == ([], TurnStatus.CANCELLED)
        assert len([e for e in bench.events("user") if e["text"] == "my last words"]) == kept
