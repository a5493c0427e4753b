"""What a call achieved: per turn the measured latencies, and in plain words what was missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.caller.conversation import Conversation, Ending, Turn


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """Latencies of one turn in seconds; None where the moment never came.

    Attributes:
        response_s: Last voiced sample of the caller to the first agent audio on the wire (the
            connection being open to the greeting's first audio, for the greeting). Negative when
            the agent started over the caller's last words.
        stop_s: First voiced sample of a barge-in to the last agent audio on the wire.
        heard_stop_s: The same to the last agent audio played to the caller.
        silenced: Whether a barge-in made the agent drop its audio and stay silent; None for other lines.
    """

    response_s: float | None
    stop_s: float | None = None
    heard_stop_s: float | None = None
    silenced: bool | None = None

    def as_json(self) -> dict[str, Any]:
        figures = {"response_s": self.response_s, "stop_s": self.stop_s, "heard_stop_s": self.heard_stop_s}
        return {k: None if v is None else round(v, 3) for k, v in figures.items()} | {"silenced": self.silenced}


def figures(conversation: Conversation, turn: Turn, *, signals_clear: bool) -> TurnFigures:
    """Measure one turn. ``signals_clear``: the wire says when audio is dropped, so a barge-in must show it."""
    since = turn.speech_end if turn.speech_end is not None else 0.0
    response = None if turn.reply is None else turn.reply.arrived_at - since
    spoken, interrupted = turn.spoken, turn.interrupted
    if spoken is None or spoken.line.barge_in_at is None:
        return TurnFigures(response)
    if interrupted is None or turn.speech_start is None or not interrupted.ended:
        return TurnFigures(response, silenced=False)
    last = conversation.speech.last_arrival(interrupted)
    return TurnFigures(
        response,
        stop_s=None if last is None else last - turn.speech_start,
        heard_stop_s=interrupted.end - turn.speech_start,
        silenced=turn.cleared_at is not None or not signals_clear,
    )


def missing(conversation: Conversation, *, signals_clear: bool, left_because: str = "") -> list[str]:
    """Return one sentence for each thing the call lacked; empty when all was as it should be.

    Args:
        left_because: The reason the agent gave for hanging up, or how the connection ended.
    """
    if conversation.ending is Ending.WRONG_RATE:
        return [f"The agent cannot be understood: {left_because}."]
    found = []
    for turn in conversation.turns:
        name = _name(turn)
        if turn.reply is None:
            found.append(_unanswered(conversation, turn, left_because))
        if turn.spoken is not None and turn.spoken.line.barge_in_at is not None:
            found += _barge_in_faults(conversation, turn, name, signals_clear)
    if conversation.ending is Ending.ENDLESS_REPLY:
        found.append("The agent talked on without end, so the caller gave up.")
    elif conversation.ending is Ending.TOO_LONG:
        found.append("The call reached its greatest length.")
    elif conversation.ending is None:
        found.append("The call was ended early by its user.")
    if conversation.unspoken and conversation.turns[0].reply is not None:
        lines = _several(len(conversation.unspoken), "line was", "lines were")
        left = f" because the agent left ({left_because})" if conversation.ending is Ending.AGENT_LEFT else ""
        found.append(f"{lines} never spoken{left}.")
    return found


def _unanswered(conversation: Conversation, turn: Turn, left_because: str) -> str:
    left = conversation.ending is Ending.AGENT_LEFT
    how = f"the agent left first ({left_because})" if left else "nothing was heard in time"
    return f"The caller was not greeted: {how}." if turn.index == 0 else f"{_name(turn)} was not answered: {how}."


def _barge_in_faults(conversation: Conversation, turn: Turn, name: str, signals_clear: bool) -> Sequence[str]:
    if turn.interrupted is None:
        return [f"{name} could not barge in: the agent had stopped speaking before it. Use an earlier moment."]
    if not figures(conversation, turn, signals_clear=signals_clear).silenced:
        return [f"{name} did not silence the agent."]
    return []


def _name(turn: Turn) -> str:
    label = turn.spoken.line.label if turn.spoken else "greeting"
    short = label if len(label) <= 40 else label[:39].rstrip() + "…"
    return f"Line {turn.index} “{short}”"


def _several(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
