"""A project written for another engine, older and newer spellings side by side, loads and talks as it is."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterable
from datetime import date
from pathlib import Path

import pytest

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.support.dialogue_projects import Calendar, Caller
from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem, ProjectError, Severity
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.loader import load_project
from voice_agent.llm.embedded.model import EmbeddedModel
from voice_agent.llm.protocol import LanguageModel, ModelError, ModelEvent, ModelRequest

PROJECT = Path(__file__).parent / "project"
ENVIRONMENT = {"CLAIMS_LLM_KEY": "a key"}


class Unreachable:
    """A model nobody can reach; what it was to reword is said as written."""

    name = "openai/gpt-4o-mini"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise ModelError("no network here")
        yield

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*next(iter(ENVIRONMENT.items())))
    monkeypatch.setattr("voice_agent.dialogue.agent.build_model", lambda options: Unreachable())


def bench(model: LanguageModel, member: str | None = "W204417") -> Caller:
    calendar = Calendar()
    agent = Agent.load(load_config(PROJECT, ENVIRONMENT), model, clock=calendar)
    metadata = {"member_number": member} if member else {}
    return Caller(agent, model, calendar, agent.open("c1", channel="websocket", metadata=metadata))


async def greeted(script: Iterable[Entry]) -> Caller:
    caller = bench(ScriptedModel(script))
    await caller.connects()
    return caller


def problems() -> list[Problem]:
    return [*load_config(PROJECT, ENVIRONMENT).problems, *load_project(PROJECT)[1]]


# --- loading --------------------------------------------------------------------------------------


def test_it_loads_without_an_error() -> None:
    assert [str(problem) for problem in problems() if problem.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    "named",
    [
        "agent.voice", "tracker_store", "event_broker", "tracing", "inspector", "twilio_media_streams",
        "asr engine 'deepgram'", "tts engine 'deepgram'", "`anonymization` of field 'member_name'",
    ],
)  # fmt: skip
def test_what_is_not_acted_on_is_named_in_a_warning(named: str) -> None:
    warnings = [problem for problem in problems() if problem.severity is Severity.WARNING]
    assert any(named in problem.message for problem in warnings), [problem.message for problem in warnings]


def test_older_places_of_rules_and_style_are_read() -> None:
    agent = load_config(PROJECT, ENVIRONMENT).agent
    assert agent.rules == ("Never promise that a claim will be paid.", "Say it like this: one thing at a time.")
    assert agent.references_instructions == "Look cover and deadlines up; never answer them from memory."
    assert agent.orchestrator.text_rules == ("Two sentences at most.", "No exclamation marks.")
    assert agent.orchestrator.voice_rules == ("Short sentences.", "One question at a time.")


def test_keys_of_a_channel_become_turn_taking() -> None:
    turn_taking = load_config(PROJECT, ENVIRONMENT).integrations.channels.websocket.turn_taking
    assert (turn_taking.barge_in, turn_taking.min_words, turn_taking.silence_timeout_s) == (True, 3, 6.0)


def test_the_model_that_rewords_is_taken_from_the_model_groups() -> None:
    named = load_project(PROJECT)[0].endpoints.rephrase_llm
    assert named is not None
    assert (named.provider, named.model, named.api_key_env) == ("openai", "gpt-4o-mini", "CLAIMS_LLM_KEY")


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ProjectError, match="CLAIMS_LLM_KEY"):
        load_config(PROJECT, {})


def test_tools_find_their_engine_and_their_helpers_only_while_they_are_loaded() -> None:
    project, _ = load_project(PROJECT)
    tools = {tool for skill in project.skills.values() for tool in skill.tools}
    assert {"load_member", "get_claim", "submit_claim", "check_limit"} <= tools
    assert not [name for name in sys.modules if name.split(".")[0] == "rasa" or name.startswith("lib.claims")]


# --- talking --------------------------------------------------------------------------------------


async def test_the_profile_is_loaded_before_the_greeting_names_the_caller() -> None:
    caller = bench(ScriptedModel([]))
    assert (await caller.connects()).messages == ["Wayfarer Cover claims, hello Ada Okonkwo. What happened?"]
    assert caller.read("project", "cover_level") == "plus"


async def test_an_unknown_member_is_greeted_all_the_same() -> None:
    caller = bench(ScriptedModel([]), member=None)
    assert (await caller.connects()).messages == ["Wayfarer Cover claims, hello. What happened?"]


async def test_a_claim_is_filed_from_prose_through_a_block_a_called_skill_and_a_confirmation() -> None:
    caller = await greeted(
        [
            tool_call("start_skill", skill="file_claim"),
            tool_call("run_block", block="details"),
            tool_call("set_fields", kind="luggage"),
            tool_call("set_fields", cost=2000),
            "Where was it last seen?",
            tool_call("set_fields", story="It never came out in Oslo."),
            tool_call("confirm"),
        ]
    )
    said = await caller.says("my suitcase is gone")
    assert said.messages[0] == "This call is recorded."
    assert said.sink.responses[-1] == "utter_ask_cost"
    await caller.says("about two thousand dollars")
    asked = caller.model.requests[-1].messages[0].content
    assert "last seen" in asked
    assert "Which hospital" not in asked
    held = await caller.says("it never came out in Oslo")
    assert held.messages[-1] == "Shall I file a luggage claim over 2000.0 dollars for your member number?"
    assert caller.read("check_cover", "within_limit") is False
    filed = await caller.says("yes")
    assert "Your claim is number 5530." in filed.messages
    assert filed.messages[-1] == "You will get an e-mail today. Is that all right?"
    assert caller.stack == ["file_claim"]
    await caller.says("yes, fine")
    assert "file_claim" not in caller.stack
    assert "file_claim" in {event["skill"] for event in caller.events("skill_completed")}


async def test_the_prose_keeps_only_the_paragraphs_that_hold() -> None:
    caller = await greeted([tool_call("start_skill", skill="file_claim"), tool_call("listen"), "I am sorry."])
    await caller.says("my suitcase is gone")
    prompt = caller.model.requests[-1].messages[0].content
    assert "there is no excess to pay" in prompt
    assert "the first hundred dollars" not in prompt


async def test_the_older_name_of_the_finish_tool_is_understood() -> None:
    caller = await greeted([tool_call("start_skill", skill="file_claim"), "Oh dear.", tool_call("complete_skill")])
    await caller.says("my suitcase is gone")
    await caller.says("forget it")
    assert "file_claim" not in caller.stack


async def test_the_older_hang_up_step_ends_the_call_after_the_goodbye() -> None:
    caller = await greeted([tool_call("start_skill", skill="say_goodbye")])
    assert (await caller.says("bye")).sink.hung_up


@pytest.mark.models
async def test_it_holds_a_conversation_with_the_embedded_model() -> None:
    model = EmbeddedModel(today=lambda: date(2026, 12, 1))
    try:
        caller = bench(model)
        await caller.connects()
        assert (await caller.says("How is my claim doing?")).messages[-1] == "What is the number of your claim?"
        assert "Your claim is under review." in (await caller.says("five five two one")).messages
        assert "thirty days" in (await caller.says("Until when must a claim be filed?")).sink.text
        assert (await caller.says("Goodbye")).sink.hung_up
    finally:
        await model.aclose()
