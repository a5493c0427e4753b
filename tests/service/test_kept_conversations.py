"""Conversations outlive the service: stopped in order, killed, or asked to keep nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.lines import serving, until
from tests.support.small_service import GREETING, small_service, write_project
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.diagnostics import RemediableError
from voice_agent.service.service import Service
from voice_agent.store import MemoryStore, SqliteStore

KEPT = "store: {path: kept.sqlite3}\n"
MESSAGES = "/v1/conversations/c1/messages"


async def ready(service: Service) -> None:
    await until(lambda: not service.missing)


def said(caller: WebSocketCaller) -> list[str]:
    return [m["text"] for m in caller.of("transcript") if m["role"] == "agent" and m["final"]]


async def test_a_caller_who_comes_back_to_a_restarted_service_is_known_and_not_greeted_again(tmp_path: Path) -> None:
    first = small_service(tmp_path, model=["One."], settings=KEPT)
    async with serving(first) as address:
        await ready(first)
        caller = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: GREETING in said(caller))
        await caller.say(type="text", text="my name is Ann")
        await until(lambda: "One." in said(caller))
        await caller.vanish()
        await until(lambda: not first.calls.registry.is_live("c1"))
    second = small_service(tmp_path, model=["Two."], settings=KEPT)
    async with serving(second) as address:
        await ready(second)
        caller = await WebSocketCaller.dial(address, "?conversation=c1")
        await caller.say(type="text", text="do you know me?")
        await until(lambda: "Two." in said(caller))
        assert GREETING not in said(caller)
        await caller.close()
    model = second._engines.model
    heard = [m.content for m in model.requests[0].messages]  # type: ignore[attr-defined]
    assert heard[1:] == ["my name is Ann", "do you know me?"], "nothing of the first answer had been heard yet"


async def test_a_stored_conversation_can_be_listed_and_read_with_its_caller(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["One."])
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await ready(service)
        assert (await client.post(MESSAGES, json={"text": "hello"})).status_code == 200
        assert isinstance(service.store, SqliteStore)
        assert await service.store.flush(5)
        (summary,) = (await service.store.conversations()).conversations
        assert summary.id == "c1"
        events = await service.store.events("c1")
        assert len(events) == summary.events
        assert [e["user"]["text"] for e in events if "user" in e] == ["/session_start", "hello"]


async def test_a_project_may_keep_nothing(tmp_path: Path, data_directory: Path) -> None:
    service = small_service(tmp_path, model=["One."], settings="store: {path: ':memory:'}\n")
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await ready(service)
        assert (await client.post(MESSAGES, json={"text": "hello"})).status_code == 200
    assert isinstance(service.store, MemoryStore)
    assert os.listdir(data_directory) == []  # noqa: PTH208


async def test_a_store_that_cannot_be_opened_stops_the_start_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    service = small_service(tmp_path, settings="store: {path: taken}\n")
    with pytest.raises(RemediableError, match=r"store\.path"):
        await service.start()
    assert "conversation store" in service.missing
    await service.aclose()


# --- voice-agent chat --------------------------------------------------------------------------


def chat(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "voice_agent", "chat", str(root), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def wait_for_records(directory: Path) -> None:
    """Wait until a conversation is on the disk, which is some milliseconds after it is on the screen."""
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        (path,) = directory.rglob("*.sqlite3")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            if connection.execute("SELECT count(*) FROM events").fetchone() > (0,):
                return
        time.sleep(0.01)
    raise AssertionError("nothing was written")


@pytest.mark.service
def test_a_chat_that_was_killed_is_gone_on_with_under_its_name(tmp_path: Path, data_directory: Path) -> None:
    root = write_project(tmp_path)
    first = chat(root, "--conversation", "c1")
    assert first.stdout
    assert first.stdout.readline().strip() == GREETING
    wait_for_records(data_directory)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=10)
    again, _ = chat(root, "--conversation", "c1").communicate("", timeout=60)
    assert again.strip() == "", "greeted a moment ago, the caller is not greeted again"
    other, _ = chat(root, "--conversation", "c2").communicate("", timeout=60)
    assert other.strip() == GREETING


@pytest.mark.service
def test_an_ephemeral_chat_keeps_nothing(tmp_path: Path, data_directory: Path) -> None:
    root = write_project(tmp_path)
    for _ in range(2):
        said, errors = chat(root, "--conversation", "c1", "--ephemeral").communicate("", timeout=60)
        assert (said.strip(), errors) == (GREETING, "")
    assert list(data_directory.rglob("*.sqlite3*")) == []
