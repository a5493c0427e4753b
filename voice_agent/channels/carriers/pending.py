"""Calls whose media stream is still to come: a token each, good for one stream, for a moment. Pure.

::

    webhook ─▶ expect ─▶ token ─▶ carrier ─▶ stream ─▶ redeem      once, in time, and by the call it was made for
    we dial ─▶ expect ─▶ token ─▶ carrier ─▶ bind (which call it has become)

A webhook that comes again before the stream does is answered with the same token; after that it is a replay. Seconds
come from ``now``, any one monotonic clock.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from voice_agent.channels.desk import Place
from voice_agent.channels.outbound import DialResult
from voice_agent.channels.tokens import Grant

TOKEN_S = 60.0
"""How long the stream of a caller may take to come. One of a call that we place may ring first."""
MAX_PENDING = 2000
"""Calls that may be expected at once."""
MAX_REMEMBERED = 50_000
"""Calls whose webhooks would be known for replays; the oldest are forgotten."""


class Replayed(Exception):
    """A call that has been answered already, or whose moment has passed."""


class TooManyPending(Exception):
    """`MAX_PENDING` calls are expected."""


class BadStream(Exception):
    """A stream is of no call that is expected. ``code`` is stable."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(eq=False)
class Expected:
    """A call that is expected.

    Attributes:
        token: What its stream must show. A secret.
        call: The carrier's id of it; "" until the carrier has told it.
        conversation_id: The conversation it belongs to.
        facts: What is known of the caller.
        place: The place on the line that is kept for it, where we placed the call.
        grant: What the application asked for, where we placed the call.
        expires_at: Until when its stream must have come.
        on_result: Told once what has become of its stream, where somebody waits for it.
    """

    token: str = field(repr=False)
    call: str
    conversation_id: str
    facts: Mapping[str, str] = field(repr=False)
    grant: Grant | None
    expires_at: float
    on_result: Callable[[DialResult], None] | None = None
    place: Place | None = None


class PendingCalls:
    """The calls of one carrier that are expected."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_token: dict[bytes, Expected] = {}
        self._by_call: dict[str, Expected] = {}
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_token)

    def expect(
        self,
        call: str,
        conversation_id: str,
        facts: Mapping[str, str],
        *,
        grant: Grant | None = None,
        expires_in_s: float = TOKEN_S,
        on_result: Callable[[DialResult], None] | None = None,
        place: Place | None = None,
    ) -> Expected:
        """Expect the stream of ``call``. Asked again before it has come, returns the same.

        Raises:
            Replayed: The call had its stream, or did not have it in time.
            TooManyPending: Until some have come or expired.
        """
        self._forget()
        if known := self._by_call.get(call):
            return known
        if len(self._by_token) >= MAX_PENDING:
            raise TooManyPending
        if call:
            self._note(call)
        expected = Expected(
            secrets.token_hex(32), call, conversation_id, facts, grant, self._now() + expires_in_s, on_result, place
        )
        self._by_token[_digest(expected.token)] = expected
        if call:
            self._by_call[call] = expected
        return expected

    def bind(self, expected: Expected, call: str) -> bool:
        """The carrier has told which call it has become. False if its stream came, and was another's."""
        if expected.call:
            return hmac.compare_digest(expected.call.encode(), call.encode())
        self._note(call)
        expected.call = call
        if _digest(expected.token) in self._by_token:
            self._by_call[call] = expected
        return True

    def find(self, token: str) -> Expected:
        """Return the call that ``token`` is for; it stays expected.

        Raises:
            BadStream: ``bad_token``: it is unknown, was used, or has expired.
        """
        self._forget()
        # The digest is looked up: how long that takes tells nothing of the token.
        expected = self._by_token.get(_digest(token))
        if expected is None:
            raise BadStream("bad_token")
        return expected

    def redeem(self, token: str, call: str) -> Expected:
        """The stream of ``call`` has come with ``token``; "" where the carrier tells no more than the token.

        Raises:
            BadStream: ``bad_token`` as `find`, ``wrong_call``: it was made for another call; it is void now.
        """
        expected = self.find(token)
        self.withdraw(expected)
        if call and not self.bind(expected, call):
            raise BadStream("wrong_call")
        return expected

    def withdraw(self, expected: Expected) -> None:
        """Expect it no longer. Idempotent."""
        self._by_token.pop(_digest(expected.token), None)
        if self._by_call.get(expected.call) is expected:
            del self._by_call[expected.call]

    def _note(self, call: str) -> None:
        name = _digest(call)
        if name in self._seen:
            raise Replayed
        self._seen[name] = None
        if len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)

    def _forget(self) -> None:
        now = self._now()
        for expected in [one for one in self._by_token.values() if one.expires_at < now]:
            self.withdraw(expected)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
