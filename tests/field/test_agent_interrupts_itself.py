"""The agent heard its own echo and interrupted itself, long narrations above all; one loud frame was enough.

Here: an echo of -10 to -30 dB stops nothing and is never answered, a caller 10 dB louder than it is heard at once.
The real voice, detector and recogniser, in virtual time.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.fakes.conversation import ScriptedConversation, says
from tests.support import inline_pool
from tests.support.acoustic_wire import AcousticWire
from tests.support.calls import place
from tests.support.flite import said
from tests.support.virtual_time import virtual_time
from voice_agent.config import TurnTaking

pytestmark = pytest.mark.models


@pytest.fixture(scope="module", autouse=True)
def _voice_of_this_module() -> None:
    inline_pool.renew_voice()


GREETING = "Welcome to Northline. I can help you with bills, faults and appointments. How may I help you today?"
NARRATION = (
    "Let me read you the terms. The contract runs for twelve months and renews each month after that. You may cancel "
    "with thirty days of notice. Equipment must be returned within two weeks, or a fee will be charged to your account."
)
OPTIONS = TurnTaking(silence_timeout_s=0)
AGENT_DBFS = -22
"""Level of the loud parts of the agent's voice."""


async def _call(wire: AcousticWire, *replies: str, options: TurnTaking = OPTIONS) -> ScriptedConversation:
    talk = ScriptedConversation(*(says(reply) for reply in replies))
    await place(
        wire,
        talk,
        voice=inline_pool.voice(),
        recognizer=inline_pool.recognizer(),
        detector=inline_pool.detector(),
        options=options,
        calls=[],
    )
    return talk


@virtual_time
@pytest.mark.parametrize(("echo_db", "delay_s"), [(-10, 0.3), (-20, 0.48), (-30, 0.15)])
async def test_a_long_narration_is_heard_whole_and_its_echo_is_not_answered(echo_db: float, delay_s: float) -> None:
    wire = AcousticWire(24, echo_db=echo_db, delay_s=delay_s)
    talk = await _call(wire, f"{GREETING} {NARRATION}", "I did not expect you to say anything.")
    assert talk.of("turn") == ["/session_start"]
    assert talk.heard() == [f"{GREETING} {NARRATION}"]


@virtual_time
async def test_a_greeting_completes_under_echo_from_the_first_frame_on() -> None:
    wire = AcousticWire(11, echo_db=-20)
    talk = await _call(wire, GREETING, "I did not expect you to say anything.")
    assert (talk.of("turn"), talk.heard()) == (["/session_start"], [GREETING])
    assert wire.clears == []


def _interrupting(echo_db: float | None, pcm: NDArray[np.int16]) -> AcousticWire:
    wire = AcousticWire(17, echo_db=echo_db)
    wire.voice(10.0, pcm, AGENT_DBFS + (-20 if echo_db is None else echo_db) + 10)
    return wire


@virtual_time
@pytest.mark.parametrize("echo_db", [-10, -20, None])
async def test_a_caller_ten_decibels_above_the_echo_stops_the_agent(echo_db: float | None) -> None:
    wire = _interrupting(echo_db, said("Excuse me, what about my other account?"))
    talk = await _call(wire, f"{GREETING} {NARRATION}", "Yes.")
    assert len(talk.of("turn")) == 2 and "account" in talk.of("turn")[1]
    assert talk.heard()[0] != f"{GREETING} {NARRATION}"
    assert 10.0 <= wire.clears[0] - wire.began <= 10.4


@virtual_time
@pytest.mark.parametrize("answer", ["Tuesday.", "Stop now."])
async def test_a_word_of_the_question_is_an_answer_once_the_question_is_over(answer: str) -> None:
    question = "Would you like Monday or Tuesday, or shall I stop?"
    wire = AcousticWire(12, echo_db=-20)
    wire.voice(6.0, said(answer, "rms"), -24)
    talk = await _call(wire, question, "Very well.")
    assert len(talk.of("turn")) == 2
    assert talk.of("turn")[1].strip(" .!").lower() == answer.strip(".").lower()


@virtual_time
async def test_without_the_guard_the_echo_is_answered() -> None:
    wire = AcousticWire(9, echo_db=-10)
    talk = await _call(wire, GREETING, "", options=OPTIONS.model_copy(update={"echo_guard": False}))
    assert len(talk.of("turn")) > 1
