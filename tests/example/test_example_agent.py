"""The example agent, turn by turn, with a model that says exactly what it is told to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.support.dialogue_projects import Calendar, Caller
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent

ROOT = Path(__file__).parents[2]
BALANCE, OUTAGE = (tool_call("start_skill", skill=id) for id in ("check_balance", "report_outage"))
LISTEN = tool_call("listen")


async def nora(script: Iterable[Entry]) -> Caller:
    """Return a caller who has been greeted."""
    model, calendar = ScriptedModel(script), Calendar()
    agent = Agent.load(load_config(ROOT, {}), model, clock=calendar)
    caller = Caller(agent, model, calendar, agent.open("c1", channel="websocket"))
    greeting = await caller.connects()
    assert greeting.messages == ["Thanks for calling Northline Telecom. How can I help?"]
    assert not model.requests
    return caller


async def test_she_greets_first_and_her_greeting_is_the_first_text_worth_preparing() -> None:
    assert (await nora([])).agent.canned_texts[0] == "Thanks for calling Northline Telecom. How can I help?"


async def test_a_balance_is_told_once_the_account_is_known() -> None:
    bench = await nora([BALANCE, LISTEN, tool_call("set_fields", account_number="123 456")])
    assert (await bench.says("what do I owe?")).messages == ["What is your six digit account number?"]
    said = await bench.says("one two three four five six")
    assert said.messages[0] == "Thank you, Maria Lindqvist. Your balance is $42.50, due on the fifteenth of this month."
    assert bench.read("project", "verified_account") == "123456"


async def test_an_account_number_is_asked_for_once_per_session() -> None:
    bench = await nora([BALANCE, tool_call("set_fields", account_number="427913"), BALANCE])
    await bench.says("what do I owe? 427913")
    said = await bench.says("and what was it again?")
    assert said.messages[0] == "Thank you, Samuel Okafor. Your account is paid in full. You owe nothing."


async def test_a_wrong_account_number_gets_one_more_try() -> None:
    wrong = tool_call("set_fields", account_number="000000")
    bench = await nora([BALANCE, LISTEN, wrong, wrong])
    await bench.says("what do I owe?")
    said = await bench.says("zero zero zero zero zero zero")
    assert said.sink.responses == ["utter_account_not_found", "utter_ask_account_number"]
    assert (await bench.says("zeros")).sink.responses[0] == "utter_account_give_up"
    assert bench.stack == []


async def test_an_outage_gets_a_ticket_with_what_was_said() -> None:
    fields = [("service", "internet"), ("phone_number", "0401222333"), ("details", "no signal")]
    bench = await nora([OUTAGE, LISTEN, *(tool_call("set_fields", **{name: value}) for name, value in fields)])
    questions = [(await bench.says(text)).sink.responses[0] for text in ("it is broken", "internet", "0401 222 333")]
    assert questions == ["utter_ask_service", "utter_ask_phone_number", "utter_ask_details"]
    said = await bench.says("no signal")
    assert re.fullmatch(r"Thank you\. I have opened ticket [\d ]+\. A technician .*", said.messages[0])
    (event,) = bench.events("tool_executed")[-1:]
    assert event["arguments_json"] == '{"service": "internet", "phone_number": "0401222333", "details": "no signal"}'


async def test_opening_hours_come_from_the_reference_texts() -> None:
    bench = await nora([tool_call("search_knowledge", query="opening hours shops"), "From nine to six on weekdays."])
    assert (await bench.says("when are you open?")).messages == ["From nine to six on weekdays."]
    assert "nine in the morning to six" in bench.model.requests[1].messages[-1].content


async def test_goodbye_is_said_before_the_line_is_closed() -> None:
    bench = await nora([tool_call("start_skill", skill="say_goodbye")])
    said = await bench.says("bye")
    assert [type(item).__name__ for item in said.sink.items] == ["Say", "HangUp"]
    assert said.messages == ["Thank you for calling Northline Telecom. Goodbye."]
