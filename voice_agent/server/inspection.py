"""The inspector by HTTP: its pages under ``/inspect``, its data under ``/v1/inspect``.

Data is for the holder of the API key, or on loopback for whoever is there; never for a call token, and
never for a page of another origin. The pages hold no data and are served to anyone the inspector is on for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from voice_agent.call.recordings import AUDIO_TYPES
from voice_agent.config import InspectorOptions
from voice_agent.inspector.feed import Viewer
from voice_agent.inspector.search import Search
from voice_agent.security import is_loopback
from voice_agent.server.inspection_guard import (
    NO_STORE,
    BadParameter,
    as_json,
    checked,
    conversation_in,
    guarded,
    number_in,
    personal_in,
)
from voice_agent.server.inspection_live import LiveAnswer
from voice_agent.server.pages import INSPECTOR, ROOT, Pages

MAX_LIMIT = 200
MAX_RECORDS = 500
MAX_SEARCH = 128
PAGES = "/inspect"
DATA = "/v1/inspect"


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
    answers, routes, one = _Answers(desk), APIRouter(), f"{DATA}/conversations/{{conversation}}"
    gets = {
        DATA: answers.overview,
        f"{DATA}/conversations": answers.conversations,
        f"{DATA}/live": answers.live,
        one: answers.conversation,
        f"{one}/events": answers.events,
        f"{one}/prompts": answers.prompts,
        f"{one}/export": answers.export,
        f"{one}/calls/{{call}}/recording": answers.recording,
        f"{one}/calls/{{call}}/peaks": answers.peaks,
    }
    for path, answer in gets.items():
        routes.add_api_route(path, guarded(answer, has_key), methods=["GET"], response_model=None)
    routes.add_api_route(one, guarded(answers.delete, has_key), methods=["DELETE"], response_model=None)
    return routes


class _Answers:
    """One method for each request. What they raise is answered by `guarded`."""

    def __init__(self, desk: InspectorDesk) -> None:
        self._desk = desk

    def _personal(self, request: Request) -> bool:
        return personal_in(request, self._desk.options)

    async def overview(self, request: Request) -> Response:
        options = self._desk.options
        shown = {"personal_data": options.personal_data, "prompts": options.prompts, "calls": self._desk.calls()}
        return as_json(shown)

    async def conversations(self, request: Request) -> Response:
        query = request.query_params
        search = Search(*(query.get(key, "")[:MAX_SEARCH] for key in ("q", "since", "until", "outcome")))
        limit = number_in(query, "limit", 50, 1, MAX_LIMIT)
        try:
            return as_json(await self._desk.conversations(search, limit, query.get("cursor")))
        except ValueError:
            raise BadParameter('"cursor" must be the "next" of the page before.') from None

    async def live(self, request: Request) -> Response:
        conversation = request.query_params.get("conversation")
        if conversation is not None:
            checked(conversation)
        return LiveAnswer(self._desk, self._desk.watch(conversation))

    async def conversation(self, request: Request) -> Response:
        return as_json(await self._desk.conversation(conversation_in(request), personal=self._personal(request)))

    async def delete(self, request: Request) -> Response:
        await self._desk.delete(conversation_in(request))
        return Response(status_code=204, headers=NO_STORE)

    async def events(self, request: Request) -> Response:
        query, conversation = request.query_params, conversation_in(request)
        after, limit = number_in(query, "after", -1, -1, 2**53), number_in(query, "limit", 200, 1, MAX_RECORDS)
        personal = self._personal(request)
        return as_json(await self._desk.records(conversation, after=after, limit=limit, personal=personal))

    async def prompts(self, request: Request) -> Response:
        return as_json(await self._desk.prompts(conversation_in(request), personal=self._personal(request)))

    async def export(self, request: Request) -> Response:
        conversation = conversation_in(request)
        found = await self._desk.export(conversation, personal=self._personal(request))
        name = f'attachment; filename="{conversation.replace(":", "_")}.json"'
        return as_json(found, {"content-disposition": name})

    async def recording(self, request: Request) -> Response:
        path = await self._desk.recording(conversation_in(request), request.path_params["call"])
        name = path.name if "download" in request.query_params else None
        return FileResponse(path, media_type=AUDIO_TYPES[path.suffix], filename=name, headers=NO_STORE)

    async def peaks(self, request: Request) -> Response:
        content = await self._desk.peaks(conversation_in(request), request.path_params["call"])
        return Response(content, media_type="application/octet-stream", headers=NO_STORE)
