"""A process that dies takes its conversations with it: the caller who comes back is a stranger, or the tool that had
booked for them books again: finished results of tools are lost.

Right: whatever the instant, the conversation can be read, a turn that was running is closed as cancelled, and what
was recorded as done is not done again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel
from tests.fakes.sink import CollectingSink
from tests.support.crashing_agent import CONVERSATION, answer
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.replay import open_turns
from voice_agent.dialogue.reply import UserInput
from voice_agent.store import SqliteStore

KILLS = 40


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """What forty agents left behind, each killed in the middle of the same conversation."""
    directory = tmp_path_factory.mktemp("crashes")
    command = [sys.executable, "-m", "tests.support.crashing_agent", str(directory), str(KILLS), "7"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert len(found) == KILLS
    return directory, found


def recorded_keys(entry: dict[str, Any]) -> list[str]:
    return [
        json.loads(payload["result_json"])["key"]
        for _, kind, payload in entry.get("records", ())
        if kind == "tool_executed" and payload["success"]
    ]


def test_the_file_is_whole_after_every_crash(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    assert {entry["integrity"] for entry in crashes[1]} == {"ok"}
    assert list(crashes[0].glob("*.damaged*")) == []


def test_crashes_come_in_the_middle_of_turns_and_of_tools(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    open_at_the_end = 0
    for entry in crashes[1]:
        turns = [(kind, p["turn_id"]) for _, kind, p in entry.get("records", ()) if kind.startswith("turn_")]
        open_at_the_end += bool(turns) and turns[-1][0] == "turn_started"
    assert open_at_the_end >= KILLS / 4


def test_records_only_grow_and_keep_their_order(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    before: list[list[Any]] = []
    for entry in crashes[1]:
        records = entry.get("records", [])
        assert records[: len(before)] == before
        sequences = [sequence for sequence, *_ in records]
        assert sequences == sorted(set(sequences))
        before = records
    assert len(before) > 200


def test_a_tool_that_was_recorded_is_never_run_again(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    last = crashes[1][-1]["ledger"]
    for entry in crashes[1]:
        later = [line.split()[1] for line in last[len(entry["ledger"]) :]]
        assert not set(recorded_keys(entry)) & set(later)
    keys = recorded_keys(crashes[1][-1])
    assert len(keys) == len(set(keys)) > 30
    assert set(keys) <= {line.split()[1] for line in last}


def test_a_turn_that_was_running_is_closed_as_cancelled(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    records = crashes[1][-1]["records"]
    closed = [p for _, kind, p in records if kind == "turn_finished" and p.get("reason") == "crash"]
    assert len(closed) >= KILLS / 4
    assert {p["status"] for p in closed} == {"cancelled"}
    ends = Counter(p["turn_id"] for _, kind, p in records if kind == "turn_finished")
    assert set(ends.values()) == {1}


def test_state_and_records_always_tell_the_same(crashes: tuple[Path, list[dict[str, Any]]]) -> None:
    for entry in crashes[1]:
        if "records" in entry:
            assert entry["state_sequence"] == entry["records"][-1][0]
            assert entry["snapshot"] == entry["replayed"]


async def test_the_conversation_goes_on_after_the_last_crash(
    crashes: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = crashes[0]
    monkeypatch.setenv("LEDGER", str(directory / "ledger"))
    store = SqliteStore(directory / "c.sqlite3")
    await store.open()
    model = ScriptedModel(then=answer)
    agent = Agent.load(load_config(directory / "project", {}), model, store=store)
    conversation = agent.open(CONVERSATION, channel="text")
    for n in range(4):
        sink = CollectingSink()
        await conversation.turn(UserInput("go on"), turn_id=f"last-{n}", sink=sink, cancel=CancelToken())
        conversation.commit_reply(f"last-{n}", sink.heard())
    assert open_turns(conversation.events) == []
    done = [p for k, p in map(payload_of, conversation.events) if k == "skill_completed" and p["skill"] == "job"]
    assert done
    await conversation.close("completed")
    await store.aclose()
