"""Who may ask the inspector, what may be asked, and what is answered when it cannot be told."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from voice_agent.channels import identifiers, rest
from voice_agent.config import InspectorOptions
from voice_agent.inspector.feed import TooManyViewers
from voice_agent.inspector.inspector import Busy, Unknown
from voice_agent.security import is_loopback
from voice_agent.store.protocol import StoreUnavailable

log = logging.getLogger(__name__)

Answer = Callable[[Request], Awaitable[Response]]
NO_STORE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


class BadParameter(Exception):
    """A parameter cannot be used."""


def guarded(answer: Answer, has_key: bool) -> Answer:
    """Return ``answer`` for those who may ask; what it raises becomes an error with a code."""

    async def guard(request: Request) -> Response:
        denial = _denied(request, has_key)
        if denial is not None:
            return denial
        try:
            return await answer(request)
        except Unknown:
            return rest.error(404, "not_found", "There is no such conversation, call or recording.")
        except Busy:
            return rest.error(409, "conversation_busy", "This conversation is on a call. End the call first.")
        except TooManyViewers:
            message = "As many pages as may be are following calls live; see inspector.max_viewers."
            return rest.error(503, "too_many_viewers", message)
        except BadParameter as bad:
            return rest.error(422, "bad_request", str(bad))
        except StoreUnavailable as fault:
            log.error("the inspector cannot read the store: %s", fault)
            return rest.error(503, "store_unavailable", "Conversations cannot be read now; the log says why.")
        except OSError:
            log.exception("a conversation could not be deleted whole")
            return rest.error(500, "delete_failed", "Not all of it could be deleted; the log says why.")

    return guard


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


def conversation_in(request: Request) -> str:
    """Return the conversation that a path names.

    Raises:
        BadParameter: It is no id.
    """
    return checked(str(request.path_params["conversation"]))


def checked(conversation: str) -> str:
    """Return an id as it is.

    Raises:
        BadParameter: It is no id.
    """
    if not identifiers.is_conversation_id(conversation):
        raise BadParameter(f"The conversation id must be {identifiers.RULE}.")
    return conversation


def number_in(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Return the number that a query names.

    Raises:
        BadParameter: It is none, or out of bounds.
    """
    try:
        number = int(query.get(name, str(default)))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise BadParameter(f'"{name}" must be a number from {least} to {most}.')
    return number


def personal_in(request: Request, options: InspectorOptions) -> bool:
    """Return whether personal data is asked for, and may be shown.

    Raises:
        BadParameter: It may not.
    """
    asked = request.query_params.get("personal", "hide")
    if asked == "hide":
        return False
    if asked != "show" or not options.personal_data:
        raise BadParameter(
            'Personal data is shown with personal=show, and only where "inspector.personal_data" is true.'
        )
    # Who opens what is marked leaves a trace.
    log.warning("personal data of a conversation is shown", extra={"conversation": request.path_params["conversation"]})
    return True


def as_json(content: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that nobody keeps."""
    return JSONResponse(content, headers={**NO_STORE, **(headers or {})})
