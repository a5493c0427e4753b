"""A corrected answer takes the block back to where it was given: what depends on it is done again, nothing else is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, block, caller, cancel_after, skill
from tests.support.virtual_time import run_virtual
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.store import MemoryStore

TOOLS = """
    import asyncio
    from voice_agent.dialogue import tool, ToolContext, ToolResult

    @tool(description="x")
    async def check(day: str, context: ToolContext = None) -> ToolResult:
        await asyncio.sleep(0.5)
        context.memory.set("closed", day == "Sunday")
        return ToolResult(llm_response={"day": day})

    @tool(description="x")
    async def fee(kind: str, context: ToolContext = None) -> ToolResult:
        return ToolResult(llm_response={"kind": kind})

    @tool(description="x")
    async def deposit(kind: str, context: ToolContext = None) -> ToolResult:
        return ToolResult(llm_response={"deposit": kind})

    @tool(description="x")
    async def look(context: ToolContext = None) -> ToolResult:
        return ToolResult(llm_response={"seen": context.memory.get("day")})
    """
STEPS = """
- id: kind
  collect: kind
- id: day
  collect: day
- id: check
  execute_tool: check
  next:
    - if: session.visit.closed == True
      then: say_closed
    - else: note
- id: say_closed
  action: utter_closed
- id: forget
  set_memory: {day: null, closed: null}
  next: day
- id: note
  action: utter_note
- id: fee
  execute_tool: fee
- id: who
  collect: who
- id: bye
  action: utter_bye
