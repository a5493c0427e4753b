"""Digest authentication, both as the one who asks and the one who answers (RFC 7616, RFC 2617). Pure.

A nonce of ours holds its time and a seal over time, Call-ID and address: nothing is kept of those that are out, and
what was overheard is good for a repetition of the same call from the same address, and for half a minute.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from voice_agent.channels.sip.message import Request, Response

NONCE_LIFE_S = 30.0
REALM = "voice-agent"
_ALGORITHMS = {"MD5": "md5", "SHA-256": "sha256"}
_PART = re.compile(r'\s*([A-Za-z-]{1,32})\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*)\s*(?:,|$)')


def parts(value: str) -> dict[str, str]:
    """Return the parts of a ``Digest …`` header; empty for any other scheme."""
    scheme, _, rest = value.strip().partition(" ")
    if scheme.lower() != "digest" or len(rest) > 2000:
        return {}
    return {match[1].lower(): match[2].strip('"') for match in _PART.finditer(rest)}


class Verifier:
    """Asks callers who they are.

    Args:
        passwords: User → password.
        secret: Known to this process alone.
    """

    def __init__(self, passwords: Mapping[str, str], secret: bytes) -> None:
        self._passwords, self._secret = dict(passwords), secret

    def challenges(self, request: Request, source: str, now: float) -> list[tuple[str, str]]:
        """Return the headers of a ``401``: the stronger algorithm first."""
        nonce = self._nonce(request, source, int(now))
        made = f'Digest realm="{REALM}", nonce="{nonce}", qop="auth", algorithm='
        return [("www-authenticate", made + name) for name in ("SHA-256", "MD5")]

    def admits(self, request: Request, source: str, now: float) -> bool:
        """Whether the request proves to know the password of one of the users."""
        for value in request.headers.all("authorization"):
            given = parts(value)
            password = self._passwords.get(given.get("username", ""))
            algorithm = _ALGORITHMS.get(given.get("algorithm", "MD5").upper())
            if algorithm is None or not self._is_ours(given.get("nonce", ""), request, source, now):
                continue
            if given.get("realm") != REALM or given.get("qop") != "auth" or given.get("uri") != request.uri:
                continue
            # Compared also for users that do not exist, so that the time tells nothing.
            expected = _response(algorithm, given, request.method, password or "")
            if hmac.compare_digest(expected.encode(), given.get("response", "").encode()) and password is not None:
                return True
        return False

    def _nonce(self, request: Request, source: str, at: int) -> str:
        sealed = hmac.new(self._secret, f"{at} {request.call_id} {source}".encode(), "sha256").hexdigest()[:32]
        return f"{at:x}.{sealed}"

    def _is_ours(self, nonce: str, request: Request, source: str, now: float) -> bool:
        stamp = nonce.partition(".")[0]
        if not re.fullmatch(r"[0-9a-f]{1,12}", stamp) or not 0 <= now - int(stamp, 16) <= NONCE_LIFE_S:
            return False
        return hmac.compare_digest(self._nonce(request, source, int(stamp, 16)).encode(), nonce.encode())


def authorization(
    response: Response, request: Request, user: str, password: str, client_nonce: str
) -> tuple[str, str] | None:
    """Return the header that answers a ``401`` or ``407``, or None where it asks for something we cannot give."""
    asked, answered = (
        ("www-authenticate", "authorization")
        if response.status == 401
        else ("proxy-authenticate", "proxy-authorization")
    )
    offers = [parts(value) for value in response.headers.all(asked)]
    chosen = _strongest([offer for offer in offers if offer.get("algorithm", "MD5").upper() in _ALGORITHMS])
    if chosen is None:
        return None
    given = {
        "username": user,
        "realm": chosen.get("realm", ""),
        "nonce": chosen.get("nonce", ""),
        "uri": request.uri,
        "algorithm": chosen.get("algorithm", "MD5").upper(),
    }
    if "auth" in [name.strip() for name in chosen.get("qop", "").split(",")]:
        given |= {"qop": "auth", "cnonce": client_nonce, "nc": "00000001"}
    given["response"] = _response(_ALGORITHMS[given["algorithm"]], given, request.method, password)
    if "opaque" in chosen:
        given["opaque"] = chosen["opaque"]
    bare = ("algorithm", "qop", "nc")
    return answered, "Digest " + ", ".join(f"{k}={v}" if k in bare else f'{k}="{v}"' for k, v in given.items())


def _strongest(offers: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    order = list(reversed(_ALGORITHMS))
    return min(offers, key=lambda offer: order.index(offer.get("algorithm", "MD5").upper()), default=None)


def _response(algorithm: str, given: Mapping[str, str], method: str, password: str) -> str:
    def digest(*words: str) -> str:
        return hashlib.new(algorithm, ":".join(words).encode(), usedforsecurity=False).hexdigest()

    first = digest(given.get("username", ""), given.get("realm", ""), password)
    second = digest(method, given.get("uri", ""))
    if given.get("qop"):
        return digest(first, given["nonce"], given.get("nc", ""), given.get("cnonce", ""), given["qop"], second)
    return digest(first, given.get("nonce", ""), second)
