"""The transcript kept only the first word of what the agent said.

Right: the tracker holds what was heard, all of it, of every message of a reply.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill

FILES = {
    "skills/a/skill.md": skill(block("- action: utter_one\n- action: utter_two\n- execute_tool: listen")),
    "responses.yml": "responses: {utter_one: This is the first message., utter_two: And this is the second.}\n",
}


@pytest.mark.parametrize("channel", ["text", "websocket"])
async def test_the_transcript_holds_every_word_that_was_heard(tmp_path: Path, channel: str) -> None:
    script = [["Of course, let me see. ", tool_call("start_skill", skill="a")], "That was all of it, I think."]
    bench = caller(tmp_path, FILES, script, channel=channel)
    first = await bench.says("go")
    second = await bench.says("and?")
    assert [e["text"] for e in bench.events("bot")] == [first.sink.text.strip(), second.sink.text.strip()]
    whole = "Of course, let me see. This is the first message. And this is the second."
    assert first.sink.text.split() == whole.split()
