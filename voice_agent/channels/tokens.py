"""Call tokens: each lets whoever holds it place one call, with what the caller's own application knows about them.

An application that has the API key asks for a token and hands it to a browser, which never sees the key::

    issued ──▶ on call ──▶ over            refused from then on
       │  ◀────── │  ▲     no call came of it: as it was
       ▼          ▼  │     the same conversation, within the resume window
    expired     dropped ──▶ refused

Tokens are kept in memory, as digests, with what they stand for: metadata never leaves the service, a token is worth
one call exactly, and none outlives the process. Pure: seconds come from ``now``, any one monotonic clock.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

PREFIX = "call_"
"""What every call token begins with: so it is told from an API key, here and by tools that look for leaked secrets."""
DEFAULT_EXPIRY_S = 60.0
MAX_EXPIRY_S = 3600.0
MAX_TOKENS = 10_000
"""Tokens kept at once, those of calls on the line included."""
KEPT_AFTER_S = 600.0
"""How long a used or expired token is still known, so that whoever presents it again is told what is wrong."""
_SECRET_BYTES = 32
_GRANT = "voice_agent.grant"


class TokenRefused(Exception):
    """A token lets nobody in. ``status`` is 401 where another token would help the holder, else 403."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class TooManyTokens(Exception):
    """`MAX_TOKENS` are in use."""


class _Stage(Enum):
    ISSUED = "issued"
    ON_CALL = "on call"
    DROPPED = "dropped"
    OVER = "over"


@dataclass(eq=False)
class Grant:
    """What a token stands for.

    Attributes:
        conversation_id: The only conversation it opens.
        call_id: Id of the call that it begins. A call that resumes the conversation has another.
        metadata: Facts for the conversation's memory, checked already.
    """

    conversation_id: str
    call_id: str
    metadata: Mapping[str, Any]
    _name: str = field(repr=False)
    _secret_digest: bytes = field(repr=False)
    _now: Callable[[], float] = field(repr=False)
    _usable_until: float = field(repr=False)
    _stage: _Stage = _Stage.ISSUED
    _stage_before: _Stage = _Stage.ISSUED

    @property
    def identity(self) -> uuid.UUID:
        """The token in 16 bytes, for wires that carry no more: its name, and eight bytes that only its secret gives."""
        return uuid.UUID(bytes=bytes.fromhex(self._name) + hashlib.sha256(self._secret_digest).digest()[:8])

    @property
    def is_over(self) -> bool:
        """Whether its call has ended and will not be resumed."""
        return self._stage is _Stage.OVER or (self._stage is _Stage.DROPPED and self._now() > self._usable_until)

    def check(self) -> None:
        """Return if the token can be used now.

        Raises:
            TokenRefused: It has expired, or its call is over.
        """
        if self._stage is _Stage.ON_CALL:
            return
        if self.is_over:
            raise TokenRefused(403, "token_used", "This token's call is over. Ask for a new token.")
        if self._now() > self._usable_until:
            raise TokenRefused(401, "token_expired", "This token has expired. Ask for a new one.")

    def begin(self) -> str:
        """The call is admitted. Returns its id. `end` or `give_back` must follow.

        Raises:
            TokenRefused: As `check`.
        """
        self.check()
        call_id = self.call_id if self._stage is _Stage.ISSUED else uuid.uuid4().hex
        self._stage_before, self._stage = self._stage, _Stage.ON_CALL
        return call_id

    def give_back(self) -> None:
        """Nothing came of the call that was admitted: the token is worth what it was worth before, and no longer."""
        self._stage = self._stage_before

    def end(self, *, resumable_s: float = 0.0) -> None:
        """The call has ended. ``resumable_s``: its connection dropped, and its caller may come back for so long."""
        self._stage = _Stage.DROPPED if resumable_s > 0 else _Stage.OVER
        self._usable_until = self._now() + resumable_s

    def _is_stale(self) -> bool:
        return self._stage is not _Stage.ON_CALL and self._now() > self._usable_until + KEPT_AFTER_S

    def _is_spent(self) -> bool:
        return self._stage is not _Stage.ON_CALL and self._now() > self._usable_until


class CallTokens:
    """The tokens that are out.

    Args:
        now: Seconds of a monotonic clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._grants: dict[str, Grant] = {}

    def __len__(self) -> int:
        return len(self._grants)

    def issue(self, conversation_id: str, metadata: Mapping[str, Any], expires_in_s: float) -> tuple[str, Grant]:
        """Make a token whose call must begin within ``expires_in_s``. It is returned once and not kept.

        Raises:
            TooManyTokens: Until others have been used or have expired.
        """
        self._forget(Grant._is_stale)
        if len(self._grants) >= MAX_TOKENS:
            self._forget(Grant._is_spent)
        if len(self._grants) >= MAX_TOKENS:
            raise TooManyTokens
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(_SECRET_BYTES)
        grant = Grant(
            conversation_id,
            uuid.uuid4().hex,
            dict(metadata),
            name,
            _digest(secret),
            self._now,
            self._now() + expires_in_s,
        )
        self._grants[name] = grant
        return f"{PREFIX}{name}_{secret}", grant

    def find(self, token: str) -> Grant:
        """Return what ``token`` stands for.

        Raises:
            TokenRefused: It is unknown, has expired, or its call is over.
        """
        # The name before the secret finds the entry; only the secret is one, and is compared in constant time.
        name, _, secret = token.removeprefix(PREFIX).partition("_")
        grant = self._grants.get(name)
        known = grant._secret_digest if grant is not None else bytes(hashlib.sha256().digest_size)
        if not hmac.compare_digest(_digest(secret), known) or grant is None:
            raise TokenRefused(401, "bad_token", "This token is not known here. Ask for a new one.")
        grant.check()
        return grant

    def find_identity(self, identity: uuid.UUID) -> Grant:
        """Return what an `Grant.identity` stands for.

        Raises:
            TokenRefused: As `find`.
        """
        grant = self._grants.get(identity.bytes[:8].hex())
        known = grant.identity.bytes if grant is not None else bytes(16)
        if not hmac.compare_digest(identity.bytes, known) or grant is None:
            raise TokenRefused(401, "bad_token", "This call was not announced here.")
        grant.check()
        return grant

    def _forget(self, which: Callable[[Grant], bool]) -> None:
        for name in [name for name, grant in self._grants.items() if which(grant)]:
            del self._grants[name]


def hold_grant(scope: MutableMapping[str, Any], grant: Grant) -> None:
    """Note in the ASGI scope of a request what the token that it came with stands for."""
    scope[_GRANT] = grant


def granted(scope: Mapping[str, Any]) -> Grant | None:
    """Return what the request's token stands for; None where it came with the key, or where none is needed."""
    return scope.get(_GRANT)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
