"""The account of a call: who said what when, what was heard, and the agent's own instants, turn by turn.

The wire does not say which words and instants belong to which turn, so they are matched: a caller's words
to the line last spoken; the agent's words, announced when worded and repeated when it is known what was heard
of them, to the reply that is not yet settled, which during an interruption is the one that was cut; instants
to the reply that was heard when they say it began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voice_agent.caller.conversation import Conversation, Turn
from voice_agent.caller.session import CallOutcome, Happening, Opened, TurnMoment
from voice_agent.caller.verdict import figures, missing
from voice_agent.caller.wire import Clear, Fault, TurnTimeline, Words

_SAME_INSTANT_S = 0.5
"""First audio as the agent counts it and as the caller received it are one instant if no further apart."""

MAX_WORDS_PER_TURN = 200
"""Pieces of transcript kept per turn."""


@dataclass(slots=True)
class Said:
    """Words of the agent; ``heard`` is the part that was played, None while unknown."""

    text: str
    heard: str | None = None


@dataclass(slots=True)
class TurnWords:
    """What one turn held, besides sound.

    Attributes:
        understood: What the agent understood of the caller's line.
        said: The agent's reply, in pieces as they came.
        instants: The agent's own timeline, in seconds since its call began.
    """

    understood: list[str] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    instants: dict[str, float] = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether it is known what was heard of all the words."""
        return bool(self.said) and all(piece.heard is not None for piece in self.said)


class Account:
    """Gathers what happens in a call. Its `observe` is the session's observer."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.words: list[TurnWords] = [TurnWords()]
        self.clears: list[float] = []
        self.opening_s = 0.0

    def observe(self, at: float, happening: Happening) -> TurnWords | None:
        """Note one happening; return the words or instants it changed, if it did."""
        while len(self.words) < len(self._conversation.turns):
            self.words.append(TurnWords())
        match happening:
            case Words(final=True):
                return self._take_words(happening)
            case TurnTimeline():
                return self._take_instants(happening.instants)
            case Clear():
                self.clears.append(at)
            case Opened(seconds):
                self.opening_s = seconds
            case Fault() | TurnMoment() | _:
                pass
        return None

    @property
    def clock_offset_s(self) -> float | None:
        """What to add to the agent's instants to get the caller's clock; None when nothing ties the two.

        First audio leaves the agent just before it reaches the caller, so the smallest difference is the nearest.
        """
        differences = [
            turn.reply.arrived_at - words.instants["first_audio"]
            for turn, words in self.pairs()
            if turn.reply is not None and "first_audio" in words.instants
        ]
        return min(differences, default=None)

    def pairs(self) -> list[tuple[Turn, TurnWords]]:
        """Return each turn with its words."""
        return list(zip(self._conversation.turns, self.words, strict=False))

    def _take_words(self, words: Words) -> TurnWords:
        if words.role == "user":
            turn = self.words[-1]
            if len(turn.understood) < MAX_WORDS_PER_TURN:
                turn.understood.append(words.text)
            return turn
        turn = self._speaking_turn(words)
        if not words.text.strip():
            # A reply of which only a filler sounded is over: there are no words to account for.
            return turn
        if words.heard is not None:
            # What was heard is said once of the whole reply, whatever pieces announced it.
            turn.said = [piece for piece in turn.said if piece.heard is not None]
        if len(turn.said) < MAX_WORDS_PER_TURN:
            turn.said.append(Said(words.text, words.heard))
        return turn

    def _speaking_turn(self, words: Words) -> TurnWords:
        """Find the turn whose reply these words are: one whose words are announced and not settled, or the last."""
        for _, held in self.pairs():
            if held.said and not held.settled:
                return held
        if words.heard is not None:
            # Never announced: the latest reply on the air that nothing is known of.
            for turn, held in reversed(self.pairs()):
                if turn.reply is not None and not held.said:
                    return held
        return self.words[-1]

    def _take_instants(self, instants: Mapping[str, float]) -> TurnWords | None:
        if "first_audio" not in instants:
            return None  # a turn that was given up before it spoke has no reply to stand beside
        offset = self.clock_offset_s
        for turn, held in self.pairs():
            if turn.reply is None or held.instants:
                continue
            apart = 0.0 if offset is None else turn.reply.arrived_at - offset - instants["first_audio"]
            if abs(apart) <= _SAME_INSTANT_S:
                held.instants = dict(instants)
                return held
        return None


def as_json(outcome: CallOutcome, account: Account, *, signals_clear: bool) -> dict[str, Any]:
    """Return the account as plain data. All times in seconds of the caller's clock, unless they say otherwise."""
    faults = missing(outcome.conversation, signals_clear=signals_clear, left_because=outcome.left_because)
    return {
        "ok": not faults,
        "missing": faults,
        "conversation": outcome.conversation_id,
        "seconds": round(outcome.seconds, 2),
        "opening_s": round(outcome.opening_s, 3),
        "left_because": outcome.left_because or None,
        "agent_clock_offset_s": _rounded(account.clock_offset_s),
        "turns": [
            _turn_json(outcome.conversation, turn, words, signals_clear=signals_clear)
            for turn, words in account.pairs()
        ],
        "agent_speech": [[round(s.start, 2), round(s.end, 2)] for s in outcome.conversation.speech.stretches],
        "clears": [round(at, 3) for at in account.clears],
        "faults": [{"code": f.code, "message": f.message} for f in outcome.faults],
    }


def _turn_json(conversation: Conversation, turn: Turn, words: TurnWords, *, signals_clear: bool) -> dict[str, Any]:
    line = turn.spoken.line if turn.spoken else None
    return {
        "line": line.label if line else None,
        "barge_in_at": line.barge_in_at if line else None,
        "speech_start": _rounded(turn.speech_start),
        "speech_end": _rounded(turn.speech_end),
        "reply_start": _rounded(turn.reply.start if turn.reply else None),
        "reply_end": _rounded(_reply_end(conversation, turn)),
        **figures(conversation, turn, signals_clear=signals_clear).as_json(),
        "understood": " ".join(words.understood),
        "said": [{"text": piece.text, "heard": piece.heard} for piece in words.said],
        "agent_instants": {name: round(value, 3) for name, value in words.instants.items()},
    }


def _reply_end(conversation: Conversation, turn: Turn) -> float | None:
    """A reply may be several stretches of speech: it ends with the last before the next line was answered."""
    if turn.reply is None:
        return None
    later = conversation.turns[turn.index + 1 :]
    until = next((t.reply.start for t in later if t.reply is not None), float("inf"))
    return max(s.end for s in conversation.speech.stretches if turn.reply.start <= s.start < until)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
