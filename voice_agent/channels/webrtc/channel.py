"""Calls from browsers: ``POST /offer``, ``DELETE /call/{id}``, ``GET /webrtc/config``.

::

    POST /offer ─▶ admitted? ─▶ answer ─▶ 200 {sdp, type, call_id, conversation}
                      │            └─▶ connected within the limit ─▶ the call ─▶ closed
                      └─▶ 503 {code, message}

The caller is admitted before anything is opened for it, and holds its place while it connects.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels import rest
from voice_agent.channels.desk import CallDesk, CallRefused, CallRequest
from voice_agent.channels.tokens import Grant, granted
from voice_agent.channels.webrtc.offers import MAX_BODY_BYTES, BadOffer, Offer, read_offer
from voice_agent.channels.webrtc.servers import browser_server
from voice_agent.config import WebRtcOptions

if TYPE_CHECKING:
    from voice_agent.channels.webrtc.stack import Stack
    from voice_agent.channels.webrtc.wire import WebRtcWire

log = logging.getLogger(__name__)

CHANNEL = "webrtc"
MISSING = (
    "Calls by WebRTC need the extra 'webrtc'. Install it where the service runs: pip install 'voice-agent[webrtc]'"
)
ANSWER_MARGIN_S = 5.0
"""Time for an answer beyond that for gathering candidates."""


@dataclass(eq=False)
class _Placed:
    """One caller from its offer to its end."""

    offer: Offer
    grant: Grant | None
    loopback: bool
    answer: asyncio.Future[dict[str, str]]
    abandoned: asyncio.Future[None]
    wire: WebRtcWire | None = None
    call_id: str = ""

    def abandon(self) -> None:
        """Wait no longer for its media."""
        if not self.abandoned.done():
            self.abandoned.set_result(None)


class WebRtcChannel:
    """Answers offers, and owns the tasks of the calls that come of them. `run` must be running."""

    def __init__(self, desk: CallDesk, options: WebRtcOptions) -> None:
        self._desk, self._options = desk, options
        self._group: asyncio.TaskGroup | None = None
        self._placed: set[_Placed] = set()
        self._calls: dict[str, _Placed] = {}
        self._stack: asyncio.Future[Stack | None] | None = None

    async def run(self) -> None:
        """Carry calls until cancelled, and close those that are left."""
        if not self._options.enabled:
            return
        loop = asyncio.get_running_loop()
        self._stack = loop.create_future()
        try:
            async with asyncio.TaskGroup() as self._group:
                stack = await asyncio.to_thread(_load, self._options)
                if stack is None:
                    log.warning(MISSING)
                self._stack.set_result(stack)
                await loop.create_future()
        finally:
            self._group = None
            self._stack.cancel()

    def give_up_connecting(self) -> None:
        """Do not wait any longer for callers whose media has not come through."""
        for placed in self._placed:
            placed.abandon()

    def routes(self) -> APIRouter:
        """Return the routes of this channel."""
        routes = APIRouter()

        @routes.post("/offer", response_model=None)
        async def offer(request: Request) -> Response:
            try:
                read = read_offer(await rest.read_body(request, MAX_BODY_BYTES), grant := granted(request.scope))
                loopback = request.client is not None and request.client.host in ("127.0.0.1", "::1")
                return JSONResponse(await self._place(read, grant, loopback))
            except (BadOffer, rest.BadRequest) as bad:
                return rest.error(bad.status, bad.code, bad.message)
            except CallRefused as refusal:
                return rest.refused(refusal)

        @routes.delete("/call/{call_id}", response_model=None)
        async def hang_up(call_id: str, request: Request) -> Response:
            placed, grant = self._calls.get(call_id), granted(request.scope)
            if placed is None or (grant is not None and placed.grant is not grant):
                return rest.error(404, "no_such_call", "There is no such call, or it is over.")
            if placed.wire is not None:
                placed.wire.end_by_caller()
            placed.abandon()
            return Response(status_code=204)

        @routes.get("/webrtc/config", response_model=None)
        async def config() -> Response:
            try:
                await self._ready()
            except BadOffer as bad:
                return rest.error(bad.status, bad.code, bad.message)
            return JSONResponse({"iceServers": [browser_server(server) for server in self._options.ice_servers]})

        return routes

    async def _ready(self) -> Stack:
        if not self._options.enabled:
            raise BadOffer(404, "channel_off", "This channel is switched off.")
        stack = None if self._stack is None else await asyncio.shield(self._stack)
        if stack is None:
            raise BadOffer(501, "webrtc_missing", MISSING)
        return stack

    async def _place(self, offer: Offer, grant: Grant | None, loopback: bool) -> dict[str, str]:
        stack = await self._ready()
        if self._group is None:
            raise CallRefused("draining", "The service is shutting down. Call again in a minute.")
        self._give_way(offer, grant)
        loop = asyncio.get_running_loop()
        placed = _Placed(offer, grant, loopback, loop.create_future(), loop.create_future())
        task = self._group.create_task(self._carry(placed, stack), name="webrtc.call")
        first: set[asyncio.Future[Any]] = {task, placed.answer}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not placed.answer.done():
            raise CallRefused("internal", "Something went wrong on our side.")
        return placed.answer.result()

    def _give_way(self, offer: Offer, grant: Grant | None) -> None:
        """End the call that its caller has lost and takes up again; without that it would be busy for half a minute."""
        lost = self._calls.get(offer.resumes)
        if lost is None or lost.grant is not grant or lost.offer.conversation_id != offer.conversation_id:
            return
        if lost.wire is not None:
            lost.wire.end_by_successor()
        lost.abandon()

    async def _carry(self, placed: _Placed, stack: Stack) -> None:
        """Carry one caller from its offer to its end. Whatever happens here is this caller's alone."""
        offer = placed.offer
        placed.wire = wire = stack.wire(offer, loopback=placed.loopback)
        self._placed.add(placed)

        async def connect(call_id: str) -> bool:
            placed.call_id = call_id
            self._calls[call_id] = placed
            return await self._connect(placed, wire)

        try:
            request = CallRequest(offer.conversation_id, CHANNEL, offer.events, placed.grant, connect)
            await self._desk.take(request, wire)
        except (CallRefused, BadOffer) as refusal:
            if not placed.answer.done():
                placed.answer.set_exception(refusal)
        except Exception:
            log.exception("a call by WebRTC failed")
        finally:
            self._placed.discard(placed)
            self._calls.pop(placed.call_id, None)
            await wire.close()

    async def _connect(self, placed: _Placed, wire: WebRtcWire) -> bool:
        """Answer, then wait for the media; False when it does not come in time."""
        options = self._options
        try:
            async with asyncio.timeout(options.gather_timeout_s + ANSWER_MARGIN_S):
                sdp = await wire.peer.answer(placed.offer.sdp)
        except TimeoutError:
            raise CallRefused("too_slow", "The answer could not be made in time. Call again in a moment.") from None
        if placed.answer.cancelled():
            return False
        placed.answer.set_result(
            {"sdp": sdp, "type": "answer", "call_id": placed.call_id, "conversation": placed.offer.conversation_id}
        )
        connected = wire.peer.connected
        first: set[asyncio.Future[Any]] = {connected, placed.abandoned}
        await asyncio.wait(first, timeout=options.connect_timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if connected.done() and connected.result():
            return True
        if not placed.abandoned.done():
            log.warning(
                "no media came through from a browser within %.0f s (ICE is %s). Open UDP between it and this machine, "
                "or name STUN and TURN servers in channels.webrtc.ice_servers.",
                options.connect_timeout_s,
                wire.peer.ice_state,
            )
        return False


def _load(options: WebRtcOptions) -> Stack | None:
    """Import what carries the media; None where it is not installed. Slow: not for the event loop."""
    try:
        from voice_agent.channels.webrtc.stack import Stack
    except ModuleNotFoundError as fault:
        if fault.name not in ("aiortc", "aioice", "av", "pylibsrtp"):
            raise
        return None
    return Stack(options)
