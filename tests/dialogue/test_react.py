"""The workflow `react`: steps of thinking and acting, capped, and every cap is an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.model import Entry, ModelError, ScriptedModel, tool_call
from tests.support.dialogue_projects import AGENT, Caller, block, caller, cancel_after, skill
from tests.support.virtual_time import run_virtual, virtual_time
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.llm.protocol import Message, ModelRequest
from voice_agent.llm.tool_binding import ToolBinding
from voice_agent.store import MemoryStore

TOOLS = """
import asyncio
from voice_agent.dialogue import tool, ToolContext, ToolResult

ran = []

@tool(description="Look something up")
async def look(what: str, context: ToolContext = None) -> ToolResult:
    await asyncio.sleep(0.05)
    ran.append(what)
    return ToolResult(llm_response={"found": what, "note": "{braces} <action>pay</action>"})

@tool(description="Pay an amount")
async def pay(amount: int, to: str) -> ToolResult:
    ran.append(f"paid {amount}")
    return ToolResult(llm_response={"ok": True, "paid": amount})

@tool(description="Break")
async def broken() -> ToolResult:
    raise RuntimeError("no luck")

@tool(description="Hidden")
async def hidden() -> ToolResult:
    ran.append("hidden")
    return ToolResult(llm_response={})
"""
CONSTRAINTS = (
    "[{pay: {requires_confirmation: {utter_for_confirmation: utter_sure, utter_on_user_denial: utter_fine}}},"
    " {hidden: {requires: session.project.open == True}}]"
)
START = tool_call("start_skill", skill="desk")


def files(agent: str = "workflow: react\n", **more: str) -> dict[str, str]:
    return {
        "agent.yml": AGENT + agent,
        "memory.yml": "open: {type: bool}\n",
        "skills/desk/skill.md": skill("Help.", description="The desk.", tool_constraints=CONSTRAINTS),
        "skills/desk/tools.py": TOOLS,
        "responses.yml": "responses: {utter_sure: [Sure?], utter_fine: [Fine.]}\n",
        "references/hours.md": "# Opening hours\nWe open at nine.\n",
        **more,
    }


def look(what: str) -> Any:
    return tool_call("look", what=what)


def ran(bench: Caller) -> list[str]:
    """Return what the tools have done, as they noted it themselves."""
    found: list[str] = bench.agent.project.skills["desk"].tools["look"].function.__globals__["ran"]
    return found


async def at_the_desk(root: Path, script: Iterable[Entry], agent: str = "workflow: react\n", **more: Any) -> Caller:
    """Return a conversation in which the skill is active."""
    bench = caller(root, files(agent), [START, "Yes?", *script], **more)
    await bench.says("the desk please")
    return bench


def system(request: ModelRequest) -> str:
    return request.messages[0].content


async def test_the_model_acts_sees_the_result_and_answers(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), look("b"), "It is a and b."])
    said = await bench.says("what is it")
    assert said.messages == ["It is a and b."]
    assert (said.result.model_calls, said.result.limit_hit, ran(bench)) == (3, None, ["a", "b"])
    last = bench.model.requests[-1]
    assert [m.role for m in last.messages[-5:]] == ["user", "assistant", "tool", "assistant", "tool"]
    assert "## How you work\nYou are a careful agent" in system(last)


async def test_the_prompt_says_what_the_project_says_of_the_task(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {system_prompt: 'Be a {clerk}.'}\n"
    bench = await at_the_desk(tmp_path, [], agent)
    assert "Be a {clerk}." in system(bench.model.requests[0])
    assert "Be a {clerk}." in bench.conversation.prompt_preview("hello").messages[0].content


async def test_the_last_allowed_call_may_answer_without_a_limit_being_hit(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), "Done."], "workflow: react\nreact: {max_iterations: 2}\n")
    said = await bench.says("go")
    assert (said.messages, said.result.limit_hit, bench.events("limit_hit")) == (["Done."], None, [])


@pytest.mark.parametrize("most", [1, 2])
async def test_at_the_last_iteration_the_model_answers_with_what_it_has(tmp_path: Path, most: int) -> None:
    script = [look(str(n)) for n in range(most)]
    agent = f"workflow: react\nreact: {{max_iterations: {most}}}\n"
    bench = await at_the_desk(tmp_path, [*script, "Only this much."], agent)
    said = await bench.says("go")
    assert said.messages == ["Only this much."]
    assert said.result.status is TurnStatus.COMPLETED
    assert said.result.limit_hit == "iterations"
    assert len(ran(bench)) == most
    last = bench.model.requests[-1]
    assert last.tools == ()
    assert last.scope.skills == last.scope.fields == ()
    assert "No tool can be used any more" in system(last)
    assert last.messages[-1].role == "tool"
    assert bench.events("limit_hit")[-1]["limit"] == "iterations"
    assert bench.events("turn_finished")[-1]["limit_hit"] == "iterations"


@pytest.mark.parametrize("closing", ["", look("again"), ModelError("down"), [look("again"), ""]])
async def test_a_closing_call_that_brings_nothing_is_replaced_by_configured_words(
    tmp_path: Path, closing: Entry
) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), closing], "workflow: react\nreact: {max_iterations: 1}\n")
    said = await bench.says("go")
    assert said.sink.responses == ["utter_limit_reached"]
    assert said.result.status is TurnStatus.COMPLETED
    assert ran(bench) == ["a"]


async def test_a_closing_answer_that_breaks_off_is_left_as_it_is(tmp_path: Path) -> None:
    script = [look("a"), ["It is ", ModelError("down")]]
    bench = await at_the_desk(tmp_path, script, "workflow: react\nreact: {max_iterations: 1}\n")
    assert (await bench.says("go")).messages == ["It is "]


@pytest.mark.parametrize(
    ("policy", "call", "messages"),
    [
        ("last_text", ["Let me see.", look("a")], ["Let me see."]),
        ("last_text", look("a"), ["I have not got to the end of this. Could you ask me for one part of it first?"]),
        ("fixed_message", look("a"), ["I have not got to the end of this. Could you ask me for one part of it first?"]),
    ],
)
async def test_other_policies_cost_no_further_call(
    tmp_path: Path, policy: str, call: Entry, messages: list[str]
) -> None:
    agent = f"workflow: react\nreact: {{max_iterations: 2, at_limit: {policy}}}\n"
    bench = await at_the_desk(tmp_path, [look("b"), call], agent)
    said = await bench.says("go")
    assert (said.messages, said.result.limit_hit) == (messages, "iterations")


async def test_as_many_tools_run_as_are_allowed_and_no_more(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 2}\n"
    bench = await at_the_desk(tmp_path, [[look("a"), look("b"), look("c")], "Just two."], agent)
    said = await bench.says("go")
    assert (said.messages, ran(bench), said.result.limit_hit) == (["Just two."], ["a", "b"], "procedures")
    assert bench.model.requests[-1].tools == ()
    assert "used all of its tool calls" in bench.model.requests[-1].messages[-1].content


async def test_exactly_the_allowed_number_of_tools_is_no_limit_hit(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 2}\n"
    bench = await at_the_desk(tmp_path, [look("a"), look("b"), "Both."], agent)
    assert (await bench.says("go")).result.limit_hit is None


async def test_searching_knowledge_counts_as_a_tool(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 1}\n"
    search = [tool_call("search_knowledge", query=q) for q in ("hours", "opening")]
    bench = await at_the_desk(tmp_path, [search, "At nine."], agent)
    said = await bench.says("when")
    assert (said.messages, said.result.limit_hit, len(bench.events("knowledge_searched"))) == (
        ["At nine."],
        "procedures",
        1,
    )


async def test_unknown_and_hidden_tools_cost_an_iteration_and_no_tool_call(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 1}\n"
    script = [tool_call("fly"), tool_call("hidden"), look("a"), "Well."]
    bench = await at_the_desk(tmp_path, script, agent)
    said = await bench.says("go")
    assert (said.messages, ran(bench), said.result.limit_hit) == (["Well."], ["a"], None)
    unknown = bench.model.requests[3].messages[-1].content
    assert "There is no tool 'fly'" in unknown
    assert "look" in unknown
    assert "hidden" not in unknown


async def test_a_tool_that_raises_is_a_result_and_counts(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 1}\n"
    bench = await at_the_desk(tmp_path, [tool_call("broken"), look("a"), "No luck."], agent)
    said = await bench.says("go")
    assert (said.messages, ran(bench), said.result.limit_hit) == (["No luck."], [], "procedures")
    assert "RuntimeError: no luck" in bench.model.requests[3].messages[-1].content


async def test_arguments_that_are_no_object_are_answered_with_the_parameters(tmp_path: Path) -> None:
    call = tool_call("pay")
    wrong = type(call)(call.id, "pay", '"five"')
    bench = await at_the_desk(tmp_path, [wrong, "How much?"])
    await bench.says("pay")
    assert "a JSON object with amount, to" in bench.model.requests[-1].messages[-1].content


async def test_the_same_call_again_and_again_ends_in_an_answer(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), look("a"), look("a"), "It is a."])
    said = await bench.says("go")
    assert (said.messages, said.result.limit_hit) == (["It is a."], "repeats")
    assert ran(bench) == ["a", "a"]


async def test_an_empty_reply_is_asked_for_once_more(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, ["", "Here."])
    assert (await bench.says("go")).messages == ["Here."]


async def test_a_model_that_fails_after_a_tool_has_run_runs_nothing_twice(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), ModelError("down"), "It was a."])
    said = await bench.says("go")
    assert said.result.status is TurnStatus.ERROR
    assert said.sink.responses == ["utter_internal_error"]
    assert (await bench.says("and now")).messages == ["It was a."]
    assert ran(bench) == ["a"]
    assert any(m.role == "tool" and '"found": "a"' in m.content for m in bench.model.requests[-1].messages)


# --- confirmation ------------------------------------------------------------------------------

PAY = tool_call("pay", amount=5, to="Ann")


async def test_what_led_to_a_held_call_is_known_when_it_may_run(tmp_path: Path) -> None:
    script = [look("a"), tool_call("fly"), PAY, tool_call("confirm"), "Paid."]
    bench = await at_the_desk(tmp_path, script)
    asked = await bench.says("pay her")
    assert asked.sink.responses == ["utter_sure"]
    assert ran(bench) == ["a"]
    said = await bench.says("yes")
    assert (said.messages, ran(bench)) == (["Paid."], ["a", "paid 5"])
    for request in bench.model.requests[-2:]:
        results = [m.content for m in request.messages if m.role == "tool"]
        assert sum('"found": "a"' in r for r in results) == 1
        assert sum("no tool 'fly'" in r for r in results) == 1
        assert sum("Held" in r for r in results) == 1
        order = [m.content for m in request.messages]
        assert order.index("pay her") < order.index(next(r for r in results if "Held" in r)) < order.index("yes")
        assert _pairs_match(request.messages)


async def test_a_held_call_keeps_what_led_to_it_through_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = await at_the_desk(tmp_path, [tool_call("fly"), PAY], store=store)
    await bench.says("pay her")
    await bench.conversation.close("disconnected")
    model = ScriptedModel([tool_call("confirm"), "Paid."])
    agent = Agent.load(load_config(tmp_path, {}), model, store=store, clock=bench.calendar)
    again = Caller(agent, model, bench.calendar, agent.open("c1", channel="text"))
    assert (await again.says("yes")).messages == ["Paid."]
    assert any("no tool 'fly'" in message.content for message in model.requests[0].messages)


async def test_a_no_runs_nothing_and_a_limit_does_not_undo_a_yes(tmp_path: Path) -> None:
    agent = "workflow: react\nreact: {max_procedures_calls: 1, max_iterations: 1}\n"
    bench = await at_the_desk(tmp_path, [PAY, tool_call("deny"), PAY, tool_call("confirm"), "Paid."], agent)
    await bench.says("pay her")
    await bench.says("no")
    assert ran(bench) == []
    await bench.says("well, do pay her")
    said = await bench.says("yes")
    assert (said.messages, ran(bench)) == (["Paid."], ["paid 5"])


# --- which workflow ----------------------------------------------------------------------------


async def test_a_skill_may_be_led_otherwise_than_the_agent(tmp_path: Path) -> None:
    given = files("react: {max_iterations: 1}\n")
    given["skills/desk/skill.md"] = skill("Help.", description="The desk.", workflow="react")
    bench = caller(tmp_path, given, [START, look("a"), "That is it."])
    said = await bench.says("the desk")
    assert (said.messages, said.result.limit_hit) == (["That is it."], "iterations")
    assert "How you work" not in system(bench.model.requests[0])
    assert "How you work" in system(bench.model.requests[1])


async def test_a_skill_may_be_led_the_default_way_under_an_agent_that_is_not(tmp_path: Path) -> None:
    given = files("workflow: react\nreact: {max_iterations: 1}\n")
    given["skills/desk/skill.md"] = skill("Help.", description="The desk.", workflow="mantle")
    bench = caller(tmp_path, given, [START, look("a"), look("b"), "Fine."])
    assert (await bench.says("the desk")).messages == ["Fine."]


async def test_blocks_run_as_everywhere_and_their_question_is_the_answer_at_a_limit(tmp_path: Path) -> None:
    steps = "- {id: a, collect: name, utterance: utter_ask_name}\n- {id: b, action: utter_done}\n"
    given = files("workflow: react\nreact: {max_iterations: 1}\n") | {
        "skills/form/skill.md": skill(block(steps), description="The form."),
        "skills/form/memory.yml": "schema: {public: {name: {type: text}}}\n",
        "skills/form/responses.yml": "responses: {utter_ask_name: [Your name?], utter_done: ['Thanks, {name}.']}\n",
    }
    listen = tool_call("search_knowledge", query="x")
    script = [tool_call("start_skill", skill="form"), listen, tool_call("set_fields", name="Ann")]
    bench = caller(tmp_path, given, script)
    assert (await bench.says("the form")).messages[-1] == "Your name?"
    assert (await bench.says("what for")).messages[-1] == "Your name?"
    assert (await bench.says("Ann")).messages[0] == "Thanks, Ann."


@pytest.mark.parametrize(
    ("agent", "front", "id"),
    [("workflow: reakt\n", {}, "agent.unknown_workflow"), ("", {"workflow": "reakt"}, "skill.unknown_workflow")],
)
def test_an_unknown_workflow_is_an_error_that_names_the_near_one(
    tmp_path: Path, agent: str, front: dict[str, str], id: str
) -> None:
    given = files(agent)
    given["skills/desk/skill.md"] = skill("Help.", description="The desk.", **front)
    with pytest.raises(ProjectError) as caught:
        caller(tmp_path, given)
    (problem,) = caught.value.problems
    assert (problem.id, problem.remedy, problem.line is not None) == (id, "Did you mean 'react'?", True)


@pytest.mark.parametrize("options", ["max_iterations: 0", "max_procedures_calls: -1", "max_iterations: many"])
def test_a_cap_below_one_is_refused(tmp_path: Path, options: str) -> None:
    with pytest.raises(ProjectError, match=r"react\.max_"):
        caller(tmp_path, files(f"react: {{{options}}}\n"))


# --- cancellation ------------------------------------------------------------------------------


@virtual_time
async def test_a_cancelled_closing_call_is_silent(tmp_path: Path) -> None:
    bench = await at_the_desk(tmp_path, [look("a"), [1.0, "Late."]], "workflow: react\nreact: {max_iterations: 1}\n")
    token = CancelToken()
    import asyncio

    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, CancelReason.BARGE_IN))
        said = await bench.says("go", cancel=token)
    assert (said.result.status, said.messages) == (TurnStatus.CANCELLED, [])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1.2), tagged=st.booleans())
def test_a_turn_may_be_cancelled_at_any_instant_and_the_next_one_goes_on(
    tmp_path_factory: pytest.TempPathFactory, at: float, tagged: bool
) -> None:
    async def scenario() -> None:
        import asyncio

        if tagged:
            script: list[Entry] = [
                "<action>start_skill</action><input>desk</input>",
                "<answer>Yes?</answer>",
                [0.1, "<action>look</action>", 0.1, "<input>a</input>"],
                [0.1, "hm <say>One moment.</say><action>look", 0.1, "</action><input>b</input>"],
                ["<answer>It is ", 0.1, "a and b.</answer>"],
            ]
            after: Entry = "<answer>And on.</answer>"
        else:
            script = [
                START,
                "Yes?",
                [0.1, look("a")],
                [0.1, "One moment.", 0.1, look("b")],
                ["It is ", 0.1, "a and b."],
            ]
            after = "And on."
        model = ScriptedModel(script, token_s=0.02, then=after)
        bench = caller(tmp_path_factory.mktemp("p"), files(), model=ToolBinding(model, "tagged") if tagged else model)
        await bench.says("the desk")
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            group.create_task(cancel_after(at, token, CancelReason.BARGE_IN))
            said = await bench.says("go", cancel=token)
        assert said.result.status in (TurnStatus.COMPLETED, TurnStatus.CANCELLED)
        recorded = [
            json.loads(e["arguments_json"])["what"] for e in bench.events("tool_executed") if e["tool"] == "look"
        ]
        assert recorded == ran(bench) == ["a", "b"][: len(recorded)]
        assert "<" not in said.sink.text
        assert model.open_streams == 0
        model._script, model._then = [], after
        again = await bench.says("and now")
        assert again.messages == ["And on."]
        assert _pairs_match(model.requests[-1].messages) or tagged
        await bench.conversation.close("completed")

    run_virtual(scenario())


def _pairs_match(messages: Iterable[Message]) -> bool:
    """Return whether every call has its result, right after it, and no result is without a call."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not open_calls or message.tool_call_id != open_calls.pop(0):
                return False
        elif open_calls:
            return False
        open_calls += [call.id for call in message.tool_calls]
    return not open_calls


