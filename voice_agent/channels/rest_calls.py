"""Tokens by HTTP: ``POST /v1/calls`` prepares a call that somebody else is to place.

An application with the API key asks on its user's behalf and hands the token to the user's browser. The body is
``{metadata?, user_id?, conversation?, expires_in_s?}``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallDesk, CallRefused, InvitationRefused
from voice_agent.channels.rest import BadRequest, error, read_body, refused
from voice_agent.channels.tokens import DEFAULT_EXPIRY_S, MAX_EXPIRY_S

KEYS = ("metadata", "user_id", "conversation", "expires_in_s")


@dataclass(frozen=True, slots=True)
class InvitationRequest:
    """What a call token is asked for."""

    conversation_id: str
    metadata: dict[str, Any]
    expires_in_s: float


def router(desk: CallDesk) -> APIRouter:
    """Return the routes that prepare calls, answered by ``desk``."""
    routes = APIRouter()

    @routes.post("/v1/calls", response_model=None)
    async def prepare_call(request: Request) -> Response:
        try:
            asked = _parse(await read_body(request))
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
        return JSONResponse(body, 201, {"cache-control": "no-store"})

    return routes


def _parse(body: bytes) -> InvitationRequest:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise BadRequest(400, "bad_body", "The body must be a JSON object.")
    if unknown := [key for key in given if key not in KEYS]:
        raise BadRequest(422, "bad_body", f"{unknown[0][:60]!r} is unknown here; the keys are {', '.join(KEYS)}.")
    conversation_id = identifiers.chosen(given.get("conversation"))
    if conversation_id is None:
        raise BadRequest(422, "bad_conversation", f'"conversation" must be {identifiers.RULE}.')
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise BadRequest(422, "bad_metadata", '"metadata" must be an object of field names and values.')
    if "user_id" in given:
        metadata = {**metadata, "user_id": given["user_id"]}
    return InvitationRequest(conversation_id, metadata, _expiry(given.get("expires_in_s", DEFAULT_EXPIRY_S)))


def _expiry(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_EXPIRY_S:
        raise BadRequest(422, "bad_expiry", f'"expires_in_s" must be a number of seconds from 1 to {MAX_EXPIRY_S:.0f}.')
    return float(value)
