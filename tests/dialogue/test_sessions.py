"""Sessions begin once, greet once, expire, and come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import AGENT, block, caller, skill
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import SESSION_START, SILENCE, HeardReply, TurnStatus
from voice_agent.store import MemoryStore

TALK = {"skills/talk/skill.md": skill("Chat.")}
GREETING = {
    **TALK,
    "skills/default_session_start/skill.md": skill(
        block("- execute_tool: prepare\n- action: utter_greet"), routing="{engine_managed: true}"
    ),
    "skills/default_session_start/responses.yml": "responses:\n  utter_greet: Welcome{name}.\n",
    "skills/default_session_start/tools.py": """
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="x")
        async def prepare(context: ToolContext = None) -> ToolResult:
            if context.memory.get("phone") == "broken":
                raise RuntimeError("no database")
            context.memory.set("name", ", Ann")
            return ToolResult()
        """,
    "memory.yml": "name: {type: text}\nphone: {type: text, seed: true}\n",
}


async def test_the_bundled_session_start_is_silent_and_needs_no_model(tmp_path: Path) -> None:
    bench = caller(tmp_path, TALK)
    said = await bench.connects()
    assert (said.messages, said.result.status, said.result.model_calls) == ([], TurnStatus.COMPLETED, 0)


async def test_an_override_prepares_and_greets_first(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING)
    assert (await bench.connects()).messages == ["Welcome, Ann."]


async def test_connecting_twice_greets_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING)
    await bench.connects()
    assert (await bench.connects()).messages == []


async def test_a_later_session_start_on_a_live_session_greets_again(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["Hello."])
    await bench.connects()
    await bench.says("hi")
    bench.calendar.advance(seconds=60)
    assert (await bench.connects()).messages == ["Welcome, Ann."]


async def test_a_caller_who_speaks_first_is_greeted_and_answered_in_one_request(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["Sure."])
    said = await bench.says("can you help me?")
    assert said.messages == ["Welcome, Ann.", "Sure."]
    assert [item.message for item in said.sink.items][:2] == [0, 1]  # type: ignore[union-attr]
    assert [e["number"] for e in bench.events("turn_started")] == [1, 2]
    assert [e["text"] for e in bench.events("user")] == ["/session_start", "can you help me?"]


async def test_an_expired_session_forgets_everything_but_the_tracker(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, [tool_call("start_skill", skill="talk"), "Hi.", "Anew."])
    await bench.says("hi")
    session = bench.conversation.events[-1]["session_id"]
    bench.calendar.advance(minutes=61)
    said = await bench.says("hello again")
    assert said.messages == ["Welcome, Ann.", "Anew."]
    assert bench.stack == []
    assert bench.conversation.events[-1]["session_id"] != session
    assert [m.content for m in bench.model.requests[2].messages[1:]] == ["hello again"]
    assert [e["text"] for e in bench.events("user")][1] == "hi"


async def test_an_expired_session_and_a_session_start_greet_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING)
    await bench.connects()
    bench.calendar.advance(minutes=61)
    assert (await bench.connects()).messages == ["Welcome, Ann."]
    assert (await bench.connects()).messages == []


async def test_an_expired_session_may_be_told_not_to_greet_again(tmp_path: Path) -> None:
    agent = AGENT + "session_config: {session_expiration_time: 5, start_session_after_expiry: false}\n"
    bench = caller(tmp_path, {**GREETING, "agent.yml": agent}, ["One.", "Two."])
    await bench.says("hi")
    bench.calendar.advance(minutes=6)
    assert (await bench.says("hi")).messages == ["Two."]


async def test_a_greeting_is_said_even_if_its_tool_fails(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, metadata={"phone": "broken"})
    said = await bench.connects()
    assert (said.messages, said.result.status) == (["Welcome."], TurnStatus.COMPLETED)
    assert bench.events("tool_executed")[0]["success"] is False


async def test_an_interrupted_greeting_is_not_said_again(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["Yes?"])
    await bench.says(SESSION_START, heard=HeardReply("Wel", "come, Ann."))
    assert (await bench.says("hello?")).messages == ["Yes?"]
    assert bench.stack == []


async def test_a_greeting_cut_off_before_it_was_said_leaves_the_callers_words_in_the_tracker(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["Yes?"])
    token = CancelToken()
    bench.conversation.on_event(
        lambda event: token.cancel(CancelReason.BARGE_IN) if "skill_activated" in event else None
    )
    said = await bench.says("help", cancel=token)
    assert said.result.status is TurnStatus.CANCELLED
    assert [e["text"] for e in bench.events("user")] == ["/session_start", "help"]


async def test_metadata_seeds_only_what_is_declared_for_it(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, metadata={"phone": "123", "name": "Mallory", "nonsense": 1})
    await bench.connects()
    assert (bench.read("project", "phone"), bench.read("project", "name")) == ("123", ", Ann")


@pytest.mark.parametrize(("after", "greeting"), [(3, []), (60, ["Welcome, Ann."])])
async def test_coming_back_soon_after_a_lost_connection_is_not_greeted_again(
    tmp_path: Path, after: float, greeting: list[str]
) -> None:
    bench = caller(tmp_path, GREETING, [tool_call("start_skill", skill="talk"), "Hi."], channel="websocket")
    await bench.connects()
    await bench.says("let us chat")
    await bench.conversation.close("dropped")
    bench.calendar.advance(seconds=after)
    again = bench.agent.open("c1", channel="websocket")
    assert again is bench.conversation
    assert (await bench.connects()).messages[: len(greeting)] == greeting
    assert bench.stack[0] == "talk"


async def test_a_call_that_was_ended_starts_anew(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, [tool_call("start_skill", skill="talk"), "Hi."])
    await bench.says("let us chat")
    await bench.conversation.close("hang_up")
    await bench.conversation.close("hang_up")
    assert len(bench.events("session_ended")) == 1
    assert (await bench.connects()).messages == ["Welcome, Ann."]
    assert bench.stack == []


async def test_a_conversation_goes_on_from_the_store_in_another_process(tmp_path: Path) -> None:
    store = MemoryStore()
    script = [tool_call("start_skill", skill="talk"), "Hi."]
    bench = caller(tmp_path, GREETING, script, store=store)
    await bench.says("let us chat")
    await bench.conversation.close("shutdown")
    before = [dict(e) for e in bench.conversation.events]

    later = caller(tmp_path, GREETING, ["So?"], store=store)
    assert (await later.says("where were we?")).messages == ["So?"]
    assert later.stack == ["talk"]
    assert list(later.conversation.events[: len(before)]) == before
    assert [e["sequence"] for e in later.conversation.events] == list(range(len(later.conversation.events)))
    assert (later.read("project", "name"), later.model.requests[0].scope.active_skill) == (", Ann", "talk")


async def test_a_skill_that_is_gone_from_the_project_is_left_out_of_a_restored_conversation(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = caller(tmp_path / "a", {**GREETING, "skills/gone/skill.md": skill("Chat.")},
                   [tool_call("start_skill", skill="gone"), "Hi."], store=store)  # fmt: skip
    await bench.says("let us chat")
    later = caller(tmp_path / "b", GREETING, ["So?"], store=store)
    assert (await later.says("where were we?")).messages == ["So?"]
    assert later.stack == []


class BrokenStore(MemoryStore):
    """Fails until it is mended."""

    broken = True

    def append(self, *args: object, **kwargs: object) -> None:
        if self.broken:
            raise OSError("disk full")
        super().append(*args, **kwargs)  # type: ignore[arg-type]

    async def load(self, conversation_id: str, **kwargs: object) -> None:
        raise OSError("disk gone")


async def test_a_store_that_fails_costs_the_caller_nothing_and_gets_everything_later(tmp_path: Path) -> None:
    store = BrokenStore()
    bench = caller(tmp_path, GREETING, ["Hello."], store=store)
    assert (await bench.says("hi")).messages == ["Welcome, Ann.", "Hello."]
    store.broken = False
    await bench.conversation.close("completed")
    stored = await MemoryStore.load(store, "c1")
    assert stored is not None
    assert [e["sequence"] for e in stored.events] == list(range(len(bench.conversation.events)))


# --- silence -----------------------------------------------------------------------------------


async def test_silence_is_asked_about_twice_and_then_the_call_is_ended(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING)
    await bench.connects()
    said = [await bench.says(SILENCE) for _ in range(3)]
    assert [s.sink.responses for s in said] == [["utter_silence_prompt"]] * 2 + [["utter_silence_goodbye"]]
    assert [s.sink.hung_up for s in said] == [False, False, True]


@pytest.mark.parametrize("prompts", [0, 1, 4])
async def test_a_project_says_how_many_silences_are_asked_about(tmp_path: Path, prompts: int) -> None:
    bench = caller(tmp_path, {**TALK, "agent.yml": f"{AGENT}conversation: {{silence_prompts: {prompts}}}\n"})
    await bench.connects()
    said = [await bench.says(SILENCE) for _ in range(prompts + 1)]
    assert [s.sink.responses for s in said] == [["utter_silence_prompt"]] * prompts + [["utter_silence_goodbye"]]
    assert [s.sink.hung_up for s in said] == [False] * prompts + [True]


@pytest.mark.parametrize("kind", ["backchannel", "utterance_lost"])
async def test_a_caller_who_was_heard_but_not_understood_is_not_taken_for_gone(tmp_path: Path, kind: str) -> None:
    store = MemoryStore()
    bench = caller(tmp_path, TALK, store=store)
    await bench.connects()
    for _ in range(2):
        await bench.says(SILENCE)
    bench.conversation.note(kind)
    assert (await bench.says(SILENCE)).sink.responses == ["utter_silence_prompt"]


async def test_any_word_starts_the_count_of_silences_again(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, ["Hello."])
    await bench.connects()
    await bench.says(SILENCE)
    await bench.says(SILENCE)
    await bench.says("I am here")
    assert (await bench.says(SILENCE)).sink.responses == ["utter_silence_prompt"]


async def test_silence_in_a_question_leaves_it_open(tmp_path: Path) -> None:
    files = {
        "skills/ask/skill.md": skill(block("- collect: x\n  utterance: utter_ask_x\n- action: utter_ok")),
        "skills/ask/memory.yml": "schema:\n  public:\n    x: {type: text}\n",
        "skills/ask/responses.yml": "responses:\n  utter_ask_x: What is it?\n  utter_ok: Good.\n",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="ask"), tool_call("listen"),
                                     tool_call("set_fields", x="this")])  # fmt: skip
    await bench.says("ask me")
    assert (await bench.says(SILENCE)).messages == ["Are you still there?"]
    assert bench.stack == ["ask"]
    assert (await bench.says("this")).messages[0] == "Good."


async def test_silence_before_any_session_does_nothing(tmp_path: Path) -> None:
    bench = caller(tmp_path, GREETING, model=ScriptedModel())
    assert (await bench.says(SILENCE)).messages == []


async def test_a_calendar_that_is_set_back_neither_silences_the_greeting_nor_keeps_an_old_session(
    tmp_path: Path,
) -> None:
    bench = caller(tmp_path, GREETING)
    first = await bench.connects()
    bench.calendar.advance(minutes=-30)
    assert (await bench.connects()).messages == first.messages != []
    bench.calendar.advance(days=-30)
    await bench.connects()
    assert len(bench.events("session_started")) == 2
