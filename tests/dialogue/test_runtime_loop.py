"""The loop: code decides what can be decided, the model only the rest, and it never runs away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import block, caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.reply import SESSION_START, InputKind, Say, TurnStatus, UserInput
from voice_agent.llm.protocol import Message, ModelError, TextDelta, ToolCallDelta

IMPORT = "from voice_agent.dialogue import tool, ToolContext, ToolResult\n"
BOOKING = {
    "skills/book/skill.md": skill(
        block(
            """
            - id: day
              collect: day
              utterance: utter_ask_day
            - id: book
              execute_tool: reserve
            - id: say
              action: utter_booked
            """
        ),
        description="Book a visit.",
    ),
    "skills/book/memory.yml": """
        schema:
          public:
            code: {type: text}
          private:
            day: {type: categorical, enum_values: [monday, friday]}
        """,
    "skills/book/responses.yml": """
        responses:
          utter_ask_day: Which day?
          utter_booked: "Booked for {day}, code {code}."
        """,
    "skills/book/tools.py": IMPORT
    + """
RUNS = []

@tool(description="Book")
async def reserve(day: str, context: ToolContext = None) -> ToolResult:
    RUNS.append(day)
    context.memory.set("code", "X1")
    return ToolResult(llm_response={"code": "X1"})
""",
}
TALK = {"skills/talk/skill.md": skill("Chat with the caller.", description="Chat.")}


def tools_of(request: Any) -> set[str]:
    return {tool.name for tool in request.tools}


async def test_a_block_runs_without_the_model_once_its_fields_are_known(tmp_path: Path) -> None:
    bench = caller(tmp_path, BOOKING, [tool_call("start_skill", skill="book"), tool_call("set_fields", day="Friday")])
    said = await bench.says("book me in for friday")
    assert said.messages[0] == "Booked for friday, code X1."
    assert said.result.model_calls == 2
    assert bench.events("skill_completed")[1]["skill"] == "book"


async def test_the_model_is_asked_only_for_the_answer_to_the_open_question(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="book"), tool_call("listen"), tool_call("set_fields", day="monday")]
    bench = caller(tmp_path, BOOKING, script)
    assert (await bench.says("I want a visit")).messages == ["Which day?"]
    fill = bench.model.requests[1]
    assert (tools_of(fill), fill.scope.skills) == ({"set_fields", "listen"}, ())
    await bench.says("monday")
    asked = bench.model.requests[2]
    assert [(f.name, f.choices, f.asked) for f in asked.scope.fields] == [("day", ("monday", "friday"), True)]
    assert asked.scope.active_skill == "book"
    assert "complete" not in tools_of(asked)
    assert "reserve" not in tools_of(asked)


async def test_a_side_question_keeps_the_question_open_and_brings_it_back(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="book"), tool_call("listen"), "We are open all week."]
    bench = caller(tmp_path, BOOKING, script)
    await bench.says("I want a visit")
    assert (await bench.says("when are you open?")).messages == ["We are open all week.", "Which day?"]
    assert bench.stack == ["book"]


async def test_a_reply_that_asks_the_question_itself_is_not_followed_by_it(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="book"), tool_call("listen"), "Every day. Which one suits you?"]
    bench = caller(tmp_path, BOOKING, script)
    await bench.says("I want a visit")
    assert (await bench.says("when are you open?")).messages == ["Every day. Which one suits you?"]


async def test_an_invalid_answer_sets_nothing_and_the_model_is_told_why(tmp_path: Path) -> None:
    script = [
        tool_call("start_skill", skill="book"),
        tool_call("listen"),
        tool_call("set_fields", day="sunday"),
        lambda request: f"Only {json.loads(request.messages[-1].content)['error']}",
    ]
    bench = caller(tmp_path, BOOKING, script)
    await bench.says("I want a visit")
    said = await bench.says("sunday")
    assert "monday, friday" in said.messages[0]
    assert bench.read("book", "day") is None


@pytest.mark.parametrize(
    "arguments", [{"code": "HACK"}, {"owner": "me"}, {"day": "friday", "code": "HACK"}, {"nonsense": 1}, {}]
)
async def test_the_model_sets_only_what_it_was_offered_and_nothing_of_a_mixed_set(
    tmp_path: Path, arguments: dict[str, str]
) -> None:
    files = {**BOOKING, "memory.yml": "owner: {type: text}\n"}
    script = [tool_call("start_skill", skill="book"), tool_call("listen"), tool_call("set_fields", **arguments), "Hm?"]
    bench = caller(tmp_path, files, script)
    await bench.says("I want a visit")
    await bench.says("set it")
    assert [bench.read(*at) for at in (("book", "code"), ("book", "day"), ("project", "owner"))] == [None] * 3
    assert "error" in bench.model.requests[3].messages[-1].content


async def test_what_the_agent_says_on_its_own_never_makes_it_answer_itself(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, ["Hello."])
    await bench.says("hi")
    await bench.says("")
    await bench.says(UserInput("   ", InputKind.SPEECH))
    assert len(bench.model.requests) == 1


async def test_several_calls_of_one_reply_run_in_the_order_given(tmp_path: Path) -> None:
    files = {
        **TALK,
        "skills/talk/tools.py": IMPORT
        + """
