"""Tells clients that asked whose moment it is, and while the agent speaks how much of its reply has been heard.

::

    floor     listening   hearing   thinking  speaking ········ paused   speaking      listening
    client    listening   hearing   thinking  speaking h  h  h  paused   speaking h  h listening
                                                       └──┴──┴── every `PROGRESS_S`, when there is more
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from voice_agent.call.floor import State
from voice_agent.call.timeline import Times
from voice_agent.call.wire import HeardMessage, StateMessage, StateName, Wire

if TYPE_CHECKING:
    from voice_agent.call.turns import TurnRunner

PROGRESS_S = 0.2
"""How often a client is told what has been heard: about once a word."""
NAMES: Mapping[State, StateName] = {
    State.LISTENING: "listening",
    State.HEARING: "hearing",
    State.THINKING: "thinking",
    State.HELD: "hearing",
    State.SPEAKING: "speaking",
    State.PAUSED: "paused",
    State.YIELDING: "hearing",
    State.LEAVING: "speaking",
    State.GONE: "thinking",
}
"""The end of a call is told by its own message."""


class Status:
    """Follows one call for its client. Does nothing for a client that did not ask."""

    def __init__(self, wire: Wire, runner: TurnRunner, times: Times) -> None:
        self._wire, self._runner, self._times = wire, runner, times
        self._told: StateName | None = None
        self._speaks = asyncio.Event()
        self.wanted = wire.traits.follows_state

    def moved(self, state: State) -> None:
        """The floor may have changed."""
        name = NAMES.get(state)
        if not self.wanted or name is None or name == self._told:
            return
        self._told = name
        self._wire.send(StateMessage(name))
        if name == "speaking":
            self._speaks.set()
        else:
            self._speaks.clear()

    async def run(self) -> None:
        """Tell what has been heard, until cancelled."""
        told = ""
        while True:
            await self._speaks.wait()
            await asyncio.sleep(PROGRESS_S)
            turn = self._runner.current
            if turn is None or turn.ledger.committed:
                continue
            heard = turn.ledger.heard(self._times.now()).heard
            if heard.strip() and heard != told:
                self._wire.send(HeardMessage(heard))
                told = heard