"""
RESPONSES = """
    responses:
      utter_ask_kind: Which kind?
      utter_ask_day: Which day?
      utter_ask_who: For whom?
      utter_closed: We are closed then.
      utter_note: I have noted that.
      utter_bye: See you.
    """
MEMORY = """
    schema:
      private:
        kind: {type: text, llm_settable: true}
        day: {type: text}
        closed: {type: bool}
        who: {type: text}
    """


def files(steps: str = STEPS, **front: str) -> dict[str, str]:
    return {
        "skills/visit/skill.md": skill(block(steps), **front),
        "skills/visit/tools.py": TOOLS,
        "skills/visit/memory.yml": MEMORY,
        "skills/visit/responses.yml": RESPONSES,
    }


def fills(**values: str) -> object:
    return tool_call("set_fields", **values)


START = tool_call("start_skill", skill="visit")
ANSWERS = [START, fills(kind="repair", day="Friday")]


def ran(bench: Caller, name: str) -> list[str]:
    return [e["arguments_json"] for e in bench.events("tool_executed") if e["tool"] == name]


async def test_a_check_between_is_run_again_and_nothing_is_said_twice(tmp_path: Path) -> None:
    bench = caller(tmp_path, files(), [*ANSWERS, fills(day="Monday"), fills(who="Ann")])
    assert (await bench.says("a repair on Friday")).messages == ["I have noted that.", "For whom?"]
    assert (await bench.says("Monday, sorry")).messages == ["For whom?"]
    assert ran(bench, "check") == ['{"day": "Friday"}', '{"day": "Monday"}']
    assert ran(bench, "fee") == ['{"kind": "repair"}'], "it does not depend on the day"
    assert [e["step"] for e in bench.events("ordered_block_revisited")] == ["day"]
    assert (await bench.says("Ann")).messages[0] == "See you."


async def test_a_corrected_answer_that_does_not_pass_the_check_leads_where_any_such_answer_leads(
    tmp_path: Path,
) -> None:
    script = [START, fills(kind="repair", day="Sunday"), fills(day="Friday"), fills(day="Sunday"), fills(day="Monday")]
    bench = caller(tmp_path, files(), script)
    assert (await bench.says("Sunday")).messages == ["We are closed then.", "Which day?"]
    assert (await bench.says("Friday")).messages == ["I have noted that.", "For whom?"]
    # Said before, but not since the answer that is corrected: it has to be said again.
    assert (await bench.says("no, Sunday")).messages == ["We are closed then.", "Which day?"]
    assert (await bench.says("Monday then")).messages == ["I have noted that.", "For whom?"]
    assert ran(bench, "fee") == ['{"kind": "repair"}']


async def test_an_answer_nothing_has_depended_on_yet_is_just_taken(tmp_path: Path) -> None:
    steps = "- collect: kind\n- action: utter_note\n- collect: who\n- execute_tool: fee\n- action: utter_bye"
    bench = caller(tmp_path, files(steps), [START, fills(kind="repair"), fills(kind="move"), fills(who="Ann")])
    await bench.says("a repair")
    assert (await bench.says("no, a move")).messages == ["For whom?"]
    assert bench.events("ordered_block_revisited") == []
    await bench.says("Ann")
    assert ran(bench, "fee") == ['{"kind": "move"}']


async def test_a_tool_that_reads_the_answer_by_itself_is_run_again(tmp_path: Path) -> None:
    steps = "- collect: day\n- execute_tool: look\n- collect: who\n- action: utter_bye"
    bench = caller(tmp_path, files(steps), [START, fills(day="Friday"), fills(day="Monday")])
    await bench.says("Friday")
    await bench.says("Monday")
    seen = [e["result_json"] for e in bench.events("tool_executed") if e["tool"] == "look"]
    assert seen == ['{"seen": "Friday"}', '{"seen": "Monday"}']


async def test_a_branch_that_reads_the_answer_is_taken_anew(tmp_path: Path) -> None:
    steps = """
        - id: kind
          collect: kind
          next:
            - if: session.visit.kind == "repair"
              then: who
            - else: day
        - id: day
          collect: day
        - id: who
          collect: who
        """
    bench = caller(tmp_path, files(steps), [START, fills(kind="repair"), fills(kind="move"), fills(day="Monday")])
    assert (await bench.says("a repair")).messages == ["For whom?"]
    assert (await bench.says("no, a move")).messages == ["Which day?"]
    assert (await bench.says("Monday")).messages == ["For whom?"]


PAID = """
    - collect: kind
    - id: deposit
      execute_tool: deposit
    - collect: day
    - execute_tool: check
    - collect: who
    - action: utter_bye
    """
HELD = {"tool_constraints": "[{deposit: {requires_confirmation: {enabled: true, utter_for_confirmation: utter_bye}}}]"}
YES, NO = tool_call("confirm"), tool_call("deny")


async def test_what_was_confirmed_and_done_is_asked_about_again_only_with_other_arguments(tmp_path: Path) -> None:
    script = [START, fills(kind="repair"), YES, fills(day="Friday"), fills(day="Monday")]
    script += [fills(kind="move"), fills(kind="repair"), fills(who="Ann")]
    bench = caller(tmp_path, files(PAID, **HELD), script)
    assert (await bench.says("a repair")).messages == ["See you."]
    assert (await bench.says("yes")).messages == ["Which day?"]
    await bench.says("Friday")
    assert (await bench.says("Monday")).messages == ["For whom?"]
    said = await bench.says("and it is a move")
    assert (said.sink.responses, len(ran(bench, "deposit"))) == (["utter_bye"], 1)
    # Taken back before it was confirmed: what was done for the first answer still stands.
    assert (await bench.says("no, a repair after all")).messages == ["For whom?"]
    assert ran(bench, "deposit") == ['{"kind": "repair"}']


@pytest.mark.parametrize("at", [0.1, 0.4])
def test_a_check_that_was_cut_off_is_run_in_the_next_turn(tmp_path: Path, at: float) -> None:
    async def scenario() -> None:
        bench = caller(tmp_path, files(), [*ANSWERS, fills(day="Monday"), "Go on.", fills(who="Ann")])
        await bench.says("a repair on Friday")
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            group.create_task(cancel_after(at, token, CancelReason.BARGE_IN))
            group.create_task(bench.says("Monday", cancel=token))
        assert ran(bench, "check") == ['{"day": "Friday"}']
        await bench.says("hello?")
        assert ran(bench, "check") == ['{"day": "Friday"}', '{"day": "Monday"}']
        assert len(ran(bench, "fee")) == 1

    run_virtual(scenario())


@pytest.mark.parametrize("snapshot", [True, False])
def test_what_was_done_before_a_correction_is_known_after_a_crash(tmp_path: Path, snapshot: bool) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        first = caller(tmp_path, files(), [*ANSWERS, fills(day="Monday")], store=store)
        await first.says("a repair on Friday")
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            group.create_task(cancel_after(0.1, token, CancelReason.SHUTDOWN))
            group.create_task(first.says("Monday", cancel=token))
        if not snapshot:
            store = MemoryStore()
            store.append("c1", list(first.conversation.events))
        later = caller(tmp_path, files(), ["I am here.", fills(who="Ann")], store=store)
        await later.says("hello?")
        assert ran(later, "check") == ['{"day": "Friday"}', '{"day": "Monday"}']
        assert ran(later, "fee") == ['{"kind": "repair"}']

    run_virtual(scenario())