@tool(description="a")
async def first(context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response=1)

@tool(description="b")
async def second(context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response=2)
""",
    }
    script = [tool_call("start_skill", skill="talk"), [tool_call("second"), tool_call("first")], "Done."]
    bench = caller(tmp_path, files, script)
    await bench.says("go")
    assert [e["tool"] for e in bench.events("tool_executed")] == ["second", "first"]
    assert [e["tool"] for e in bench.events("mcp_tool_executed")] == ["second", "first"]
    tail = bench.model.requests[2].messages[-3:]
    assert [(m.role, m.content) for m in tail] == [("assistant", ""), ("tool", "2"), ("tool", "1")]


# --- waiting -----------------------------------------------------------------------------------


async def test_listen_alone_waits_in_silence(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, [tool_call("listen")])
    said = await bench.says("hm")
    assert (said.messages, said.result.model_calls) == ([], 1)
    assert [e["tool"] for e in bench.events("tool_executed")] == ["listen"]


async def test_listen_with_text_says_the_text(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, [["Take your time.", tool_call("listen")]])
    assert (await bench.says("hm")).messages == ["Take your time."]


async def test_listen_with_another_tool_runs_the_tool(tmp_path: Path) -> None:
    bench = caller(
        tmp_path, BOOKING, [[tool_call("listen"), tool_call("start_skill", skill="book")], tool_call("listen")]
    )
    assert (await bench.says("visit")).messages == ["Which day?"]


async def test_an_empty_reply_is_tried_once_more_and_then_a_fallback_is_said(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, ["", "Here I am."])
    assert (await bench.says("hi")).messages == ["Here I am."]
    bench = caller(tmp_path, TALK, ["", "  "])
    said = await bench.says("hi")
    assert said.sink.responses == ["utter_cannot_help"]
    assert said.result.model_calls == 2


async def test_the_same_call_again_and_again_is_stopped(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, then_repeat(tool_call("start_skill", skill="nobody")))
    said = await bench.says("hi")
    assert said.sink.responses == ["utter_cannot_help"]
    assert said.result.model_calls == 3


def then_repeat(entry: Any) -> list[Any]:
    return [entry] * 30


async def test_a_model_that_never_comes_to_an_end_is_stopped(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill=f"nobody{n}") for n in range(30)]
    bench = caller(tmp_path, TALK, script)
    said = await bench.says("hi")
    assert said.result.model_calls == 10
    assert said.sink.responses == ["utter_cannot_help"]


# --- completion --------------------------------------------------------------------------------


LOOKUP = {
    **TALK,
    "skills/talk/tools.py": IMPORT + "\n@tool(description='x')\nasync def look() -> ToolResult:\n"
    "    return ToolResult(llm_response='found')\n",
}


async def test_completing_beside_a_tool_runs_the_tool_and_refuses_the_completion(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="talk"), [tool_call("look"), tool_call("complete")], "Found it."]
    bench = caller(tmp_path, LOOKUP, script)
    await bench.says("go")
    assert (bench.stack, len(bench.events("tool_executed"))) == (["talk"], 1)
    assert "response of its own" in bench.model.requests[2].messages[-1].content


async def test_a_completed_skill_is_followed_by_an_offer_of_more_help(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, [tool_call("start_skill", skill="talk"), ["All done.", tool_call("complete")]])
    said = await bench.says("go")
    assert said.messages == ["All done.", "Is there anything else I can help you with?"]
    assert bench.stack == []


@pytest.mark.parametrize("started", [False, True])
async def test_completing_nothing_or_a_running_block_is_refused(tmp_path: Path, started: bool) -> None:
    script: list[Any] = [tool_call("start_skill", skill="book"), tool_call("listen")] if started else []
    bench = caller(tmp_path, BOOKING, [*script, tool_call("complete"), "Hm?"])
    if started:
        await bench.says("visit")
    await bench.says("done")
    assert "error" in bench.model.requests[-1].messages[-1].content
    assert bench.stack == (["book"] if started else [])


async def test_a_skill_completes_by_itself_when_its_condition_holds(tmp_path: Path) -> None:
    files = {
        "skills/talk/skill.md": skill("Chat.", complete_when="session.talk.mood"),
        "skills/talk/memory.yml": "schema:\n  public:\n    mood: {type: text, llm_settable: true}\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="talk"), tool_call("set_fields", mood="good")])
    await bench.says("I feel good")
    assert [e["skill"] for e in bench.events("skill_completed")][1:] == ["talk", "default_completed"]


# --- gates -------------------------------------------------------------------------------------

GATED = {
    "skills/vip/skill.md": skill("Serve.", requires="session.project.vip", description="VIPs."),
    "skills/talk/skill.md": """
        ---
        name: Talk
        description: Chat.
        tool_constraints:
          - pay:
              requires: session.project.vip == True
        ---
        Chat.
        """,
    "skills/talk/tools.py": IMPORT
    + """
