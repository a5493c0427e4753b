"""Who has answered a call of ours, told by how they begin to speak. Pure.

::

    a person    answered ─ ▇▇▇ "Hello?" ─────────
                               ├ PAUSE_S ┤ human
    a machine   answered ── ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ "… after the tone"
                            ├─── MONOLOGUE_S ───┤ machine
    silence     answered ────────────────────────────
                         ├─ BEGINS_S ─┤ unknown

The agent has greeted meanwhile: nothing waits for this. It is a guess by length, as exchanges make it: a person says a
few words and waits. The figures are chosen, not measured.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from voice_agent.audio.level import dbfs

SPEECH_DBFS = -40.0
"""Louder than the noise of a line, and than what comes back of the agent's own words."""
SHORTEST_S = 0.1
"""What is shorter is a click."""
PAUSE_S = 1.0
"""Whoever says nothing for this long waits for an answer. Between sentences of a recording it is less."""
MONOLOGUE_S = 4.0
"""Whoever speaks for this long waits for nobody. Persons at a switchboard take up to three seconds."""
BEGINS_S = 3.0
"""Whoever says nothing for this long is listening, and what they say later is an answer."""
MAX_KEPT = 1000
"""Calls of which is kept who has answered; the oldest are forgotten."""


class Answering:
    """Listens to the beginning of one call.

    Args:
        now: When it was answered, in seconds of the clock that `push` is given too.
        tell: Is told once: ``human``, ``machine`` or ``unknown``.
    """

    def __init__(self, now: float, tell: Callable[[str], None]) -> None:
        self._answered, self._tell = now, tell
        self._over = False
        self._begun: float | None = None
        self._heard_until = now

    def push(self, pcm: bytes, rate: int, now: float) -> None:
        """Take what has come by ``now``: int16 mono at ``rate`` Hz, a few hundredths of a second at a time."""
        if self._over:
            return
        if dbfs(pcm) >= SPEECH_DBFS:
            if self._begun is None:
                self._begun = now - len(pcm) / 2 / rate
            self._heard_until = now
        if who := self._who(now):
            self._over = True
            self._tell(who)

    def _who(self, now: float) -> str:
        if self._begun is None:
            return "unknown" if now - self._answered >= BEGINS_S else ""
        spoken_s = self._heard_until - self._begun
        if spoken_s >= MONOLOGUE_S:
            return "machine"
        if now - self._heard_until < PAUSE_S:
            return ""
        if spoken_s >= SHORTEST_S:
            return "human"
        self._begun = None
        return ""


class WhoAnswered:
    """Who has answered the calls that were placed lately, by the id of the call.

    Args:
        note: Is told of a conversation who has answered its call, once that is known.
    """

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self._note = note
        self._known: OrderedDict[str, str] = OrderedDict()

    def of(self, call_id: str) -> str:
        """Return ``human``, ``machine`` or ``unknown``; "" until it is known."""
        return self._known.get(call_id, "")

    def listen(self, call_id: str, conversation_id: str, now: float) -> Answering:
        """Return what is to be given the audio of a call that was answered at ``now``."""

        def tell(who: str) -> None:
            self._known[call_id] = who
            if len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
            self._note(conversation_id, who)

        return Answering(now, tell)
