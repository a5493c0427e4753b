"""Calls by HTTP: ``POST /v1/calls`` prepares a call that somebody else is to place, or with ``to`` places one.

An application with the API key asks on its user's behalf and hands the token to the user's browser. The body is
``{metadata?, user_id?, conversation?, expires_in_s?}``, or ``{to, via, metadata?, user_id?, conversation?}``: of such
a call ``GET /v1/calls/{id}`` tells what has become.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallDesk, CallRefused, InvitationRefused
from voice_agent.channels.outbound_calls import OutboundCalls, OutboundRefused
from voice_agent.channels.rest import BadRequest, error, read_body, read_object, refused
from voice_agent.channels.tokens import DEFAULT_EXPIRY_S, MAX_EXPIRY_S

KEYS = ("metadata", "user_id", "conversation", "expires_in_s")
OUTBOUND_KEYS = ("to", "via", "metadata", "user_id", "conversation")
MAX_ADDRESS = 256
NOT_KEPT = {"cache-control": "no-store"}


@dataclass(frozen=True, slots=True)
class InvitationRequest:
    """What a call token is asked for."""

    conversation_id: str
    metadata: dict[str, Any]
    expires_in_s: float
    to: str = field(default="", repr=False)
    via: str = ""


def router(desk: CallDesk, outbound: OutboundCalls | None = None, *, has_key: bool = False) -> APIRouter:
    """Return the routes that prepare calls, answered by ``desk``, and place them.

    Args:
        has_key: The service asks for an API key; without one it places no calls.
    """
    routes = APIRouter()

    def place(asked: InvitationRequest) -> Response:
        if outbound is None or not has_key:
            return error(403, "outbound_needs_key", "Calls are placed only by a service that asks for an API key.")
        try:
            call_id = outbound.place(asked.to, asked.via, asked.conversation_id, asked.metadata)
        except OutboundRefused as refusal:
            return error(refusal.status, refusal.code, refusal.message)
        return JSONResponse(outbound.describe(call_id), 202, {"location": f"/v1/calls/{call_id}", **NOT_KEPT})

    @routes.get("/v1/calls/{call_id}", response_model=None)
    async def describe_call(call_id: str) -> Response:
        told = outbound.describe(call_id) if outbound is not None else None
        if told is None:
            return error(404, "unknown_call", "No call of that id was placed here, or it is long over.")
        return JSONResponse(told, headers=NOT_KEPT)

    @routes.post("/v1/calls", response_model=None)
    async def prepare_call(request: Request) -> Response:
        try:
            asked = _parse(await read_body(request))
            if asked.to:
                return place(asked)
            invitation = desk.invite(asked.conversation_id, asked.metadata, asked.expires_in_s)
        except BadRequest as bad:
            return error(bad.status, bad.code, bad.message)
        except InvitationRefused as refusal:
            return error(422, "bad_metadata", str(refusal))
        except CallRefused as refusal:
            return refused(refusal)
        expires_at = datetime.now(UTC) + timedelta(seconds=invitation.expires_in_s)
        body = {
            "call_id": invitation.grant.call_id,
            "conversation": invitation.grant.conversation_id,
            "token": invitation.token,
            "audiosocket": str(invitation.grant.identity),
            "expires_at": f"{expires_at:%Y-%m-%dT%H:%M:%SZ}",
        }
        return JSONResponse(body, 201, NOT_KEPT)

    return routes


def _parse(body: bytes) -> InvitationRequest:
    given = read_object(body or b"{}")
    if given is None:
        raise BadRequest(400, "bad_body", "The body must be a JSON object.")
    keys = OUTBOUND_KEYS if "to" in given else KEYS
    if unknown := [key for key in given if key not in keys]:
        raise BadRequest(422, "bad_body", f"{unknown[0][:60]!r} is unknown here; the keys are {', '.join(keys)}.")
    conversation_id = identifiers.chosen(given.get("conversation"))
    if conversation_id is None:
        raise BadRequest(422, "bad_conversation", f'"conversation" must be {identifiers.RULE}.')
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise BadRequest(422, "bad_metadata", '"metadata" must be an object of field names and values.')
    if "user_id" in given:
        metadata = {**metadata, "user_id": given["user_id"]}
    expires_in_s = _expiry(given.get("expires_in_s", DEFAULT_EXPIRY_S))
    if "to" not in given:
        return InvitationRequest(conversation_id, metadata, expires_in_s)
    return InvitationRequest(conversation_id, metadata, expires_in_s, _address(given), _named(given))


def _address(given: dict[str, Any]) -> str:
    to = given["to"]
    if not isinstance(to, str) or not 0 < len(to) <= MAX_ADDRESS or not to.isprintable() or " " in to:
        raise BadRequest(422, "bad_to", '"to" must be a number in international form, or an address.')
    return to


def _named(given: dict[str, Any]) -> str:
    via = given.get("via")
    if not isinstance(via, str) or not via:
        raise BadRequest(422, "bad_via", '"via" must name the channel that places the call.')
    return via


def _expiry(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_EXPIRY_S:
        raise BadRequest(422, "bad_expiry", f'"expires_in_s" must be a number of seconds from 1 to {MAX_EXPIRY_S:.0f}.')
    return float(value)