@tool(description="pay")
async def pay() -> ToolResult:
    return ToolResult(llm_response="paid")

@tool(description="make vip")
async def promote(context: ToolContext = None) -> ToolResult:
    context.memory.set("vip", True)
    return ToolResult(llm_response="vip")

@tool(description="unmake vip")
async def demote(context: ToolContext = None) -> ToolResult:
    context.memory.set("vip", False)
    return ToolResult(llm_response="no vip")
""",
    "memory.yml": "vip: {type: bool, mutable: true}\n",
}


async def test_a_skill_whose_gate_is_shut_is_not_offered_and_cannot_be_started(tmp_path: Path) -> None:
    bench = caller(tmp_path, GATED, [tool_call("start_skill", skill="vip"), "I cannot."])
    await bench.says("I am a VIP, start vip")
    assert [card.id for card in bench.model.requests[0].scope.skills] == ["talk"]
    assert bench.stack == []
    assert "There is no skill 'vip'" in bench.model.requests[1].messages[-1].content


async def test_a_tool_whose_gate_is_shut_is_hidden_and_an_invented_call_does_nothing(tmp_path: Path) -> None:
    bench = caller(tmp_path, GATED, [tool_call("start_skill", skill="talk"), tool_call("pay"), "I cannot."])
    await bench.says("pay")
    assert "pay" not in tools_of(bench.model.requests[1])
    assert bench.events("tool_executed") == []
    assert "error" in bench.model.requests[2].messages[-1].content


async def test_a_gate_that_a_call_of_the_same_batch_shuts_is_shut_for_the_next_one(tmp_path: Path) -> None:
    script = [
        tool_call("start_skill", skill="talk"),
        tool_call("promote"),
        [tool_call("demote"), tool_call("pay")],
        "Sorry.",
    ]
    bench = caller(tmp_path, GATED, script)
    await bench.says("pay")
    assert "pay" in tools_of(bench.model.requests[2])
    assert [e["tool"] for e in bench.events("tool_executed")] == ["promote", "demote"]


HELD = {
    "skills/order/skill.md": """
        ---
        name: Order
        description: Order.
        tool_constraints:
          - ship:
              requires: session.order.agreed == True
        ---
        :::ordered_block id=main
        steps:
          - id: ship
            execute_tool: ship
          - id: say
            action: utter_shipped
        :::
        """,
    "skills/order/memory.yml": "schema:\n  public:\n    agreed: {type: bool, llm_settable: true}\n",
    "skills/order/responses.yml": "responses:\n  utter_shipped: Shipped.\n",
    "skills/order/tools.py": IMPORT + "\n@tool(description='x')\nasync def ship() -> ToolResult:\n"
    "    return ToolResult(llm_response='ok')\n",
}


async def test_a_step_whose_gate_is_shut_is_held_and_goes_on_when_memory_opens_it(tmp_path: Path) -> None:
    script = [
        tool_call("start_skill", skill="order"),
        "Do you agree to the terms?",
        tool_call("set_fields", agreed=True),
    ]
    bench = caller(tmp_path, HELD, script)
    said = await bench.says("order")
    assert said.messages == ["Do you agree to the terms?"]
    assert (bench.events("tool_executed"), bench.stack) == ([], ["order"])
    assert (await bench.says("yes I do")).messages[0] == "Shipped."
    assert len(bench.events("tool_executed")) == 1


# --- faults ------------------------------------------------------------------------------------

FAULTS = """
import asyncio

