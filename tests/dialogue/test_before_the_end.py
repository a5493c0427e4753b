"""What is to come before the end of a call comes once, whoever ends it, and never keeps a caller who wants to go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, block, caller, skill, write_project
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.reply import SILENCE
from voice_agent.llm.embedded.model import EmbeddedModel
from voice_agent.store import MemoryStore

AGENT = "agent: {id: t, persona: Calm.}\nconversation: {before_end: [default_customer_satisfaction]}\n"
FILES = {
    "agent.yml": AGENT,
    "skills/a/skill.md": skill("Talk.", description="A."),
    "skills/bye/skill.md": skill(block("- execute_tool: hangup"), description="Bye."),
}
HANG_UP = tool_call("hangup")
QUESTION, GOODBYE = (
    "Before you go: from one to five, how satisfied are you with this call?",
    "Thank you for calling. Goodbye.",
)


def rate(rating: int) -> object:
    return tool_call("set_fields", rating=rating)


def bench_of(root: Path, *script: object, **more: str) -> Caller:
    return caller(root, {**FILES, **more}, list(script))  # type: ignore[arg-type]


async def test_the_caller_is_asked_thanked_and_let_go(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, HANG_UP, rate(5))
    said = await bench.says("bye")
    assert (said.messages, said.sink.hung_up) == ([QUESTION], False)
    said = await bench.says("five")
    assert said.messages == ["Thank you, that is good to hear.", GOODBYE]
    assert said.sink.hung_up
    assert [e["value_json"] for e in bench.events("memory_set")] == ["5"]
    assert [e["tool"] for e in bench.events("tool_executed")] == ["hangup"]


async def test_a_low_rating_gets_a_word_of_regret_and_an_impossible_one_another_question(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, HANG_UP, rate(9), rate(2))
    await bench.says("bye")
    assert (await bench.says("nine")).sink.responses == ["utter_satisfaction_scale", "utter_ask_satisfaction"]
    said = await bench.says("two")
    assert said.sink.responses == ["utter_satisfaction_sorry", "utter_hangup_goodbye"]


async def test_a_step_that_hangs_up_lets_it_come_first(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, tool_call("start_skill", skill="bye"), rate(4))
    said = await bench.says("bye")
    assert (said.messages, said.sink.hung_up) == ([QUESTION], False)
    assert (await bench.says("four")).sink.hung_up


@pytest.mark.parametrize("refusal", [HANG_UP, tool_call("cancel_skill")])
async def test_a_caller_who_does_not_want_to_answer_is_let_go_at_once(tmp_path: Path, refusal: object) -> None:
    bench = bench_of(tmp_path, HANG_UP, refusal)
    await bench.says("bye")
    said = await bench.says("no, goodbye")
    assert (said.messages, said.sink.hung_up) == ([GOODBYE], True)


async def test_a_caller_who_wants_something_after_all_is_helped_and_asked_at_the_real_end(tmp_path: Path) -> None:
    start = tool_call("start_skill", skill="a")
    bench = bench_of(tmp_path, HANG_UP, start, "Of course.", tool_call("complete"), HANG_UP, rate(5))
    await bench.says("bye")
    assert (await bench.says("wait, one more thing")).messages == ["Of course."]
    assert bench.stack == ["a"]
    await bench.says("that was it")
    assert (await bench.says("bye")).messages == [QUESTION]
    assert (await bench.says("five")).sink.hung_up


async def test_it_comes_once_in_a_session_even_if_the_goodbye_is_interrupted(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, HANG_UP, rate(5), "Yes?", HANG_UP)
    await bench.says("bye")
    await bench.says("five")
    assert (await bench.says("oh, wait")).messages == ["Yes?"]
    said = await bench.says("never mind, bye")
    assert (said.messages, said.sink.hung_up) == ([GOODBYE], True)


async def test_a_caller_who_has_gone_silent_is_not_asked(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "Hello.")
    await bench.says("hi")
    said = [await bench.says(SILENCE) for _ in range(3)][-1]
    assert (said.sink.responses, said.sink.hung_up) == (["utter_silence_goodbye"], True)


async def test_silence_after_the_question_ends_in_the_goodbye_of_silence(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, HANG_UP)
    await bench.says("bye")
    said = [await bench.says(SILENCE) for _ in range(3)][-1]
    assert said.sink.hung_up
    assert bench.stack == []


async def test_several_skills_come_one_after_the_other(tmp_path: Path) -> None:
    own = {
        "agent.yml": "agent: {id: t, persona: Calm.}\nconversation: {before_end: [one, two]}\n",
        "skills/one/skill.md": skill(block("- action: utter_one"), routing="{engine_managed: true}"),
        "skills/two/skill.md": skill(block("- action: utter_two"), routing="{engine_managed: true}"),
        "responses.yml": "responses: {utter_one: One., utter_two: Two.}\n",
    }
    bench = bench_of(tmp_path, HANG_UP, **own)
    said = await bench.says("bye")
    assert (said.messages, said.sink.hung_up) == (["One.", "Two.", GOODBYE], True)


async def test_the_question_before_the_end_survives_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    first = caller(tmp_path, FILES, [HANG_UP], store=store)
    await first.says("bye")
    second = caller(tmp_path, FILES, [rate(5)], store=store)
    said = await second.says("five")
    assert (said.messages[-1], said.sink.hung_up) == (GOODBYE, True)


def test_a_skill_that_does_not_exist_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    files = {**FILES, "agent.yml": AGENT.replace("satisfaction", "satisfactoin")}
    with pytest.raises(ProjectError, match="Did you mean 'default_customer_satisfaction'"):
        Agent.load(load_config(write_project(tmp_path, files), {}), None)  # type: ignore[arg-type]


@pytest.mark.models
async def test_the_embedded_model_understands_the_answers(tmp_path: Path) -> None:
    model = EmbeddedModel()
    await model.warm_up()
    try:
        for answer, response in (("I would say four", "thanks"), ("one", "sorry"), ("no thanks", None)):
            bench = caller(tmp_path, FILES, model=model)
            assert (await bench.says("goodbye")).messages == [QUESTION]
            said = await bench.says(answer)
            assert said.sink.hung_up
            names = [f"utter_satisfaction_{response}"] if response else []
            assert said.sink.responses == [*names, "utter_hangup_goodbye"]
    finally:
        await model.aclose()
