"""Ordered blocks in whole turns: prose around them, calls, links, arguments, and what must not hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill, write_project
from voice_agent.dialogue.loader import load_project
from voice_agent.store import MemoryStore

TOOLS = """
from voice_agent.dialogue import tool, ToolContext, ToolResult

@tool(description="Fetch")
async def fetch(size: int, colour: str = "red", owner: str = "nobody") -> ToolResult:
    return ToolResult(llm_response=[size, colour, owner])
"""
MEMORY = "schema: {public: {size: {type: int, llm_settable: true}, note: {type: text}}}\n"


def one(body: str, **more: str) -> dict[str, str]:
    return {
        "skills/a/skill.md": skill(body),
        "skills/a/memory.yml": MEMORY,
        "skills/a/tools.py": TOOLS,
        "memory.yml": "owner: {type: text, seed: true}\n",
        "responses.yml": "responses: {utter_one: One., utter_two: Two., utter_three: Three.}\n",
        **more,
    }


START = tool_call("start_skill", skill="a")


async def test_prose_runs_its_blocks_when_the_model_says_so_and_goes_on_afterwards(tmp_path: Path) -> None:
    body = (
        "Greet, then run @block.first.\n\n" + block("- action: utter_one", "first") + block("- action: utter_two", "x")
    )
    script = [START, "Hello!", tool_call("run_block", block="first"), "So, what else?", tool_call("complete")]
    bench = caller(tmp_path, one(body), script)
    assert (await bench.says("start")).messages == ["Hello!"]
    assert {t.name for t in bench.model.requests[1].tools} >= {"run_block", "complete"}
    assert (await bench.says("go")).messages == ["One.", "So, what else?"]
    await bench.says("nothing")
    assert bench.stack == []
    kinds = [k for k in bench.kinds if k.startswith("ordered_block")]
    assert kinds.count("ordered_block_started") == kinds.count("ordered_block_completed")


async def test_a_block_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    body = "Talk.\n\n" + block("- action: utter_one", "first")
    bench = caller(tmp_path, one(body), [START, tool_call("run_block", block="nope"), "Sorry."])
    assert (await bench.says("go")).messages == ["Sorry."]


async def test_a_link_to_a_block_does_not_come_back(tmp_path: Path) -> None:
    body = block("- action: utter_one\n- link: '@block.other'\n- action: utter_three") + block(
        "- action: utter_two", "other"
    )
    bench = caller(tmp_path, one(body), [START])
    assert (await bench.says("go")).messages[:-1] == ["One.", "Two."]


async def test_a_call_to_a_skill_whose_gate_is_shut_is_passed_over(tmp_path: Path) -> None:
    shut = skill(block("- action: utter_two"), requires="session.project.owner")
    body = block("- call: '@skill.b'\n- action: utter_one")
    bench = caller(tmp_path, one(body, **{"skills/b/skill.md": shut}), [START])
    assert (await bench.says("go")).messages[0] == "One."


async def test_blocks_that_call_each_other_for_ever_are_stopped(tmp_path: Path) -> None:
    body = block("- call: second") + block("- call: main", "second")
    bench = caller(tmp_path, one(body), [START, "Hello."])
    await bench.says("go")
    assert bench.stack == []
    assert (await bench.says("hi")).messages == ["Hello."]


async def test_arguments_come_from_the_step_then_from_memory_then_from_the_tool(tmp_path: Path) -> None:
    body = block(
        """
        - execute_tool: fetch
          args: {size: 7, owner: session.project.owner}
        - set_memory: {size: 3}
        - execute_tool: fetch
        """
    )
    bench = caller(tmp_path, one(body), [START], metadata={"owner": "Ann"})
    await bench.says("go")
    arguments = [e["arguments_json"] for e in bench.events("tool_executed")]
    assert arguments == ['{"size": 7, "owner": "Ann"}', '{"size": 3, "owner": "Ann"}']
    assert [e["result_json"] for e in bench.events("tool_executed")][1] == '[3, "red", "Ann"]'


async def test_a_step_without_its_argument_fails_in_words_and_the_block_goes_on(tmp_path: Path) -> None:
    bench = caller(tmp_path, one(block("- execute_tool: fetch\n- action: utter_one")), [START, "?"])
    assert (await bench.says("go")).messages[0] == "One."
    (event,) = bench.events("tool_executed")
    assert (event["success"], "size" in event["result_json"]) == (False, True)


async def test_a_question_without_wording_is_worded_by_the_model(tmp_path: Path) -> None:
    script = [START, tool_call("listen"), "Which size, please?", tool_call("set_fields", size=4)]
    bench = caller(tmp_path, one(block("- collect: size\n- action: utter_one")), script)
    assert (await bench.says("go")).messages == ["Which size, please?"]
    assert (await bench.says("four")).messages[0] == "One."
    assert [p.id for p in bench.agent.problems] == ["skill.block.no_utterance"]


async def test_a_question_named_after_its_field_needs_no_utterance(tmp_path: Path) -> None:
    more = {"skills/a/responses.yml": "responses:\n  utter_ask_size: Which size?\n"}
    bench = caller(tmp_path, one(block("- collect: size\n- action: utter_one"), **more), [START, tool_call("listen")])
    assert (await bench.says("go")).messages == ["Which size?"]


async def test_memory_that_a_step_may_not_write_is_left_alone(tmp_path: Path) -> None:
    body = block("- set_memory: {owner: Bob, note: x}\n- action: utter_one")
    bench = caller(tmp_path, one(body), [START], metadata={"owner": "Ann"})
    assert (await bench.says("go")).messages[0] == "One."
    assert (bench.read("project", "owner"), bench.read("a", "note")) == ("Ann", "x")


async def test_no_branch_that_holds_ends_the_block_and_the_skill(tmp_path: Path) -> None:
    body = block("- noop: true\n  next:\n    - if: session.a.note\n      then: END\n- action: utter_one")
    bench = caller(tmp_path, one(body), [START])
    await bench.says("go")
    assert bench.stack == []
    assert "One." not in str(bench.events("bot"))


async def test_wording_after_a_successful_tool_is_said(tmp_path: Path) -> None:
    front = {"tool_constraints": "[{fetch: {on_success: utter_two, description: Only for sizes.}}]"}
    files = one("Talk.")
    files["skills/a/skill.md"] = skill("Talk.", **front)
    bench = caller(tmp_path, files, [START, tool_call("fetch", size=1)])
    assert (await bench.says("go")).messages == ["Two."]
    (offered,) = [t for t in bench.model.requests[1].tools if t.name == "fetch"]
    assert offered.description == "Only for sizes."


@pytest.mark.parametrize(("result", "said"), [("{'ok': False}", []), ("{'ok': True}", ["Two."]), ("{}", ["Two."])])
@pytest.mark.parametrize("held", [False, True])
async def test_wording_after_success_is_not_said_when_the_result_says_that_nothing_was_achieved(
    tmp_path: Path, result: str, said: list[str], held: bool
) -> None:
    confirmation = "{enabled: true, utter_for_confirmation: utter_three}"
    constraint = (
        f"{{requires_confirmation: {confirmation}, on_success: utter_two}}" if held else "{on_success: utter_two}"
    )
    files = one(block("- execute_tool: fetch\n  args: {size: 1}\n- action: utter_one"))
    files["skills/a/skill.md"] = files["skills/a/skill.md"].replace(
        "---\n:::", f"tool_constraints: [{{fetch: {constraint}}}]\n---\n:::"
    )
    files["skills/a/tools.py"] = TOOLS.replace("[size, colour, owner]", result)
    bench = caller(tmp_path, files, [START, tool_call("confirm")])
    heard = (await bench.says("go")).messages
    if held:
        heard = (await bench.says("yes")).messages
    assert heard[:-1] == [*said, "One."]


async def test_a_skills_own_references_are_searched_while_it_is_active(tmp_path: Path) -> None:
    more = {"skills/a/references/sizes.md": "# Sizes\n\nWe have three sizes.\n"}
    script = [START, tool_call("search_knowledge", query="sizes"), "Three."]
    bench = caller(tmp_path, one("Talk.", **more), script)
    await bench.says("which sizes do you have?")
    assert not bench.model.requests[0].scope.has_knowledge
    assert "three sizes" in bench.model.requests[2].messages[-1].content


async def test_a_held_question_and_its_place_survive_a_restart(tmp_path: Path) -> None:
    files = one(block("- execute_tool: fetch\n  args: {size: 1}\n- action: utter_one"))
    files["skills/a/skill.md"] = files["skills/a/skill.md"].replace(
        "---\n:::", "tool_constraints: [{fetch: {requires_confirmation: {enabled: true}}}]\n---\n:::"
    )
    store = MemoryStore()
    first = caller(tmp_path, files, [START], store=store)
    assert (await first.says("go")).sink.responses == ["utter_confirm"]
    later = caller(tmp_path, files, [tool_call("confirm")], store=store)
    assert (await later.says("yes")).messages[0] == "One."
    assert len(later.events("tool_executed")) == 1


async def test_words_said_while_a_block_goes_on_by_itself_are_answered_after_it(tmp_path: Path) -> None:
    body = block("- action: utter_one\n- execute_tool: listen\n- action: utter_two\n- execute_tool: listen")
    bench = caller(tmp_path, one(body), [START, "You are welcome."])
    assert (await bench.says("go")).messages == ["One."]
    assert (await bench.says("mm")).messages == ["Two."]
    # The last listen was answered by these words, so nothing is owed for them.
    assert (await bench.says("thanks")).sink.responses == ["utter_completed"]


@pytest.mark.parametrize(
    ("source", "id", "line"),
    [
        ("import nothing_of_this_name\n", "tool.import", 1),
        ("x = 1\ndef (:\n", "tool.syntax", 2),
        ("x = 1\ny = 2\nraise SystemError('no')\n", "tool.import", 3),
    ],
)
def test_a_tool_file_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, source: str, id: str, line: int
) -> None:
    _, problems = load_project(write_project(tmp_path, {**one("Talk."), "skills/a/tools.py": source}))
    assert (id, line) in {(p.id, p.line) for p in problems}
