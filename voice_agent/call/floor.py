"""Whose moment is it? The floor as a pure state machine: events in, commands out, one transition table.

See ``docs/turn-taking.md`` for the drawing. The machine does not judge sound or words: the strategies
(`barge_in`, `endpointing`, `idle`) decide which event happened.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum

from voice_agent.telemetry.metrics import ILLEGAL_TRANSITIONS

log = logging.getLogger(__name__)


class State(Enum):
    """Whose moment it is."""

    LISTENING = "listening"
    """Nobody speaks, no turn runs."""
    HEARING = "hearing"
    """The caller speaks, no turn runs."""
    THINKING = "thinking"
    """A turn runs; none of its audio was released."""
    HELD = "held"
    """A turn runs and the caller speaks before its first audio, which is held back."""
    SPEAKING = "speaking"
    """The agent is audible."""
    PAUSED = "paused"
    """The caller spoke over the agent: playout waits for the decision, the turn lives on."""
    YIELDING = "yielding"
    """The caller has the floor; the cancelled turn is ending."""
    LEAVING = "leaving"
    """The goodbye is being played out; when it is, the agent hangs up."""
    GONE = "gone"
    """The caller is being put through, or keys are pressed: past the point of no return, no words roll it back."""
    CLOSED = "closed"
    """The call is over. Whatever comes late changes nothing."""


class Event(Enum):
    """What happened, as the strategies and the turn tell it."""

    TURN_STARTED = "turn_started"
    AUDIO_STARTED = "audio_started"
    CALLER_VOICE = "caller_voice"
    """Voice that the strategies let count."""
    CALLER_DONE = "caller_done"
    """The utterance is over without taking the floor from a turn: admitted, a backchannel, or nothing."""
    CONFIRMED = "confirmed"
    """The caller takes the floor from the running turn."""
    GOODBYE = "goodbye"
    """Everything before a hang-up was played here; the far end still plays."""
    DEPARTED = "departed"
    """The point of no return of a transfer, or of keys that are pressed, was passed."""
    STAYED = "stayed"
    """The transfer failed, or the keys were pressed: the agent goes on."""
    TURN_ENDED = "turn_ended"
    ENDED = "ended"


class Command(Enum):
    """What is to be done about the agent's audio."""

    HOLD = "hold"
    """Keep the turn's first audio back."""
    RELEASE = "release"
    """Let it go."""
    PAUSE = "pause"
    """Stop playout now, remember where."""
    RESUME = "resume"
    """Go on from the start of the cut word."""
    YIELD = "yield"
    """Stop the sink, commit what was heard, cancel the turn."""


Outcome = tuple[State, tuple[Command, ...]]
_NOTHING: tuple[Command, ...] = ()

TRANSITIONS: Mapping[tuple[State, Event], Outcome] = {
    (State.LISTENING, Event.TURN_STARTED): (State.THINKING, _NOTHING),
    (State.LISTENING, Event.CALLER_VOICE): (State.HEARING, _NOTHING),
    (State.LISTENING, Event.CALLER_DONE): (State.LISTENING, _NOTHING),
    (State.HEARING, Event.CALLER_VOICE): (State.HEARING, _NOTHING),
    (State.HEARING, Event.CALLER_DONE): (State.LISTENING, _NOTHING),
    (State.HEARING, Event.TURN_STARTED): (State.HELD, (Command.HOLD,)),
    (State.THINKING, Event.AUDIO_STARTED): (State.SPEAKING, _NOTHING),
    (State.THINKING, Event.CALLER_VOICE): (State.HELD, (Command.HOLD,)),
    (State.THINKING, Event.CALLER_DONE): (State.THINKING, _NOTHING),
    (State.THINKING, Event.CONFIRMED): (State.YIELDING, (Command.YIELD,)),
    (State.THINKING, Event.GOODBYE): (State.LEAVING, _NOTHING),
    (State.THINKING, Event.TURN_ENDED): (State.LISTENING, _NOTHING),
    (State.HELD, Event.CALLER_VOICE): (State.HELD, _NOTHING),
    (State.HELD, Event.CALLER_DONE): (State.THINKING, (Command.RELEASE,)),
    (State.HELD, Event.CONFIRMED): (State.YIELDING, (Command.YIELD,)),
    (State.HELD, Event.TURN_ENDED): (State.HEARING, (Command.RELEASE,)),
    (State.SPEAKING, Event.CALLER_VOICE): (State.PAUSED, (Command.PAUSE,)),
    (State.SPEAKING, Event.CALLER_DONE): (State.SPEAKING, _NOTHING),
    (State.SPEAKING, Event.CONFIRMED): (State.YIELDING, (Command.YIELD,)),
    (State.SPEAKING, Event.GOODBYE): (State.LEAVING, _NOTHING),
    (State.SPEAKING, Event.TURN_ENDED): (State.LISTENING, _NOTHING),
    (State.PAUSED, Event.CALLER_VOICE): (State.PAUSED, _NOTHING),
    (State.PAUSED, Event.CALLER_DONE): (State.SPEAKING, (Command.RESUME,)),
    (State.PAUSED, Event.CONFIRMED): (State.YIELDING, (Command.YIELD,)),
    (State.PAUSED, Event.TURN_ENDED): (State.HEARING, _NOTHING),
    (State.YIELDING, Event.CALLER_VOICE): (State.YIELDING, _NOTHING),
    (State.YIELDING, Event.CALLER_DONE): (State.YIELDING, _NOTHING),
    (State.YIELDING, Event.CONFIRMED): (State.YIELDING, _NOTHING),
    (State.YIELDING, Event.TURN_ENDED): (State.LISTENING, _NOTHING),
    (State.LEAVING, Event.CALLER_VOICE): (State.PAUSED, (Command.PAUSE,)),
    (State.LEAVING, Event.CALLER_DONE): (State.LEAVING, _NOTHING),
    (State.LEAVING, Event.CONFIRMED): (State.YIELDING, (Command.YIELD,)),
    (State.LEAVING, Event.TURN_ENDED): (State.LISTENING, _NOTHING),
    (State.LEAVING, Event.DEPARTED): (State.GONE, _NOTHING),
    (State.GONE, Event.CALLER_VOICE): (State.GONE, _NOTHING),
    (State.GONE, Event.CALLER_DONE): (State.GONE, _NOTHING),
    (State.GONE, Event.CONFIRMED): (State.GONE, _NOTHING),
    (State.GONE, Event.STAYED): (State.SPEAKING, _NOTHING),
    (State.GONE, Event.TURN_ENDED): (State.LISTENING, _NOTHING),
    **{(state, Event.ENDED): (State.CLOSED, _NOTHING) for state in State},
    **{(State.CLOSED, event): (State.CLOSED, _NOTHING) for event in Event},
}


class IllegalTransition(Exception):
    """An event came that has no meaning in this state: a fault of the code that raised it."""


class Floor:
    """The floor of one call.

    Args:
        strict: Raise on illegal transitions (tests). Otherwise they are logged, counted and ignored,
            since a caller must never suffer for a programming fault.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self.state = State.LISTENING

    def on(self, event: Event) -> tuple[Command, ...]:
        """Take an event; return what is to be done, in order.

        Raises:
            IllegalTransition: Only when strict.
        """
        outcome = TRANSITIONS.get((self.state, event))
        if outcome is None:
            if self._strict:
                raise IllegalTransition(f"{event.value} in state {self.state.value}")
            ILLEGAL_TRANSITIONS.labels(state=self.state.value, event=event.value).inc()
            log.warning("ignored %s in state %s", event.value, self.state.value)
            return _NOTHING
        self.state, commands = outcome
        return commands
