"""`voice-agent prompt`: what is shown is what the model got, letter for letter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.conversation_tests import FILES
from tests.support.dialogue_projects import write_project
from voice_agent.authoring.prompts import as_json, talk
from voice_agent.cli import cli
from voice_agent.config_files import load_config


async def test_each_turn_has_its_calls_with_the_very_request_the_model_got(tmp_path: Path) -> None:
    model = ScriptedModel([tool_call("start_skill", skill="book"), tool_call("listen"), "Tuesday it is."])
    config = load_config(write_project(tmp_path, FILES), {})
    turns = await talk(config, model, ["I want to book", "Tuesday"], "websocket")
    assert [(t.number, t.utterance, len(t.calls)) for t in turns] == [
        (0, "/session_start", 0), (1, "I want to book", 2), (2, "Tuesday", 1),
    ]  # fmt: skip
    assert [call.request for turn in turns for call in turn.calls] == model.requests
    assert turns[1].calls[1].purpose == "set_fields"


async def test_sections_make_up_the_system_message(tmp_path: Path) -> None:
    config = load_config(write_project(tmp_path, FILES), {})
    turns = await talk(config, ScriptedModel(["Hello."]), ["hello"], "text")
    (call,) = turns[1].calls
    assert "\n\n".join(section.text for section in call.sections) == call.request.messages[0].content
    shown = as_json(turns[1], call)
    assert [m["content"] for m in shown["messages"]] == [m.content for m in call.request.messages]
    assert [t["name"] for t in shown["tools"]] == [t.name for t in call.request.tools]
    assert shown["tokens"]["messages"] == sum(m["tokens"] for m in shown["messages"]) > 0
    assert shown["tokens"]["tools"] > 0


@pytest.mark.models
def test_the_command_shows_a_turn_in_colour_or_as_json(tmp_path: Path) -> None:
    root = str(write_project(tmp_path, FILES))
    arguments = ["prompt", root, "--say", "I want to book", "--say", "Tuesday"]
    shown = CliRunner().invoke(cli, arguments)
    assert shown.exit_code == 0, shown.output
    for part in (
        "system: persona",
        "system: rules",
        "Active skill: book",
        "tools:",
        "tokens in all",
        "set_fields(day)",
    ):
        assert part in shown.output
    data = json.loads(CliRunner().invoke(cli, [*arguments, "--turn", "1", "--json"]).stdout)
    assert (data["turn"], data["utterance"]) == (1, "I want to book")
    assert data["messages"][-1] == {
        "role": "user",
        "content": "I want to book",
        "tokens": data["messages"][-1]["tokens"],
    }


@pytest.mark.models
def test_the_command_says_what_cannot_be_shown(tmp_path: Path) -> None:
    root = str(write_project(tmp_path, FILES))
    beyond = CliRunner().invoke(cli, ["prompt", root, "--say", "hello", "--call", "9"])
    assert (beyond.exit_code, "model calls" in beyond.output) == (2, True)
    no_such = CliRunner().invoke(cli, ["prompt", root, "--say", "hello", "--turn", "2"])
    assert (no_such.exit_code, "only 1 lines" in no_such.output) == (2, True)
    silent = CliRunner().invoke(cli, ["prompt", root, "--say", " "])
    assert (silent.exit_code, "made no model call" in silent.output) == (2, True)
