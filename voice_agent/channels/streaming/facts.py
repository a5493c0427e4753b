"""What a stream says of its caller: the two numbers, and whatever the exchange was told to send along. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from voice_agent.channels.streaming.fields import MAX_PARAMETERS, parameters_of
from voice_agent.channels.streaming.serializer import Started

TOKEN_PARAMETER = "token"
"""Parameter of a stream that carries a call token, where the provider can send it in no other way."""
CONTROLS = frozenset({TOKEN_PARAMETER, "conversation", "rate"})
"""Parameters that steer the connection and say nothing of the caller."""


def facts_of(started: Started, query: Mapping[str, str]) -> dict[str, str]:
    """Return what is told of a caller, by name.

    What somebody has named goes before what the exchange says by itself: ``caller_number`` in a dial plan stands for a
    caller whom the exchange knows by an extension only.

    Args:
        query: Parameters of the address that was connected to.
    """
    numbers = {"caller_number": started.caller, "called_number": started.called}
    named = {**parameters_of(query), **started.parameters}
    some = list(named.items())[:MAX_PARAMETERS]
    known = {name: value for name, value in numbers.items() if value}
    return known | {name: value for name, value in some if value and name not in CONTROLS}
