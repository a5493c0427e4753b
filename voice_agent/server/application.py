"""The HTTP face of the service: probes, metrics, the WebSocket wire, text by REST.

Audio frames do not pass through the web framework: the WebSocket channel is called by the server
directly, everything else goes to FastAPI. The gate stands before both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from voice_agent.channels import rest, rest_calls, rest_knowledge, rest_settings
from voice_agent.channels.carriers.carriers import ASGI, Carriers
from voice_agent.channels.desk import CallDesk, KnowledgeDesk, SettingsDesk, TextDesk
from voice_agent.channels.doorkeeper import Denial, deny
from voice_agent.channels.outbound import OutboundDialer
from voice_agent.channels.outbound_calls import OutboundCalls
from voice_agent.channels.pbx.sockets import pbx_sockets
from voice_agent.channels.streaming.connection import Receive, Send
from voice_agent.channels.tokens import CallTokens, granted
from voice_agent.channels.webrtc.channel import WebRtcChannel
from voice_agent.channels.websocket import WebSocketChannel
from voice_agent.config import Channels
from voice_agent.security import Gate
from voice_agent.server.inspection import InspectorDesk

NOTHING_HERE = (
    "There is nothing here. Calls come by WebSocket to /ws or by WebRTC to /offer, text by POST to "
    "/v1/conversations/ID/messages; /healthz, /readyz and /metrics tell how the service is."
)

NO_SOCKET = "There is no WebSocket here. Ours is at /ws; those of exchanges must be enabled under channels."


class Service(Protocol):
    """What the server serves (`voice_agent.service.Service`)."""

    @property
    def calls(self) -> CallDesk: ...

    @property
    def texts(self) -> TextDesk: ...

    @property
    def inspector(self) -> InspectorDesk | None: ...

    @property
    def tokens(self) -> CallTokens: ...

    @property
    def channels(self) -> Channels:
        """The ways in, as configured."""
        ...

    @property
    def settings(self) -> SettingsDesk: ...

    @property
    def knowledge(self) -> KnowledgeDesk: ...

    @property
    def introduction(self) -> Mapping[str, str]:
        """What callers may know of the agent: ``name`` and ``language``."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What keeps the service from taking calls; empty when ready."""
        ...

    async def start(self) -> None:
        """Load and warm everything. Raises `RemediableError` or `ProjectError` when that cannot be."""
        ...

    async def run(self) -> None:
        """Keep the service going until cancelled."""
        ...

    async def drain(self, timeout_s: float) -> None:
        """Refuse new calls; let the others finish, at most this long."""
        ...

    async def aclose(self) -> None: ...


class Application:
    """The ASGI application of a service. ``http`` is the FastAPI part, open for more routes."""

    def __init__(
        self,
        service: Service,
        gate: Gate,
        allowed_origins: tuple[str, ...] = (),
        carriers: Carriers | None = None,
        dialers: dict[str, OutboundDialer] | None = None,
    ) -> None:
        """Args: ``dialers``: other channels that can place calls, by name."""
        self._gate = gate
        self._carriers = carriers or Carriers({})
        # The only requests that the gate does not judge: each is answered by what checks the carrier's own signature.
        self._signed: dict[str, ASGI] = self._carriers.webhooks
        self._sockets: dict[str, ASGI] = {"/ws": WebSocketChannel(service.calls, gate)}
        self._sockets.update(pbx_sockets(service.calls, gate, service.channels))
        self._sockets.update(self._carriers.sockets)
        self._webrtc = WebRtcChannel(service.calls, service.channels.webrtc)
        self.outbound = OutboundCalls(
            service.calls, service.channels.outbound, self._carriers.dialers | (dialers or {})
        )
        self.http = _http(service)
        self.http.include_router(rest_calls.router(service.calls, self.outbound, has_key=gate.has_key))
        self.http.include_router(self._webrtc.routes())
        self.http.include_router(rest_knowledge.router(service.knowledge))
        self.http.include_router(rest_settings.router(service.settings, lambda: gate.key_name))
        if allowed_origins:
            headers = ["authorization", "content-type"]
            self.http.add_middleware(
                CORSMiddleware,
                allow_origins=allowed_origins,
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=headers,
            )

    async def run(self) -> None:
        """Carry the calls that outlive their requests, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._webrtc.run(), name="calls.webrtc")
                group.create_task(self.outbound.run(), name="calls.outbound")
        finally:
            await self._carriers.aclose()

    def stop_connecting(self) -> None:
        """Wait no longer for callers that are not connected yet."""
        self._webrtc.give_up_connecting()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if socket := self._sockets.get(scope["path"]):
                await socket(scope, receive, send)
            else:
                await deny(send, self._gate(scope) or Denial(404, "not_found", NO_SOCKET))
        elif signed := self._signed.get(scope["path"]):
            await signed(scope, receive, send)
        elif denial := self._gate(scope):
            await rest.error(denial.status, denial.code, denial.message)(scope, receive, send)
        else:
            await self.http(scope, receive, send)


def _http(service: Service) -> FastAPI:
    app = FastAPI(title="Voice agent", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.inspector = ""
    app.include_router(rest.router(service.texts))

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", response_model=None)
    async def readyz() -> Response:
        missing = service.missing
        if not missing:
            return JSONResponse({"status": "ready"})
        text = f"Not ready: {', '.join(missing)}."
        return JSONResponse({"code": "not_ready", "message": text, "missing": missing}, 503)

    @app.get("/agent")
    async def agent(request: Request) -> dict[str, str]:
        # A caller with a token of their own is told of no inspector: it is none of theirs.
        where = app.state.inspector if granted(request.scope) is None else ""
        return {**service.introduction, **({"inspector": where} if where else {})}

    @app.get("/metrics", response_model=None)
    def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, fault: HTTPException) -> Response:
        message = NOTHING_HERE if fault.status_code == HTTPStatus.NOT_FOUND else f"{fault.detail}."
        return rest.error(fault.status_code, "http_error", message)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, fault: RequestValidationError) -> Response:
        return rest.error(422, "bad_request", "The request does not have the expected form.")

    @app.exception_handler(Exception)
    async def failed(request: Request, fault: Exception) -> Response:
        return rest.error(500, "internal", "Something went wrong on our side.")

    return app
