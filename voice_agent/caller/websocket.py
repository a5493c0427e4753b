"""The caller's end of the plain WebSocket: binary PCM16 both ways, JSON beside it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from voice_agent.caller.wire import (
    AgentAudio,
    AgentHangUp,
    Clear,
    ConnectionFailed,
    Destination,
    Fault,
    Other,
    Ready,
    TurnTimeline,
    WireItem,
    Words,
)

CONNECT_TIMEOUT_S = 10.0
HANG_UP_TIMEOUT_S = 2.0
SEND_TIMEOUT_S = 5.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class WebSocketWire:
    """Implements `CallerWire`."""

    signals_clear = True

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._connection: ClientConnection | None = None
        self._closed_because = ""
        self._hung_up = False

    @property
    def closed_because(self) -> str:
        return self._closed_because

    async def connect(self) -> None:
        url = address(self._destination)
        # A proxy from the environment has no business between this machine and itself.
        proxy: Literal[True] | None = None if urlsplit(url).hostname in _LOOPBACK else True
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._connection = await connect(
                    url,
                    additional_headers=_credentials(self._destination),
                    proxy=proxy,
                    compression=None,
                    max_size=MAX_MESSAGE_BYTES,
                    close_timeout=HANG_UP_TIMEOUT_S,
                )
        except TimeoutError as error:
            raise ConnectionFailed(
                f"No answer from {self._destination.url} within {CONNECT_TIMEOUT_S:g} s.", _START_REMEDY
            ) from error
        except InvalidStatus as error:
            raise _refused(self._destination.url, error) from error
        except (InvalidHandshake, InvalidURI) as error:
            raise ConnectionFailed(
                f"{self._destination.url} does not speak WebSocket ({error}).",
                "Check the address; the plain WebSocket wire lies at /ws.",
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConnectionFailed(f"Cannot reach {self._destination.url} ({reason}).", _START_REMEDY) from error

    async def receive(self) -> AsyncIterator[WireItem]:
        assert self._connection is not None
        try:
            async for message in self._connection:
                yield read_audio(message) if isinstance(message, bytes) else read_message(message)
        except ConnectionClosed:
            pass
        self._closed_because = _closing(self._connection)

    async def send_audio(self, frame: bytes) -> bool:
        assert self._connection is not None
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._connection.send(frame)
        except (ConnectionClosed, TimeoutError):
            return False
        return True

    async def hang_up(self) -> None:
        if self._connection is None or self._hung_up:
            return
        self._hung_up = True
        try:
            async with asyncio.timeout(HANG_UP_TIMEOUT_S):
                await self._connection.send('{"type":"hangup"}')
                await self._connection.wait_closed()
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            await self._connection.close()


_START_REMEDY = "Start the service with `voice-agent run`, or name another address with --url."


def address(destination: Destination) -> str:
    """Return the URL to connect to: the destination's, with the wire's parameters added to its query.

    Raises:
        ConnectionFailed: It is no WebSocket address.
    """
    parts = urlsplit(destination.url)
    try:
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        port_is_fine = False
    if parts.scheme not in ("ws", "wss") or not parts.hostname or not port_is_fine:
        raise ConnectionFailed(
            f"{destination.url!r} is no WebSocket address.", "Give one such as ws://127.0.0.1:8080/ws."
        )
    query = dict(parse_qsl(parts.query)) | {"rate": str(destination.rate), "metrics": "1"}
    if destination.conversation:
        query["conversation"] = destination.conversation
    return urlunsplit(parts._replace(query=urlencode(query)))


def _credentials(destination: Destination) -> dict[str, str]:
    # In a header rather than in the address: addresses end up in logs.
    if not destination.token:
        return {}
    if not (destination.token.isascii() and destination.token.isprintable()):
        raise ConnectionFailed("The key holds characters that no header can carry.", "Check --token.")
    return {"Authorization": f"Bearer {destination.token}"}


def read_audio(pcm: bytes) -> WireItem:
    """Take a binary message; half a sample is a fault, not audio."""
    if len(pcm) % 2:
        return Fault("unreadable", f"a binary message of {len(pcm)} bytes is no PCM16")
    return AgentAudio(pcm)


def read_message(text: str) -> WireItem:
    """Take a text message. Whatever it holds, something sensible comes back."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return Fault("unreadable", f"a text message is no JSON: {text[:60]!r}")
    if not isinstance(body, dict) or not isinstance(body.get("type"), str):
        return Fault("unreadable", f"a message without a type: {text[:60]!r}")
    match body["type"]:
        case "ready":
            rate = body.get("rate")
            return Ready(_text(body, "conversation") or None, rate if isinstance(rate, int) else None)
        case "transcript":
            heard = body.get("heard")
            return Words(
                _text(body, "role"),
                _text(body, "text"),
                final=body.get("final") is True,
                heard=heard if isinstance(heard, str) else None,
            )
        case "clear":
            return Clear()
        case "metrics":
            return TurnTimeline(_text(body, "turn_id"), _instants(body))
        case "error":
            return Fault(_text(body, "code") or "error", _text(body, "message"))
        case "hangup":
            return AgentHangUp(_text(body, "reason") or "no reason given")
        case kind:
            return Other(kind, body)


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _instants(body: Mapping[str, Any]) -> dict[str, float]:
    """Read the turn's instants, from ``timeline`` or from the message itself; drop what is no number."""
    timeline = body.get("timeline")
    source = timeline if isinstance(timeline, dict) else body
    return {
        str(name): float(value)
        for name, value in source.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }


def _refused(url: str, error: InvalidStatus) -> ConnectionFailed:
    status = error.response.status_code
    body = (error.response.body or b"")[:200].decode("utf-8", "replace").strip()
    remedies = {
        401: "Give the key with --token or in VOICE_AGENT_API_KEY.",
        403: "Give the key with --token or in VOICE_AGENT_API_KEY.",
        404: "Check the path; the plain WebSocket wire lies at /ws.",
        503: "The service takes no more calls now; try again, or raise server.max_calls.",
    }
    detail = f": {body}" if body else ""
    return ConnectionFailed(
        f"{url} refused the call with status {status}{detail}.",
        remedies.get(status, "Look at the service's log for the cause."),
    )


def _closing(connection: ClientConnection) -> str:
    code, reason = connection.close_code, connection.close_reason
    if code in (None, 1006):
        return "the connection broke"
    return f"connection closed with code {code}" + (f", {reason}" if reason else "")
