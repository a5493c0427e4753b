#!/usr/bin/env python3
"""What keeping conversations costs: on the event loop, on the disk, and when one comes back.

    scripts/bench/store.py [--events 2000] [--seconds 5] [--directory PLACE]

Prints as JSON:
  append_us            one record with its state, handed to the store on the event loop
  hand_over_us         the same as the dialogue does it: snapshot of a conversation in the middle of a block, and append
  state_bytes          size of that snapshot
  durable_ms           from the append until the record is on the disk, one at a time
  events_per_s         what the writer's thread sustains, appended by fifty conversations at once, until all is durable
  lag_ms               worst lateness of the event loop meanwhile
  load_ms              reading a conversation of --events records and its state
  restore_ms           the same, taken over by a conversation that is about to run its next turn
  replay_ms            state from the records alone, without a snapshot
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fakes.model import ScriptedModel
from tests.fakes.sink import CollectingSink
from tests.support.crashing_agent import FILES, STEPS, answer
from tests.support.dialogue_projects import write_project
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.replay import replay
from voice_agent.dialogue.reply import UserInput
from voice_agent.dialogue.state import DialogueState, snapshot
from voice_agent.store import SqliteStore

CONVERSATIONS = 50


async def talk(conversation: LiveConversation, events: int) -> None:
    """Run turns, each with a chain of tools, until the tracker has ``events`` records."""
    turn = 0
    while len(conversation.events) < events:
        turn += 1
        sink = CollectingSink()
        await conversation.turn(UserInput("go on"), turn_id=f"t{turn}", sink=sink, cancel=CancelToken())
        conversation.commit_reply(f"t{turn}", sink.heard())


def project(directory: Path) -> Path:
    """The agent that is killed in the tests, with tools that take no time."""
    quick = FILES["skills/job/tools.py"].replace("random.uniform(0, 0.003)", "0")
    quick = quick.replace('with open(os.environ["LEDGER"], "a") as ledger:', "if False:")
    assert len(STEPS) > 3
    return write_project(directory / "project", {**FILES, "skills/job/tools.py": quick})


def record(number: int, conversation: str) -> dict[str, Any]:
    """A record of the usual size: some four hundred bytes."""
    payload = {"tool": "get_balance", "arguments_json": '{"account": "427913"}', "result_json": '{"ok": true}'}
    return {
        "conversation_id": conversation,
        "sequence": number,
        "timestamp": "2030-01-01T00:00:00.000Z",
        "event_id": f"{conversation}{number:024d}",
        "session_id": "0123456789ab",
        "user_id": conversation,
        "deployment_environment": "",
        "tool_executed": {**payload, "success": True, "turn_id": "0123456789ab-1"},
    }


async def appends(store: SqliteStore, state: dict[str, Any]) -> dict[str, float]:
    records = [record(n, "append") for n in range(5_000)]
    spent = []
    for event in records:
        began = time.perf_counter()
        store.append("append", [event], state)
        spent.append(time.perf_counter() - began)
        if event["sequence"] % 50 == 0:
            await asyncio.sleep(0)
    await store.flush(30)
    durable = []
    for number in range(100):
        began = time.perf_counter()
        store.append("durable", [record(number, "durable")], state)
        await store.flush(10)
        durable.append(time.perf_counter() - began)
    return {
        "append_us": round(statistics.median(spent) * 1e6, 1),
        "append_p99_us": round(statistics.quantiles(spent, n=100)[98] * 1e6, 1),
        "durable_ms": round(statistics.median(durable) * 1e3, 2),
    }


async def throughput(store: SqliteStore, state: dict[str, Any], seconds: float) -> dict[str, float]:
    """Append as fast as the writer keeps up with, holding the backlog at a few thousand records."""
    loop = asyncio.get_running_loop()
    lags, numbers, began = [], [0] * CONVERSATIONS, loop.time()
    while loop.time() - began < seconds:
        for index in range(CONVERSATIONS):
            name = f"busy{index}"
            events = [record(numbers[index] + n, name) for n in range(5)]
            numbers[index] += len(events)
            store.append(name, events, state)
        due = loop.time() + 0.002
        await asyncio.sleep(0.002)
        lags.append(loop.time() - due)
        while len(store._backlog) > 5_000:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await store.flush(60)
    return {
        "events_per_s": round(sum(numbers) / (loop.time() - began)),
        "lag_p99_ms": round(statistics.quantiles(lags, n=100)[98] * 1e3, 2),
        "lag_max_ms": round(max(lags) * 1e3, 2),
    }


async def coming_back(directory: Path, events: int) -> dict[str, float]:
    config = load_config(project(directory), {})
    store = SqliteStore(directory / "long.sqlite3")
    await store.open()
    agent = Agent.load(config, ScriptedModel(then=answer), store=store)
    first = agent.open("long", channel="text")
    await talk(first, events)
    state = first._core.state
    hand_over = []
    for _ in range(500):
        first.note("backchannel", text="mm")
        began = time.perf_counter()
        first._journal.hand_over()
        hand_over.append(time.perf_counter() - began)
    size = len(json.dumps(snapshot(state)))
    await first.close("disconnected")
    del first
    loads, restores, replays = [], [], []
    for _ in range(20):
        began = time.perf_counter()
        stored = await store.load("long", max_events=events)
        loads.append(time.perf_counter() - began)
        again = Agent.load(config, ScriptedModel(then=answer), store=store).open("long", channel="text")
        began = time.perf_counter()
        await again._journal.restore()
        restores.append(time.perf_counter() - began)
        assert stored is not None
        empty = DialogueState(Memory(agent.project.schema))
        began = time.perf_counter()
        replay(empty, stored.events, agent.project)
        replays.append(time.perf_counter() - began)
        del again
    await store.aclose()
    assert stored is not None and len(stored.events) == events
    return {
        "hand_over_us": round(statistics.median(hand_over) * 1e6, 1),
        "state_bytes": size,
        "load_ms": round(statistics.median(loads) * 1e3, 2),
        "restore_ms": round(statistics.median(restores) * 1e3, 2),
        "replay_ms": round(statistics.median(replays) * 1e3, 2),
    }


async def measure(directory: Path, events: int, seconds: float) -> dict[str, float]:
    store = SqliteStore(directory / "c.sqlite3")
    await store.open()
    memory = [["job", f"field{n}", "a value of usual length"] for n in range(10)]
    state = {"version": 1, "turn": 7, "activations": 3, "silences": 0, "memory": memory, "stack": [], "question": None}
    report = await appends(store, state)
    report |= await throughput(store, state, seconds)
    await store.aclose()
    return report | await coming_back(directory, events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--directory", type=Path, help="On the disk to be measured; a temporary one by default.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        print(json.dumps(asyncio.run(measure(Path(directory), options.events, options.seconds)), indent=1))


if __name__ == "__main__":
    main()