@tool(description="raises")
async def raises() -> ToolResult:
    raise RuntimeError("database password is hunter2")

@tool(description="slow")
async def slow() -> ToolResult:
    await asyncio.sleep(60)

@tool(description="bare")
async def bare():
    return {"ok": True}

@tool(description="odd")
async def odd() -> ToolResult:
    return ToolResult(llm_response={1: object, "set": {1}})

@tool(description="huge")
async def huge() -> ToolResult:
    return ToolResult(llm_response="x" * 50_000)

@tool(description="selfish")
async def selfish() -> ToolResult:
    raise asyncio.CancelledError

@tool(description="undeclared")
async def undeclared(context: ToolContext = None) -> ToolResult:
    context.memory.set("no" + "pe", 1)
    return ToolResult()
"""


@pytest.mark.parametrize(
    ("name", "success", "part"),
    [
        ("raises", False, "RuntimeError"),
        ("slow", False, "longer than 10 seconds"),
        ("bare", True, '{"ok": true}'),
        ("odd", True, '"1"'),
        ("selfish", False, "cancelled from within"),
        ("undeclared", False, "no field 'nope'"),
    ],
)
def test_a_tool_that_misbehaves_is_recorded_and_the_turn_goes_on(
    tmp_path: Path, name: str, success: bool, part: str
) -> None:
    @virtual_time
    async def scenario() -> None:
        files = {**TALK, "skills/talk/tools.py": IMPORT + FAULTS}
        bench = caller(tmp_path, files, [tool_call("start_skill", skill="talk"), tool_call(name), "Sorry about that."])
        said = await bench.says("go")
        assert said.messages == ["Sorry about that."]
        assert said.result.status is TurnStatus.COMPLETED
        (event,) = bench.events("tool_executed")
        assert (event["success"], part in event["result_json"]) == (success, True), event

    scenario()


async def test_a_huge_result_is_cut_for_the_prompt_and_whole_in_the_tracker(tmp_path: Path) -> None:
    files = {**TALK, "skills/talk/tools.py": IMPORT + FAULTS}
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="talk"), tool_call("huge"), "Long."])
    await bench.says("go")
    assert len(bench.events("tool_executed")[0]["result_json"]) > 50_000
    assert len(bench.model.requests[2].messages[-1].content) < 10_000


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"', "{" * 500, '{"a": NaN}', '{"a": 1e999}'])
async def test_arguments_that_are_no_object_go_back_to_the_model(tmp_path: Path, arguments: str) -> None:
    broken = [ToolCallDelta(0, "c", "look", arguments)]
    bench = caller(tmp_path, LOOKUP, [tool_call("start_skill", skill="talk"), broken, "Sorry."])
    assert (await bench.says("go")).messages == ["Sorry."]
    assert bench.events("tool_executed") == []


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_model_that_fails_is_apologised_for_and_the_stack_stays_as_it_was(tmp_path: Path, at: int) -> None:
    failing: list[Any] = [ModelError("provider down")]
    script = {
        0: failing,
        1: [tool_call("start_skill", skill="talk"), *failing],
        2: [[TextDelta("Your balance "), ModelError("cut")]],
    }[at]
    bench = caller(tmp_path, LOOKUP, script)
    said = await bench.says("go")
    assert said.result.status is TurnStatus.ERROR
    assert said.sink.responses == ["utter_internal_error"]
    assert "provider down" in (said.result.error or "") or at == 2
    assert bench.stack == (["talk"] if at == 1 else [])
    assert all(item.end for item in said.sink.items[-1:] if isinstance(item, Say))


async def test_an_unexpected_fault_is_never_heard(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, [ValueError("secret path /etc/x")])
    said = await bench.says("go")
    assert said.result.status is TurnStatus.ERROR
    assert "secret" not in said.sink.text


async def test_a_block_that_goes_in_circles_ends_with_an_apology_and_is_not_entered_again(tmp_path: Path) -> None:
    files = {
        "skills/spin/skill.md": skill(
            block(
                """
                - id: a
                  noop: true
                  next:
                    - if: session.spin.enough
                      then: END
                    - else: b
                - id: b
                  noop: true
                  next: a
                """
            ),
            description="Spin.",
        ),
        "skills/spin/memory.yml": "schema: {public: {enough: {type: bool}}}\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="spin"), "Hello."])
    said = await bench.says("spin")
    assert (said.result.status, said.sink.responses) == (TurnStatus.ERROR, ["utter_internal_error"])
    assert bench.stack == []
    assert (await bench.says("hi")).messages == ["Hello."]


# --- other steps -------------------------------------------------------------------------------


async def test_calling_a_block_comes_back_and_linking_a_skill_does_not(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            block("- call: sub\n- action: utter_back\n- link: '@skill.b'\n- action: utter_never\n")
            + block("- action: utter_sub", "sub"),
            description="A.",
        ),
        "skills/b/skill.md": skill(block("- action: utter_b"), description="B."),
        "responses.yml": "responses: {utter_sub: Sub., utter_back: Back., utter_b: B., utter_never: Never.}\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="a")])
    said = await bench.says("a")
    assert said.messages[:3] == ["Sub.", "Back.", "B."]
    assert "Never." not in said.messages


async def test_a_called_skill_returns_to_the_block_that_called_it(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(block("- call: '@skill.ask'\n- action: utter_back"), description="A."),
        "skills/ask/skill.md": skill(block("- collect: name\n  utterance: utter_ask"), description="Ask."),
        "skills/ask/memory.yml": "schema:\n  public:\n    name: {type: text}\n",
        "responses.yml": "responses:\n  utter_ask: Who?\n  utter_back: Hello {session.ask.name}.\n",
    }
    script = [tool_call("start_skill", skill="a"), tool_call("listen"), tool_call("set_fields", name="Ann")]
    bench = caller(tmp_path, files, script)
    assert (await bench.says("a")).messages == ["Who?"]
    assert (await bench.says("Ann")).messages[0] == "Hello Ann."


async def test_instructions_converse_until_their_condition_holds(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            block(
                """
                - id: talk
                  instructions: Find out the mood.
                  complete_when: session.a.mood
                - action: utter_end
                """
            ),
            description="A.",
        ),
        "skills/a/memory.yml": "schema:\n  public:\n    mood: {type: text, llm_settable: true}\n",
        "skills/a/responses.yml": "responses: {utter_end: Glad to hear.}\n",
    }
    script = [
        tool_call("start_skill", skill="a"),
        "How do you feel?",
        "Go on?",
        tool_call("set_fields", mood="good"),
    ]
    bench = caller(tmp_path, files, script)
    assert (await bench.says("a")).messages == ["How do you feel?"]
    assert "Find out the mood." in bench.model.requests[1].messages[0].content
    assert (await bench.says("hm")).messages == ["Go on?"]
    assert (await bench.says("good")).messages[0] == "Glad to hear."


async def test_a_listen_step_waits_and_then_goes_on(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            block("- action: utter_one\n- execute_tool: listen\n- action: utter_two"), description="A."
        ),
        "responses.yml": "responses: {utter_one: One., utter_two: Two.}\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="a")])
    assert (await bench.says("a")).messages == ["One."]
    assert (await bench.says("hm")).messages[0] == "Two."


async def test_triggers_speak_on_activation_and_once_when_their_condition_becomes_true(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            "Chat.", utter="[{utter_notice: {on: activate}}, {utter_mood: {when: session.a.mood == 'bad'}}]"
        ),
        "skills/a/memory.yml": "schema:\n  public:\n    mood: {type: text, llm_settable: true}\n",
        "skills/a/responses.yml": "responses: {utter_notice: Recorded., utter_mood: Oh dear.}\n",
    }
    script = [tool_call("start_skill", skill="a"), "Hm."]
    for mood in ("bad", "good", "bad"):
        script += [tool_call("set_fields", mood=mood), "Hm."]
    bench = caller(tmp_path, files, [script[0], tool_call("listen"), *script[2:]])
    assert (await bench.says("a")).messages == ["Recorded."]
    said = [await bench.says(text) for text in ("bad", "good", "bad")]
    assert [s.messages for s in said] == [["Oh dear.", "Hm."], ["Hm."], ["Hm."]]


async def test_hanging_up_comes_after_the_texts_before_it_and_nothing_comes_after(tmp_path: Path) -> None:
    files = {
        "skills/bye/skill.md": skill(
            block("- action: utter_hangup_goodbye\n- execute_tool: hangup\n- action: utter_cannot_help")
        ),
        **TALK,
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="bye"), tool_call("hangup"), "Still here."])
    said = await bench.says("bye")
    assert [type(item).__name__ for item in said.sink.items] == ["Say", "HangUp"]
    # The caller spoke during the goodbye: the conversation simply goes on.
    said = await bench.says("wait")
    assert [type(item).__name__ for item in said.sink.items] == ["Say", "HangUp"]
    assert said.sink.responses == ["utter_hangup_goodbye"]
    assert (await bench.says("hello?")).messages == ["Still here."]


# --- knowledge ---------------------------------------------------------------------------------

HOURS = {**TALK, "references/hours.md": "# Opening hours\n\n## Shops\nShops open at nine.\n\n## Fees\nNo fees.\n"}


async def test_giving_up_comes_after_searching_when_there_is_something_to_search(tmp_path: Path) -> None:
    script = [tool_call("search_knowledge", query="opening hours"), tool_call("cannot_help", reason="not found")]
    bench = caller(tmp_path, HOURS, script)
    said = await bench.says("do you sell boats?")
    first, second = bench.model.requests
    assert ("cannot_help" in tools_of(first), "cannot_help" in tools_of(second)) == (False, True)
    assert (first.scope.has_knowledge, first.scope.utterance) == (True, "do you sell boats?")
    found = json.loads(second.messages[-1].content)
    passage = {"title": "Opening hours - Shops", "text": "Shops open at nine.", "source": "references/hours.md"}
    assert found["passages"][0] == passage
    assert said.sink.responses == ["utter_cannot_help"]


async def test_giving_up_before_searching_is_refused(tmp_path: Path) -> None:
    bench = caller(tmp_path, HOURS, [tool_call("cannot_help", reason="x"), "Let me see."])
    assert (await bench.says("hm")).messages == ["Let me see."]


# --- data stays data ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["/session_start", "please /session_start now", "/silence", "{name} {0} %s ${HOME}"])
async def test_what_a_caller_says_is_neither_a_command_nor_a_template(tmp_path: Path, text: str) -> None:
    bench = caller(tmp_path, TALK, ["Pardon?"])
    assert (await bench.says(text)).messages == ["Pardon?"]
    assert bench.model.requests[0].messages[-1] == Message("user", text)


async def test_an_intent_never_reaches_the_model(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, ["Hello."])
    await bench.says(SESSION_START)
    await bench.says(UserInput("/something_else", InputKind.INTENT))
    await bench.says("hi")
    assert len(bench.model.requests) == 1
    assert not any("/s" in m.content for m in bench.model.requests[0].messages)


async def test_text_in_a_memory_value_is_not_filled_in_again(tmp_path: Path) -> None:
    files = {
        **BOOKING,
        "skills/book/memory.yml": "schema:\n  public:\n    code: {type: text}\n  private:\n    day: {type: text}\n",
    }
    script = [tool_call("start_skill", skill="book"), tool_call("set_fields", day="{code}")]
    bench = caller(tmp_path, files, script)
    assert (await bench.says("book {code}")).messages[0] == "Booked for {code}, code X1."


async def test_a_stream_is_said_piece_by_piece(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, ["One two three."])
    said = await bench.says("count")
    assert [i.text for i in said.sink.items if isinstance(i, Say)] == ["One", " two", " three.", ""]
    assert said.result.marks.keys() == {"model_request", "first_token"}


async def test_a_model_that_never_stops_talking_is_cut(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK, model=ScriptedModel([[TextDelta("la ") for _ in range(20_000)]]))
    said = await bench.says("sing")
    assert len(said.sink.text) < 21_000
