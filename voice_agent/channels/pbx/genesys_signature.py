"""The signature with which Genesys proves an upgrade to be its own (HTTP message signatures, hmac-sha256). Pure.

Of the draft that became RFC 9421 only what AudioHook uses is read: one signature over named fields and its parameters.
Everything else is refused. What must be covered follows Genesys's published reference implementation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence

REQUIRED = (
    "@request-target",
    "@authority",
    "audiohook-organization-id",
    "audiohook-session-id",
    "audiohook-correlation-id",
    "x-api-key",
)
"""What a signature must cover."""
MAX_AGE_S = 10.0
"""How long a signature is good."""
MAX_SKEW_S = 3.0
"""How far the clocks of both sides may be apart."""
MIN_NONCE_CHARACTERS = 22
MAX_NONCES = 10_000
"""Nonces remembered at once; when there are more, nobody is let in until the oldest have passed."""

_INPUT = re.compile(r'([a-z*][a-z0-9_.*-]*)=(\(((?:"[^"\\]*"(?: "[^"\\]*")*)?)\)((?:;[a-z]+=(?:"[^"\\]*"|\d{1,15}))*))')
_SIGNATURE = re.compile(r"([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):")
_PARAMETER = re.compile(r';([a-z]+)=(?:"([^"\\]*)"|(\d+))')


class BadSignature(Exception):
    """A request is not Genesys's, or not any more."""


class SignatureCheck:
    """Checks the upgrades of one integration.

    Args:
        key_id: The API key that Genesys sends as it is, and names in the signature.
        secret: The client secret that only Genesys and we know.
    """

    def __init__(self, key_id: str, secret: bytes) -> None:
        self._key_id, self._secret = key_id, secret
        self._nonces: OrderedDict[str, float] = OrderedDict()

    def check(self, headers: Mapping[str, str], target: str, now_s: float) -> None:
        """Return if the request is Genesys's, and was not shown before.

        Args:
            headers: By lower-case name.
            target: Path and query as requested.
            now_s: Seconds since 1970.

        Raises:
            BadSignature: It is not.
        """
        parameters = verify(headers, target, self._secret, required=REQUIRED)
        named = hmac.compare_digest(parameters.get("keyid", "").encode(), self._key_id.encode())
        if not named or not hmac.compare_digest(headers["x-api-key"].encode(), self._key_id.encode()):
            raise BadSignature("unknown key")
        self._check_time(parameters, now_s)
        self._check_nonce(parameters.get("nonce", ""), now_s)

    @staticmethod
    def _check_time(parameters: Mapping[str, str], now_s: float) -> None:
        created, expires = parameters.get("created", ""), parameters.get("expires", "")
        if not created.isdecimal() or not now_s - MAX_AGE_S <= int(created) <= now_s + MAX_SKEW_S:
            raise BadSignature("not made just now")
        if expires and (not expires.isdecimal() or int(expires) < now_s - MAX_SKEW_S):
            raise BadSignature("expired")

    def _check_nonce(self, nonce: str, now_s: float) -> None:
        if len(nonce) < MIN_NONCE_CHARACTERS:
            raise BadSignature("no nonce")
        while self._nonces and next(iter(self._nonces.values())) < now_s - MAX_AGE_S - MAX_SKEW_S:
            self._nonces.popitem(last=False)
        if nonce in self._nonces or len(self._nonces) >= MAX_NONCES:
            raise BadSignature("shown before")
        self._nonces[nonce] = now_s


def verify(
    headers: Mapping[str, str], target: str, secret: bytes, *, required: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return the parameters of a signature that ``secret`` made over these headers.

    Raises:
        BadSignature: There is none, it cannot be read, does not cover what it must, or was not made with ``secret``.
    """
    given = _INPUT.fullmatch(headers.get("signature-input", "").strip())
    signed = _SIGNATURE.fullmatch(headers.get("signature", "").strip())
    if given is None or signed is None or given[1] != signed[1]:
        raise BadSignature("no signature")
    covered = given[3].replace('"', "").split(" ") if given[3] else []
    if len(set(covered)) != len(covered) or not set(required) <= set(covered):
        raise BadSignature("does not cover what it must")
    parameters: dict[str, str] = {}
    for name, text, number in _PARAMETER.findall(given[4]):
        if name in parameters:
            raise BadSignature("a parameter comes twice")
        parameters[name] = text or number
    if parameters.get("alg", "hmac-sha256") != "hmac-sha256":
        raise BadSignature("another algorithm")
    lines = [f'"{name}": {_component(name, headers, target)}' for name in covered]
    base = "\n".join([*lines, f'"@signature-params": {given[2]}'])
    try:
        signature = base64.b64decode(signed[2], validate=True)
    except binascii.Error:
        raise BadSignature("no signature") from None
    if not hmac.compare_digest(hmac.new(secret, base.encode(), hashlib.sha256).digest(), signature):
        raise BadSignature("made with another secret, or for another request")
    return parameters


def _component(name: str, headers: Mapping[str, str], target: str) -> str:
    if name == "@request-target":
        return target
    value = headers.get("host" if name == "@authority" else name)
    if value is None or (name.startswith("@") and name != "@authority"):
        raise BadSignature("covers what is not there")
    return value.strip().lower() if name == "@authority" else value.strip()
