"""What Genesys sends with an upgrade: its headers, and the signature over them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time

from tests.support.exchanges import Genesys
from voice_agent.channels.pbx.genesys_signature import REQUIRED

SECRET = b"MySuperSecretKeyTellNo-1!2@3#4$5"
KEY_ID = "an-api-key-of-genesys"
GENESYS_KEYS = {"GENESYS_API_KEY": KEY_ID, "GENESYS_CLIENT_SECRET": base64.b64encode(SECRET).decode()}


def signed_headers(
    host: str, target: str = Genesys.path, secret: bytes = SECRET, key_id: str = KEY_ID, age_s: float = 0.0
) -> dict[str, str]:
    """Return the headers of a request that was signed ``age_s`` ago."""
    headers = {
        "Audiohook-Organization-Id": Genesys.organization,
        "Audiohook-Session-Id": Genesys.session,
        "Audiohook-Correlation-Id": "e160e428-53e2-487c-977d-96989bf5c99d",
        "X-API-KEY": key_id,
    }
    values = {name.lower(): value for name, value in headers.items()} | {"@request-target": target, "@authority": host}
    created = int(time.time() - age_s)
    given = "(" + " ".join(f'"{name}"' for name in REQUIRED) + ")"
    given += f';keyid="{key_id}";nonce="{secrets.token_urlsafe(24)}";alg="hmac-sha256"'
    given += f";created={created};expires={created + 10}"
    base = "\n".join([*(f'"{name}": {values[name]}' for name in REQUIRED), f'"@signature-params": {given}'])
    proof = base64.b64encode(hmac.new(secret, base.encode(), hashlib.sha256).digest()).decode()
    return headers | {"Signature-Input": f"sig1={given}", "Signature": f"sig1=:{proof}:"}
