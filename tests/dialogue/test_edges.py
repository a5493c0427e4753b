"""Moments between the rules: gates that shut in the middle, sessions that expire, callers who drop and come back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import block, caller, cancel_after, skill, write_project
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.reply import SESSION_START, TurnStatus

GREETING = {
    "skills/default_session_start/skill.md": skill(
        block("- execute_tool: prepare\n- action: utter_greet"), routing="{engine_managed: true}"
    ),
    "skills/default_session_start/tools.py": """
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="Prepare")
        async def prepare(context: ToolContext = None) -> ToolResult:
            if context.memory.get("broken"):
                raise RuntimeError("down")
            context.memory.set("name", "Ann")
            return ToolResult(llm_response="ok")
        """,
    "memory.yml": "name: {type: text}\nbroken: {type: bool, seed: true}\n",
    "responses.yml": "responses:\n  utter_greet: 'Hello {name}.'\n",
    "skills/talk/skill.md": skill("Talk.", description="Talk."),
}
WORK = """
import asyncio
from voice_agent.dialogue import tool, ToolContext, ToolResult

@tool(description="Shut it")
async def shut(context: ToolContext = None) -> ToolResult:
    context.memory.set("allowed", False)
    return ToolResult(llm_response="shut")

@tool(description="Use it")
async def use(context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response="used")

@tool(description="Slow")
async def slow(context: ToolContext = None) -> ToolResult:
    context.memory.set("note", "begun")
    await asyncio.sleep(1)
    return ToolResult(llm_response="slow")
