"""What requests to a Qdrant server are made of: a connection, and conditions on payloads."""

from __future__ import annotations

from typing import Any

from voice_agent.diagnostics import missing_package

TIMEOUT_S = 5


def connect(url: str, key: str | None) -> Any:
    """Return a client; it connects with its first request.

    Raises:
        RemediableError: The package is not installed.
    """
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise missing_package("qdrant-client", "qdrant") from error
    return QdrantClient(url=url, api_key=key, timeout=TIMEOUT_S, check_compatibility=False)


def has(key: str, value: object) -> Any:
    """Return the condition that a field of the payload has this value."""
    from qdrant_client import models

    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def matching(**fields: str) -> Any:
    """Return the filter of points whose payload has all of these values."""
    from qdrant_client import models

    return models.Filter(must=[has(key, value) for key, value in fields.items()])
