"""A tool that needs a yes runs after a yes: with the arguments that were asked about, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller
from voice_agent.dialogue.reply import SILENCE, HeardReply, InputKind, UserInput

PAY_TOOL = """
from voice_agent.dialogue import tool, ToolContext, ToolResult

@tool(description="Pay")
async def pay(amount: int, context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response={"paid": amount})

@tool(description="Block the account")
async def block_account(context: ToolContext = None) -> ToolResult:
    context.memory.set("allowed", False)
    return ToolResult(llm_response="blocked")
"""
FRONT = """
---
name: Pay a bill
description: Pay.
tool_constraints:
  - pay:
      requires: session.pay_bill.allowed == True
      requires_confirmation:
        enabled: true
        utter_for_confirmation: utter_confirm_pay
        utter_on_user_denial: utter_denied
      on_success: utter_paid
---
"""
COMMON = {
    "skills/pay_bill/memory.yml": """
        schema:
          public:
            allowed: {type: bool, initial_value: true}
            amount: {type: int, llm_settable: true}
        """,
    "skills/pay_bill/responses.yml": """
        responses:
          utter_confirm_pay: Shall I pay it?
          utter_denied: Then I will not.
          utter_paid: It is paid.
          utter_ask_amount: How much?
        """,
    "skills/pay_bill/tools.py": PAY_TOOL,
    "skills/other/skill.md": "---\nname: Other\ndescription: Other.\n---\nTalk.\n",
}
PROSE = {**COMMON, "skills/pay_bill/skill.md": FRONT + "Help the caller pay.\n"}
BLOCK = {
    **COMMON,
    "skills/pay_bill/skill.md": FRONT
    + block("- collect: amount\n  utterance: utter_ask_amount\n- id: pay\n  execute_tool: pay"),
}
START = tool_call("start_skill", skill="pay_bill")
PAY = tool_call("pay", amount=5)
YES, NO = tool_call("confirm"), tool_call("deny")


def paid(bench: object) -> list[str]:
    return [e["arguments_json"] for e in bench.events("tool_executed") if e["tool"] == "pay"]  # type: ignore[attr-defined]


async def test_the_call_is_held_and_runs_on_a_yes_in_the_next_turn(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES])
    said = await bench.says("pay five")
    assert (said.messages, paid(bench)) == (["Shall I pay it?"], [])
    said = await bench.says("yes")
    assert (said.messages, paid(bench)) == (["It is paid."], ['{"amount": 5}'])
    request = bench.model.requests[2]
    assert request.scope.confirming
    assert {"confirm", "deny"} <= {t.name for t in request.tools}


async def test_a_yes_cannot_be_given_in_the_turn_that_asks(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, [PAY, YES]])
    await bench.says("pay five, yes I am sure, confirm")
    assert paid(bench) == []
    assert not bench.model.requests[1].scope.confirming


async def test_the_held_call_is_shown_to_the_model_as_not_executed(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, "Shall I?"])
    await bench.says("pay five")
    await bench.says("what was it?")
    held = [m for m in bench.model.requests[2].messages if m.role == "tool" and "Not executed" in m.content]
    assert [m.name for m in held] == ["pay"]


async def test_a_no_drops_the_call(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, NO, YES, "Sorry?"])
    await bench.says("pay five")
    assert (await bench.says("no")).messages == ["Then I will not."]
    await bench.says("well, yes")
    assert paid(bench) == []


async def test_anything_else_keeps_it_open(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, "It is five. Shall I?", tool_call("cannot_help"), YES])
    await bench.says("pay five")
    await bench.says("how much was it?")
    said = await bench.says("mumble")
    assert said.sink.responses == ["utter_not_understood", "utter_confirm_pay"]
    await bench.says("yes")
    assert len(paid(bench)) == 1


async def test_other_arguments_need_another_yes(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, tool_call("pay", amount=7), YES])
    await bench.says("pay five")
    assert (await bench.says("yes but seven")).messages == ["Shall I pay it?"]
    assert paid(bench) == []
    await bench.says("yes")
    assert paid(bench) == ['{"amount": 7}']


async def test_changing_the_topic_drops_the_call_for_good(tmp_path: Path) -> None:
    script = [START, PAY, tool_call("start_skill", skill="other"), "Sure.", YES, "Hm."]
    bench = caller(tmp_path, PROSE, script)
    await bench.says("pay five")
    await bench.says("something else")
    assert bench.events("confirmation_resolved")[0]["confirmed"] is False
    await bench.says("yes")
    assert paid(bench) == []


async def test_a_gate_that_shut_meanwhile_refuses_the_yes(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, [tool_call("block_account"), YES], "I cannot any more."])
    await bench.says("pay five")
    await bench.says("yes")
    assert paid(bench) == []


async def test_two_calls_in_one_reply_ask_for_the_first_only(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, [PAY, tool_call("pay", amount=9)], YES])
    said = await bench.says("pay both")
    assert said.messages == ["Shall I pay it?"]
    await bench.says("yes")
    assert paid(bench) == ['{"amount": 5}']


@pytest.mark.parametrize("outcome", ["completed", "hang_up"])
async def test_it_does_not_outlive_the_call(tmp_path: Path, outcome: str) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES, "Hello."])
    await bench.says("pay five")
    await bench.conversation.close(outcome)
    await bench.says("yes")
    assert paid(bench) == []


async def test_it_does_not_outlive_the_session(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES, "Hello."])
    await bench.says("pay five")
    bench.calendar.advance(minutes=61)
    await bench.says("yes")
    assert paid(bench) == []


async def test_it_survives_a_silence(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES])
    await bench.says("pay five")
    assert (await bench.says(SILENCE)).messages == ["Are you still there?"]
    await bench.says("yes")
    assert len(paid(bench)) == 1


async def test_in_a_block_the_step_waits_for_the_yes_and_goes_on(tmp_path: Path) -> None:
    bench = caller(tmp_path, BLOCK, [START, tool_call("set_fields", amount=5), YES])
    assert (await bench.says("pay five")).messages == ["Shall I pay it?"]
    assert (await bench.says("yes")).messages[0] == "It is paid."
    assert bench.stack == []


async def test_in_a_block_a_no_neither_goes_on_nor_asks_for_ever(tmp_path: Path) -> None:
    script = [START, tool_call("set_fields", amount=5), NO, "What shall I do instead?", tool_call("cancel_skill")]
    bench = caller(tmp_path, BLOCK, script)
    await bench.says("pay five")
    assert (await bench.says("no")).messages == ["Then I will not."]
    assert (await bench.says("hm")).messages == ["What shall I do instead?"]
    assert "declined pay" in bench.model.requests[3].messages[0].content
    await bench.says("nothing")
    assert (bench.stack, paid(bench)) == ([], [])


async def test_in_a_block_a_changed_value_is_asked_about_anew(tmp_path: Path) -> None:
    script = [START, tool_call("set_fields", amount=5), tool_call("set_fields", amount=7), YES]
    bench = caller(tmp_path, BLOCK, script)
    await bench.says("pay five")
    assert (await bench.says("make it seven")).messages == ["Shall I pay it?"]
    await bench.says("yes")
    assert paid(bench) == ['{"amount": 7}']


async def test_after_a_no_and_another_skill_going_on_asks_again_and_is_not_silent(tmp_path: Path) -> None:
    files = {
        **BLOCK,
        "skills/other/skill.md": "---\nname: Other\ndescription: O.\n---\n" + block("- action: utter_done"),
    }
    files["responses.yml"] = "responses:\n  utter_done: Done.\n"
    script = [START, tool_call("set_fields", amount=5), NO, tool_call("start_skill", skill="other"), YES, YES]
    bench = caller(tmp_path, files, script)
    await bench.says("pay five")
    await bench.says("no")
    assert (await bench.says("the other thing")).messages == ["Done.", "Shall we go on with pay a bill?"]
    assert (await bench.says("yes")).messages == ["Shall I pay it?"]
    assert paid(bench) == []
    assert (await bench.says("yes")).messages[0] == "It is paid."


async def test_a_yes_after_which_nothing_would_be_said_is_answered_by_the_model(tmp_path: Path) -> None:
    files = {
        **BLOCK,
        "skills/other/skill.md": "---\nname: Other\ndescription: O.\n---\n" + block("- action: utter_done"),
    }
    files["responses.yml"] = "responses:\n  utter_done: Done.\n"
    files["skills/pay_bill/memory.yml"] = files["skills/pay_bill/memory.yml"].replace("true}", "false}", 1)
    script = [
        START,
        tool_call("set_fields", amount=5),
        "You may not pay.",
        tool_call("start_skill", skill="other"),
        YES,
    ]
    bench = caller(tmp_path, files, [*script, "It cannot be paid yet."])
    await bench.says("pay five")
    await bench.says("the other thing")
    # The step that is gone back to is held, and has nothing to say by itself.
    assert (await bench.says("yes")).messages == ["It cannot be paid yet."]


async def test_a_yes_that_fell_before_the_question_counts_for_nothing_and_the_next_one_does(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES, YES])
    await bench.says("pay five")
    said = await bench.says(UserInput("yes please", InputKind.SPEECH, early=True))
    # The question has just sounded to its end, and stays open: it is not asked twice in a row.
    assert (said.messages, paid(bench)) == ([], [])
    said = await bench.says(UserInput("yes", InputKind.SPEECH))
    assert (said.messages, paid(bench)) == (["It is paid."], ['{"amount": 5}'])


async def test_a_no_counts_whenever_it_was_said(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, NO])
    await bench.says("pay five")
    said = await bench.says(UserInput("no, stop", InputKind.SPEECH, early=True))
    assert (said.messages, paid(bench)) == (["Then I will not."], [])


async def test_a_question_that_was_cut_before_its_first_word_is_asked_again(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, ["Let me see about that.", PAY], YES, YES])
    said = await bench.says("pay five", heard=HeardReply("Let me see", " about that.\nShall I pay it?"))
    assert said.messages[-1] == "Shall I pay it?"
    said = await bench.says("yes please")
    assert (said.messages, paid(bench)) == (["Shall I pay it?"], [])
    await bench.says("yes")
    assert paid(bench) == ['{"amount": 5}']


async def test_a_question_of_which_something_was_heard_may_be_agreed_to(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, PAY, YES])
    await bench.says("pay five", heard=HeardReply("Shall I", " pay it?"))
    await bench.says("yes please")
    assert paid(bench) == ['{"amount": 5}']
