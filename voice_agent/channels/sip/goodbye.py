"""What a BYE says of why a call ends (RFC 3326). Pure."""

from __future__ import annotations

import re

from voice_agent.channels.sip.message import Request

CLEARED = (16, 17, 31)
"""Causes of an exchange (Q.850) by which somebody has hung up; with any other the connection broke."""
_CAUSE = re.compile(r"\s*(q\.850|sip)\s*;.*?cause\s*=\s*\"?(\d{1,3})", re.IGNORECASE)


def broke_off(request: Request) -> bool:
    """Whether a BYE says that the connection broke, and nobody hung up."""
    for value in request.headers.all("reason"):
        if match := _CAUSE.match(value):
            cause = int(match[2])
            if cause not in CLEARED if match[1].lower() != "sip" else cause >= 300:
                return True
    return False