"""
GATED = {
    "memory.yml": "allowed: {type: bool, mutable: true, initial_value: true}\n",
    "skills/work/skill.md": skill(
        "Work.",
        description="Work.",
        requires="session.project.allowed == True",
        tool_constraints="[{use: {requires: session.project.allowed == True}}]",
    ),
    "skills/work/memory.yml": "schema: {public: {note: {type: text, llm_settable: true}}}\n",
    "skills/work/tools.py": WORK,
    "skills/other/skill.md": skill("Other.", description="Other."),
}
START = tool_call("start_skill", skill="work")


async def test_an_expired_session_and_a_real_message_are_two_turns_in_one_request(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["One.", "Two."])
    await bench.says("hi")
    bench.calendar.advance(minutes=61)
    before = len(bench.conversation.events)
    said = await bench.says("are you there?")
    assert said.messages == ["Hello Ann.", "Two."]
    kinds = [payload_of(event) for event in list(bench.conversation.events)[before:]]
    turns = [payload["turn_id"] for kind, payload in kinds if kind == "turn_started"]
    assert turns == ["t1.start", "t1"]
    assert [payload["text"] for kind, payload in kinds if kind == "user"] == ["/session_start", "are you there?"]


async def test_a_tool_that_fails_at_the_start_is_recorded_and_the_greeting_has_an_empty_place(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, [], metadata={"broken": True})
    assert (await bench.connects()).messages == ["Hello ."]
    (event,) = bench.events("tool_executed")
    assert (event["tool"], event["success"]) == ("prepare", False)


async def test_a_gate_that_shuts_while_its_skill_is_active_lets_the_turn_end_and_shuts_its_tools(
    tmp_path: Path,
) -> None:
    script = [START, [tool_call("shut"), tool_call("use")], "I cannot any more.", tool_call("use"), "No."]
    bench = caller(tmp_path, GATED, script)
    said = await bench.says("work")
    assert (said.messages, said.result.status) == (["I cannot any more."], TurnStatus.COMPLETED)
    assert bench.stack == ["work"]
    assert (await bench.says("use it")).messages == ["No."]
    assert [e["tool"] for e in bench.events("tool_executed")] == ["shut"]
    assert "use" not in {t.name for t in bench.model.requests[3].tools}


async def test_a_skill_whose_gate_shut_is_not_started_again_but_one_on_the_stack_may_end(tmp_path: Path) -> None:
    script = [START, tool_call("shut"), tool_call("complete"), START, "Sorry."]
    bench = caller(tmp_path, GATED, script)
    await bench.says("work")
    assert bench.stack == []
    assert (await bench.says("work")).messages == ["Sorry."]
    assert bench.stack == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"nope": 1}, "cannot be set"),
        ({"allowed": True}, "cannot be set"),
        ({"count": "many"}, "takes int"),
        ({"colour": "green"}, "one of red, blue"),
        ({"hidden": "x"}, "cannot be set"),
        ({"count": 3, "hidden": "x"}, "Nothing was set"),
        ({}, "No value was given"),
        ({"count": [1]}, "takes int"),
        ({"flag": "perhaps"}, "takes bool"),
    ],
)
async def test_what_the_model_may_not_write_is_refused_with_the_reason_and_nothing_is_written(
    tmp_path: Path, arguments: dict[str, Any], why: str
) -> None:
    fields = """
        schema:
          public:
            count: {type: int, llm_settable: true}
            colour: {type: categorical, enum_values: [red, blue], llm_settable: true}
            flag: {type: bool, llm_settable: true}
            hidden: {type: text}
            note: {type: text}
        """
    files = {**GATED, "skills/work/memory.yml": fields}
    bench = caller(tmp_path, files, [START, tool_call("set_fields", **arguments), "Hm."])
    await bench.says("work")
    assert why in bench.model.requests[2].messages[-1].content
    assert bench.events("memory_set") == []


async def test_a_trigger_that_is_already_true_speaks_at_once_and_never_twice_in_an_activation(tmp_path: Path) -> None:
    files = {
        **GATED,
        "skills/work/skill.md": skill("Work.", utter="[{utter_on: {when: session.project.allowed == True}}]"),
        "skills/work/responses.yml": "responses: {utter_on: It is on.}\n",
        "skills/work/tools.py": WORK
        + '\n@tool(description="Open")\nasync def open_it(context: ToolContext = None) -> ToolResult:\n'
        + '    context.memory.set("allowed", True)\n    return ToolResult()\n',
    }
    flips = [tool_call("shut"), tool_call("open_it"), "Well."]
    bench = caller(tmp_path, files, [START, "Hi.", *flips, tool_call("complete"), START, "Again."])
    assert (await bench.says("work")).messages == ["It is on.", "Hi."]
    assert (await bench.says("flip")).messages == ["Well."]
    await bench.says("done")
    assert (await bench.says("work")).messages == ["It is on.", "Again."]


@virtual_time
async def test_a_caller_who_drops_during_a_tool_comes_back_to_the_same_place_ungreeted(tmp_path: Path) -> None:
    bench = caller(tmp_path, {**GREETING, **GATED, "memory.yml": GREETING["memory.yml"] + GATED["memory.yml"]},
                   [START, tool_call("slow"), "We were at it."])  # fmt: skip
    await bench.connects()
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, CancelReason.DISCONNECTED))
        group.create_task(bench.says("work", cancel=token))
    await bench.conversation.close("dropped")
    bench.calendar.advance(seconds=3)
    again = bench.agent.open("c1", channel="text")
    assert again is bench.conversation
    assert (await bench.says(SESSION_START)).messages == []
    assert (bench.stack, bench.read("work", "note")) == (["work"], "begun")
    assert (await bench.says("go on")).messages == ["We were at it."]
    assert [e["tool"] for e in bench.events("tool_executed")] == ["prepare"]


async def test_numbers_of_records_only_grow_however_many_write_at_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, GATED, model=ScriptedModel(then="Hello."))

    async def note(kind: str) -> None:
        for _ in range(20):
            bench.conversation.note(kind, value=1)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for kind in ("dtmf", "backchannel", "voice"):
            group.create_task(note(kind))
        for n in range(5):
            group.create_task(bench.says(f"message {n}"))
    numbers = [event["sequence"] for event in bench.conversation.events]
    assert numbers == list(range(len(numbers)))


async def test_every_field_that_holds_json_is_text(tmp_path: Path) -> None:
    bench = caller(tmp_path, GATED, [START, [tool_call("use"), tool_call("set_fields", note="x")], "Done."])
    await bench.says("work")
    found = 0
    for event in bench.conversation.events:
        _, payload = payload_of(event)
        for key, value in payload.items():
            if key.endswith("_json"):
                assert isinstance(value, str)
                json.loads(value)
                found += 1
    assert found >= 5


async def test_an_older_name_of_the_finish_tool_works_and_can_be_described(tmp_path: Path) -> None:
    files = {
        **GATED,
        "skills/work/skill.md": skill("Work.", tool_constraints="[{complete_skill: {description: When paid.}}]"),
    }
    bench = caller(tmp_path, files, [START, "Hi.", tool_call("complete_skill")])
    await bench.says("work")
    assert {t.name: t.description for t in bench.model.requests[1].tools}["complete"] == "When paid."
    await bench.says("done")
    assert bench.stack == []


async def test_criteria_tell_the_model_when_it_is_done_and_the_condition_still_gates_it(tmp_path: Path) -> None:
    front = "{condition: session.work.note, criteria: [The caller has said thank you.]}"
    files = {**GATED, "skills/work/skill.md": skill("Work.", complete_when=front)}
    script = [START, tool_call("complete"), "Not yet.", tool_call("set_fields", note="x"), "So?", tool_call("complete")]
    bench = caller(tmp_path, files, script)
    assert (await bench.says("work")).messages == ["Not yet."]
    assert "only when: The caller has said thank you." in bench.model.requests[1].messages[0].content
    # With criteria the condition alone does not end it: the model judges.
    await bench.says("x")
    assert bench.stack == ["work"]
    await bench.says("thank you")
    assert bench.stack == []


def test_writing_a_field_that_nobody_declares_is_found_when_the_project_loads(tmp_path: Path) -> None:
    tools = WORK.replace('context.memory.set("note", "begun")', 'context.memory.set("noet", "begun")')
    _, problems = load_project(write_project(tmp_path, {**GATED, "skills/work/tools.py": tools}))
    (problem,) = problems
    assert (problem.id, problem.remedy, problem.path) == (
        "undeclared_memory_write",
        "Did you mean 'note'?",
        tmp_path / "skills/work/tools.py",
    )
    assert problem.line == tools.lstrip("\n").split("\n").index('    context.memory.set("noet", "begun")') + 1


@pytest.mark.parametrize("key", ["uninterruptible: true", "interruptible: false"])
@virtual_time
async def test_a_project_may_say_that_a_tool_is_not_interrupted(tmp_path: Path, key: str) -> None:
    files = {**GATED, "skills/work/skill.md": skill("Work.", tool_constraints=f"[{{slow: {{{key}}}}}]")}
    bench = caller(tmp_path, files, [START, tool_call("slow"), "Done."])
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("work", cancel=token))
    assert turn.result().result.status is TurnStatus.CANCELLED
    assert [e["tool"] for e in bench.events("tool_executed")] == ["slow"]


async def test_waiting_in_a_block_is_recorded_as_a_tool_run_once(tmp_path: Path) -> None:
    steps = block("- action: utter_a\n- execute_tool: listen\n- action: utter_b")
    files = {"skills/a/skill.md": skill(steps), "responses.yml": "responses: {utter_a: A., utter_b: B.}\n"}
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="a")])
    await bench.says("go")
    assert [e["tool"] for e in bench.events("tool_executed")] == ["listen"]
    await bench.says("on")
    assert [e["tool"] for e in bench.events("tool_executed")] == ["listen"]


async def test_values_in_the_first_words_decide_a_branch_that_comes_before_any_question(tmp_path: Path) -> None:
    steps = block(
        """
        - id: which
          noop: true
          next:
            - if: session.a.policy == "car"
              then: car
            - else: ask
        - id: ask
          collect: policy
          utterance: utter_ask
        - id: car
          action: utter_car
        """
    )
    files = {
        "skills/a/skill.md": skill(steps),
        "skills/a/memory.yml": "schema: {public: {policy: {type: categorical, enum_values: [car, home]}}}\n",
        "skills/a/responses.yml": "responses:\n  utter_ask: Which?\n  utter_car: Your car.\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="a"), tool_call("set_fields", policy="car")])
    assert (await bench.says("claim on my car")).messages[0] == "Your car."


async def test_declining_to_resume_offers_what_was_interrupted_before_that(tmp_path: Path) -> None:
    ask = block("- collect: x\n  utterance: utter_ask")
    files = {
        **{f"skills/{s}/skill.md": skill(ask, name=s.title()) for s in ("a", "b")},
        **{f"skills/{s}/memory.yml": "schema: {public: {x: {type: text}}}\n" for s in ("a", "b")},
        "skills/c/skill.md": skill("Talk."),
        "responses.yml": "responses:\n  utter_ask: What?\n",
    }
    listen, deny, confirm = tool_call("listen"), tool_call("deny"), tool_call("confirm")
    script = [
        tool_call("start_skill", skill="a"), listen, tool_call("start_skill", skill="b"), listen,
        tool_call("start_skill", skill="c"), tool_call("complete"), deny, confirm,
    ]  # fmt: skip
    bench = caller(tmp_path, files, script)
    await bench.says("a")
    await bench.says("b")
    assert (await bench.says("c")).messages == ["Shall we go on with b?"]
    assert (await bench.says("no")).messages == ["Shall we go on with a?"]
    assert (await bench.says("yes")).messages == ["What?"]
    assert bench.stack == ["a"]
