"""STUN and TURN servers, as they are configured and as a browser takes them. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from voice_agent.config import IceServer


def credential(server: IceServer, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the secret of a TURN server, or None where it has none."""
    return environment.get(server.credential_env) if server.credential_env else None


def browser_server(server: IceServer, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return a server in the form of a browser's ``RTCPeerConnection``."""
    given: dict[str, Any] = {"urls": list(server.urls)}
    if server.username:
        given |= {"username": server.username, "credential": credential(server, environment) or ""}
    return given
