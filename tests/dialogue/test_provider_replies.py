"""Whole turns over a real HTTP provider: batches of calls, broken arguments, empty replies, faults in mid-stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel
from tests.support.completion_server import CUT, CompletionServer, Step, call, completion_server, finish, text
from tests.support.dialogue_projects import Caller, block, caller, skill
from voice_agent.config import LlmOptions
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.llm.factory import build_model

FILES = {
    "skills/shop/skill.md": skill("Sell."),
    "skills/shop/tools.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Order")
        async def order(what: str, count: int = 1) -> ToolResult:
            return ToolResult(llm_response={"ordered": what, "count": count})
        """,
}
START: list[Step] = [call(0, id="c0", name="start_skill", arguments='{"skill": "shop"}'), finish("tool_calls")]
DONE: list[Step] = [text("All "), text("done."), finish()]


def order(index: int, *pieces: str) -> list[Step]:
    first, *rest = pieces
    return [call(index, id=f"o{index}", name="order", arguments=first), *(call(index, arguments=p) for p in rest)]


@asynccontextmanager
async def talk(root: Path, *script: Sequence[Step] | int) -> AsyncIterator[tuple[Caller, CompletionServer]]:
    async with completion_server(*script) as server:
        options = LlmOptions(provider="openai", model="m", base_url=server.base_url, retries=0)
        model = build_model(options)
        await model.warm_up()
        try:
            yield caller(root, FILES, model=model), server
        finally:
            await model.aclose()


def orders(bench: Caller) -> list[dict[str, object]]:
    return [json.loads(e["arguments_json"]) for e in bench.events("tool_executed")]


async def test_calls_of_one_reply_run_in_order_though_their_pieces_are_mixed(tmp_path: Path) -> None:
    batch = [
        call(0, id="a", name="order", arguments='{"what": '),
        call(1, id="b", name="order", arguments='{"what"'),
        call(0, arguments='"tea"}'),
        call(1, arguments=': "milk", "count": 2}'),
        finish("tool_calls"),
    ]
    async with talk(tmp_path, START, batch, DONE) as (bench, server):
        said = await bench.says("tea and milk")
        assert said.messages == ["All done."]
        assert orders(bench) == [{"what": "tea"}, {"what": "milk", "count": 2}]
        sent = server.exchanges[2].body["messages"]
        calls = [c["id"] for m in sent for c in m.get("tool_calls") or ()]
        assert calls == [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ["c0", "a", "b"]


@pytest.mark.parametrize(
    "arguments",
    ["{what: tea}", '{"what": "tea"', "tea", '["tea"]', '"tea"', "{}", '{"what": "tea", "count": "many"}', "NaN"],
)
async def test_arguments_that_do_not_fit_go_back_to_the_model_which_may_mend_them(
    tmp_path: Path, arguments: str
) -> None:
    bad = [*order(0, arguments), finish("tool_calls")]
    good = [*order(0, '{"what": "tea"}'), finish("tool_calls")]
    async with talk(tmp_path, START, bad, good, DONE) as (bench, server):
        said = await bench.says("tea")
        assert (said.messages, said.result.status) == (["All done."], TurnStatus.COMPLETED)
        result = server.exchanges[2].body["messages"][-1]
        assert (result["role"], "error" in json.loads(result["content"])) == ("tool", True)
        assert next(e for e in bench.events("tool_executed") if e["success"])["arguments_json"] == '{"what": "tea"}'


async def test_a_model_that_never_mends_them_is_stopped(tmp_path: Path) -> None:
    bad = [*order(0, "{what: tea}"), finish("tool_calls")]
    async with talk(tmp_path, START, bad, bad, bad) as (bench, _):
        said = await bench.says("tea")
        assert (said.sink.responses, orders(bench)) == (["utter_cannot_help"], [])


@pytest.mark.parametrize("empty", [[finish()], [text(""), finish()], [text("  \n"), finish()]])
async def test_an_empty_reply_is_asked_for_once_more(tmp_path: Path, empty: list[Step]) -> None:
    async with talk(tmp_path, empty, DONE) as (bench, server):
        assert (await bench.says("hi")).messages == ["All done."]
        assert len(server.exchanges) == 2


async def test_two_empty_replies_are_answered_with_a_configured_line_never_with_silence(tmp_path: Path) -> None:
    async with talk(tmp_path, [finish()], [finish()]) as (bench, _):
        assert (await bench.says("hi")).sink.responses == ["utter_cannot_help"]


@pytest.mark.parametrize("script", [[500], [429], [[text("Your balance "), CUT]], [[*order(0, '{"what"'), CUT]]])
async def test_a_provider_that_fails_costs_an_apology_and_the_next_turn_is_answered(
    tmp_path: Path, script: list[Sequence[Step] | int]
) -> None:
    async with talk(tmp_path, START, *script, DONE) as (bench, _):
        said = await bench.says("tea")
        assert (said.result.status, said.sink.responses) == (TurnStatus.ERROR, ["utter_internal_error"])
        assert (bench.stack, orders(bench)) == (["shop"], [])
        assert (await bench.says("again")).messages == ["All done."]


async def test_a_call_that_was_cut_off_after_a_tool_ran_does_not_run_it_again(tmp_path: Path) -> None:
    batch = [*order(0, '{"what": "tea"}'), finish("tool_calls")]
    async with talk(tmp_path, START, batch, [text("It "), CUT], DONE) as (bench, server):
        assert (await bench.says("tea")).result.status is TurnStatus.ERROR
        assert (await bench.says("well?")).messages == ["All done."]
        assert orders(bench) == [{"what": "tea"}]
        sent = server.exchanges[3].body["messages"]
        assert [m["content"] for m in sent if m["role"] == "tool"] == ['{"ordered": "tea", "count": 1}']


async def test_a_reply_full_of_markup_or_template_signs_is_only_text(tmp_path: Path) -> None:
    words = "{name} <action>order</action> {{x}} ${HOME}"
    async with talk(tmp_path, [text(words), finish()]) as (bench, _):
        assert (await bench.says("hi")).messages == [words]
        assert bench.events("tool_executed") == []


async def test_responses_are_reworded_by_the_model_group_that_is_named_for_it(tmp_path: Path) -> None:
    reworded = [text("Yes, "), text("welcome!"), finish()]
    async with completion_server(reworded) as server:
        files = {
            "skills/default_session_start/skill.md": skill(block("- action: utter_greet")),
            "skills/talk/skill.md": skill("Talk."),
            "responses.yml": "responses: {utter_greet: {text: Welcome., rephrase: true}}\n",
            "endpoints.yml": f"""
                nlg: {{type: rephrase, llm: {{model_group: small}}}}
                model_groups: [{{id: small, models: [{{provider: openai, model: m, api_base: "{server.base_url}"}}]}}]
                """,
        }
        bench = caller(tmp_path, files, model=ScriptedModel(name="embedded"))
        assert bench.agent.problems == ()
        # The first call imports the client, which takes longer than a caller is kept waiting.
        await bench.agent.warm_up()
        assert (await bench.connects()).messages == ["Yes, welcome!"]
        await bench.agent.aclose()
