"""Every section of a prompt keeps within its tokens and says where it was cut; what a turn sent can be looked at."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import block, caller, skill
from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.dialogue.prompt_sections import Section, estimate, fit, message_tokens, shorten
from voice_agent.llm.protocol import Message

START = tool_call("start_skill", skill="a")
TOOLS = """
from voice_agent.dialogue import tool, ToolResult

@tool(description="Look it up")
async def look_up() -> ToolResult:
    return ToolResult(llm_response="x" * 4000)
"""
FILES = {
    "agent.yml": """
        agent: {id: t, name: Nora, persona: Calm.}
        prompts: {instructions_tokens: 100, memory_tokens: 50, history_tokens: 200, turn_tokens: 600}
        """,
    "skills/a/skill.md": skill("\n\n".join(f"Instruction {n}: do it well." for n in range(100)), description="A."),
    "skills/a/memory.yml": "schema: {public: {note: {type: text, llm_settable: true}}}\n",
    "skills/a/tools.py": TOOLS,
}


@given(text=st.text(max_size=400), tokens=st.integers(1, 60))
def test_a_section_never_takes_much_more_than_its_tokens_and_never_grows(text: str, tokens: int) -> None:
    cut = fit(Section("x", "", text), tokens)
    assert (cut.omitted == 0) == (cut.body == text)
    if cut.omitted:
        kept = cut.body.rpartition("\n[")[0]
        assert text.startswith(kept)
        assert estimate(kept) <= tokens
        assert f"{len(text) - len(kept)} more characters" in cut.body


def test_scripts_that_take_more_tokens_are_counted_so() -> None:
    assert estimate("добрый день") > estimate("a good day!")


async def test_long_instructions_are_cut_at_a_line_and_say_so(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, "Hello."])
    await bench.says("hi")
    system = bench.model.requests[1].messages[0].content
    assert "Instruction 0: do it well." in system
    assert "Instruction 99" not in system
    assert "more characters are left out here]" in system


async def test_old_turns_go_first_and_the_model_is_told_that_they_are_gone(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, model=ScriptedModel(then="A reply of some length, for the history."))
    for n in range(20):
        await bench.says(f"question number {n}")
    messages = bench.model.requests[-1].messages
    assert sum(map(message_tokens, messages[1:-1])) <= 200
    assert messages[-1].content == "question number 19"
    assert messages[-3].content == "question number 18"
    assert "The beginning of this conversation is left out" in messages[0].content
    assert "left out" not in bench.model.requests[0].messages[0].content


async def test_the_oldest_results_of_a_long_turn_are_shortened_and_calls_keep_their_results(tmp_path: Path) -> None:
    look_up = tool_call("look_up")
    bench = caller(tmp_path, FILES, [START, [look_up], [tool_call("listen"), look_up], "Done."])
    await bench.says("hi")
    messages = bench.model.requests[3].messages
    results = [m for m in messages if m.role == "tool" and m.name == "look_up"]
    assert "left out" in results[0].content
    assert {m.tool_call_id for m in messages if m.role == "tool"} == {c.id for m in messages for c in m.tool_calls}


def test_shortening_leaves_a_short_turn_alone() -> None:
    scratch = [Message("assistant", "hello"), Message("tool", "x" * 300)]
    assert shorten(scratch, 10_000) == scratch
    assert shorten(scratch, 1) == scratch


async def test_the_exact_prompts_of_a_turn_can_be_listened_to(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, "Hello.", "Bye."])
    records: list[ModelCallRecord] = []
    forget = bench.conversation.on_model_call(records.append)
    await bench.says("hi")
    assert [r.request for r in records] == bench.model.requests
    assert [r.turn_id for r in records] == ["t0", "t0"]
    assert [r.reply.text if r.reply else None for r in records] == ["", "Hello."]
    text = "\n\n".join(section.text for section in records[1].sections)
    assert text == records[1].request.messages[0].content
    keys = [section.key for section in records[1].sections]
    assert keys == ["persona", "rules", "style", "skills", "clock", "skill", "instructions", "situation"]
    forget()
    await bench.says("bye")
    assert len(records) == 2


async def test_a_listener_that_raises_and_a_call_that_fails_hurt_nobody(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [RuntimeError("bug"), "Hello."])
    records: list[ModelCallRecord] = []

    def broken(record: ModelCallRecord) -> None:
        records.append(record)
        raise RuntimeError("listener")

    bench.conversation.on_model_call(broken)
    await bench.says("hi")
    assert (await bench.says("hi")).messages == ["Hello."]
    assert [r.reply is None for r in records] == [True, False]


async def test_a_preview_is_the_prompt_the_next_turn_sends_and_changes_nothing(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, "Hello.", "Bye."])
    await bench.says("hi")
    before = len(bench.conversation.events)
    preview = bench.conversation.prompt_preview("and now?")
    assert len(bench.conversation.events) == before
    await bench.says("and now?")
    assert tuple(bench.model.requests[2].messages) == preview.messages
    assert tuple(bench.model.requests[2].tools) == preview.offer.specs
    assert preview.tokens > 100


async def test_in_speech_the_model_says_a_few_words_before_a_tool_in_its_first_reply_only(tmp_path: Path) -> None:
    script = [START, "Hi.", ["Let me look. ", tool_call("look_up")], "Here it is."]
    bench = caller(tmp_path, FILES, script, channel="websocket")
    await bench.says("hi")
    said = await bench.says("look it up")
    assert [text.strip() for text in said.messages] == ["Let me look.", "Here it is."]
    asked = ["say a few words in the same response" in r.messages[0].content for r in bench.model.requests]
    # Not in the first call, in which no tool that takes time is on offer, nor after the first reply of a turn.
    assert asked == [False, False, True, False]
    assert "Go on from what you have already said" in bench.model.requests[3].messages[0].content


async def test_in_text_there_are_no_such_words_unless_the_project_wants_them(tmp_path: Path) -> None:
    for wanted in (False, True):
        text = FILES["agent.yml"].replace("prompts: {", "prompts: {ack_enabled: true, " if wanted else "prompts: {")
        bench = caller(tmp_path, {**FILES, "agent.yml": text}, [START, "Hi.", "Ho."])
        await bench.says("hi")
        await bench.says("ho")
        assert ("say a few words" in bench.model.requests[2].messages[0].content) is wanted


async def test_wording_said_in_this_turn_is_known_to_the_model_without_its_values(tmp_path: Path) -> None:
    files = {
        "skills/a/skill.md": skill(
            block("- action: utter_hello\n- id: talk\n  instructions: Talk.\n  complete_when: session.a.done"),
            description="A.",
        ),
        "skills/a/memory.yml": "schema: {public: {done: {type: bool}, name: {type: text, initial_value: INJECTED}}}\n",
        "skills/a/responses.yml": "responses:\n  utter_hello: 'Hello {name}.'\n",
    }
    bench = caller(tmp_path, files, [START, "How are you?"])
    assert (await bench.says("hi")).messages == ["Hello INJECTED.", "How are you?"]
    assert "You have just said: Hello {name}." in bench.model.requests[1].messages[0].content
