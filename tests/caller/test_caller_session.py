"""Real calls over a real WebSocket to an agent that plays from a script."""

from __future__ import annotations

import asyncio
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.support.scripted_agent import Script, scripted_agent
from voice_agent.caller.account import Account, as_json
from voice_agent.caller.conversation import Ending, Patience
from voice_agent.caller.lines import Line, SpokenLine
from voice_agent.caller.recording import Recording
from voice_agent.caller.session import MAX_FAULTS, CallOutcome, Session
from voice_agent.caller.verdict import missing
from voice_agent.caller.websocket import WebSocketWire
from voice_agent.caller.wire import ConnectionFailed, Destination


def tone(seconds: float = 0.5, rate: int = 16000, barge_in_at: float | None = None) -> SpokenLine:
    pcm = (np.sin(np.arange(int(seconds * rate)) * 2 * np.pi * 440 / rate) * 9000).astype(np.int16)
    return SpokenLine(Line(text="a tone", barge_in_at=barge_in_at), pcm, 0.0, seconds, seconds)


async def ring(
    script: Script,
    *lines: SpokenLine,
    rate: int = 16000,
    timeout_s: float = 3.0,
    token: str | None = None,
    recording: Recording | None = None,
) -> tuple[CallOutcome, Account, object]:
    async with scripted_agent(script) as agent:
        wire = WebSocketWire(Destination(agent.url, rate, token, conversation="c1"))
        session = Session(wire, lines, rate, patience=Patience(0.3, timeout_s, 5.0), recording=recording)
        account = Account(session.outcome.conversation)
        session.observe(lambda at, happening: account.observe(at, happening) and None)
        outcome = await session.run()
        return outcome, account, agent.calls[0]


def lacks(outcome: CallOutcome) -> str:
    return " ".join(missing(outcome.conversation, signals_clear=True, left_because=outcome.left_because))


