"""The stack of skills: interruptions keep their place, and coming back is offered, not forced."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill

FILES = {
    "skills/order/skill.md": skill(
        block("- collect: size\n  utterance: utter_ask_size\n- action: utter_ordered"), name="Pizza order"
    ),
    "skills/order/memory.yml": "schema:\n  private:\n    size: {type: text}\n",
    "skills/hours/skill.md": skill(block("- action: utter_hours")),
    "skills/chat/skill.md": skill("Chat, and use @skill.order when they are hungry."),
    "skills/deep/skill.md": skill("Use @skill.chat."),
    "responses.yml": """
        responses:
          utter_ask_size: Which size?
          utter_ordered: Ordered.
          utter_hours: We open at nine.
        """,
}


def start(id: str) -> object:
    return tool_call("start_skill", skill=id)


LISTEN = tool_call("listen")


async def test_an_interrupted_block_is_offered_again_and_goes_on_where_it_was(tmp_path: Path) -> None:
    script = [start("order"), LISTEN, start("hours"), tool_call("confirm"), tool_call("set_fields", size="large")]
    bench = caller(tmp_path, FILES, script)
    await bench.says("a pizza")
    said = await bench.says("when do you open?")
    assert said.messages == ["We open at nine.", "Shall we go on with pizza order?"]
    assert (await bench.says("yes")).messages == ["Which size?"]
    assert (await bench.says("large")).messages[0] == "Ordered."


async def test_declining_to_resume_drops_the_paused_skill(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [start("order"), LISTEN, start("hours"), tool_call("deny"), "Hi."])
    await bench.says("a pizza")
    await bench.says("when do you open?")
    assert (await bench.says("no")).sink.responses == ["utter_resume_declined"]
    assert bench.stack == []


async def test_another_topic_instead_of_an_answer_leaves_the_paused_skill_where_it_is(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [start("order"), LISTEN, start("hours"), start("hours")])
    await bench.says("a pizza")
    await bench.says("when do you open?")
    said = await bench.says("when do you open, again?")
    assert said.messages == ["We open at nine.", "Shall we go on with pizza order?"]
    assert bench.stack == ["order"]


async def test_starting_what_is_on_top_changes_nothing_and_what_lies_below_is_raised(tmp_path: Path) -> None:
    script = [start("chat"), "Hi.", start("order"), LISTEN, start("order"), LISTEN, start("chat"), "So?"]
    bench = caller(tmp_path, {**FILES, "skills/chat/skill.md": skill("Chat.")}, script)
    await bench.says("chat")
    await bench.says("pizza")
    assert bench.stack == ["chat", "order"]
    await bench.says("pizza!")
    assert bench.stack == ["chat", "order"]
    await bench.says("let us chat")
    assert bench.stack == ["order", "chat"]
    assert len([e for e in bench.events("skill_activated") if e["skill"] == "order"]) == 1


async def test_a_skill_named_in_the_prose_returns_to_it_without_asking(tmp_path: Path) -> None:
    script = [
        start("chat"),
        "Hungry?",
        start("order"),
        tool_call("set_fields", size="large"),
        "Enjoy.",
    ]
    bench = caller(tmp_path, FILES, script)
    await bench.says("chat")
    assert (await bench.says("yes, a large one")).messages == ["Ordered.", "Enjoy."]
    assert bench.stack == ["chat"]


async def test_skills_that_name_each_other_cannot_go_in_a_circle(tmp_path: Path) -> None:
    files = {**FILES, "skills/chat/skill.md": skill("Use @skill.deep.")}
    bench = caller(tmp_path, files, [start("chat"), start("deep"), start("chat"), "Well."])
    said = await bench.says("go deep")
    assert said.messages == ["Well."]
    assert bench.stack == ["chat", "deep"]
    assert "already waiting" in bench.model.requests[3].messages[-1].content


async def test_no_more_than_ten_skills_are_open_at_once(tmp_path: Path) -> None:
    files = {f"skills/s{n}/skill.md": skill("Talk.") for n in range(12)}
    bench = caller(tmp_path, files, [*(start(f"s{n}") for n in range(9)), "Phew.", start("s9"), start("s10"), "Full."])
    await bench.says("open them all")
    await bench.says("and more")
    assert len(bench.stack) == 10
    assert "No more than 10" in bench.model.requests[-1].messages[-1].content


async def test_cancelling_says_so_and_forgets_what_was_private(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [start("order"), LISTEN, tool_call("cancel_skill")])
    await bench.says("a pizza")
    assert (await bench.says("never mind")).sink.responses == ["utter_skill_cancelled"]
    assert (bench.stack, bench.events("skill_cancelled")[0]["skill"]) == ([], "order")


async def test_a_skills_public_memory_is_cleared_when_it_starts_again_not_before(tmp_path: Path) -> None:
    files = {
        **FILES,
        "skills/order/memory.yml": "schema:\n  public:\n    size: {type: text}\n",
    }
    script = [start("order"), tool_call("set_fields", size="large"), start("order"), LISTEN]
    bench = caller(tmp_path, files, script)
    await bench.says("a large pizza")
    assert bench.read("order", "size") == "large"
    assert (await bench.says("another pizza")).messages == ["Which size?"]


PAY = {
    **FILES,
    "skills/pay/skill.md": skill(
        block("- call: '@skill.identify'\n- collect: amount\n  utterance: utter_ask_amount\n- action: utter_paid"),
        name="Bill payment",
    ),
    "skills/pay/memory.yml": "schema:\n  private:\n    amount: {type: int}\n",
    "skills/pay/responses.yml": "responses:\n  utter_ask_amount: How much?\n  utter_paid: Paid.\n",
    "skills/identify/skill.md": skill(block("- collect: number\n  utterance: utter_ask_number"), name="Identification"),
    "skills/identify/memory.yml": "schema:\n  private:\n    number: {type: text}\n",
    "skills/identify/responses.yml": "responses:\n  utter_ask_number: What is your number?\n",
}


async def test_a_called_skill_is_offered_again_by_the_name_of_what_the_caller_came_for(tmp_path: Path) -> None:
    script = [start("pay"), LISTEN, start("hours"), tool_call("cannot_help"), tool_call("confirm")]
    bench = caller(tmp_path, PAY, script)
    assert (await bench.says("pay")).messages == ["What is your number?"]
    said = await bench.says("when do you open?")
    assert said.messages == ["We open at nine.", "Shall we go on with bill payment?"]
    assert (await bench.says("mumble")).messages[1] == "Shall we go on with bill payment?"
    assert (await bench.says("yes")).messages == ["What is your number?"]


async def test_declining_to_resume_a_called_skill_drops_what_called_it_as_well(tmp_path: Path) -> None:
    script = [start("pay"), LISTEN, start("hours"), tool_call("deny"), "At nine, as I said."]
    bench = caller(tmp_path, PAY, script)
    await bench.says("pay")
    await bench.says("when do you open?")
    assert (await bench.says("no")).sink.responses == ["utter_resume_declined"]
    assert bench.stack == []
    assert [e["skill"] for e in bench.events("skill_cancelled")] == ["identify", "pay"]
    assert (await bench.says("when was that?")).messages == ["At nine, as I said."]


async def test_a_called_skill_that_is_cancelled_takes_its_caller_along_and_one_question_is_asked(
    tmp_path: Path,
) -> None:
    bench = caller(tmp_path, PAY, [start("pay"), LISTEN, tool_call("cancel_skill")])
    await bench.says("pay")
    assert (await bench.says("never mind")).sink.responses == ["utter_skill_cancelled"]
    assert bench.stack == []


async def test_prose_stays_when_the_skill_it_called_is_cancelled(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [start("chat"), "Hungry?", start("order"), LISTEN, tool_call("cancel_skill")])
    await bench.says("chat")
    await bench.says("yes")
    assert (await bench.says("no pizza")).sink.responses == ["utter_skill_cancelled"]
    assert bench.stack == ["chat"]


async def test_a_caller_who_was_just_asked_something_is_not_asked_what_else_they_want(tmp_path: Path) -> None:
    files = {**FILES, "responses.yml": "responses:\n  utter_hours: We open at nine. Shall I send you the way?\n"}
    files["responses.yml"] += "  utter_ask_size: Which size?\n  utter_ordered: Ordered.\n"
    bench = caller(tmp_path, files, [start("hours")])
    assert (await bench.says("when do you open?")).messages == ["We open at nine. Shall I send you the way?"]


async def test_what_waits_for_a_called_skill_is_not_started_anew_over_it(tmp_path: Path) -> None:
    bench = caller(tmp_path, PAY, [start("pay"), LISTEN, start("pay"), "As I said."])
    await bench.says("pay")
    await bench.says("I want to pay!")
    assert bench.stack == ["pay", "identify"]
    assert "no skill 'pay' to start now" in bench.model.requests[-1].messages[-1].content


async def test_a_skill_that_is_raised_brings_what_it_called_along(tmp_path: Path) -> None:
    script = [start("pay"), LISTEN, start("order"), LISTEN, start("pay"), LISTEN, tool_call("set_fields", number="12")]
    bench = caller(tmp_path, PAY, script)
    await bench.says("pay")
    await bench.says("a pizza")
    assert (await bench.says("no, pay")).messages == ["What is your number?"]
    assert bench.stack == ["order", "pay", "identify"]
    assert (await bench.says("one two")).messages == ["How much?"]


async def test_small_talk_needs_no_skill(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Fine, thanks. How can I help?"])
    assert (await bench.says("how are you?")).messages == ["Fine, thanks. How can I help?"]
    assert bench.stack == []
