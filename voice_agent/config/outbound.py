"""Calls that the service places."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from voice_agent.config.options import Options, Seconds

Prefix = Annotated[
    str, StringConstraints(pattern=r"^(\+[1-9]\d{0,14}|sips?:[A-Za-z0-9+._~%*#@:\[\]-]*)$", max_length=256)
]


class OutboundOptions(Options):
    """Calls that are placed by ``POST /v1/calls`` with ``to``."""

    allowed_prefixes: tuple[Prefix, ...] = ()
    """What a number or address must begin with, such as ``+1555`` or ``sip:``; without any, nobody is called."""
    max_dialing: int = Field(5, ge=1, le=1000)
    """Calls that may be ringing at once."""
    per_minute: float = Field(30, gt=0, le=10_000)
    """Calls that may be placed within a minute."""
    ring_timeout_s: Seconds = Field(30, ge=5, le=180)
    """How long it may ring."""
