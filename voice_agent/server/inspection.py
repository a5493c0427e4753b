"""The inspector by HTTP: its pages under ``/inspect``, its data under ``/v1/inspect``.

Data is for the holder of the API key, or on loopback for whoever is there; never for a call token, and
never for a page of another origin. The pages hold no data and are served to anyone the inspector is on for.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from voice_agent.call.recordings import AUDIO_TYPES
from voice_agent.channels import identifiers, rest
from voice_agent.config import InspectorOptions
from voice_agent.inspector.feed import TooManyViewers, Viewer
from voice_agent.inspector.inspector import Busy, Search, Unknown
from voice_agent.security import is_loopback
from voice_agent.server.pages import INSPECTOR, ROOT, Pages
from voice_agent.store.protocol import StoreUnavailable

log = logging.getLogger(__name__)

MAX_LIMIT = 200
MAX_RECORDS = 500
MAX_SEARCH = 128
TICK_S = 1.0
"""How often a viewer is told of the state of calls, if it has changed."""
QUIET_S = 15.0
"""A line of nothing is sent this often, so that a connection that is gone is noticed."""
PAGES = "/inspect"
NO_STORE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


class InspectorDesk(Protocol):
    """What is served here (`voice_agent.inspector.inspector.Inspector`)."""

    @property
    def options(self) -> InspectorOptions: ...

    def watch(self, conversation_id: str | None) -> Viewer: ...

    def calls(self) -> list[dict[str, Any]]: ...

    async def conversations(self, search: Search, limit: int, cursor: str | None) -> dict[str, Any]: ...

    async def conversation(self, conversation_id: str, *, personal: bool) -> dict[str, Any]: ...

    async def records(self, conversation_id: str, *, after: int, limit: int, personal: bool) -> dict[str, Any]: ...

    async def prompts(self, conversation_id: str, *, personal: bool) -> dict[str, Any]: ...

    async def export(self, conversation_id: str, *, personal: bool) -> dict[str, Any]: ...

    async def recording(self, conversation_id: str, call_id: str) -> Path: ...

    async def peaks(self, conversation_id: str, call_id: str) -> bytes: ...

    async def delete(self, conversation_id: str) -> None: ...


def is_on(options: InspectorOptions, host: str, has_key: bool) -> bool:
    """Whether there is an inspector: on loopback unless switched off, elsewhere only when switched on, with a key."""
    if options.enabled is None:
        return is_loopback(host)
    return options.enabled and (has_key or is_loopback(host))


def pages() -> Pages:
    """Return the inspector's pages: files that hold no data and need no key."""
    # A recording that needs the key is fetched with it and played as a blob.
    policy = {"media-src": "'self' blob:", "img-src": "'self' data:"}
    return Pages(ROOT / INSPECTOR, prefix=f"{PAGES}/", index=PAGES, policy=policy)


