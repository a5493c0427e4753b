"""Which calls are on the line: admission, refusal, handing over to a newer connection, drain."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any

from voice_agent.call.outcome import DROPPED
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.telemetry.metrics import CALLS, CALLS_ACTIVE, CALLS_REFUSED

if TYPE_CHECKING:
    from voice_agent.call.call import Call
    from voice_agent.call.outcome import CallOutcome

log = logging.getLogger(__name__)

LEAVE_SHARE = 0.6
"""Share of the time for draining in which calls may take leave; the rest is for what follows."""
MAX_NOTES = 8
"""Notes kept for a call that has not begun."""


class Refused(Exception):
    """A call is not admitted.

    Attributes:
        code: ``not_ready``, ``draining``, ``at_capacity`` or ``conversation_busy``.
        message: What the caller's client may be told.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Admission:
    """A place on the line. Leave it (as a context manager, or by `release`) when the call is over.

    Attributes:
        conversation_id: The conversation that is now live.
        call: The call, once attached.
        refused: Why the caller is turned away after all, where no call was attached.
        taken: A connection has come for it; until then it is a reservation, for a call that rings.
        unwanted: Set when the call that it was reserved for is not to be answered any more.
        released: Set when the place is free again.
    """

    def __init__(self, registry: CallRegistry, conversation_id: str, *, reserved: bool = False) -> None:
        self._registry = registry
        self._outcome: CallOutcome | None = None
        self.released, self.unwanted = asyncio.Event(), asyncio.Event()
        self.conversation_id = conversation_id
        self._reserved = reserved
        self._overtaken = False
        self.call: Call | None = None
        self.refused = "internal"
        self.taken = not reserved
        self._notes: list[tuple[str, dict[str, Any]]] = []

    def attach(self, call: Call) -> None:
        """Make the call visible to inspection and drain."""
        self.call = call
        for kind, data in self._notes:
            call.note(kind, **data)
        if self._registry.draining:
            call.end(CancelReason.SHUTDOWN)
        if self._overtaken:
            call.supersede()

    @property
    def quiet_s(self) -> float:
        """For how long nothing has come in by the wire; 0 before there is a call."""
        return 0.0 if self.call is None else self.call.quiet_s

    def overtake(self) -> None:
        """The same caller has come by another connection."""
        self._overtaken = True
        if self.call is not None:
            self.call.supersede()
        else:
            self.withdraw()

    def withdraw(self) -> None:
        """Nobody is to be rung up any more for the call that the place was reserved for. Without one, nothing."""
        if self._reserved and self.call is None:
            self.unwanted.set()
            self.give_back()

    def note(self, kind: str, **data: Any) -> None:
        """Record something about the call in its tracker; before it has begun, as soon as it does."""
        if self.call is not None:
            self.call.note(kind, **data)
        elif len(self._notes) < MAX_NOTES:
            self._notes.append((kind, data))

    def give_back(self) -> None:
        """Free the place if no connection has come for it. Idempotent."""
        if not self.taken:
            self.refused = "not_connected"
            self.release()

    def ended(self, outcome: CallOutcome) -> None:
        """Note how the call ended."""
        self._outcome = outcome

    @property
    def resumable(self) -> bool:
        """Whether the caller, should they come back soon, goes on where they were."""
        # What never became a call was not used up: whoever was cut off may still come back.
        return self._outcome is None or self._outcome.reason in DROPPED

    def release(self) -> None:
        """Free the place. Idempotent."""
        self._registry._release(self, self._outcome)

    def __enter__(self) -> Admission:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class CallRegistry:
    """Admits at most ``max_calls`` calls, one per conversation.

    Attributes:
        ready: Set by the service once models are loaded and warm; until then every call is refused.
    """

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._admissions: dict[str, Admission] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self._draining = False
        self.ready = False

    @property
    def active(self) -> tuple[Call, ...]:
        """Calls now on the line."""
        return tuple(a.call for a in self._admissions.values() if a.call is not None)

    @property
    def draining(self) -> bool:
        return self._draining

    def is_live(self, conversation_id: str) -> bool:
        """Whether this conversation is on a call now."""
        return conversation_id in self._admissions

    async def vacated(self, conversation_id: str, limit_s: float) -> None:
        """Wait until this conversation is on no call any more, at most ``limit_s``.

        A caller who was cut off dials again at once, sometimes before the old connection's end was noticed.
        """
        admission = self._admissions.get(conversation_id)
        if admission is None:
            return
        try:
            async with asyncio.timeout(limit_s):
                await admission.released.wait()
        except TimeoutError:
            log.debug("the conversation is still on its call")

    async def take_over(self, conversation_id: str, limit_s: float, *, quiet_s: float = 0.0) -> None:
        """End the call that carries this conversation, if there is one, and wait for that, at most ``limit_s``.

        A connection that broke without a word keeps its call for many seconds; its caller is back already.

        Args:
            quiet_s: Only if nothing has come in by it for so long. It is waited for as long to end by itself.
        """
        if quiet_s > 0:
            await self.vacated(conversation_id, quiet_s)
        admission = self._admissions.get(conversation_id)
        if admission is None or self._draining or not self.ready or admission.quiet_s < quiet_s:
            return
        admission.overtake()
        await self.vacated(conversation_id, limit_s)

    def note(self, conversation_id: str, kind: str, **data: Any) -> None:
        """Record something about the call that carries this conversation, if there is one, or is to be."""
        if admission := self._admissions.get(conversation_id):
            admission.note(kind, **data)

    def admit(self, conversation_id: str, *, reserve: bool = False) -> Admission:
        """Take a place on the line.

        Args:
            reserve: Keep it for a call that is still to come (`Admission.taken`).

        Raises:
            Refused: With the code and a sentence for the client.
        """
        if self._draining:
            raise self._refuse("draining", "The service is shutting down. Call again in a minute.")
        if not self.ready:
            raise self._refuse("not_ready", "The service is still starting. Call again in a few seconds.")
        if conversation_id in self._admissions:
            raise self._refuse(
                "conversation_busy", "This conversation is already on a call. End that call first, or start a new one."
            )
        if len(self._admissions) >= self._max_calls:
            raise self._refuse("at_capacity", "All lines are busy. Call again in a moment.")
        admission = Admission(self, conversation_id, reserved=reserve)
        self._admissions[conversation_id] = admission
        self._empty.clear()
        CALLS_ACTIVE.set(len(self._admissions))
        return admission

    async def drain(self, timeout_s: float) -> bool:
        """Admit nobody any more, let all calls take leave, wait for them. False if some were still there after that."""
        self._draining = True
        for admission in tuple(self._admissions.values()):
            admission.withdraw()  # what rings now is not answered any more
        for call in self.active:
            call.take_leave(timeout_s * LEAVE_SHARE)
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            log.warning("%d calls had not ended within %.1f s", len(self._admissions), timeout_s)
            return False
        return True

    def _release(self, admission: Admission, outcome: CallOutcome | None) -> None:
        if self._admissions.get(admission.conversation_id) is not admission:
            return
        del self._admissions[admission.conversation_id]
        admission.released.set()
        CALLS_ACTIVE.set(len(self._admissions))
        if not self._admissions:
            self._empty.set()
        if admission.call is None:
            CALLS_REFUSED.labels(reason=admission.refused).inc()
        else:
            ended_as = outcome.outcome if outcome is not None else "failed"
            CALLS.labels(channel=admission.call.channel, outcome=ended_as).inc()
        admission.call = None

    def _refuse(self, code: str, message: str) -> Refused:
        CALLS_REFUSED.labels(reason=code).inc()
        return Refused(code, message)
