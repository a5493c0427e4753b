"""What the agent remembers, by HTTP: ``/v1/knowledge`` (documents) and ``DELETE /v1/memories`` (what was said)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels.desk import KnowledgeDesk, LearntText, NotLearnt, NotNow
from voice_agent.channels.rest import BadRequest, error, read_body, read_object

KNOWLEDGE, MEMORIES = "/v1/knowledge", "/v1/memories"
MAX_BODY_BYTES = 8 * 2**20
MAX_ID_CHARS = 300
MAX_TITLE_CHARS = 200
TYPES = ("text/markdown", "text/plain", "text/html", "application/pdf")
_NO_STORE = {"cache-control": "no-store"}


def router(desk: KnowledgeDesk) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()

    async def answered(answer: Callable[[], Awaitable[Response]]) -> Response:
        try:
            return await answer()
        except BadRequest as bad:
            return error(bad.status, bad.code, bad.message)
        except NotLearnt as fault:
            return error(422, "not_learnt", str(fault))
        except NotNow as fault:
            return error(503, "not_now", str(fault))

    @routes.post(KNOWLEDGE, response_model=None)
    async def learn(request: Request) -> Response:
        async def answer() -> Response:
            id, title, media_type, data = await _text(request)
            learnt = await desk.learn(id, media_type, data, title)
            return JSONResponse(_shown(learnt) | {"changed": learnt.changed}, 201 if learnt.changed else 200)

        return await answered(answer)

    @routes.get(KNOWLEDGE, response_model=None)
    async def every() -> Response:
        async def answer() -> Response:
            return JSONResponse({"texts": [_shown(one) for one in await desk.texts()]}, headers=_NO_STORE)

        return await answered(answer)

    @routes.get(KNOWLEDGE + "/{id:path}", response_model=None)
    async def one(id: str) -> Response:
        async def answer() -> Response:
            found = next((text for text in await desk.texts() if text.id == id), None)
            return _missing() if found is None else JSONResponse(_shown(found), headers=_NO_STORE)

        return await answered(answer)

    @routes.delete(KNOWLEDGE + "/{id:path}", response_model=None)
    async def unlearn(id: str) -> Response:
        async def answer() -> Response:
            return Response(status_code=204) if await desk.unlearn(id) else _missing()

        return await answered(answer)

    @routes.delete(MEMORIES, response_model=None)
    async def forget(request: Request) -> Response:
        async def answer() -> Response:
            query = request.query_params
            given = {key: query.get(key) or None for key in ("conversation", "caller")}
            days = _days(query.get("older_than_days"))
            if (not any(given.values()) and days is None) or set(query) - {*given, "older_than_days"}:
                message = 'Name what to forget: "conversation", "caller" or "older_than_days".'
                raise BadRequest(422, "bad_request", message)
            forgotten = await desk.forget(
                conversation=given["conversation"], caller=given["caller"], older_than_days=days
            )
            return JSONResponse({"forgotten": dict(forgotten)}, headers=_NO_STORE)

        return await answered(answer)

    return routes


async def _text(request: Request) -> tuple[str, str, str, bytes]:
    """Return (id, title, media type, content) of a text to be learnt: a JSON object, or the document as it is."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    given: dict[str, Any] = dict(request.query_params)
    body = await read_body(request, MAX_BODY_BYTES)
    if media_type == "application/json":
        given, media_type, body = _from_json(body)
    if media_type not in TYPES:
        raise BadRequest(415, "bad_type", f"The content type must be one of {', '.join(TYPES)}, or application/json.")
    id, title = given.get("id"), given.get("title", "")
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID_CHARS or not id.isprintable() or id != id.strip():
        raise BadRequest(422, "bad_id", f'Give the text an "id" of 1 to {MAX_ID_CHARS} printable characters.')
    if not isinstance(title, str) or len(title) > MAX_TITLE_CHARS or not title.isprintable():
        raise BadRequest(422, "bad_title", f'"title" must have at most {MAX_TITLE_CHARS} printable characters.')
    return id, title, media_type, body


def _from_json(body: bytes) -> tuple[dict[str, Any], str, bytes]:
    given = read_object(body)
    if given is None or not isinstance(given.get("text"), str):
        raise BadRequest(400, "bad_body", 'The body must be a JSON object with "id" and "text".')
    if unknown := given.keys() - {"id", "title", "text", "type"}:
        raise BadRequest(422, "bad_request", f"Unknown: {', '.join(sorted(unknown))}. Known: id, title, text, type.")
    media_type = given.get("type", "text/markdown")
    return given, media_type if media_type in TYPES[:3] else "", given["text"].encode("utf-8", "replace")


def _days(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        days = float(given)
    except ValueError:
        days = math.nan
    if not 0 <= days <= 36_500:
        raise BadRequest(422, "bad_request", '"older_than_days" must be a number from 0 to 36500.')
    return days


def _shown(text: LearntText) -> dict[str, Any]:
    moment = datetime.fromtimestamp(text.learnt_at, UTC).isoformat(timespec="seconds")
    return {"id": text.id, "passages": text.passages, "learnt_at": moment}


def _missing() -> Response:
    return error(404, "not_found", "Nothing was learnt under this id.")
