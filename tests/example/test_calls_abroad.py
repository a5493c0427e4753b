"""The example's skill that looks something up in two places: a document that was learnt, and a price list."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.support.dialogue_projects import Calendar, Caller
from tests.support.hashed_words import HashedWords
from voice_agent.config import RecallOptions
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.llm.protocol import ModelRequest
from voice_agent.recall.ingest import learn_files
from voice_agent.recall.memories import Memories
from voice_agent.recall.sqlite_index import SqliteIndex

ROOT = Path(__file__).parents[2]
DOCUMENT = "handbook/calls_abroad.md"
START = tool_call("start_skill", skill="rates_abroad")
SEARCH = tool_call("search_knowledge", query="zone of Spain, calls to mobile phones abroad")
ZONE = tool_call("set_fields", country="Spain", zone="zone three")


def price(**arguments: Any) -> Any:
    return tool_call("call_price", **arguments)


@asynccontextmanager
async def nora(script: list[Entry], *, learnt: bool = True) -> AsyncIterator[Caller]:
    """A caller on the line; the handbook has been learnt as ``voice-agent learn handbook`` would."""
    memories = Memories(RecallOptions(), SqliteIndex(None), HashedWords, exists=lambda: False)
    if learnt:
        await memories.open(wanted=True)
        report = await learn_files(memories.library, ROOT, [ROOT / "handbook"])
        assert [name for name, _ in report.learnt] == [DOCUMENT]
    model, calendar = ScriptedModel(script), Calendar()
    agent = Agent.load(load_config(ROOT, {}), model, clock=calendar, recalls=memories)
    bench = Caller(agent, model, calendar, agent.open("c1", channel="websocket"))
    await bench.connects()
    yield bench
    await memories.aclose()


def results(request: ModelRequest) -> list[dict[str, Any]]:
    return [json.loads(message.content) for message in request.messages if message.role == "tool"]


def price_list(agent: Agent) -> Any:
    """Return the module that the skill's tool reads its prices from."""
    return agent.project.skills["rates_abroad"].tools["call_price"].function.__globals__["northline"]


def ran(bench: Caller) -> list[str]:
    return [event["tool"] for event in bench.events("tool_executed")]


async def test_the_zone_is_found_the_price_looked_up_and_the_answer_is_one_sentence() -> None:
    def answer(request: ModelRequest) -> Any:
        """Say what the price list has said, as a model would."""
        found = results(request)[-1]
        return [f"Ten minutes to a mobile phone in Spain cost {found['price']} dollars.", tool_call("complete")]

    async with nora([START, SEARCH, ZONE, price(zone="zone three", minutes=10), answer]) as bench:
        said = await bench.says("How much is a ten minute call to a mobile phone in Spain?")
        cents = 10 * price_list(bench.agent).call_rate("zone three").cents
        assert said.messages[0] == f"Ten minutes to a mobile phone in Spain cost {cents / 100:.2f} dollars."
        assert (said.result.limit_hit, ran(bench)) == (None, ["call_price"])
        searched = results(bench.model.requests[2])[-1]["passages"]
        texts = " ".join(passage["text"] for passage in searched)
        assert "Spain" in texts and "next higher zone" in texts
        assert {passage["source"] for passage in searched} >= {DOCUMENT}
        assert DOCUMENT in bench.events("knowledge_searched")[-1]["sources"]
        assert "## How you work" in bench.model.requests[-1].messages[0].content


async def test_there_is_no_price_to_ask_for_before_the_zone_is_known() -> None:
    async with nora([START, price(zone="zone one"), SEARCH, ZONE, "Which kind of phone is it?"]) as bench:
        await bench.says("What does a call to Spain cost?")
        first, *_, last = bench.model.requests[1:]
        assert "call_price" not in {tool.name for tool in first.tools}
        assert "call_price" in {tool.name for tool in last.tools}
        assert ran(bench) == []


async def test_without_the_document_the_search_finds_no_zone_and_the_price_stays_out_of_reach() -> None:
    script: list[Entry] = [
        START,
        SEARCH,
        price(zone="zone two"),
        "I cannot tell the price. Shall a colleague call you?",
    ]
    async with nora(script, learnt=False) as bench:
        said = await bench.says("What does a call to Spain cost?")
        assert said.messages[0].startswith("I cannot tell the price.")
        assert DOCUMENT not in bench.events("knowledge_searched")[-1]["sources"]
        assert ran(bench) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"zone": "zone nine"}, "there are zone one"), ({"zone": "zone one", "minutes": 0}, "one minute or longer")],
)
async def test_what_the_price_list_does_not_have_is_said_to_the_model(arguments: dict[str, Any], error: str) -> None:
    async with nora([START, ZONE, price(**arguments), "I cannot tell."]) as bench:
        assert (await bench.says("a call abroad")).messages[0] == "I cannot tell."
        assert error in str(results(bench.model.requests[-1])[-1])


@pytest.mark.parametrize(("day", "cents"), [(date(2026, 12, 31), 12), (date(2027, 1, 1), 9)])
def test_the_price_list_is_that_of_the_day(day: date, cents: int) -> None:
    today: Callable[[], date] = lambda: day  # noqa: E731
    agent = Agent.load(load_config(ROOT, {}), ScriptedModel([]))
    assert price_list(agent).call_rate("zone one", today=today).cents == cents
