"""Reloading: what is watched, when a change counts, and what happens to a version that is broken."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.lines import serving, until
from tests.support.small_service import GREETING, small_service, write_project
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem
from voice_agent.dialogue.agent import Agent
from voice_agent.llm.protocol import SkillCard
from voice_agent.service.reloading import Reloader, fingerprint
from voice_agent.service.versions import AgentVersions
from voice_agent.store import MemoryStore


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = write_project(root)
        model, store = ScriptedModel(), MemoryStore()
        self.versions = AgentVersions(Agent.load(load_config(root, {}), model, store=store))
        self.warmed: list[str] = []
        self.errors: list[Problem] = []

        async def warm(texts: Iterable[str]) -> None:
            self.warmed += texts

        self.reloader = Reloader(
            root, self.versions, model, store, warm=warm, watch=True, poll_s=0.02, report=self.errors.extend
        )

    def write(self, text: str, name: str = "responses.yml") -> None:
        path = self.root / name
        path.write_text(text)
        # The clock of the file system may be too coarse for two writes this close.
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.reloader.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    @property
    def greeting(self) -> str:
        return self.versions.canned_texts[0]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


NEW = "responses:\n  utter_greet:\n    - text: A new welcome.\n"


async def test_a_changed_file_is_used_and_only_its_new_texts_are_warmed(bench: Bench) -> None:
    async with bench.running():
        bench.write(NEW)
        await until(lambda: bench.reloader.reloads == 1)
        assert bench.greeting == "A new welcome."
        await until(lambda: bool(bench.warmed))
    assert bench.warmed == ["A new welcome."]


async def test_the_model_has_read_the_new_version_before_a_turn_uses_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[list[str], str]] = []

    async def prepare(self: ScriptedModel, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        read.append(([card.id for card in skills], bench.greeting))

    monkeypatch.setattr(ScriptedModel, "prepare", prepare, raising=False)
    (bench.root / "skills/more").mkdir()
    bench.write("---\nname: More\ndescription: More of it.\n---\nTalk.\n", "skills/more/skill.md")
    bench.write(NEW)
    assert await bench.reloader.reload()
    assert [(set(ids), greeting) for ids, greeting in read] == [({"help", "more"}, GREETING)]


async def test_functions_of_plugins_run_in_the_same_threads_after_a_reload_and_these_end_with_the_service(
    bench: Bench,
) -> None:
    first = bench.versions.current
    bench.write(NEW)
    assert await bench.reloader.reload()
    second = bench.versions.current
    assert second is not first
    assert second.threads is first.threads
    await second.aclose()
    thread = await second.threads.run(threading.current_thread)
    await bench.versions.aclose()
    thread.join(10)
    assert not thread.is_alive()


async def test_a_broken_version_is_reported_once_and_the_old_one_stays_until_it_is_mended(bench: Bench) -> None:
    async with bench.running():
        bench.write("responses:\n  utter_greet: a: b\n")
        await until(lambda: bench.reloader.failures == 1)
        await asyncio.sleep(0.2)
        assert (bench.reloader.failures, bench.greeting) == (1, GREETING)
        assert [p.id for p in bench.errors] == ["yaml.syntax"]
        bench.write(NEW)
        await until(lambda: bench.reloader.reloads == 1)
    assert bench.greeting == "A new welcome."


async def test_nothing_is_loaded_while_nothing_changes(bench: Bench) -> None:
    async with bench.running():
        await asyncio.sleep(0.3)
    assert (bench.reloader.reloads, bench.reloader.failures) == (0, 0)


async def test_a_change_counts_once_it_has_come_to_rest(bench: Bench) -> None:
    async with bench.running():
        for number in range(10):
            bench.write(NEW.replace("new", f"{number}th" * (number + 1)))
            await asyncio.sleep(0.01)
        await until(lambda: bench.greeting.startswith("A 9th"))
        await asyncio.sleep(0.1)
    assert bench.reloader.reloads <= 2


async def test_a_request_reloads_without_a_change(bench: Bench) -> None:
    async with bench.running():
        bench.reloader.request()
        await until(lambda: bench.reloader.reloads == 1)


async def test_refreshing_looks_once(bench: Bench) -> None:
    await bench.reloader.refresh()
    assert bench.reloader.reloads == 0
    bench.write(NEW)
    await bench.reloader.refresh()
    await bench.reloader.refresh()
    assert (bench.reloader.reloads, bench.greeting) == (1, "A new welcome.")


async def test_a_project_that_is_gone_for_a_moment_leaves_the_old_version(bench: Bench) -> None:
    (bench.root / "agent.yml").rename(bench.root / "away")
    assert await bench.reloader.reload() is False
    assert bench.greeting == GREETING


async def test_settings_that_need_a_restart_are_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        bench.write("llm: {provider: embedded}\nserver: {port: 1}\n", "integrations.yml")
        await bench.reloader.refresh()
    assert "integrations.yml has changed" in caplog.text


def test_what_is_watched_is_what_a_project_is_made_of(tmp_path: Path) -> None:
    wanted = ["agent.yml", "skills/a/skill.md", "skills/a/tools.py", "lib/x.py", "references/deep/a.md"]
    ignored = ["recordings/a.yml", ".git/a.md", "skills/__pycache__/a.py", "tests/a.yml", "a.wav", ".hidden.yml",
               "env/pyvenv.cfg", "env/lib/a.py"]  # fmt: skip
    for name in (*wanted, *ignored):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert {str(Path(p).relative_to(tmp_path)) for p in fingerprint(tmp_path)} == set(wanted)


async def test_a_caller_on_the_line_is_answered_by_the_new_version_and_not_dropped(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=[tool_call("start_skill", skill="help")])
    async with serving(service) as address:
        await until(lambda: not service.missing)
        caller = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: bool(caller.of("transcript")))
        rule = "responses:\n  utter_greet: Hi.\n  utter_hangup_goodbye: Farewell from two.\n"
        (tmp_path / "responses.yml").write_text(rule)
        goodbye = "---\nname: Bye\ndescription: The caller says goodbye.\n---\n:::ordered_block id=m\nsteps:\n"
        (tmp_path / "skills/help/skill.md").write_text(
            goodbye + "  - action: utter_hangup_goodbye\n  - execute_tool: hangup\n:::\n"
        )
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: service.reloader.reloads == 1)
        await caller.say(type="text", text="bye")
        await until(lambda: any("Farewell from two." in m["text"] for m in caller.of("transcript")))
        await until(lambda: caller.over)
