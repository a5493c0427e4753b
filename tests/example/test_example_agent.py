"""The example agent, turn by turn, with a model that says exactly what it is told to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.fakes.sink import CallSink
from tests.support.dialogue_projects import Calendar, Caller
from voice_agent.config import TransferOptions
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import SESSION_START, UserInput
from voice_agent.transfers import TransferReason

ROOT = Path(__file__).parents[2]
BALANCE, OUTAGE, PAYMENT, ADVICE = (
    tool_call("start_skill", skill=id) for id in ("check_balance", "report_outage", "pay_bill", "plan_advice")
)
LISTEN = tool_call("listen")
NUMBER = tool_call("set_fields", account_number="123 456")


async def nora(script: Iterable[Entry], metadata: Mapping[str, Any] | None = None) -> Caller:
    """Return a caller who has been greeted."""
    model, calendar = ScriptedModel(script), Calendar()
    agent = Agent.load(load_config(ROOT, {}), model, clock=calendar)
    caller = Caller(agent, model, calendar, agent.open("c1", channel="websocket", metadata=metadata))
    greeting = await caller.connects()
    assert greeting.messages == ["Thanks for calling Northline Telecom. How can I help?"]
    assert not model.requests
    return caller


async def test_she_loads_without_a_single_warning() -> None:
    assert (await nora([])).agent.problems == ()


async def test_she_greets_first_and_her_greeting_is_the_first_text_worth_preparing() -> None:
    assert (await nora([])).agent.canned_texts[0] == "Thanks for calling Northline Telecom. How can I help?"


async def test_a_balance_is_told_once_the_account_is_known() -> None:
    bench = await nora([BALANCE, LISTEN, NUMBER])
    assert (await bench.says("what do I owe?")).messages == ["What is your six digit account number?"]
    said = await bench.says("one two three four five six")
    assert said.messages[:2] == [
        "Thank you, Maria Lindqvist.",
        "Your balance is $42.50, due on the fifteenth of this month.",
    ]
    assert bench.read("project", "verified_account") == "123456"


async def test_an_account_number_is_private_to_the_identification_and_gone_when_it_ends() -> None:
    bench = await nora([BALANCE, LISTEN, NUMBER])
    await bench.says("what do I owe?")
    await bench.says("one two three four five six")
    assert bench.read("identify", "account_number") is None
    assert bench.read("identify", "found") is True


async def test_the_bill_cannot_be_paid_before_the_caller_is_identified() -> None:
    bench = await nora([PAYMENT, tool_call("charge_card", amount="42.50", verified_account="123456"), LISTEN])
    await bench.says("pay the bill of account 123456")
    assert [event["tool"] for event in bench.events("tool_executed") if event["tool"] != "listen"] == []


async def test_a_payment_is_held_until_the_yes_and_runs_once() -> None:
    yes = tool_call("set_fields", in_full=True)
    bench = await nora([PAYMENT, LISTEN, NUMBER, yes, tool_call("confirm")])
    await bench.says("I want to pay my bill")
    await bench.says("123456")
    held = await bench.says("all of it")
    assert held.messages == ["I will charge $42.50 to the card on your account. Is that right?"]
    assert "charge_card" not in {event["tool"] for event in bench.events("tool_executed")}
    await bench.says("yes")
    assert [event["tool"] for event in bench.events("tool_executed")].count("charge_card") == 1
    assert bench.read("project", "paid_today") == 42.5


async def test_an_outage_gets_a_ticket_with_what_was_said() -> None:
    fields = [("service", "internet"), ("details", "no signal"), ("phone_number", "0401222333")]
    bench = await nora([OUTAGE, LISTEN, *(tool_call("set_fields", **{name: value}) for name, value in fields)])
    asked = [(await bench.says(text)).sink.responses[-1] for text in ("it is broken", "internet", "no signal")]
    assert asked == ["utter_ask_service", "utter_ask_details", "utter_ask_phone_number"]
    said = await bench.says("0401 222 333")
    assert re.fullmatch(r"Thank you\. I have opened ticket [\d ]+\. A technician .*", said.messages[0])
    opened = [event for event in bench.events("tool_executed") if event["tool"] == "open_ticket"]
    assert (
        opened[-1]["arguments_json"] == '{"service": "internet", "phone_number": "0401222333", "details": "no signal"}'
    )


async def test_a_number_the_channel_knows_is_offered_for_the_call_back() -> None:
    fields = tool_call("set_fields", service="phone", details="dead")
    bench = await nora([OUTAGE, fields], {"caller_number": "0401555777"})
    assert (await bench.says("my phone is dead")).sink.responses[-1] == "utter_ask_same_number"


async def test_her_advice_is_prose_that_changes_with_what_is_known() -> None:
    bench = await nora([ADVICE, "How many people share the connection?", BALANCE, LISTEN, NUMBER, "Where were we?"])
    await bench.says("which plan suits me?")
    new = bench.model.requests[-1].messages[0].content
    assert "The caller may be new" in new
    assert "The caller is a customer" not in new
    await bench.says("what do I owe?")
    await bench.says("123456")
    await bench.says("back to the plan")
    known = bench.model.requests[-1].messages[0].content
    assert "The caller is a customer" in known
    assert "The caller may be new" not in known


async def test_opening_hours_come_from_the_reference_texts() -> None:
    bench = await nora([tool_call("search_knowledge", query="opening hours shops"), "From nine to six on weekdays."])
    assert (await bench.says("when are you open?")).messages == ["From nine to six on weekdays."]
    assert "nine in the morning to six" in bench.model.requests[1].messages[-1].content


async def test_a_call_ends_with_a_question_and_a_goodbye() -> None:
    bench = await nora([tool_call("start_skill", skill="say_goodbye"), tool_call("set_fields", rating=5)])
    asked = await bench.says("bye")
    assert (asked.sink.responses, asked.sink.hung_up) == (["utter_ask_satisfaction"], False)
    said = await bench.says("five")
    assert said.messages[-1] == "Thank you for calling Northline Telecom. Goodbye."
    assert [type(item).__name__ for item in said.sink.items][-2:] == ["Say", "HangUp"]


async def test_a_person_is_put_through_to_where_one_is_configured_and_offered_a_call_back_where_not() -> None:
    bench = await nora([tool_call("start_skill", skill="human_handoff"), LISTEN])
    said = await bench.says("can I speak to a person?")
    assert said.sink.responses == ["utter_no_transfer", "utter_ask_call_back"]

    config = load_config(ROOT, {})
    transfers = {"support": TransferOptions(to="+15550100")}
    config = replace(config, integrations=config.integrations.model_copy(update={"transfers": transfers}))
    model = ScriptedModel([tool_call("start_skill", skill="human_handoff"), LISTEN])
    agent = Agent.load(config, model, clock=Calendar())
    assert agent.problems == ()
    sink, conversation = CallSink(TransferReason.NO_ANSWER), agent.open("c2", channel="websocket")
    await conversation.turn(SESSION_START, turn_id="t0", sink=CallSink(), cancel=CancelToken())
    await conversation.turn(UserInput("a person please"), turn_id="t1", sink=sink, cancel=CancelToken())
    assert [target.to for target in sink.targets] == ["+15550100"]
    assert sink.responses == ["utter_transfer", "utter_nobody_there", "utter_ask_call_back"]
