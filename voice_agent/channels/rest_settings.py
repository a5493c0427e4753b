"""Settings of workflows by HTTP: ``GET``, ``PUT``, ``DELETE /agentic_workflow/settings[/NAME]``; what changed last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels.desk import SettingNotKept, SettingRefused, SettingsDesk, SettingsUnread, UnknownSetting
from voice_agent.channels.rest import BadRequest, error, read_body, read_object

PATH = "/agentic_workflow/settings"
CHANGES = "/agentic_workflow/setting_changes"
MAX_CHANGES = 20
"""Changes that are told, the newest."""
MAX_BODY_BYTES = 64 * 1024


def router(desk: SettingsDesk, who: Callable[[], str]) -> APIRouter:
    """Return the routes.

    Args:
        who: Names, for the record, whoever the gate has let in.
    """
    routes = APIRouter()

    @routes.get(PATH, response_model=None)
    async def every() -> Response:
        return JSONResponse(desk.all())

    @routes.get(PATH + "/{name}", response_model=None)
    async def one(name: str) -> Response:
        try:
            return JSONResponse(desk.one(name))
        except UnknownSetting as fault:
            return error(400, "unknown_setting", str(fault))

    @routes.put(PATH + "/{name}", response_model=None)
    async def put(name: str, request: Request) -> Response:
        try:
            value = _object(await read_body(request, MAX_BODY_BYTES))
            return JSONResponse(await desk.put(name, value, who=who()))
        except BadRequest as bad:
            return error(bad.status, bad.code, bad.message)
        except UnknownSetting as fault:
            return error(400, "unknown_setting", str(fault))
        except SettingRefused as fault:
            faults = [{"field": field, "message": message} for field, message in fault.faults]
            return JSONResponse({"code": "bad_setting", "message": str(fault), "faults": faults}, 422)
        except SettingNotKept as fault:
            return error(503, "not_kept", str(fault))

    @routes.delete(PATH, response_model=None)
    async def clear() -> Response:
        try:
            return JSONResponse(await desk.clear(who=who()))
        except SettingNotKept as fault:
            return error(503, "not_kept", str(fault))

    @routes.get(CHANGES, response_model=None)
    async def changes() -> Response:
        try:
            return JSONResponse(await desk.changes(MAX_CHANGES))
        except SettingsUnread as fault:
            return error(503, "not_read", str(fault))

    return routes


def _object(body: bytes) -> dict[str, Any]:
    given = read_object(body)
    if given is None:
        raise BadRequest(400, "bad_body", "The body must be a JSON object with the settings.")
    return given
