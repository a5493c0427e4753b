"""What a plugin's hook may know of the moment: the caller's words, how they came, what was said and what was found."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.fakes.recalls import SlowRecalls
from tests.support.dialogue_projects import caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.hooks import Point

FILES = {
    "skills/desk/skill.md": skill("Help.", description="The desk."),
    "plugins/knows.py": """
from voice_agent.dialogue.plugins import hook

def told(context):
    lines = " / ".join(f"{line.role}: {line.text}" for line in context.history)
    found = ", ".join(passage.source for passage in context.recalled)
    return f"{context.utterance} | {context.input_kind} | {context.skill} | {found} | {lines}"

@hook
def fast_reply(reply, context):
    if context.utterance == "echo":
        return told(context)

@hook
async def agent_fast_reply(reply, context):
    if "later" in context.utterance:
        return told(context)
""",
}


async def test_fast_reply_knows_what_the_caller_said_and_what_was_said_before(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [tool_call("start_skill", skill="desk"), "At your service."])
    assert (await bench.says("i need help")).messages == ["At your service."]
    said = await bench.says("echo")
    assert said.messages == ["echo | text | desk |  | caller: i need help / agent: At your service."]
    assert len(bench.model.requests) == 2


@virtual_time
async def test_agent_fast_reply_knows_what_was_recalled_for_the_turn(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hello."], recalls=SlowRecalls(0.1, 0.15))
    found = (await bench.says("and later")).messages[0].split(" | ")
    assert found[0] == "and later"
    assert found[3] != ""
    assert bench.model.requests == []


async def test_where_the_service_speaks_by_itself_there_are_no_words_of_the_caller(tmp_path: Path) -> None:
    text = """
from voice_agent.dialogue.hooks import *

SEEN = []

@on_turn_started
async def seen(payload, context):
    SEEN.append((context.utterance, context.input_kind))

@modify_incoming_message
async def shout(payload, context):
    return payload.text + " | " + context.utterance
"""
    bench = caller(tmp_path, {**FILES, "hooks.py": text}, ["Hello."])
    await bench.connects()
    await bench.says("hi")
    assert bench.events("user")[-1]["text"] == "hi | hi"
    seen = next(hook for hook in bench.agent.project.hooks.observing(Point.TURN_STARTED)).function.__globals__["SEEN"]
    assert seen == [("", ""), ("hi | hi", "text")]
