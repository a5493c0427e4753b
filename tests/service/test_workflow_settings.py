"""Settings of workflows by HTTP: checked, kept, recorded, and used from the next turn on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.model import ScriptedModel
from tests.fakes.sink import CollectingSink
from tests.support.small_service import write_project
from voice_agent.channels import rest_settings
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import UserInput
from voice_agent.service.versions import AgentVersions
from voice_agent.service.workflow_settings import KEY, WorkflowSettings
from voice_agent.store import MemoryStore
from voice_agent.store.protocol import ConversationStore, StoreUnavailable
from voice_agent.store.sqlite import SqliteStore

PATH = "/agentic_workflow/settings"
REACT, CORE = "ReActAgentConfig", "CoreAgenticWorkflowConfig"


class Bench:
    def __init__(self, root: Path, store: ConversationStore, agent: str = "", model: Any = None) -> None:
        from fastapi import FastAPI

        text = "agent:\n  id: small\n  persona: You answer.\n" + agent
        self.root, self.store = write_project(root, files={"agent.yml": text}), store
        self.model = model or ScriptedModel(then="Well.")
        self.versions = AgentVersions(Agent.load(load_config(root, {}), self.model, store=store))
        self.settings = WorkflowSettings(store, self.versions)
        app = FastAPI()
        app.include_router(rest_settings.router(self.settings, lambda: "key:abc"))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    async def put(self, name: str, value: Any) -> httpx.Response:
        return await self.http.put(f"{PATH}/{name}", json=value)

    async def selected(self) -> str:
        return str((await self.http.get(PATH)).json()["selected_configuration"])

    async def says(self, text: str) -> None:
        conversation = self.versions.open("c1", channel="text")
        await conversation.turn(UserInput(text), turn_id=text, sink=CollectingSink(), cancel=CancelToken())

    @property
    def is_react(self) -> list[bool]:
        """Whether each model call was led by react."""
        return ["How you work" in request.messages[0].content for request in self.model.requests]


@asynccontextmanager
async def opened(root: Path, store: ConversationStore | None = None, **more: Any) -> AsyncIterator[Bench]:
    bench = Bench(root, MemoryStore() if store is None else store, **more)
    await bench.store.open()
    await bench.settings.load()
    try:
        yield bench
    finally:
        await bench.http.aclose()
        await bench.store.aclose()


async def test_both_configurations_are_listed_with_values_and_schemas(tmp_path: Path) -> None:
    async with opened(tmp_path, agent="react: {max_iterations: 3}\n") as bench:
        listed = (await bench.http.get(PATH)).json()
        assert listed["selected_configuration"] == CORE
        by_name = {one["name"]: one for one in listed["settings"]}
        assert list(by_name) == [CORE, REACT]
        assert by_name[REACT]["value"]["max_iterations"] == 3
        assert by_name[REACT]["scheme"]["properties"]["max_procedures_calls"]["minimum"] == 1
        assert (await bench.http.get(f"{PATH}/{REACT}")).json() == by_name[REACT]


async def test_what_agent_yml_says_is_selected_until_something_is_put(tmp_path: Path) -> None:
    async with opened(tmp_path, agent="workflow: react\n") as bench:
        assert await bench.selected() == REACT
        assert (await bench.put(CORE, {})).status_code == 200
        assert await bench.selected() == CORE


@pytest.mark.parametrize("method", ["get", "put"])
async def test_an_unknown_name_is_answered_with_the_names(tmp_path: Path, method: str) -> None:
    async with opened(tmp_path) as bench:
        answer = await getattr(bench.http, method)(f"{PATH}/Other", **({"json": {}} if method == "put" else {}))
        assert answer.status_code == 400
        assert answer.json()["message"] == f"Other not supported. Must be one of ['{CORE}', '{REACT}']"


@pytest.mark.parametrize(
    ("value", "field"),
    [({"max_iterations": 0}, "max_iterations"), ({"max_iterations": "x"}, "max_iterations"), ({"speed": 1}, "speed")],
)
async def test_a_value_that_does_not_fit_names_its_field_and_changes_nothing(
    tmp_path: Path, value: dict[str, Any], field: str
) -> None:
    async with opened(tmp_path) as bench:
        await bench.put(REACT, {"max_iterations": 7})
        answer = await bench.put(REACT, value)
        assert (answer.status_code, answer.json()["faults"][0]["field"]) == (422, field)
        assert (await bench.http.get(f"{PATH}/{REACT}")).json()["value"]["max_iterations"] == 7


@pytest.mark.parametrize("body", [b"[]", b"{", b"", b'"x"', b"\xff"])
async def test_a_body_that_is_no_object_is_refused(tmp_path: Path, body: bytes) -> None:
    async with opened(tmp_path) as bench:
        assert (await bench.http.put(f"{PATH}/{REACT}", content=body)).status_code == 400


async def test_a_setting_outlives_the_process_and_its_change_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite3"
    async with opened(tmp_path, SqliteStore(file)) as bench:
        await bench.put(REACT, {"max_iterations": 2})
        await bench.put(REACT, {"max_iterations": 4, "system_prompt": "Grüße {x}"})
    async with opened(tmp_path, SqliteStore(file)) as bench:
        assert await bench.selected() == REACT
        value = (await bench.http.get(f"{PATH}/{REACT}")).json()["value"]
        assert (value["max_iterations"], value["system_prompt"]) == (4, "Grüße {x}")
        store = bench.store
        assert isinstance(store, SqliteStore)
        newest, first = await store.setting_changes(KEY)
        assert (newest.who, first.old, newest.old) == ("key:abc", None, first.new)
        assert newest.new["values"][REACT]["max_iterations"] == 4


async def test_what_was_put_can_be_taken_back_and_agent_yml_decides_again(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite3"
    agent = "workflow: react\nreact: {max_iterations: 7}\n"
    async with opened(tmp_path, SqliteStore(file), agent=agent) as bench:
        await bench.put(REACT, {"max_iterations": 2})
        await bench.put(CORE, {})
        answer = await bench.http.delete(PATH)
        assert (answer.status_code, answer.json()) == (200, (await bench.http.get(PATH)).json())
        assert (await bench.http.delete(PATH)).status_code == 200
        newest = (await bench.settings.changes(20))["changes"]
        assert len(newest) == 3
        assert newest[0]["selected"] == {"from": CORE, "to": None}
    async with opened(tmp_path, SqliteStore(file), agent=agent) as bench:
        assert await bench.selected() == REACT
        assert (await bench.http.get(f"{PATH}/{REACT}")).json()["value"]["max_iterations"] == 7
        await bench.says("a")
        assert bench.is_react == [True]


async def test_the_next_turn_uses_it_and_a_running_one_keeps_what_it_began_with(tmp_path: Path) -> None:
    asked, changed = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def _play(self, entry: Any, record: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            asked.set()
            await changed.wait()
            async for event in super()._play(entry, record):
                yield event

    async with opened(tmp_path, model=Waiting(["", "Now.", "Later."])) as bench:
        turn = asyncio.ensure_future(bench.says("one"))
        await asked.wait()
        await bench.put(REACT, {})
        changed.set()
        await turn
        await bench.says("two")
        assert bench.is_react == [False, False, True]


async def test_concurrent_changes_end_as_one_of_them(tmp_path: Path) -> None:
    async with opened(tmp_path, SqliteStore(tmp_path / "s.sqlite3")) as bench:
        answers = await asyncio.gather(*(bench.put(REACT, {"max_iterations": n}) for n in range(1, 9)))
        assert {answer.status_code for answer in answers} == {200}
        store = bench.store
        assert isinstance(store, SqliteStore)
        changes = await store.setting_changes(KEY)
        assert [c.old for c in changes[:-1]] == [c.new for c in changes[1:]]
        value = (await bench.http.get(f"{PATH}/{REACT}")).json()["value"]
        assert value == changes[0].new["values"][REACT]


async def test_a_selected_workflow_that_is_gone_gives_way_to_the_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    kept = {"schema": 1, "selected": "GoneConfig", "values": {"GoneConfig": {"a": 1}, REACT: {"max_iterations": 0}}}
    await store.write_setting(KEY, kept, who="x")
    async with opened(tmp_path, store) as bench:
        assert await bench.selected() == CORE
        assert "GoneConfig is selected but not installed" in caplog.text
        assert (await bench.http.get(f"{PATH}/{REACT}")).json()["value"]["max_iterations"] == 5
        await bench.says("hello")


@pytest.mark.parametrize("kept", [{"schema": 99}, {"schema": 1, "selected": 5, "values": [1]}, {}])
async def test_what_another_version_kept_is_left_out(tmp_path: Path, kept: dict[str, Any]) -> None:
    store = MemoryStore()
    await store.write_setting(KEY, kept, who="x")
    async with opened(tmp_path, store) as bench:
        assert await bench.selected() == CORE


async def test_a_change_that_cannot_be_kept_is_not_made(tmp_path: Path) -> None:
    class Full(MemoryStore):
        async def write_setting(self, name: str, value: Any, *, who: str) -> None:
            raise StoreUnavailable("the disk is full")

    async with opened(tmp_path, Full()) as bench:
        answer = await bench.put(REACT, {})
        assert (answer.status_code, answer.json()["code"]) == (503, "not_kept")
        assert await bench.selected() == CORE


async def test_a_new_version_of_the_project_keeps_the_settings(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.put(REACT, {})
        bench.versions.replace(Agent.load(load_config(tmp_path, {}), bench.model, store=bench.store))
        await bench.says("hello")
        assert bench.is_react == [True]


# --- what changed ------------------------------------------------------------------------------

CHANGES = "/agentic_workflow/setting_changes"


async def test_what_changed_last_is_told_field_by_field(tmp_path: Path) -> None:
    async with opened(tmp_path, SqliteStore(tmp_path / "kept.sqlite3")) as bench:
        assert (await bench.http.get(CHANGES)).json() == {"kept": True, "changes": []}
        await bench.put(REACT, {"max_iterations": 4})
        await bench.put(REACT, {"max_iterations": 7})
        await bench.put(CORE, {})
        told = (await bench.http.get(CHANGES)).json()["changes"]
        assert [(one["selected"], one["fields"], one["who"]) for one in told[:2]] == [
            ({"from": REACT, "to": CORE}, [], "key:abc"),
            (None, [{"name": REACT, "field": "max_iterations", "from": 4, "to": 7}], "key:abc"),
        ]
        first = told[2]
        assert first["selected"] == {"from": None, "to": REACT}
        assert {"name": REACT, "field": "max_iterations", "from": None, "to": 4} in first["fields"]
        assert first["at"] < told[0]["at"]


async def test_a_record_of_changes_that_cannot_be_read_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, SqliteStore(tmp_path / "kept.sqlite3")) as bench:

        async def away(*_: Any, **__: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(bench.store, "setting_changes", away)
        answer = await bench.http.get(CHANGES)
        assert (answer.status_code, answer.json()["code"]) == (503, "not_read")


async def test_each_field_is_described_for_whoever_sets_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        scheme = (await bench.http.get(f"{PATH}/{REACT}")).json()["scheme"]
        assert scheme["properties"]["max_iterations"]["description"] == "Model calls within one turn."
        assert all("description" in one for one in scheme["properties"].values())


ODD = '''
from typing import Any
from pydantic import field_validator
from voice_agent.dialogue.plugins import ReActAgentConfig, hook


class OddConfig(ReActAgentConfig):
    """Odd."""

    workflow = "odd"
    rate: float = 1.0
    extra: Any = None
    town: str = "Bath"

    @field_validator("town")
    @classmethod
    def known(cls, town):
        return {"Bath": "Bath", "nan": "Bath"}[town]


@hook
def factory_allowed_agentic_workflows(allowed, cat):
    return [*allowed, OddConfig]
'''


async def test_nothing_that_can_be_put_breaks_the_settings_or_the_next_turn(tmp_path: Path) -> None:
    write_project(tmp_path, files={"plugins/odd.py": ODD})
    async with opened(tmp_path) as bench:
        before = (await bench.http.get(PATH)).json()
        for name, body, status in (
            (REACT, b'{"system_prompt": "\\ud800"}', 400),
            (REACT, b'{"\\ud800": 1}', 400),
            ("OddConfig", b'{"rate": NaN}', 400),
            ("OddConfig", b'{"rate": "nan"}', 422),
            ("OddConfig", b'{"extra": 1e400}', 400),
            ("OddConfig", b'{"town": "Wells"}', 422),
        ):
            answer = await bench.http.put(f"{PATH}/{name}", content=body)
            assert (name, body, answer.status_code) == (name, body, status)
        assert (await bench.http.get(PATH)).json() == before
        # What an earlier version of the plugin allowed is left out, whatever its check raises now.
        await bench.store.write_setting(  # type: ignore[attr-defined]
            KEY, {"schema": 1, "selected": "OddConfig", "values": {"OddConfig": {"town": "Wells"}}}, who=""
        )
        await bench.settings.load()
        await bench.says("Hello")
        assert (await bench.http.get(PATH)).json()["selected_configuration"] == "OddConfig"
