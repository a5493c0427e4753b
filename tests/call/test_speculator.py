"""A slow model begins on stable words; what was begun in vain leaves nothing behind."""

from __future__ import annotations

import asyncio
import copy
import random
from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call
from tests.support.dialogue_projects import Caller, caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import InputKind, UserInput
from voice_agent.dialogue.state import snapshot
from voice_agent.telemetry.metrics import SPECULATIONS

FIRST_TOKEN_S = 0.3


def bench_of(root: Path, mode: str, **files: str) -> Caller:
    files = {"skills/talk/skill.md": skill("Talk."), "integrations.yml": f"llm: {{speculate: {mode}}}\n", **files}
    model = ScriptedModel(first_token_s=FIRST_TOKEN_S, then="Of course.")
    return caller(root, files, model=model, channel="websocket")


async def call_with(bench: Caller, wire: FakeWire) -> None:
    async with MediaClock() as clock:
        await make_call(wire, bench.conversation, clock, voice=FakeVoice()).run()  # type: ignore[arg-type]


async def answer_s(root: Path, mode: str) -> tuple[float, int]:
    bench, wire = bench_of(root, mode), FakeWire(8)
    end = wire.speak(1.0, "what is my balance")
    await call_with(bench, wire)
    assert [e["text"] for e in bench.events("bot")] == ["Of course."]
    first = next(at for at, frame in wire.frames if at > end)
    return first - wire.began - end, len(bench.model.requests)


@virtual_time
async def test_the_first_token_is_waited_for_while_the_endpoint_is(tmp_path: Path) -> None:
    without, requests = await answer_s(tmp_path / "off", "off")
    assert requests == 1
    early, requests = await answer_s(tmp_path / "on", "on")
    assert requests == 1
    assert without - early > FIRST_TOKEN_S * 0.5, (without, early)


@virtual_time
async def test_speech_that_goes_on_closes_the_stream_and_is_answered_once(tmp_path: Path) -> None:
    bench, wire = bench_of(tmp_path, "on"), FakeWire(10)
    end = wire.speak(1.0, "my balance and")
    wire.speak(end + 0.45, "my address please")
    await call_with(bench, wire)
    assert [e["text"] for e in bench.events("user") if e["kind"] == "speech"] == ["my balance and my address please"]
    first, *rest = bench.model.streams
    assert first.closed_early and first.ended_at is not None
    assert len(rest) == 1
    assert [e["text"] for e in bench.events("bot")] == ["Of course."]


HOOK = """
from voice_agent.dialogue.hooks import modify_model_request

@modify_model_request
async def look(payload):
    pass
"""


@virtual_time
@pytest.mark.parametrize("seed", range(25))
async def test_a_speculation_in_vain_leaves_the_conversation_byte_for_byte_as_it_was(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    bench = bench_of(tmp_path, "on")
    await bench.says("hello")
    events = copy.deepcopy(list(bench.conversation.events))
    state, stored = snapshot(bench.conversation.state), repr(vars(bench.agent.store))
    for number in range(rng.randint(1, 4)):
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            user = UserInput(f"words {number}", InputKind.SPEECH)
            group.create_task(bench.conversation.speculate(user, can_transfer=False, cancel=token))
            await asyncio.sleep(rng.uniform(0, 0.6))
            token.cancel(CancelReason.SUPERSEDED)
    assert list(bench.conversation.events) == events
    assert (snapshot(bench.conversation.state), repr(vars(bench.agent.store))) == (state, stored)
    assert all(stream.ended_at is not None for stream in bench.model.streams if stream.started_at is not None)
    said = await bench.says("something else")
    assert said.messages == ["Of course."]


@virtual_time
@pytest.mark.parametrize("same", [True, False])
async def test_only_the_very_same_request_is_taken_over(tmp_path: Path, same: bool) -> None:
    bench = bench_of(tmp_path, "on")
    await bench.says("hello")
    before = {o: SPECULATIONS.labels(outcome=o)._value.get() for o in ("used", "discarded")}
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        user = UserInput("what is it", InputKind.SPEECH)
        group.create_task(bench.conversation.speculate(user, can_transfer=False, cancel=token))
        await asyncio.sleep(0.1)
        await bench.says(UserInput("what is it" if same else "what was it", InputKind.SPEECH))
    assert len(bench.model.requests) == (2 if same else 3)
    counted = "used" if same else "discarded"
    assert SPECULATIONS.labels(outcome=counted)._value.get() == before[counted] + 1


@virtual_time
async def test_nothing_is_begun_where_it_is_not_known_what_a_turn_would_ask(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "on", **{"hooks.py": HOOK})
    await bench.says("hello")
    await bench.conversation.speculate(UserInput("and"), can_transfer=False, cancel=CancelToken())
    assert len(bench.model.requests) == 1
    bench = bench_of(tmp_path / "busy", "on")
    await bench.says("hello")
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.says("first"))
        await asyncio.sleep(0.1)
        await bench.conversation.speculate(UserInput("and"), can_transfer=False, cancel=CancelToken())
    assert len(bench.model.requests) == 2


async def test_the_embedded_model_needs_none(tmp_path: Path) -> None:
    assert bench_of(tmp_path / "a", "auto").conversation.speculations_per_utterance == 0
    assert bench_of(tmp_path / "b", "on").conversation.speculations_per_utterance == 1
