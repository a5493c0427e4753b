"""Who may talk to the service: the API key, and which web pages a browser may come from.

On loopback no key is needed, but every web page in the user's browser can reach loopback too. So an
``Origin`` must be the service's own host or an allowed one, and without a key the ``Host`` must be
a loopback name (else a page could point its own name at 127.0.0.1).

A call token takes the place of the key for one call and opens nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import os
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from voice_agent.channels.doorkeeper import Denial
from voice_agent.channels.pbx import sockets
from voice_agent.channels.tokens import PREFIX, CallTokens, TokenRefused, hold_grant
from voice_agent.config import ServerOptions
from voice_agent.diagnostics import RemediableError

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Probes need no key; they tell nothing about calls."""
TOKEN_PATHS = frozenset({"/agent", "/ws", "/offer", "/webrtc/config"}) | sockets.TOKEN_PATHS
"""Where a call token is enough, beside `TOKEN_PREFIX`."""
TOKEN_PREFIX = "/call/"
"""Paths of one call; whoever answers them checks that it is the token's own (`tokens.granted`)."""
MIN_KEY_LENGTH = 16


def is_loopback(host: str) -> bool:
    """Whether a host name or address, as written in a URL, stays on this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def api_key(options: ServerOptions, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the key callers must present, or None when the service is only on loopback without one.

    Raises:
        RemediableError: The service would listen beyond loopback without a key, or the key is too short to be one.
    """
    key = environment.get(options.api_key_env, "")
    if not key and not is_loopback(options.host):
        raise RemediableError(
            f"Listening on {options.host} would let anyone who reaches this machine place calls.",
            f"Set {options.api_key_env} to a key that callers must present, or listen on 127.0.0.1.",
        )
    if key and len(key) < MIN_KEY_LENGTH:
        raise RemediableError(
            f"The key in {options.api_key_env} is shorter than {MIN_KEY_LENGTH} characters.",
            "Make one with: openssl rand -hex 24",
        )
    return key or None


class Gate:
    """Judges each HTTP request and WebSocket upgrade by its ASGI scope. Fails closed.

    Args:
        key: None where none is needed. A call token that is shown must be good all the same.
        tokens: The call tokens that are out.
        pages: Paths of pages, which a browser asks for without showing anything. They hold no data.
    """

    def __init__(
        self,
        key: str | None,
        allowed_origins: tuple[str, ...] = (),
        tokens: CallTokens | None = None,
        pages: frozenset[str] = frozenset(),
    ) -> None:
        self._tokens, self._open = tokens, OPEN_PATHS | pages
        self._key_digest = None if key is None else _digest(key)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in self._origins)

    @property
    def has_key(self) -> bool:
        """Whether a key must be shown."""
        return self._key_digest is not None

    @property
    def key_name(self) -> str:
        """A name for whoever has shown the key, for records: the beginning of its fingerprint."""
        return "loopback" if self._key_digest is None else f"key:{self._key_digest.hex()[:12]}"

    def __call__(self, scope: MutableMapping[str, Any]) -> Denial | None:
        """Return why the request is turned away, or None; what its token stands for is then in the scope."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            return self._judge(headers, scope)
        except ValueError:
            return Denial(400, "bad_header", "Host or Origin is malformed.")

    def _judge(self, headers: Mapping[bytes, str], scope: MutableMapping[str, Any]) -> Denial | None:
        host, origin = headers.get(b"host", "").lower(), headers.get(b"origin", "").lower()
        if self._key_digest is None and not (is_loopback(_name(host)) or host in self._hosts):
            return Denial(403, "wrong_host", "This service answers only under a loopback name.")
        if origin and not self._is_own(origin, host):
            return Denial(403, "wrong_origin", "Pages of this origin may not connect; see server.allowed_origins.")
        if scope.get("method") == "OPTIONS" and origin in self._origins:
            return None  # a browser asks beforehand, and cannot show the key yet
        presented = _presented(headers.get(b"authorization", ""), scope)
        if self._tokens is not None and presented.startswith(PREFIX):
            return self._admit_token(self._tokens, presented, scope)
        if scope["path"] not in self._open and not self._is_key(presented):
            return Denial(401, "unauthorized", "A valid API key or call token is required.")
        return None

    def _admit_token(self, tokens: CallTokens, token: str, scope: MutableMapping[str, Any]) -> Denial | None:
        try:
            grant = tokens.find(token)
        except TokenRefused as refusal:
            return Denial(refusal.status, refusal.code, refusal.message)
        path = scope["path"]
        if path not in self._open and path not in TOKEN_PATHS and not path.startswith(TOKEN_PREFIX):
            return Denial(403, "not_with_token", "A call token opens its own call and nothing else.")
        hold_grant(scope, grant)
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        return origin in self._origins or (bool(host) and urlsplit(origin).netloc == host)

    def _is_key(self, presented: str) -> bool:
        return self._key_digest is None or hmac.compare_digest(_digest(presented), self._key_digest)


def _presented(authorization: str, scope: Mapping[str, Any]) -> str:
    """What the client shows: a key or a token, or nothing."""
    scheme, _, presented = authorization.partition(" ")
    if scheme.lower() == "basic":
        presented = _password(presented)
    elif scheme.lower() != "bearer":
        presented = ""
    if not presented and scope["type"] == "websocket":
        # Browsers cannot set headers on a WebSocket.
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        presented = next((value for name, value in query if name == "token"), "")
    return presented.strip()


def _password(credentials: str) -> str:
    """The password of ``Basic`` credentials: exchanges know no other way to send a key in a header."""
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode("latin-1").partition(":")[2]
    except binascii.Error:
        return ""


def _digest(key: str) -> bytes:
    # Digests have one length, so that the comparison tells nothing of the key's.
    return hashlib.sha256(key.encode()).digest()


def _name(host: str) -> str:
    """The name in a ``Host`` header, without its port."""
    return urlsplit(f"//{host}").hostname or ""
