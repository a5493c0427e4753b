"""The states of SIP's transactions, what leads from one to another, and what runs in each (RFC 3261, 17). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    INVITE_SERVER = auto()
    SERVER = auto()
    INVITE_CLIENT = auto()
    CLIENT = auto()


class State(Enum):
    TRYING = auto()
    PROCEEDING = auto()
    ACCEPTED = auto()
    """An INVITE was answered with success."""
    COMPLETED = auto()
    CONFIRMED = auto()
    TERMINATED = auto()


class Event(Enum):
    PROVISIONAL = auto()
    SUCCESS = auto()
    FAILURE = auto()
    """A final response that is no success."""
    ACK = auto()
    AGAIN = auto()
    """The far end repeats its request."""
    EXPIRED = auto()


class Action(Enum):
    SEND = auto()
    """The response that we give leaves."""
    REPEAT = auto()
    """Our last message leaves once more."""
    PASS = auto()
    """The response goes to whoever asked."""
    ACKNOWLEDGE = auto()
    """A failure of an INVITE is acknowledged."""
    FAIL = auto()
    """Whoever asked, or answered, is told that nothing came."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What runs in a state: repeats (uncapped: their spacing doubles beyond T2), and a life in seconds, as factors."""

    repeats: bool = False
    capped: bool = True
    life_t1: float = 0.0
    life_t4: float = 0.0


@dataclass(frozen=True, slots=True)
class Timers:
    """RFC 3261's T1, T2 and T4 in seconds."""

    t1: float = 0.5
    t2: float = 4.0
    t4: float = 5.0


_K, _S, _E, _A = Kind, State, Event, Action
TIMINGS: Mapping[tuple[Kind, State], Timing] = {
    (_K.INVITE_CLIENT, _S.TRYING): Timing(repeats=True, capped=False, life_t1=64),
    (_K.INVITE_CLIENT, _S.ACCEPTED): Timing(life_t1=64),
    (_K.INVITE_CLIENT, _S.COMPLETED): Timing(life_t1=64),
    (_K.CLIENT, _S.TRYING): Timing(repeats=True, life_t1=64),
    (_K.CLIENT, _S.PROCEEDING): Timing(repeats=True, life_t1=64),
    (_K.CLIENT, _S.COMPLETED): Timing(life_t4=1),
    (_K.INVITE_SERVER, _S.ACCEPTED): Timing(repeats=True, life_t1=64),
    (_K.INVITE_SERVER, _S.COMPLETED): Timing(repeats=True, life_t1=64),
    (_K.INVITE_SERVER, _S.CONFIRMED): Timing(life_t4=1),
    (_K.SERVER, _S.COMPLETED): Timing(life_t1=64),
}
TRANSITIONS: Mapping[tuple[Kind, State, Event], tuple[State, tuple[Action, ...]]] = {
    (_K.INVITE_CLIENT, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE, _A.PASS)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE, _A.PASS)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.INVITE_CLIENT, _S.ACCEPTED, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.ACCEPTED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_CLIENT, _S.COMPLETED, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE,)),
    (_K.INVITE_CLIENT, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.CLIENT, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.SUCCESS): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.CLIENT, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.SUCCESS): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.CLIENT, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_SERVER, _S.TRYING, _E.AGAIN): (_S.TRYING, ()),
    (_K.INVITE_SERVER, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.TRYING, _E.SUCCESS): (_S.ACCEPTED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.AGAIN): (_S.PROCEEDING, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.SUCCESS): (_S.ACCEPTED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.AGAIN): (_S.ACCEPTED, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.AGAIN): (_S.COMPLETED, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.AGAIN): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.SERVER, _S.TRYING, _E.AGAIN): (_S.TRYING, ()),
    (_K.SERVER, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.SERVER, _S.TRYING, _E.SUCCESS): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.PROCEEDING, _E.AGAIN): (_S.PROCEEDING, (_A.REPEAT,)),
    (_K.SERVER, _S.PROCEEDING, _E.SUCCESS): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.COMPLETED, _E.AGAIN): (_S.COMPLETED, (_A.REPEAT,)),
    (_K.SERVER, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
}
"""What is not listed (a late provisional response, a second answer of ours) changes nothing."""
