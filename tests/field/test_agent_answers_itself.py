"""The agent replied to its own message, again and again.

Right: a reply comes only of the caller, of a tool's result, or of a silence; one event, one reply.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dialogue_projects import caller, skill
from voice_agent.dialogue.reply import SESSION_START, InputKind, UserInput

FILES = {"skills/talk/skill.md": skill("Chat.")}


async def test_one_utterance_makes_one_model_call_and_one_reply(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Shall I tell you more? Yes, I shall."])
    said = await bench.says("hello")
    assert (len(said.messages), len(bench.model.requests)) == (1, 1)


@pytest.mark.parametrize(
    "nothing",
    [UserInput(""), UserInput(" \n ", InputKind.SPEECH), UserInput("/unknown", InputKind.INTENT), SESSION_START],
)
async def test_what_is_no_utterance_makes_no_model_call(tmp_path: Path, nothing: UserInput) -> None:
    bench = caller(tmp_path, FILES, ["Hello."])
    await bench.says("hello")
    before = len(bench.events("bot"))
    assert (await bench.says(nothing)).messages == []
    assert (len(bench.model.requests), len(bench.events("bot"))) == (1, before)
