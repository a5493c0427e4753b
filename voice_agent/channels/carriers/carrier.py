"""What tells one carrier from another, beside the messages of its streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from voice_agent.channels.carriers.request import CarrierRequest
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.streaming.serializer import Serializer
from voice_agent.transfers import TransferResult, TransferTarget


class Unsigned(Exception):
    """A request is not the carrier's, or not any more. ``why`` is for the operator."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a webhook is answered."""

    body: bytes = b""
    content_type: str = "text/plain"
    status: int = 200


def xml(text: str) -> Answer:
    """Return a document that tells the carrier what to do."""
    return Answer(f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), "text/xml")


def as_json(body: Any) -> Answer:
    """Return a JSON body."""
    return Answer(json.dumps(body).encode(), "application/json")


def international(number: str) -> str:
    """Return a number with its plus, which some carriers leave out; anything else as it is."""
    return f"+{number}" if number.isascii() and number.isdecimal() and 7 <= len(number) <= 15 else number


@dataclass(frozen=True, slots=True)
class Ringing:
    """Somebody calls. ``call`` is the carrier's id."""

    call: str
    caller: str = field(repr=False)
    called: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """What has become of a call that we placed, or of its leg.

    Attributes:
        outcome: Why nobody is on the line, where that is known now.
        answered_by: ``human``, ``machine`` or ``unknown``, once the carrier says so.
        over: The call has ended.
    """

    call: str
    outcome: DialOutcome | None = None
    answered_by: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class Redirected:
    """The carrier asks what to do with a call that was told to ask (`Carrier.transfer`)."""

    call: str


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The carrier could not connect the stream of a call that it has answered: nobody would ever speak."""

    call: str


Event = Ringing | Progress | Redirected | StreamFailed | None
"""None: nothing that matters here."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A call to be placed."""

    to: str = field(repr=False)
    token: str = field(repr=False)
    ring_timeout_s: float


class Carrier(Protocol):
    """One carrier's signatures, webhooks and REST API."""

    @property
    def channel(self) -> str:
        """Name of the channel, and first part of its paths."""
        ...

    @property
    def hooks(self) -> Mapping[str, Callable[[CarrierRequest], Event]]:
        """What reads the webhooks, by path. Raises `BadCarrierRequest`."""
        ...

    @property
    def stream_path(self) -> str: ...

    @property
    def leg_ends_with_stream(self) -> bool:
        """Closing the stream ends the call; otherwise it must be hung up."""
        ...

    def serializer(self) -> Serializer: ...

    def check(self, request: CarrierRequest, now_s: float) -> None:
        """Return if a webhook is the carrier's own and fresh. ``now_s``: seconds since 1970. Raises `Unsigned`."""
        ...

    def check_upgrade(self, request: CarrierRequest, now_s: float) -> None:
        """Return if the upgrade to a stream is the carrier's own. Raises `Unsigned`."""
        ...

    def stream_token(self, request: CarrierRequest) -> str:
        """The token that an upgrade carries, or "" where it comes with the stream's first message."""
        ...

    async def answer(self, ringing: Ringing, token: str) -> Answer:
        """Have the caller's media streamed to us."""
        ...

    def redirect(self, call: str) -> Answer:
        """Answer a `Redirected`."""
        ...

    async def place(self, placement: Placement) -> str:
        """Place a call; return the carrier's id of it. Raises `ApiFault`."""
        ...

    async def hang_up(self, call: str) -> None:
        """End a call. Raises `ApiFault`."""
        ...

    async def transfer(self, call: str, target: TransferTarget) -> TransferResult:
        """Hand the caller over. Raises `ApiFault`."""
        ...

    @property
    def can_press(self) -> bool:
        """Whether its API presses keys in a call that is streamed; otherwise tones in the audio do it."""
        ...

    async def press(self, call: str, keys: str) -> None:
        """Press keys, without pauses, towards the other end. Raises `ApiFault`."""
        ...

    @property
    def can_dial(self) -> bool:
        """Whether it is configured to place calls."""
        ...

    async def aclose(self) -> None:
        """Close the connections to its API."""
        ...