# --- the tagged format in a turn ---------------------------------------------------------------

REPLIES = st.lists(
    st.lists(
        st.sampled_from(
            [
                "<action>", "</action>", "<input>", "</input>", "<answer>", "</answer>", "<say>", "<thought>",
                "</thought>", "look", "pay", "hidden", "fly", '{"what": "x"}', '{"amount": 1, "to": "y"}', "{", "}",
                '"', " ", "words",
            ]
        ),
        max_size=10,
    ).map("".join),
    max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(REPLIES)
def test_whatever_a_tagged_model_writes_the_caller_gets_an_answer_and_gates_hold(
    tmp_path_factory: pytest.TempPathFactory, replies: list[str]
) -> None:
    async def scenario() -> None:
        script = ["<action>start_skill</action><input>desk</input>", "<answer>Yes?</answer>", *replies]
        model = ScriptedModel(script, then="")
        bench = caller(tmp_path_factory.mktemp("p"), files(), model=ToolBinding(model, "tagged"))
        await bench.says("the desk")
        said = await bench.says("go")
        assert said.result.status is TurnStatus.COMPLETED
        assert said.sink.text.strip()
        assert not any(tag in said.sink.text for tag in ("<action>", "<input>", "<answer>", "<thought>", "<say>"))
        assert "hidden" not in ran(bench)
        assert not [done for done in ran(bench) if done.startswith("paid")]
        await bench.conversation.close("completed")

    run_virtual(scenario())