@pytest.mark.parametrize("rate", [8000, 48000])
async def test_a_greeted_and_answered_call_lacks_nothing_at_any_rate(rate):
    outcome, account, heard = await ring(Script(greeting_s=0.4, replies_s=(0.4,)), tone(rate=rate), rate=rate)
    assert lacks(outcome) == ""
    assert heard.query == {"rate": str(rate), "metrics": "1", "conversation": "c1"}
    assert {len(frame) for _, frame in heard.frames} == {rate // 50 * 2}
    assert heard.messages == [{"type": "hangup"}]
    assert outcome.conversation_id == "scripted"
    result = as_json(outcome, account, signals_clear=True)
    assert result["turns"][1]["understood"] == "a tone"
    assert result["turns"][1]["said"][0]["heard"] == "reply 1 with some more words"
    assert {"speech_end", "first_audio"} <= result["turns"][1]["agent_instants"].keys()


async def test_a_barge_in_silences_an_agent_that_clears():
    outcome, account, heard = await ring(Script(greeting_s=0.3, replies_s=(4.0, 0.4)), tone(), tone(barge_in_at=0.8))
    assert lacks(outcome) == "" and heard.cleared == 1
    turn = as_json(outcome, account, signals_clear=True)["turns"][2]
    reply = outcome.conversation.turns[1].reply
    assert reply is not None
    assert turn["speech_start"] == pytest.approx(reply.start + 0.8, abs=0.021)
    assert turn["silenced"] and 0 < turn["heard_stop_s"] < 2.0
    said = account.words[1].said[0]
    assert said.heard is not None and 0 < len(said.heard) < len(said.text)


async def test_a_reply_sent_all_at_once_is_heard_at_the_pace_of_speech():
    outcome, _, _ = await ring(Script(greeting_s=1.5, whole_replies=True, clears=False))
    greeting = outcome.conversation.turns[0].reply
    assert greeting.end - greeting.start == pytest.approx(1.5, abs=0.021)


async def test_an_agent_that_talks_on_over_a_barge_in_has_not_been_silenced():
    outcome, _, _ = await ring(
        Script(greeting_s=0.3, replies_s=(1.4, 0.4), clears=False), tone(), tone(0.3, barge_in_at=0.4), timeout_s=1.0
    )
    assert "did not silence the agent" in lacks(outcome)


async def test_a_silent_agent_is_reported_as_not_greeting():
    outcome, _, _ = await ring(Script(greeting_s=0), timeout_s=0.6)
    assert lacks(outcome) == "The caller was not greeted: nothing was heard in time."


async def test_an_agent_that_greets_and_then_never_answers_is_reported():
    outcome, _, _ = await ring(Script(greeting_s=0.3, replies_s=(0,)), tone(), timeout_s=0.8)
    assert "was not answered" in lacks(outcome)


async def test_an_agent_that_hangs_up_early_is_reported_with_its_reason():
    outcome, _, _ = await ring(Script(greeting_s=0.3, hangs_up_after=1), tone(), tone())
    assert "2 lines were never spoken because the agent left (goodbye)" in lacks(outcome)


async def test_what_the_agent_said_before_hanging_up_is_heard_to_the_end():
    outcome, _, _ = await ring(Script(greeting_s=0.5, hangs_up_after=1))
    greeting = outcome.conversation.turns[0].reply
    assert greeting.end - greeting.start == pytest.approx(0.5, abs=0.021)
    assert lacks(outcome) == ""


async def test_a_connection_that_breaks_is_reported_as_broken():
    outcome, _, _ = await ring(Script(greeting_s=0.3, breaks_after=1), tone())
    assert "the connection broke" in lacks(outcome)


async def test_an_agent_at_another_rate_is_not_listened_to():
    outcome, _, _ = await ring(Script(speaks_at=8000), tone())
    assert outcome.conversation.ending is Ending.WRONG_RATE
    assert lacks(outcome) == "The agent cannot be understood: it speaks at 8000 Hz, 16000 Hz were asked for."


async def test_garbage_from_the_agent_is_reported_and_the_call_goes_on():
    garbage = ("", "no json", "[]", '{"type": 5}', b"\x01", b"", '{"type": "novelty"}')
    outcome, _, _ = await ring(Script(greeting_s=0.3, garbage=garbage, replies_s=(0.3,)), tone())
    assert lacks(outcome) == ""
    assert [fault.code for fault in outcome.faults] == ["unreadable"] * 5


async def test_endless_garbage_is_kept_within_bounds():
    outcome, _, _ = await ring(Script(greeting_s=0.3, garbage=("x",) * 500))
    assert lacks(outcome) == "" and len(outcome.faults) == MAX_FAULTS


async def test_a_missing_key_is_refused_with_the_remedy_and_the_right_one_is_let_in():
    with pytest.raises(ConnectionFailed, match="--token"):
        await ring(Script(token="sesame"))
    outcome, _, _ = await ring(Script(greeting_s=0.3, token="sesame"), token="sesame")
    assert lacks(outcome) == ""


async def test_a_cancelled_call_says_goodbye_and_leaves_no_task():
    before = asyncio.all_tasks()
    async with scripted_agent(Script(greeting_s=5.0)) as agent:
        session = Session(WebSocketWire(Destination(agent.url)), [], 16000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await session.run()
        assert agent.calls[0].messages == [{"type": "hangup"}]
    assert asyncio.all_tasks() == before
    assert "ended early" in lacks(session.outcome)


async def test_both_sides_of_a_recording_lie_on_the_callers_clock(tmp_path: Path):
    recording = Recording(tmp_path, 16000)
    outcome, _, _ = await ring(
        Script(greeting_s=0.3, replies_s=(4.0, 0.4)), tone(), tone(barge_in_at=0.8), recording=recording
    )
    recording.close()
    with wave.open(str(recording.audio)) as file:
        assert (file.getnchannels(), file.getframerate()) == (2, 16000)
        stereo = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert len(stereo) / 16000 == pytest.approx(outcome.seconds)
    caller, agent = np.abs(stereo[:, 0].astype(int)) > 1000, stereo[:, 1] != 0
    for turn in outcome.conversation.turns[1:]:
        start, end = int(turn.speech_start * 16000), int(turn.speech_end * 16000)
        assert not caller[start - 1600 : start].any() and caller[start : start + 100].any()
        assert caller[end - 100 : end].any() and not caller[end : end + 1600].any()
    for stretch in outcome.conversation.speech.stretches:
        start, end = round(stretch.start * 16000), round(stretch.end * 16000)
        assert agent[start : start + 320].any() and agent[end - 320 : end].any()
        assert not agent[start - 320 : start].any() and not agent[end : end + 320].any()
