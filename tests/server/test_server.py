"""The server around a service: probes, shutdown, and what clients and operators are told when something is wrong."""

from __future__ import annotations

import asyncio
import logging
import socket

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.lines import RecordingService, serving, until
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.config import ServerOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.server import listen, serve


async def test_probes_tell_alive_and_ready_apart() -> None:
    service = RecordingService()
    service.missing = ("speech to text", "responses 3 of 10")
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        assert (await client.get("/healthz")).json() == {"status": "alive"}
        warming = await client.get("/readyz")
        assert warming.status_code == 503
        assert warming.json()["missing"] == ["speech to text", "responses 3 of 10"]
        service.missing = ()
        assert (await client.get("/readyz")).status_code == 200
        assert "voice_agent_calls_active" in (await client.get("/metrics")).text
        for path in ("/docs", "/openapi.json", "/web/", "/web/../agent.yml"):
            missing = await client.get(path)
            assert (missing.status_code, set(missing.json())) == (404, {"code", "message"})
            assert "WebSocket to /ws" in missing.json()["message"]


async def test_stopping_drains_before_the_sockets_close() -> None:
    service = RecordingService()
    async with serving(service) as address:
        caller = await WebSocketCaller.dial(address)
        line = await service.calls.next_line()
        drained = asyncio.Event()

        async def drain(timeout_s: float) -> None:
            assert timeout_s == ServerOptions().drain_timeout_s
            await line.wire.hang_up("shutdown")
            service.done.append("drained")
            drained.set()

        service.drain = drain  # type: ignore[method-assign]
    await until(lambda: caller.over)
    assert caller.messages[-1] == {"type": "hangup", "reason": "shutdown"}
    assert caller.closed_with == 1000
    assert service.done == ["started", "drained", "closed"]


async def test_a_service_that_fails_is_closed_all_the_same() -> None:
    class Failing(RecordingService):
        async def run(self) -> None:
            await until(lambda: self.done)
            raise OSError("the clock stopped")

    service = Failing()
    with pytest.raises(ExceptionGroup) as fault:
        await serve(service, ServerOptions(port=0))
    assert fault.group_contains(OSError, match="the clock stopped")
    assert service.done == ["started", "closed"]


async def test_a_port_in_use_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RemediableError, match=f"Port {port} on 127.0.0.1 is in use. .*--port"):
            await serve(RecordingService(), ServerOptions(port=port))  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_one_clear_error(host: str) -> None:
    with pytest.raises(RemediableError, match="--host"):
        listen(host, 0)


async def test_what_cannot_be_loaded_stops_the_server_with_its_remedy() -> None:
    class Broken(RecordingService):
        async def start(self) -> None:
            raise RemediableError("The voice is missing.", "Install the extra piper.")

    service = Broken()
    with pytest.raises(RemediableError, match="Install the extra piper"):
        await serve(service, ServerOptions(port=0))  # type: ignore[arg-type]
    assert service.done == ["drained", "closed"]


async def test_a_fault_of_ours_reaches_the_client_without_its_details() -> None:
    class Faulty(RecordingService):
        @property
        def missing(self) -> tuple[str, ...]:
            raise ZeroDivisionError("secret detail")

        @missing.setter
        def missing(self, value: tuple[str, ...]) -> None:
            pass

    async with serving(Faulty()) as address, httpx.AsyncClient() as client:
        answer = await client.get(f"http://{address}/readyz")
    assert answer.status_code == 500
    assert answer.json() == {"code": "internal", "message": "Something went wrong on our side."}


async def test_another_sites_page_cannot_open_a_socket_on_loopback() -> None:
    service = RecordingService()
    async with serving(service) as address:
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://{address}/ws", origin="https://evil.example")  # type: ignore[arg-type]
        assert caught.value.response.status_code == 403
        own = await connect(f"ws://{address}/ws", origin=f"http://{address}")  # type: ignore[arg-type]
        await service.calls.next_line()
        await own.close()
    assert len(service.calls.lines) == 1


async def test_an_allowed_page_may_use_the_http_interface_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", "a-key-for-the-allowed-page")
    options = ServerOptions(allowed_origins=("https://shop.example",))
    path, origin = "/v1/conversations/c1/messages", {"origin": "https://shop.example"}
    ask = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    async with (
        serving(RecordingService(), options) as address,
        httpx.AsyncClient(base_url=f"http://{address}") as client,
    ):
        asked = await client.options(path, headers={**origin, **ask})
        assert asked.status_code == 200
        assert asked.headers["access-control-allow-origin"] == "https://shop.example"
        assert (await client.post(path, headers=origin, json={"text": "hi"})).status_code == 401
        key = {"authorization": "Bearer a-key-for-the-allowed-page"}
        answer = await client.post(path, headers={**origin, **key}, json={"text": "hi"})
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        other = await client.options(path, headers={"origin": "https://evil.example", **ask})
        assert other.status_code == 403


async def test_the_log_names_no_query_and_no_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    service = RecordingService()
    async with serving(service) as address:
        caller = await WebSocketCaller.dial(address, "?token=very-secret-token&conversation=c1")
        await caller.close()
    handler_view = [record.getMessage() for record in caplog.records if record.name.startswith("voice_agent")]
    assert not any("very-secret-token" in text for text in handler_view)


async def test_settings_of_workflows_need_the_key_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", "a-key-for-the-settings")
    async with serving(RecordingService()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        path, good = "/agentic_workflow/settings", {"authorization": "Bearer a-key-for-the-settings"}
        assert (await client.get(path)).status_code == 401
        assert (await client.put(f"{path}/ReActAgentConfig", json={})).status_code == 401
        assert (await client.get("/agentic_workflow/setting_changes")).status_code == 401
        assert (await client.get("/agentic_workflow/setting_changes", headers=good)).status_code == 200
        assert (await client.get(path, headers=good)).json() == {"settings": [], "selected_configuration": ""}
        assert (await client.put(f"{path}/X", json={}, headers=good)).status_code == 400
