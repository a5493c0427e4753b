"""Skills and models press keys by name of the tool, where the skill allows it; how many is all that is recorded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.fakes.sink import CallSink
from tests.support.dialogue_projects import Caller, block, caller, skill, write_project
from tests.support.lines import until
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import TurnResult, UserInput
from voice_agent.digits import DigitsReason

ALLOWED = "[{send_digits: {}}]"
PROSE = {"skills/menu/skill.md": skill("Get through the menu.", description="A menu.", tool_constraints=ALLOWED)}
STEPS = """
- id: press
  execute_tool: send_digits
  args: {digits: "1w42#"}
- id: sorry
  action: utter_sorry
"""
BLOCK = {
    "skills/menu/skill.md": skill(block(STEPS), description="A menu."),
    "responses.yml": "responses: {utter_sorry: And now I wait.}\n",
}
START = tool_call("start_skill", skill="menu")


async def says(bench: Caller, text: str, sink: CallSink, turn_id: str = "t0") -> TurnResult:
    result = await bench.conversation.turn(UserInput(text), turn_id=turn_id, sink=sink, cancel=sink.cancel)
    bench.conversation.commit_reply(turn_id, sink.heard())
    return result


def bench_of(root: Path, files: dict[str, str], *script: Any) -> Caller:
    return caller(root, files, script, channel="sip")


def pressed(bench: Caller) -> list[tuple[bool, str, str]]:
    done = [e for e in bench.events("tool_executed") if e["tool"] == "send_digits"]
    return [(e["success"], e["arguments_json"], e["result_json"]) for e in done]


def offered(bench: Caller) -> list[bool]:
    return [any(tool.name == "send_digits" for tool in request.tools) for request in bench.model.requests]


async def test_a_model_presses_keys_and_waits_for_what_the_menu_says_next(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, PROSE, START, tool_call("send_digits", digits="1 w 42#")), CallSink()
    await says(bench, "for sales press one", sink)
    assert sink.pressed == ["1w42#"]
    assert sink.messages == []
    assert len(bench.model.requests) == 2
    [(success, arguments, result)] = pressed(bench)
    assert (success, json.loads(arguments), json.loads(result)) == (True, {"keys": 5}, {"ok": True})


async def test_what_is_said_comes_before_the_keys(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, PROSE, START, ["One moment. ", tool_call("send_digits", digits="1")])
    sink = CallSink()
    await says(bench, "for sales press one", sink)
    assert (sink.messages, sink.pressed) == (["One moment. "], ["1"])


async def test_it_is_offered_only_where_the_skill_names_it_on_a_line_that_has_keys(tmp_path: Path) -> None:
    bench = bench_of(tmp_path / "a", PROSE, START, "Yes?", "Yes?")
    await says(bench, "a menu", CallSink())
    assert offered(bench) == [False, True]
    bench = bench_of(tmp_path / "b", PROSE, START, "Yes?")
    await says(bench, "a menu", CallSink(digits=None))
    assert offered(bench) == [False, False]
    plain = {"skills/menu/skill.md": skill("Get through.", description="A menu.")}
    bench = bench_of(tmp_path / "c", plain, START, tool_call("send_digits", digits="1"), "No.")
    sink = CallSink()
    await says(bench, "a menu", sink)
    assert (offered(bench), sink.pressed) == ([False, False, False], [])


async def test_a_gate_holds_for_the_offer_the_call_and_the_step(tmp_path: Path) -> None:
    gate = "[{send_digits: {requires: session.project.known == True}}]"
    memory = {"memory.yml": "schema: {known: {type: bool, mutable: true}}\n"}
    prose = skill("Get through.", description="A menu.", tool_constraints=gate)
    bench = bench_of(
        tmp_path / "a", memory | {"skills/menu/skill.md": prose}, START, tool_call("send_digits", digits="1"), "No."
    )
    sink = CallSink()
    await says(bench, "a menu", sink)
    assert (offered(bench)[1], sink.pressed) == (False, [])
    steps = skill(block(STEPS), description="A menu.", tool_constraints=gate)
    bench = bench_of(tmp_path / "b", memory | BLOCK | {"skills/menu/skill.md": steps}, START, "Not now.", "Not now.")
    sink = CallSink()
    await says(bench, "a menu", sink)
    assert sink.pressed == []


@pytest.mark.parametrize("given", ["", "1,2", "+15550100", "5" * 33, "w", "one"])
async def test_what_is_no_key_is_refused_with_what_would_be_one(tmp_path: Path, given: str) -> None:
    bench, sink = bench_of(tmp_path, PROSE, START, tool_call("send_digits", digits=given), "Hm."), CallSink()
    await says(bench, "a menu", sink)
    assert sink.pressed == []
    assert "Nothing was pressed" in bench.model.requests[2].messages[-1].content
    assert pressed(bench) == []


@pytest.mark.parametrize("reason", [DigitsReason.TRUNK_ERROR, DigitsReason.TIMEOUT])
async def test_a_model_is_told_why_it_failed(tmp_path: Path, reason: DigitsReason) -> None:
    bench = bench_of(tmp_path, PROSE, START, tool_call("send_digits", digits="1"), "I could not.")
    sink = CallSink(digits=reason)
    await says(bench, "a menu", sink)
    assert sink.messages == ["I could not."]
    assert json.loads(pressed(bench)[0][2]) == {"ok": False, "reason": reason.value}


async def test_a_step_presses_and_the_block_goes_on(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, BLOCK, START, "Yes?"), CallSink()
    await says(bench, "a menu", sink)
    assert sink.pressed == ["1w42#"]
    assert sink.messages[0] == "And now I wait."
    assert json.loads(pressed(bench)[0][1]) == {"keys": 5}
    assert "1w42#" not in json.dumps(bench.conversation.events)


async def test_a_step_reads_them_from_memory_and_the_reason_can_be_branched_on(tmp_path: Path) -> None:
    steps = """
    - id: press
      execute_tool: send_digits
      args: {digits: session.menu.extension}
      next:
        - if: session.menu.digits_result == "sent"
          then: END
        - else: failed
    - id: failed
      action: utter_failed
    """

    def files(value: str) -> dict[str, str]:
        fields = f"digits_result: {{type: text}}, extension: {{type: text, initial_value: {value}}}"
        return {
            "skills/menu/skill.md": skill(block(steps), description="A menu."),
            "skills/menu/memory.yml": f"schema: {{private: {{{fields}}}}}\n",
            "responses.yml": "responses: {utter_failed: That did not work.}\n",
        }

    bench, sink = bench_of(tmp_path / "a", files("'0042'"), START, "Yes?"), CallSink()
    await says(bench, "a menu", sink)
    assert sink.pressed == ["0042"]
    assert "That did not work." not in sink.messages
    for root, value, given in [("b", "nobody", CallSink()), ("c", "'0042'", CallSink(digits=None))]:
        bench = bench_of(tmp_path / root, files(value), START, "Yes?")
        await says(bench, "a menu", given)
        assert given.pressed == []
        assert given.messages[0] == "That did not work."


async def test_one_that_was_cut_off_before_its_first_key_is_still_to_come(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, BLOCK, START, "Yes?", "Yes?"), CallSink(seconds=10)
    async with asyncio.TaskGroup() as group:
        group.create_task(says(bench, "a menu", sink))
        await until(lambda: sink.pressed)
        sink.cancel.cancel(CancelReason.BARGE_IN)
    assert pressed(bench) == []
    again = CallSink()
    await says(bench, "for sales press one", again, "t1")
    assert again.pressed == ["1w42#"]


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (skill(block("- {id: a, execute_tool: send_digits}")), "skill.block.send_digits"),
        (skill(block("- {id: a, execute_tool: send_digits, args: {digits: 12}}")), "skill.block.send_digits"),
        (skill(block("- {id: a, execute_tool: send_digits, args: {digits: '1,2'}}")), "skill.block.send_digits"),
        (
            skill("A.", tool_constraints="[{send_digits: {requires_confirmation: true}}]"),
            "skill.digits_confirmation",
        ),
    ],
)
def test_what_cannot_work_is_found_before_anybody_calls(tmp_path: Path, file: str, problem: str) -> None:
    with pytest.raises(ProjectError) as error:
        Agent.load(load_config(write_project(tmp_path, {"skills/menu/skill.md": file}), {}), ScriptedModel())
    assert problem in [p.id for p in error.value.problems]