def router(desk: InspectorDesk, *, has_key: bool) -> APIRouter:
    """Return the routes. ``has_key``: requests have been asked for the API key."""
    routes = APIRouter()
    data = "/v1/inspect"

    def guarded(answer: Callable[[], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guard(request: Request) -> Response:
            if denial := _denied(request, has_key):
                return denial
            try:
                return await answer()
            except Unknown:
                return rest.error(404, "not_found", "There is no such conversation, call or recording.")
            except Busy:
                return rest.error(409, "conversation_busy", "This conversation is on a call. End the call first.")
            except TooManyViewers:
                message = "As many pages as may be are following calls live; see inspector.max_viewers."
                return rest.error(503, "too_many_viewers", message)
            except _Bad as bad:
                return rest.error(422, "bad_request", str(bad))
            except StoreUnavailable as fault:
                log.error("the inspector cannot read the store: %s", fault)
                return rest.error(503, "store_unavailable", "Conversations cannot be read now; the log says why.")
            except OSError:
                log.exception("a conversation could not be deleted whole")
                return rest.error(500, "delete_failed", "Not all of it could be deleted; the log says why.")

        return guard

    async def answered(request: Request, answer: Callable[[], Awaitable[Response]]) -> Response:
        return await guarded(answer)(request)

    @routes.get(data, response_model=None)
    async def overview(request: Request) -> Response:
        async def answer() -> Response:
            options = desk.options
            shown = {"personal_data": options.personal_data, "prompts": options.prompts, "calls": desk.calls()}
            return _json(shown)

        return await answered(request, answer)

    @routes.get(f"{data}/conversations", response_model=None)
    async def conversations(request: Request) -> Response:
        async def answer() -> Response:
            query = request.query_params
            search = Search(*(query.get(key, "")[:MAX_SEARCH] for key in ("q", "since", "until", "outcome")))
            try:
                found = await desk.conversations(search, _number(query, "limit", 50, 1, MAX_LIMIT), query.get("cursor"))
            except ValueError:
                raise _Bad('"cursor" must be the "next" of the page before.') from None
            return _json(found)

        return await answered(request, answer)

    @routes.get(f"{data}/live", response_model=None)
    async def live(request: Request) -> Response:
        async def answer() -> Response:
            conversation = request.query_params.get("conversation")
            if conversation is not None:
                _check(conversation)
            viewer = desk.watch(conversation)
            return _LiveAnswer(desk, viewer)

        return await answered(request, answer)

    one = f"{data}/conversations/{{conversation}}"

    @routes.get(one, response_model=None)
    async def conversation_told(conversation: str, request: Request) -> Response:
        async def answer() -> Response:
            return _json(await desk.conversation(_check(conversation), personal=_personal(desk, request)))

        return await answered(request, answer)

    @routes.delete(one, response_model=None)
    async def conversation_deleted(conversation: str, request: Request) -> Response:
        async def answer() -> Response:
            await desk.delete(_check(conversation))
            return Response(status_code=204, headers=NO_STORE)

        return await answered(request, answer)

    @routes.get(f"{one}/events", response_model=None)
    async def events(conversation: str, request: Request) -> Response:
        async def answer() -> Response:
            query = request.query_params
            after, limit = _number(query, "after", -1, -1, 2**53), _number(query, "limit", 200, 1, MAX_RECORDS)
            personal = _personal(desk, request)
            return _json(await desk.records(_check(conversation), after=after, limit=limit, personal=personal))

        return await answered(request, answer)

    @routes.get(f"{one}/prompts", response_model=None)
    async def prompts(conversation: str, request: Request) -> Response:
        async def answer() -> Response:
            return _json(await desk.prompts(_check(conversation), personal=_personal(desk, request)))

        return await answered(request, answer)

    @routes.get(f"{one}/export", response_model=None)
    async def export(conversation: str, request: Request) -> Response:
        async def answer() -> Response:
            found = await desk.export(_check(conversation), personal=_personal(desk, request))
            name = f'attachment; filename="{conversation.replace(":", "_")}.json"'
            return _json(found, {"content-disposition": name})

        return await answered(request, answer)

    @routes.get(f"{one}/calls/{{call}}/recording", response_model=None)
    async def recording(conversation: str, call: str, request: Request) -> Response:
        async def answer() -> Response:
            path = await desk.recording(_check(conversation), call)
            name = path.name if "download" in request.query_params else None
            return FileResponse(path, media_type=AUDIO_TYPES[path.suffix], filename=name, headers=NO_STORE)

        return await answered(request, answer)

    @routes.get(f"{one}/calls/{{call}}/peaks", response_model=None)
    async def peaks(conversation: str, call: str, request: Request) -> Response:
        async def answer() -> Response:
            content = await desk.peaks(_check(conversation), call)
            return Response(content, media_type="application/octet-stream", headers=NO_STORE)

        return await answered(request, answer)

    return routes


class _Bad(Exception):
    """A parameter cannot be used."""


def _denied(request: Request, has_key: bool) -> Response | None:
    # What a browser says of where a request comes from; pages cannot set it. Other clients send none.
    site = request.headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        return rest.error(403, "wrong_origin", "The inspector answers only its own pages.")
    if not has_key and not is_loopback(_name(request.headers.get("host", ""))):
        return rest.error(403, "wrong_host", "Without an API key the inspector answers only under a loopback name.")
    return None


def _name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _check(conversation: str) -> str:
    if not identifiers.is_conversation_id(conversation):
        raise _Bad(f"The conversation id must be {identifiers.RULE}.")
    return conversation


def _number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    try:
        number = int(query.get(name, str(default)))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise _Bad(f'"{name}" must be a number from {least} to {most}.')
    return number


def _personal(desk: InspectorDesk, request: Request) -> bool:
    asked = request.query_params.get("personal", "hide")
    if asked == "hide":
        return False
    if asked != "show" or not desk.options.personal_data:
        raise _Bad('Personal data is shown with personal=show, and only where "inspector.personal_data" is true.')
    # Who opens what is marked leaves a trace.
    log.warning("personal data of a conversation is shown", extra={"conversation": request.path_params["conversation"]})
    return True


def _json(content: Any, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(content, headers={**NO_STORE, **(headers or {})})


class _LiveAnswer(StreamingResponse):
    """Follows calls for one viewer, whose place is free again afterwards: also when the page left before it began."""

    def __init__(self, desk: InspectorDesk, viewer: Viewer) -> None:
        super().__init__(_followed(desk, viewer), media_type="text/event-stream", headers=NO_STORE)
        self._viewer = viewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._viewer:
            await super().__call__(scope, receive, send)


async def _followed(desk: InspectorDesk, viewer: Viewer) -> AsyncIterator[bytes]:
    """Server-sent events: ``calls`` (the calls on the line, when that changes), ``record``, ``closed``."""
    loop = asyncio.get_running_loop()
    sent_at, shown = loop.time(), None
    while viewer.is_open:
        calls = desk.calls()
        now = [(call["id"], call["state"]) for call in calls]
        if now != shown:
            shown, sent_at = now, loop.time()
            yield _event("calls", calls)
        notice = await viewer.next(TICK_S)
        if notice is not None:
            sent_at = loop.time()
            yield _event("record", notice)
        elif loop.time() - sent_at >= QUIET_S:
            sent_at = loop.time()
            yield b": still here\n\n"
    yield _event("closed", {"reason": "too_slow" if viewer.is_slow else "shutdown"})


def _event(name: str, content: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, default=str)}\n\n".encode()
