"""The composed service over its real wire, with scripted engines."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.lines import serving, until
from tests.support.small_service import GREETING, small_service, spoken
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.diagnostics import ProjectError, RemediableError
from voice_agent.service.service import Service


def said(caller: WebSocketCaller, role: str = "agent") -> list[str]:
    return [m["text"] for m in caller.of("transcript") if m["role"] == role and m["final"]]


async def ready(service: Service) -> None:
    await until(lambda: not service.missing)


async def test_a_caller_is_greeted_understood_and_answered(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["It is forty two."])
    async with serving(service) as address:
        await ready(service)
        caller = await WebSocketCaller.dial(address, "?conversation=c1&events=1&metrics=1")
        await until(lambda: GREETING in said(caller))
        await until(lambda: len(caller.audio) > 16000)
        await caller.speak(spoken())
        await until(lambda: "It is forty two." in said(caller))
        assert said(caller, "user") == ["what is my balance"]
        assert any("user" in m["event"] for m in caller.of("event"))
        await until(lambda: caller.of("metrics"))
        await caller.hang_up()
        await until(lambda: caller.over)


async def test_typed_text_is_answered_on_the_same_call(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["Typed is fine."])
    async with serving(service) as address:
        await ready(service)
        caller = await WebSocketCaller.dial(address)
        await caller.say(type="text", text="hello")
        await until(lambda: "Typed is fine." in said(caller))
        await caller.close()


async def test_a_second_connection_on_a_live_conversation_takes_it_over(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["One.", "Two."])
    async with serving(service) as address:
        await ready(service)
        first = await WebSocketCaller.dial(address, "?conversation=c1")
        await first.say(type="text", text="hello")
        await until(lambda: "One." in said(first))
        second = await WebSocketCaller.dial(address, "?conversation=c1")
        await second.say(type="text", text="me again")
        await until(lambda: "Two." in said(second))
        await until(lambda: first.over)
        assert first.of("hangup") == [{"type": "hangup", "reason": "superseded"}]
        assert GREETING not in said(second)
        await second.close()


async def test_where_it_is_switched_off_a_second_connection_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    settings = "server: {reconnect_takes_over: false}\n"
    service = small_service(tmp_path, model=["Still here."], settings=settings)
    async with serving(service) as address:
        await ready(service)
        first = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: first.of("ready"))
        second = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: second.over)
        assert [m["code"] for m in second.of("error")] == ["conversation_busy"]
        await first.say(type="text", text="hello")
        await until(lambda: "Still here." in said(first))
        await first.close()


async def test_a_dropped_conversation_goes_on_without_a_new_greeting(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["One.", "Two."])
    async with serving(service) as address:
        await ready(service)
        first = await WebSocketCaller.dial(address, "?conversation=c1")
        await first.say(type="text", text="hello")
        await until(lambda: "One." in said(first))
        await first.vanish()
        # At once, before the end of the old connection can have been noticed.
        second = await WebSocketCaller.dial(address, "?conversation=c1")
        await second.say(type="text", text="me again")
        await until(lambda: "Two." in said(second))
        assert GREETING not in said(second)
        await second.close()


async def test_calls_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    service = small_service(tmp_path, settings="server: {max_calls: 1}\n")
    async with serving(service) as address:
        await ready(service)
        first = await WebSocketCaller.dial(address)
        await until(lambda: first.of("ready"))
        second = await WebSocketCaller.dial(address)
        await until(lambda: second.over)
        assert (second.of("error")[0]["code"], second.closed_with) == ("at_capacity", 1013)
        await first.close()


async def test_nobody_is_admitted_before_everything_is_warm(tmp_path: Path) -> None:
    release = threading.Event()
    service = small_service(tmp_path, loads={"speech to text": lambda: release.wait(10) and None})
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await until(lambda: service.missing == ("speech to text",))
        warming = await client.get("/readyz")
        assert (warming.status_code, warming.json()["missing"]) == (503, ["speech to text"])
        early = await WebSocketCaller.dial(address)
        await until(lambda: early.over)
        assert (early.of("error")[0]["code"], early.closed_with) == ("not_ready", 1013)
        release.set()
        await ready(service)
        assert (await client.get("/readyz")).status_code == 200


async def test_a_missing_model_stops_the_start_with_its_remedy(tmp_path: Path) -> None:
    def load() -> None:
        raise RemediableError("The model is missing.", "Install the extra whisper.")

    service = small_service(tmp_path, loads={"speech to text": load})
    with pytest.raises(RemediableError, match="Install the extra whisper"):
        await service.start()
    await service.aclose()


async def test_a_part_that_cannot_be_closed_keeps_none_of_the_others_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise OSError("the disk is gone")

    service = small_service(tmp_path)
    await service.start()
    monkeypatch.setattr(service.store, "aclose", fail)
    await service.aclose()
    assert service._engines.model.closed


def test_broken_project_files_are_found_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="max_calls"):
        small_service(tmp_path, settings="server: {max_calls: 0}\n")


async def test_stopping_says_goodbye_to_every_caller(tmp_path: Path) -> None:
    service = small_service(tmp_path)
    async with serving(service) as address:
        await ready(service)
        callers = [await WebSocketCaller.dial(address) for _ in range(3)]
        await until(lambda: all(caller.of("ready") for caller in callers))
    await until(lambda: all(caller.over for caller in callers))
    assert [caller.of("hangup")[0]["reason"] for caller in callers] == ["shutdown"] * 3
    assert service.missing == ("the service is stopping",)


async def test_text_and_voice_share_a_conversation_but_not_at_once(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["By text.", "By voice."])
    path = "/v1/conversations/c1/messages"
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await ready(service)
        first = await client.post(path, json={"text": "hello"})
        assert first.json()["messages"][-1] == "By text."
        caller = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: caller.of("ready"))
        assert (await client.post(path, json={"text": "hello"})).status_code == 409
        await caller.say(type="text", text="hello")
        await until(lambda: "By voice." in said(caller))
        await caller.close()


async def test_channels_that_are_switched_off_answer_nobody(tmp_path: Path) -> None:
    off = "channels: {websocket: {enabled: false}, text: {enabled: false}}\n"
    service = small_service(tmp_path, settings=off)
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await ready(service)
        caller = await WebSocketCaller.dial(address)
        await until(lambda: caller.over)
        assert (caller.of("error")[0]["code"], caller.closed_with) == ("channel_off", 1008)
        answer = await client.post("/v1/conversations/c1/messages", json={"text": "hello"})
        assert (answer.status_code, answer.json()["code"]) == (404, "channel_off")


async def test_callers_who_leave_at_any_instant_leave_nothing(tmp_path: Path) -> None:
    service, dice = small_service(tmp_path), random.Random(7)

    async def call(address: str) -> None:
        caller = await WebSocketCaller.dial(address)
        await caller.speak(spoken(0.4, 0.4))
        await asyncio.sleep(dice.random() * 0.3)
        await (caller.vanish() if dice.random() < 0.5 else caller.hang_up())
        await until(lambda: caller.over)
        await caller.close()

    async with serving(service) as address:
        await ready(service)
        before = {t.get_name() for t in asyncio.all_tasks()}
        await asyncio.gather(*(call(address) for _ in range(20)))
        await until(lambda: not service.calls.registry.active)
        names = [t.get_name() for t in asyncio.all_tasks()]
        await until(
            lambda: (
                not [
                    t
                    for t in asyncio.all_tasks()
                    if t.get_name().startswith(("call.", "websocket.", "wire", "speech."))
                ]
            )
        )
    assert before and names
