"""The model answered and called a tool in one reply, and was then made to answer a second time.

Right: when nothing is left to say after the tool, nothing is said.
"""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill

FILES = {
    "skills/desk/skill.md": skill("Help."),
    "skills/desk/memory.yml": "schema: {public: {name: {type: text, llm_settable: true}}}\n",
    "skills/desk/tools.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Write it down")
        async def note() -> ToolResult:
            return ToolResult(llm_response="noted")
        """,
    "skills/ask/skill.md": skill(
        block("- collect: name\n  utterance: utter_ask\n- action: utter_end"), description="Ask."
    ),
    "skills/ask/memory.yml": "schema: {public: {name: {type: text}}}\n",
    "skills/ask/responses.yml": "responses:\n  utter_ask: Who?\n  utter_end: Thank you.\n",
}
DESK, ASK = tool_call("start_skill", skill="desk"), tool_call("start_skill", skill="ask")


async def test_a_model_with_nothing_to_add_adds_nothing(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [DESK, ["I have noted it. ", tool_call("note")], tool_call("listen")])
    assert [text.strip() for text in (await bench.says("note it")).messages] == ["I have noted it."]
    assert "call listen alone if nothing is left to say" in bench.model.requests[2].messages[0].content


async def test_words_beside_a_value_in_answer_to_a_question_are_the_only_ones(tmp_path: Path) -> None:
    set_it = ["Thanks, Ann. ", tool_call("set_fields", name="Ann")]
    bench = caller(tmp_path, FILES, [ASK, tool_call("listen"), set_it])
    await bench.says("hi")
    said = await bench.says("Ann")
    assert [text.strip() for text in said.messages][:2] == ["Thanks, Ann.", "Thank you."]
    assert said.result.model_calls == 1


async def test_a_result_that_nothing_has_answered_is_answered_in_a_second_reply(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [DESK, ["One moment. ", tool_call("note")], "It is noted."])
    assert [text.strip() for text in (await bench.says("note it")).messages] == ["One moment.", "It is noted."]
