"""An agent opens conversations that share nothing but the project."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.fakes.sink import CollectingSink
from tests.support.dialogue_projects import Caller, block, caller, skill, write_project
from tests.support.virtual_time import virtual_time
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError, RemediableError
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.events import EventLog, payload_of, utc_now
from voice_agent.dialogue.reply import HeardReply, UserInput

FILES = {
    "skills/talk/skill.md": skill("Chat."),
    "skills/talk/memory.yml": "schema: {public: {mood: {type: text, llm_settable: true}}}\n",
    "skills/default_session_start/skill.md": skill(block("- action: utter_greet"), routing="{engine_managed: true}"),
    "skills/default_session_start/responses.yml": "responses: {utter_greet: Welcome.}\n",
}
START = tool_call("start_skill", skill="talk")


def test_a_broken_project_is_not_loaded_and_says_everything_that_is_wrong(tmp_path: Path) -> None:
    write_project(tmp_path, {"skills/a/skill.md": "no front matter", "memory.yml": "x: {type: nonsense}"})
    with pytest.raises(ProjectError) as caught:
        Agent.load(load_config(tmp_path, {}), object())  # type: ignore[arg-type]
    assert {p.id for p in caught.value.problems} >= {
        "memory.field_type",
        "skill.markdown.invalid_frontmatter_delimiter",
    }


def test_canned_texts_begin_with_the_greeting_and_hold_the_packaged_lines(tmp_path: Path) -> None:
    texts = caller(tmp_path, FILES).agent.canned_texts
    assert texts[0] == "Welcome."
    assert "Are you still there?" in texts
    assert not any("{" in text for text in texts)


@pytest.mark.parametrize(
    "name",
    ["utter_hangup_goodbye", "utter_could_not_hear", "utter_internal_error", "utter_cannot_help",
     "utter_call_ending_soon", "utter_silence_prompt", "utter_filler"],
)  # fmt: skip
def test_the_services_own_lines_have_wording(tmp_path: Path, name: str) -> None:
    assert caller(tmp_path, FILES).conversation.line(name)


def test_a_project_rewords_a_packaged_line_and_an_unknown_one_is_a_key_error(tmp_path: Path) -> None:
    bench = caller(tmp_path, {**FILES, "responses.yml": "responses: {utter_filler: Hang on.}\n"})
    assert bench.conversation.line("utter_filler") == "Hang on."
    with pytest.raises(KeyError):
        bench.conversation.line("utter_fillet")


@pytest.mark.parametrize("id", ["", "x" * 201, "a\nb", "a\x00b", "\ud800"])
def test_an_impossible_conversation_id_is_refused(tmp_path: Path, id: str) -> None:
    with pytest.raises(RemediableError):
        caller(tmp_path, FILES).agent.open(id, channel="text")


async def test_opening_a_live_conversation_again_gives_the_same_one(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, "Hi."])
    await bench.says("chat")
    assert bench.agent.open("c1", channel="text") is bench.conversation
    assert bench.agent.open("c2", channel="text") is not bench.conversation


async def test_conversations_do_not_see_each_others_memory(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, tool_call("set_fields", mood="good"), "Hi.", "Hello."])
    await bench.says("chat")
    other = Caller(bench.agent, bench.model, bench.calendar, bench.agent.open("c2", channel="text"))
    await other.says("hi")
    assert (bench.read("talk", "mood"), other.read("talk", "mood"), other.stack) == ("good", None, [])


@virtual_time
async def test_different_conversations_run_side_by_side(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [["A", 1.0], ["B", 1.0]])
    other = Caller(bench.agent, bench.model, bench.calendar, bench.agent.open("c2", channel="text"))
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.says("first"))
        group.create_task(other.says("second"))
    assert asyncio.get_running_loop().time() == pytest.approx(1.0)


async def test_nothing_of_a_conversation_is_kept_by_the_agent_once_nobody_holds_it(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hi."] * 50)
    dead = []
    for number in range(50):
        conversation = bench.agent.open(f"call-{number}", channel="text")
        await conversation.turn(UserInput("hi"), turn_id="t", sink=CollectingSink(), cancel=CancelToken())
        await conversation.close("completed")
        dead.append(weakref.ref(conversation))
    del conversation
    gc.collect()
    assert [ref for ref in dead if ref() is not None] == []


async def test_a_conversation_nobody_holds_goes_on_from_the_store(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, tool_call("set_fields", mood="good"), "Hi.", "And?"])
    await bench.says("chat")
    gone = weakref.ref(bench.conversation)
    bench.conversation = None  # type: ignore[assignment]
    gc.collect()
    assert gone() is None
    later = Caller(bench.agent, bench.model, bench.calendar, bench.agent.open("c1", channel="text"))
    await later.says("go on")
    assert (later.read("talk", "mood"), later.stack) == ("good", ["talk"])


# --- the tracker -------------------------------------------------------------------------------


async def test_every_record_is_an_envelope_with_exactly_one_payload(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, tool_call("set_fields", mood="good"), "Hi."], metadata={"user_id": "u7"})
    await bench.says("chat")
    for number, event in enumerate(bench.conversation.events):
        payloads = [key for key, value in event.items() if isinstance(value, dict)]
        assert len(payloads) == 1, event
        assert (event["conversation_id"], event["sequence"], event["user_id"]) == ("c1", number, "u7")
        assert event["timestamp"].endswith("Z")
        assert len(event["event_id"]) == 32
        payload = event[payloads[0]]
        for key, value in payload.items():
            if key.endswith("_json"):
                json.loads(value)
    assert {"memory_set", "skill_activated", "user", "bot", "session_started"} <= set(bench.kinds)
    (written,) = bench.events("memory_set")
    assert (written["namespace"], written["key"], written["value_json"], written["source"]) == (
        "talk",
        "mood",
        '"good"',
        "model",
    )


def test_old_flat_rows_are_still_read() -> None:
    row = {"event": "user", "text": "hi", "timestamp": 1.0, "conversation_id": "c"}
    assert payload_of(row) == ("user", {"text": "hi"})
    assert payload_of({"conversation_id": "c", "sequence": 0}) == ("", {})


async def test_a_listener_gets_each_record_and_a_broken_one_hurts_nobody(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hi.", "Hi."])
    seen: list[int] = []

    def broken(event: object) -> None:
        raise RuntimeError("listener")

    forget_broken = bench.conversation.on_event(broken)
    forget = bench.conversation.on_event(lambda event: seen.append(event["sequence"]))
    await bench.says("hi")
    assert seen == list(range(len(bench.conversation.events)))
    forget()
    forget()
    forget_broken()
    await bench.says("hi")
    assert len(seen) < len(bench.conversation.events)


def test_a_note_is_a_record_and_cannot_forge_an_envelope(tmp_path: Path) -> None:
    conversation = caller(tmp_path, FILES).conversation
    conversation.note("backchannel", text="mm-hm")
    assert payload_of(conversation.events[-1]) == ("backchannel", {"text": "mm-hm"})
    for kind in ("session_id", "not a word", ""):
        with pytest.raises(ValueError, match="kind"):
            conversation.note(kind)


def test_restored_records_come_before_those_already_written() -> None:
    log = EventLog("c", utc_now)
    log.append("early")
    log.restore([{"sequence": 4, "user": {"text": "a"}}])
    assert [(e["sequence"], payload_of(e)[0]) for e in log.events] == [(4, "user"), (5, "early")]


async def test_a_reply_nobody_heard_leaves_a_record_but_no_message(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hi."])
    await bench.says("hi", heard=HeardReply("", "Hi."))
    assert (bench.events("bot"), bench.events("reply_unheard")[0]["text"]) == ([], "Hi.")
