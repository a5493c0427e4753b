"""What the embedded model does in each situation the engine can put it in. Real encoder, fixed date."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from tests.support.model_requests import (
    CANCEL,
    CANNOT_HELP,
    COMPLETE,
    CONFIRM,
    DENY,
    HANG_UP,
    LISTEN,
    SEARCH,
    agent,
    caller,
    ran,
    request,
    set_fields,
    start_skill,
    tool,
)
from voice_agent.llm.embedded.minilm import MiniLm
from voice_agent.llm.embedded.moves import Decision
from voice_agent.llm.embedded.policy import decide
from voice_agent.llm.protocol import FieldCard, ModelRequest, SkillCard

pytestmark = pytest.mark.models

Decide = Callable[[ModelRequest], Decision]
START = start_skill()
ALWAYS = [START, LISTEN, HANG_UP]
IDLE = [*ALWAYS, CANNOT_HELP]
ACCOUNT = FieldCard("account_number", "text", "The account number", asked=True)
LINE = FieldCard("connection", "categorical", "Kind of connection", ("internet", "phone_line", "mobile"), asked=True)
GET_BALANCE = tool(
    "get_balance", "Look up the balance of an account", ["account_number"], account_number={"type": "string"}
)
PASSAGES = {"passages": [{"title": "Opening hours", "text": "We are open from nine to six. Sundays are off. Ask Bob."}]}


@pytest.fixture
def choose(encoder: MiniLm) -> Decide:
    return lambda asked: decide(asked, encoder.similarities, date(2026, 12, 1))


def _called(decision: Decision) -> list[tuple[str, dict[str, Any]]]:
    return [(name, dict(arguments)) for name, arguments in decision.calls]


# --- choosing -------------------------------------------------------------------------------------


def test_a_request_starts_the_skill_that_fits(choose: Decide) -> None:
    decision = choose(request(caller("my internet is down since this morning"), tools=IDLE))
    assert _called(decision) == [("start_skill", {"skill": "report_outage"})]
    assert decision.text == ""


def test_a_skill_that_is_not_in_the_tools_schema_is_not_started(choose: Decide) -> None:
    only = tool("start_skill", skill={"type": "string", "enum": ["balance_enquiry"]})
    decision = choose(request(caller("my internet is down"), tools=[only, CANNOT_HELP]))
    assert _called(decision) == [("cannot_help", {})]


def test_what_fits_nothing_is_refused_through_the_engine_or_in_words(choose: Decide) -> None:
    said = caller("what is the capital of Australia")
    assert _called(choose(request(said, tools=IDLE))) == [("cannot_help", {})]
    assert "cannot help" in choose(request(said, tools=ALWAYS)).text


def test_two_skills_too_near_to_tell_apart_are_asked_about_and_the_answer_is_understood(choose: Decide) -> None:
    skills = [("pay_bill", "Pay the bill."), ("dispute_bill", "Dispute the bill.")]
    cards = tuple(SkillCard(id, description) for id, description in skills)
    question = "Is this about pay bill, or about dispute bill?"
    tools = [start_skill(cards), CANNOT_HELP]
    second = choose(request(caller("the bill"), agent(question), caller("the second one"), tools=tools, skills=cards))
    assert _called(second) == [("start_skill", {"skill": "dispute_bill"})]


@pytest.mark.parametrize(
    ("said", "tools", "expected"),
    [
        ("hello", IDLE, "How can I help you?"),
        ("thank you very much", IDLE, "You are welcome"),
        ("what can you do for me", IDLE, "balance enquiry, report outage or cancel contract"),
        ("goodbye", [START], "Goodbye"),
    ],
)
def test_courtesies_need_no_skill(choose: Decide, said: str, tools: Any, expected: str) -> None:
    decision = choose(request(caller(said), tools=tools))
    assert expected in decision.text
    assert not decision.calls


def test_goodbye_hangs_up_where_that_is_offered_and_no_means_goodbye_after_anything_else(choose: Decide) -> None:
    assert _called(choose(request(caller("okay, bye bye"), tools=IDLE))) == [("hangup", {})]
    asked = agent("Your balance is 42. Is there anything else I can help you with?")
    assert _called(choose(request(caller("x"), asked, caller("no thanks"), tools=IDLE))) == [("hangup", {})]
    assert not choose(request(caller("x"), agent("It is blue."), caller("no"), tools=IDLE)).calls


def test_a_projects_own_way_to_part_goes_before_hanging_up(choose: Decide) -> None:
    cards = (SkillCard("say_goodbye", "The caller is done.", ("Goodbye", "No thanks, bye")),)
    decision = choose(request(caller("goodbye"), tools=[start_skill(cards), HANG_UP], skills=cards))
    assert _called(decision) == [("start_skill", {"skill": "say_goodbye"})]


def test_what_was_said_is_repeated_on_request(choose: Decide) -> None:
    asked = request(caller("x"), agent("Your balance is 42."), caller("say that again please"), tools=IDLE)
    assert choose(asked).text == "Your balance is 42."


# --- knowledge ------------------------------------------------------------------------------------


def test_a_question_is_looked_up_before_giving_up(choose: Decide) -> None:
    asked = request(caller("what are your opening hours"), tools=[*ALWAYS, SEARCH], has_knowledge=True)
    assert _called(choose(asked)) == [("search_knowledge", {"query": "what are your opening hours"})]


def test_passages_become_a_short_answer(choose: Decide) -> None:
    found = ran("search_knowledge", {"query": "q"}, PASSAGES)
    decision = choose(request(caller("what are your opening hours"), found, tools=[*IDLE, SEARCH]))
    assert decision.text.startswith("We are open from nine to six.")
    assert "Bob" not in decision.text
    assert not decision.calls


def test_passages_that_do_not_answer_lead_to_the_skill_that_fits_or_to_cannot_help(choose: Decide) -> None:
    found = ran("search_knowledge", {"query": "q"}, PASSAGES)
    tools = [*IDLE, SEARCH]
    fits = choose(request(caller("there seems to be an outage in my street"), found, tools=tools))
    assert _called(fits) == [("start_skill", {"skill": "report_outage"})]
    assert _called(choose(request(caller("tell me a joke"), found, tools=tools))) == [("cannot_help", {})]
    nothing = ran("search_knowledge", {"query": "q"}, {"passages": []})
    assert _called(choose(request(caller("tell me a joke"), nothing, tools=tools))) == [("cannot_help", {})]


# --- the active skill -----------------------------------------------------------------------------


def test_after_a_skill_was_started_its_tool_is_called_with_what_the_caller_said(choose: Decide) -> None:
    asked = request(
        caller("what is the balance of account 427913"),
        ran("start_skill", {"skill": "balance_enquiry"}),
        tools=[*IDLE, GET_BALANCE, COMPLETE, CANCEL],
        active_skill="balance_enquiry",
    )
    assert _called(choose(asked)) == [("get_balance", {"account_number": "427913"})]


def test_a_missing_argument_is_asked_for_and_its_answer_completes_the_call(choose: Decide) -> None:
    tools = [*IDLE, GET_BALANCE, COMPLETE, CANCEL]
    first = [caller("what is my balance"), *ran("start_skill", {"skill": "balance_enquiry"})]
    asked = choose(request(*first, tools=tools, active_skill="balance_enquiry"))
    assert asked.text == "What is the account number?"
    said = [*first, agent(asked.text), caller("it's four two seven nine one three")]
    assert _called(choose(request(*said, tools=tools, active_skill="balance_enquiry"))) == [
        ("get_balance", {"account_number": "427913"})
    ]
    unclear = choose(
        request(*first, agent(asked.text), caller("it is blue"), tools=tools, active_skill="balance_enquiry")
    )
    assert "digit by digit" in unclear.text
    again = [*first, agent(asked.text), caller("um"), agent(unclear.text), caller("4 2 7 9")]
    assert _called(choose(request(*again, tools=tools, active_skill="balance_enquiry"))) == [
        ("get_balance", {"account_number": "4279"})
    ]


def test_the_narrow_call_after_a_start_writes_down_what_was_mentioned_and_else_waits(choose: Decide) -> None:
    card = FieldCard("connection", "categorical", "", ("internet", "phone_line"))
    tools = [set_fields(card), LISTEN]
    started = ran("start_skill", {"skill": "report_outage"})
    mentioned = request(caller("the phone line is dead"), started, tools=tools, fields=(card,), active_skill="x")
    assert _called(choose(mentioned)) == [("set_fields", {"connection": "phone_line"})]
    nothing = request(caller("nothing works"), started, tools=tools, fields=(card,), active_skill="x")
    assert _called(choose(nothing)) == [("listen", {})]


def test_a_result_is_said_and_the_skill_completed_with_it(choose: Decide) -> None:
    asked = request(
        caller("what is my balance"),
        ran("get_balance", {"account_number": "1"}, {"balance": 42.5}),
        tools=[*IDLE, GET_BALANCE, COMPLETE, CANCEL],
        active_skill="balance_enquiry",
    )
    decision = choose(asked)
    assert decision.text == "Balance: 42.5."
    assert _called(decision) == [("complete", {})]


def test_a_skill_with_tools_left_or_a_failed_one_is_not_completed(choose: Decide) -> None:
    other = tool("pay", "Pay the bill")
    tools = [*IDLE, GET_BALANCE, other, COMPLETE]
    good = ran("get_balance", {}, {"balance": 1})
    bad = ran("get_balance", {}, {"ok": False, "error": "account_locked"})
    assert not choose(request(caller("balance"), good, tools=tools, active_skill="b")).calls
    failed = choose(request(caller("balance"), bad, tools=[*IDLE, GET_BALANCE, COMPLETE], active_skill="b"))
    assert "account locked" in failed.text
    assert not failed.calls


def test_a_tool_is_not_called_again_in_the_turn_it_ran_in(choose: Decide) -> None:
    asked = request(
        caller("account 4279"),
        ran("get_balance", {"account_number": "4279"}, {"balance": 1}),
        ran("set_fields", {"x": 1}),
        tools=[*ALWAYS, GET_BALANCE],
        active_skill="b",
    )
    assert all(name != "get_balance" for name, _ in choose(asked).calls)


def test_changing_ones_mind_cancels_the_skill(choose: Decide) -> None:
    asked = request(caller("x"), agent("Which one?"), caller("never mind"), tools=[*ALWAYS, CANCEL], active_skill="b")
    assert _called(choose(asked)) == [("cancel_skill", {})]


# --- a field was asked for ------------------------------------------------------------------------


def test_the_answer_fills_the_field_and_others_said_with_it(choose: Decide) -> None:
    since = FieldCard("since_date", "text", "Since when")
    tools = [*ALWAYS, set_fields(LINE, since), CANCEL]
    said = request(agent("What is broken?"), caller("the internet, since Friday"), tools=tools, fields=(LINE, since))
    assert _called(choose(said)) == [("set_fields", {"since_date": "2026-11-27", "connection": "internet"})]


def test_what_is_no_answer_is_left_to_the_engine_to_ask_again(choose: Decide) -> None:
    said = [agent("What is your account number?"), caller("it is blue")]
    tools = [*ALWAYS, set_fields(ACCOUNT)]
    assert _called(choose(request(*said, tools=[*tools, CANNOT_HELP], fields=(ACCOUNT,)))) == [("cannot_help", {})]
    in_words = choose(request(*said, tools=tools, fields=(ACCOUNT,)))
    assert in_words.text == "Sorry, I did not get that. Please say it digit by digit."
    assert not in_words.text.endswith("?")


def test_a_side_question_is_looked_up_and_answered_without_leaving_the_field(choose: Decide) -> None:
    said = [agent("What is your account number?"), caller("what are your opening hours?")]
    tools = [*ALWAYS, set_fields(ACCOUNT), SEARCH, COMPLETE]
    assert _called(choose(request(*said, tools=tools, fields=(ACCOUNT,)))) == [
        ("search_knowledge", {"query": "what are your opening hours?"})
    ]
    found = ran("search_knowledge", {"query": "q"}, PASSAGES)
    answered = choose(request(*said, found, tools=tools, fields=(ACCOUNT,), active_skill="b"))
    assert answered.text.startswith("We are open")
    assert not answered.calls


def test_a_clear_change_of_topic_starts_the_other_skill(choose: Decide) -> None:
    said = request(agent("Account number?"), caller("I want to cancel my contract"), tools=IDLE, fields=(ACCOUNT,))
    assert _called(choose(said)) == [("start_skill", {"skill": "cancel_contract"})]


@pytest.mark.parametrize(("said", "expected"), [("pardon?", ""), ("never mind", "cancel_skill"), ("goodbye", "hangup")])
def test_ways_out_of_a_question(choose: Decide, said: str, expected: str) -> None:
    tools = [*IDLE, set_fields(ACCOUNT), CANCEL]
    decision = choose(request(caller("x"), agent("Account number?"), caller(said), tools=tools, fields=(ACCOUNT,)))
    assert [name for name, _ in decision.calls] == ([expected] if expected else [])
    assert decision.text == ("" if expected else "Account number?")


# --- yes or no ------------------------------------------------------------------------------------

HELD = ran("send_money", {"amount": 50.0, "to": "Anna"}, {"error": "Held: the caller was asked to confirm."})
ASKING = [caller("send money"), *HELD, agent("Shall I transfer 50 euros to Anna?")]
SEND = tool("send_money", "Transfer money", ["amount"], amount={"type": "number"}, to={"type": "string"})


@pytest.mark.parametrize(
    ("said", "expected"),
    [("yes please", "confirm"), ("no, leave it", "deny"), ("yes, transfer 50 euros to Anna", "confirm")],
)
def test_a_plain_yes_or_no_is_passed_on(choose: Decide, said: str, expected: str) -> None:
    decision = choose(request(*ASKING, caller(said), tools=[CONFIRM, DENY, START, CANNOT_HELP], confirming=True))
    assert _called(decision) == [(expected, {})]


def test_yes_with_other_arguments_is_a_new_call_and_no_confirmation(choose: Decide) -> None:
    said = request(*ASKING, caller("yes but 60 euros"), tools=[CONFIRM, DENY, SEND], confirming=True)
    assert _called(choose(said)) == [("send_money", {"amount": 60.0, "to": "Anna"})]


@pytest.mark.parametrize("said", ["hmm let me think", "yes but on Tuesday", "the weather is nice"])
def test_what_is_neither_keeps_the_question_open(choose: Decide, said: str) -> None:
    with_engine = choose(request(*ASKING, caller(said), tools=[CONFIRM, DENY, CANNOT_HELP], confirming=True))
    assert _called(with_engine) == [("cannot_help", {})]
    in_words = choose(request(*ASKING, caller(said), tools=[CONFIRM, DENY], confirming=True))
    assert in_words.text == "Please say yes or no. Shall I transfer 50 euros to Anna?"


def test_another_topic_leaves_the_question(choose: Decide) -> None:
    said = request(*ASKING, caller("my internet is not working at all"), tools=[CONFIRM, DENY, START], confirming=True)
    assert _called(choose(said)) == [("start_skill", {"skill": "report_outage"})]


def test_the_result_of_a_confirmed_call_is_said(choose: Decide) -> None:
    done = ran("confirm", {}, {"message": "50 euros are on their way"})
    assert choose(request(*ASKING, caller("yes"), done, tools=IDLE)).text == "50 euros are on their way."


# --- always ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["", "my internet is down", "yes", "4279", "goodbye", "cancel", "what are your hours?"]
)
@pytest.mark.parametrize("tools", [[], [LISTEN], [GET_BALANCE], [set_fields(ACCOUNT)], [CONFIRM], [DENY], [COMPLETE]])
@pytest.mark.parametrize("scope", [{}, {"confirming": True}, {"fields": (ACCOUNT,)}, {"active_skill": "b"}])
def test_only_what_is_offered_is_called_and_something_always_comes(
    choose: Decide, said: str, tools: Any, scope: dict[str, Any]
) -> None:
    for history in (
        [caller(said)],
        [caller(said), *ran("start_skill", {})],
        [caller(said), *ran("set_fields", {}, {"error": "no"})],
    ):
        decision = choose(request(*history, tools=tools, **scope))
        assert {name for name, _ in decision.calls} <= {tool.name for tool in tools}
        assert decision.text or decision.calls
