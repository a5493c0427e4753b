"""Text by HTTP: ``POST /v1/conversations/{id}/messages``, answered as JSON or as server-sent events.

The body is ``{"text": "…"}``, or ``{"intent": "/session_start"}`` for what a shell says by itself.
A client that goes away cancels its turn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallRefused, Deliver, TextDesk, TextHangUp, TextItem, TextOutcome, TextPiece
from voice_agent.channels.messages import MAX_TEXT, typed, whole

CHANNEL = "text"
MAX_BODY_BYTES = 16 * 1024
BODY_TIMEOUT_S = 10.0
INTENTS = ("/session_start", "/silence")
SEND_TIMEOUT_S = 10.0
"""A client that takes nothing of its answer for this long is gone."""


class BadRequest(Exception):
    """A request cannot be used; becomes ``{code, message}``."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class ClientGone(Exception):
    """The client closed its connection, or takes nothing any more."""


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A message as it was asked to be answered."""

    conversation_id: str
    text: str
    intent: bool


def error(status: int, code: str, message: str) -> JSONResponse:
    """Every error of the HTTP interface looks like this."""
    return JSONResponse({"code": code, "message": message}, status)


def router(desk: TextDesk) -> APIRouter:
    """Return the routes of text by HTTP, answered by ``desk``."""
    routes = APIRouter()

    @routes.post("/v1/conversations/{conversation_id}/messages", response_model=None)
    async def post_message(conversation_id: str, request: Request) -> Response:
        try:
            asked = _parse(conversation_id, await read_body(request))
        except BadRequest as bad:
            return error(bad.status, bad.code, bad.message)
        if "text/event-stream" in request.headers.get("accept", ""):
            return _EventStream(desk, asked)
        return await _whole_answer(desk, asked, request)

    return routes


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the whole body.

    Raises:
        BadRequest: It is larger than ``limit`` bytes, or did not arrive within `BODY_TIMEOUT_S`.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise BadRequest(413, "too_large", f"The body may have at most {limit} bytes.")
    except TimeoutError:
        raise BadRequest(408, "too_slow", f"The body did not arrive within {BODY_TIMEOUT_S:.0f} s.") from None
    except ClientDisconnect:
        raise BadRequest(499, "client_gone", "The client went away.") from None
    return body


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; None if there is none, or one that could not be written as JSON again.

    Half a character, NaN and Infinity are read by Python's parser, and then break whoever keeps or shows them.
    """
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _parse(conversation_id: str, body: bytes) -> TextRequest:
    if not identifiers.is_conversation_id(conversation_id):
        raise BadRequest(422, "bad_conversation", f"The conversation id must be {identifiers.RULE}.")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or len({"text", "intent"} & given.keys()) != 1:
        raise BadRequest(400, "bad_body", 'The body must be a JSON object with either "text" or "intent".')
    if "intent" in given:
        if given["intent"] not in INTENTS:
            raise BadRequest(422, "bad_intent", f'"intent" must be one of {", ".join(INTENTS)}.')
        return TextRequest(conversation_id, given["intent"], intent=True)
    text = given["text"]
    words = typed(text) if isinstance(text, str) else ""
    if not 1 <= len(words) <= MAX_TEXT:
        raise BadRequest(422, "bad_text", f'"text" must be a string of 1 to {MAX_TEXT} characters.')
    return TextRequest(conversation_id, words, intent=False)


class _Transcript:
    """Collects a turn's items into whole messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.hang_up: str | None = None

    async def deliver(self, item: TextItem) -> None:
        if isinstance(item, TextHangUp):
            self.hang_up = item.reason
            return
        while len(self.messages) <= item.message:
            self.messages.append("")
        self.messages[item.message] += whole(item.text)

    def summary(self, asked: TextRequest, outcome: TextOutcome) -> dict[str, Any]:
        return {
            "conversation": asked.conversation_id,
            "turn_id": outcome.turn_id,
            "status": outcome.status,
            "messages": [text for text in self.messages if text],
            "hang_up": self.hang_up,
        }


async def _attended(receive: Callable[[], Awaitable[Any]], work: Awaitable[TextOutcome]) -> TextOutcome:
    """Await ``work`` while its client stays connected; cancel it when the client goes.

    Raises:
        ClientGone: The client went first.
    """

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        raise ClientGone

    try:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch(), name="rest.watch")
            outcome = await work
            watcher.cancel()
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return outcome


async def _whole_answer(desk: TextDesk, asked: TextRequest, request: Request) -> Response:
    transcript = _Transcript()
    try:
        turn = desk.turn(asked.conversation_id, asked.text, transcript.deliver, intent=asked.intent, channel=CHANNEL)
        outcome = await _attended(request.receive, turn)
    except CallRefused as refusal:
        return refused(refusal)
    except ClientGone:
        return Response(status_code=499)
    return JSONResponse(transcript.summary(asked, outcome))


def refused(refusal: CallRefused) -> JSONResponse:
    """The answer to whom the service does not put through."""
    status = 503 if refusal.retry else {"channel_off": 404}.get(refusal.code, 409)
    response = error(status, refusal.code, refusal.message)
    if refusal.retry:
        response.headers["retry-after"] = "1"
    return response


_EVENT_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


class _EventStream(Response):
    """Server-sent events: ``delta{message,text}`` as the reply arises, then ``done{…}`` or ``error{code,message}``."""

    def __init__(self, desk: TextDesk, asked: TextRequest) -> None:
        super().__init__(media_type="text/event-stream")
        self._desk, self._asked = desk, asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transcript = _Transcript()

        async def emit(event: str, data: Any, more: bool = True) -> None:
            body = f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
            try:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await send({"type": "http.response.body", "body": body, "more_body": more})
            except (TimeoutError, OSError):
                raise ClientGone from None

        async def deliver(item: TextItem) -> None:
            await transcript.deliver(item)
            if isinstance(item, TextPiece) and item.text:
                await emit("delta", {"message": item.message, "text": whole(item.text)})

        await send({"type": "http.response.start", "status": 200, "headers": _EVENT_HEADERS})
        try:
            outcome = await _attended(receive, self._turn(deliver))
            await emit("done", transcript.summary(self._asked, outcome), more=False)
        except CallRefused as refusal:
            await emit("error", {"code": refusal.code, "message": refusal.message}, more=False)
        except ClientGone:
            return

    def _turn(self, deliver: Deliver) -> Awaitable[TextOutcome]:
        asked = self._asked
        return self._desk.turn(asked.conversation_id, asked.text, deliver, intent=asked.intent, channel=CHANNEL)
