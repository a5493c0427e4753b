"""What channels ask of the service: calls and text conversations to hand their callers to.

Channels know wires; the dialogue behind them is the service's business. The service implements
these Protocols, tests implement them with a few lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from voice_agent.call.wire import Wire
from voice_agent.channels.tokens import Grant


class Place(Protocol):
    """A place on the line that is kept for a call which rings.

    Attributes:
        unwanted: Set when nobody is to answer any more: the service ends, or whoever is called has called us.
    """

    @property
    def unwanted(self) -> asyncio.Event: ...

    def give_back(self) -> None:
        """Free it, if no connection has come for it. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A caller who wants to be connected.

    Attributes:
        conversation_id: Already validated (`identifiers`); a known one resumes.
        channel: Channel name, as in `WireTraits.channel`.
        events: Send tracker events as `EventMessage`.
        grant: What the caller's token stands for, where they came with one.
        connect: Awaited once the caller is admitted, with the id of the call, where the wire is still to be
            connected. The call begins when it returns True; without that there is none.
        place: The place that was reserved for this call (`CallDesk.reserve`).
        facts: What the wire itself tells of the caller (``caller_number``, ``called_number``). They fill fields of the
            project's memory of that name which are ``seed: true``; the others are dropped, and so is whatever would
            say who the caller is to the application: only a grant may. Never logged.
    """

    conversation_id: str
    channel: str
    events: bool = False
    grant: Grant | None = None
    connect: Callable[[str], Awaitable[bool]] | None = None
    facts: Mapping[str, str] = field(default_factory=dict, repr=False)
    place: Place | None = None


class CallRefused(Exception):
    """The caller is not put through: the service warms, drains, is full, or the conversation is busy.

    Attributes:
        code: Stable identifier, such as ``busy``.
        message: One sentence for the client.
        retry: Whether trying again later may help.
    """

    def __init__(self, code: str, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.code, self.message, self.retry = code, message, retry


@dataclass(frozen=True, slots=True)
class Invitation:
    """A token for one call, to be handed to whoever is to place it."""

    token: str
    grant: Grant
    expires_in_s: float


class InvitationRefused(Exception):
    """No token is made. The message names what is wrong with the metadata, and what would be right."""


class CallDesk(Protocol):
    """Puts callers through to the agent."""

    def invite(self, conversation_id: str, metadata: Mapping[str, Any], expires_in_s: float) -> Invitation:
        """Make a token for one call of this conversation.

        Args:
            conversation_id: Already validated.
            metadata: Fills ``seed: true`` fields of the project's memory when a session begins; ``user_id`` says
                who the caller is.

        Raises:
            InvitationRefused: The metadata cannot be used; nothing was stored.
            CallRefused: Too many tokens are out.
        """
        ...

    def reserve(self, conversation_id: str, channel: str) -> Place:
        """Keep a place for a call that is about to be placed; whoever reserves it gives it back if nobody answers.

        Raises:
            CallRefused: There is none: nobody is to be rung up.
        """
        ...

    def note(self, conversation_id: str, kind: str, **data: Any) -> None:
        """Record something about a call in its tracker, now or as soon as it begins. Without such a call, nothing."""
        ...

    async def take(self, request: CallRequest, wire: Wire) -> None:
        """Run one whole call on ``wire``; return when it is over and cleaned up.

        Raises:
            CallRefused: Before anything was done with ``wire``.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the agent's reply. Messages of a turn are numbered from 0; pieces come in order."""

    message: int
    text: str
    end: bool


@dataclass(frozen=True, slots=True)
class TextHangUp:
    """The agent ends the conversation."""

    reason: str


TextItem = TextPiece | TextHangUp
Deliver = Callable[[TextItem], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TextOutcome:
    """How a text turn ended."""

    turn_id: str
    status: Literal["completed", "cancelled", "error"]


class TextDesk(Protocol):
    """Runs the dialogue without audio."""

    async def turn(
        self, conversation_id: str, text: str, deliver: Deliver, *, intent: bool = False, channel: str = "text"
    ) -> TextOutcome:
        """Run one turn; turns of one conversation run one after the other, in the order they came.

        Each item counts as heard once ``deliver`` has returned. When the task is cancelled or
        ``deliver`` raises, the client is gone: the turn is cancelled, the reply is recorded as far as
        it was delivered, and the exception goes on.

        Args:
            intent: ``text`` is a shell's own message such as ``/session_start``.

        Raises:
            CallRefused: The service warms, drains, is full, or the conversation is on a call.
        """
        ...


@dataclass(frozen=True, slots=True)
class LearntText:
    """A text that the agent has learnt. ``learnt_at``: seconds since 1970."""

    id: str
    passages: int
    learnt_at: float
    changed: bool = True


class NotLearnt(Exception):
    """A text cannot be learnt; the message is the reason. What was known under its id stays."""


class NotNow(Exception):
    """What was asked cannot be done now; the message says why, and nothing has changed unless it says so."""


class KnowledgeDesk(Protocol):
    """What the agent has learnt, and what it is to forget."""

    async def learn(self, id: str, media_type: str, data: bytes, title: str) -> LearntText:
        """Learn a text in the place of the one with this id. Raises `NotLearnt`, `NotNow`."""
        ...

    async def texts(self) -> Sequence[LearntText]:
        """Return what has been learnt. Raises `NotNow`."""
        ...

    async def unlearn(self, id: str) -> bool:
        """Return whether there was such a text. Raises `NotNow`."""
        ...

    async def forget(
        self, *, conversation: str | None, caller: str | None, older_than_days: float | None
    ) -> Mapping[str, int]:
        """Forget what was said. Returns how many ``conversations`` and ``exchanges``. Raises `NotNow`."""
        ...


class UnknownSetting(Exception):
    """There is no setting of that name. The message names those there are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{name} not supported. Must be one of {list(known)}")


class SettingRefused(Exception):
    """A value does not fit. ``faults``: (field, what is wrong with it)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field or 'value'}: {what}" for field, what in faults))
        self.faults = tuple(faults)


class SettingNotKept(Exception):
    """A value fits but could not be kept; nothing has changed."""


class SettingsUnread(Exception):
    """The record of changes cannot be read now."""


class SettingsDesk(Protocol):
    """The settings of workflows, as an operator sees them."""

    def all(self) -> dict[str, Any]:
        """Return ``{"settings": [{"name", "value", "scheme"}], "selected_configuration"}``."""
        ...

    def one(self, name: str) -> dict[str, Any]:
        """Return one of the settings. Raises `UnknownSetting`."""
        ...

    async def put(self, name: str, value: Mapping[str, Any], *, who: str) -> dict[str, Any]:
        """Check, keep and select. Raises `UnknownSetting`, `SettingRefused`, `SettingNotKept`."""
        ...

    async def clear(self, *, who: str) -> dict[str, Any]:
        """Take back all that was put, and return what `all` does then. Raises `SettingNotKept`."""
        ...

    async def changes(self, limit: int) -> dict[str, Any]:
        """Return ``{"kept", "changes": [{"at", "who", "selected", "fields"}]}``, newest first. Raises `SettingsUnread`.

        ``kept`` is false where nothing is recorded.
        """
        ...
