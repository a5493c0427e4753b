"""The embedded model as a `LanguageModel`: streamed, off the loop, cancellable."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import date
from typing import Any

import pytest

from tests.support.model_requests import CANNOT_HELP, caller, ran, request, start_skill, tool
from voice_agent.diagnostics import RemediableError
from voice_agent.llm.assemble import ToolCallAssembler
from voice_agent.llm.embedded import minilm
from voice_agent.llm.embedded.minilm import MiniLm
from voice_agent.llm.embedded.model import EmbeddedModel
from voice_agent.llm.protocol import Finished, ModelError, SkillCard, TextDelta, ToolCallDelta

pytestmark = pytest.mark.models


async def test_text_comes_word_by_word_and_adds_up(encoder: MiniLm) -> None:
    model = EmbeddedModel(encoder)
    await model.warm_up()
    *words, end = [event async for event in model.stream(request(caller("hello"), tools=[start_skill()]))]
    assert [word.text for word in words if isinstance(word, TextDelta)] == [
        "Hello!",
        " How",
        " can",
        " I",
        " help",
        " you?",
    ]
    assert end == Finished("stop")
    await model.aclose()


async def test_calls_come_complete_with_ids_of_their_own(encoder: MiniLm) -> None:
    model = EmbeddedModel(encoder)
    assembler = ToolCallAssembler()
    asked = request(caller("my internet is down"), tools=[start_skill(), CANNOT_HELP])
    events = [event async for event in model.stream(asked)]
    for event in events:
        if isinstance(event, ToolCallDelta):
            assembler.add(event)
    (call,) = assembler.calls()
    assert (call.name, json.loads(call.arguments)) == ("start_skill", {"skill": "report_outage"})
    assert events[-1] == Finished("tool_calls")
    later = request(caller("my internet is down"), ran("x"), caller("my internet is down"), tools=[start_skill()])
    ids = [event.id async for event in model.stream(later) if isinstance(event, ToolCallDelta)]
    assert ids != [call.id]
    await model.aclose()


async def test_the_date_of_tomorrow_is_the_callers(encoder: MiniLm) -> None:
    model = EmbeddedModel(encoder, today=lambda: date(2030, 6, 1))
    book = tool("book", "Book a visit", ["visit_date"], visit_date={"type": "string"})
    asked = request(caller("tomorrow please"), ran("start_skill"), tools=[book], active_skill="visit")
    calls = [event async for event in model.stream(asked) if isinstance(event, ToolCallDelta)]
    assert json.loads(calls[0].arguments) == {"visit_date": "2030-06-02"}
    await model.aclose()


class _SlowEncoder(MiniLm):
    def __init__(self) -> None:
        super().__init__()
        self.started, self.go_on = threading.Event(), threading.Event()

    def similarities(self, sentence: str, others: object) -> list[float]:
        self.started.set()
        self.go_on.wait(10)
        return [0.0] * len(list(others))  # type: ignore[call-overload]


async def test_the_loop_runs_on_while_it_decides_and_a_cancel_does_not_wait_for_it() -> None:
    slow = _SlowEncoder()
    model = EmbeddedModel(slow)

    async def read() -> None:
        async for _ in model.stream(request(caller("my internet is down"), tools=[start_skill()])):
            pass

    reading = asyncio.ensure_future(read())
    assert await asyncio.to_thread(slow.started.wait, 10)
    # This line runs at all because the loop is free.
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert not slow.go_on.is_set()
    slow.go_on.set()
    await model.aclose()


async def test_a_closed_model_refuses_and_closing_twice_is_safe(encoder: MiniLm) -> None:
    model = EmbeddedModel(encoder)
    await model.aclose()
    await model.aclose()
    with pytest.raises(ModelError, match="embedded"):
        await anext(model.stream(request(caller("hello"))))


async def test_bad_weights_stop_the_start_and_are_a_model_error_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    model = EmbeddedModel()
    with pytest.raises(RemediableError, match="not the pinned file"):
        await model.warm_up()
    with pytest.raises(ModelError) as caught:
        await anext(model.stream(request(caller("my internet is down"), tools=[start_skill()])))
    assert caught.value.kind == "configuration"
    await model.aclose()


async def test_what_was_prepared_is_not_computed_while_a_caller_waits() -> None:
    computed: list[str] = []

    class CountingEncoder(MiniLm):
        def _compute(self, sentence: str) -> Any:
            computed.append(sentence)
            return super()._compute(sentence)

    model = EmbeddedModel(CountingEncoder(), today=lambda: date(2026, 12, 1))
    cards = [SkillCard("pay", "Pays a bill.", ("I want to pay",)), SkillCard("report", "Reports an outage.")]
    await model.prepare(cards, [("Hours", "We open at nine. We close at six.")])
    assert {"We close at six.", "Hours: We close at six.", "I want to pay", "report"} <= set(computed)
    computed.clear()
    found = {"passages": [{"title": "Hours", "text": "We open at nine. We close at six."}]}
    tools = [start_skill(cards), tool("search_knowledge", query={"type": "string"})]
    searched = ran("search_knowledge", {"query": "close"}, found)
    asked = request(caller("when do you close"), searched, tools=tools, skills=tuple(cards))
    assert [event async for event in model.stream(asked)]
    assert computed == ["when do you close"]
    await model.aclose()
