"""When the simulated caller speaks, listens, and leaves: a pure machine, fed once per 20 ms frame.

::

    agent    greeting          reply to A ─────x          reply to B
    caller            A A A .               B B B B .                  hangs up
    phase    GREETING │SPEAK│AWAIT│LISTENING│SPEAK │AWAIT│LISTENING│   OVER
                      ▲ settle_s of silence ▲ barge_in_at after the reply's first audio

Times are seconds of the caller's own clock, which counts the frames it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from voice_agent.caller.agent_speech import AgentSpeech, Stretch
from voice_agent.caller.lines import SpokenLine
from voice_agent.caller.playout import PlayedFrame

SETTLE_S = 0.6
"""Silence after which the caller takes the agent to have finished."""

TIMEOUT_S = 15.0
"""Longest wait for a greeting or an answer."""

LONGEST_REPLY_S = 120.0
"""Longest that the caller listens to one reply."""

_AUDIBLE_NOW_S = 0.25
"""An agent heard this recently is being interrupted; longer ago, it had already stopped by itself."""


class Phase(Enum):
    """What the caller is doing."""

    GREETING = "greeting"
    LISTENING = "listening"
    SPEAKING = "speaking"
    AWAITING = "awaiting"
    OVER = "over"


class Ending(Enum):
    """Why the conversation is over."""

    FINISHED = "finished"
    NOT_GREETED = "not_greeted"
    UNANSWERED = "unanswered"
    ENDLESS_REPLY = "endless_reply"
    AGENT_LEFT = "agent_left"
    WRONG_RATE = "wrong_rate"
    TOO_LONG = "too_long"


@dataclass(slots=True)
class Turn:
    """One exchange; the first has no line and its reply is the greeting.

    Attributes:
        speech_start: First voiced sample of the line on the wire.
        speech_end: One past the line's last voiced sample.
        reply: The agent's speech in answer.
        interrupted: What the agent was saying when the line barged in.
        cleared_at: When the agent first had audio dropped after ``speech_start``.
    """

    index: int
    spoken: SpokenLine | None = None
    speech_start: float | None = None
    speech_end: float | None = None
    reply: Stretch | None = None
    interrupted: Stretch | None = None
    cleared_at: float | None = None


class Moment(Enum):
    """What `Conversation` reports as it happens."""

    LINE_STARTED = "line_started"
    LINE_ENDED = "line_ended"
    REPLY_STARTED = "reply_started"
    REPLY_ENDED = "reply_ended"


@dataclass(frozen=True, slots=True)
class Patience:
    """The caller's waiting times, in seconds."""

    settle_s: float = SETTLE_S
    timeout_s: float = TIMEOUT_S
    longest_reply_s: float = LONGEST_REPLY_S


class Conversation:
    """Decides, frame by frame, whether a line starts now and whether the call is over."""

    def __init__(
        self,
        lines: Sequence[SpokenLine],
        patience: Patience | None = None,
        report: Callable[[Moment, Turn, float], None] = lambda moment, turn, at: None,
    ) -> None:
        self._lines = list(lines)
        self._patience = patience or Patience()
        self._report = report
        self._line_ends = 0.0
        self.speech = AgentSpeech()
        self.phase = Phase.GREETING
        self.ending: Ending | None = None
        self.turns = [Turn(0)]

    @property
    def turn(self) -> Turn:
        return self.turns[-1]

    @property
    def unspoken(self) -> list[SpokenLine]:
        """Lines that were never started."""
        return self._lines[len(self.turns) - 1 :]

    def clear(self, now: float) -> None:
        """The agent had its unplayed audio dropped."""
        turn = self.turn
        if turn.speech_start is not None and turn.cleared_at is None:
            turn.cleared_at = now

    def agent_left(self) -> None:
        """The agent hung up or the connection went, and all it said before has been heard."""
        self.give_up(Ending.FINISHED if self._complete() else Ending.AGENT_LEFT)

    def give_up(self, ending: Ending) -> None:
        """End the conversation for a reason from outside. The first ending stays."""
        if self.phase is not Phase.OVER:
            self._end(ending)

    def advance(self, now: float, frame: PlayedFrame, pending: bool) -> SpokenLine | None:
        """Take the frame heard from ``now`` on; return the line whose first sample goes out at ``now``, if one does.

        Args:
            pending: Audible agent audio waits in the playout buffer.
        """
        self.speech.hear(now, frame)
        if self.phase is Phase.GREETING:
            self._await_reply(now, since=0.0, ending=Ending.NOT_GREETED)
        elif self.phase is Phase.SPEAKING and now >= self._line_ends:
            self._to(Phase.AWAITING)
            self._report(Moment.LINE_ENDED, self.turn, now)
        if self.phase is Phase.AWAITING:
            self._await_reply(now, since=self.turn.speech_end or 0.0, ending=Ending.UNANSWERED)
        if self.phase is Phase.LISTENING:
            return self._listen(now, pending)
        return None

    def _await_reply(self, now: float, since: float, ending: Ending) -> None:
        turn = self.turn
        reply = self.speech.following(since, excluding=turn.interrupted)
        if reply is not None:
            turn.reply = reply
            self._to(Phase.LISTENING)
            self._report(Moment.REPLY_STARTED, turn, reply.start)
            return
        waits_since = since
        if turn.interrupted is not None and turn.interrupted.end > since:
            waits_since = turn.interrupted.end  # it talks on over the interruption: let it finish first
            if now - since > self._patience.longest_reply_s:
                self._end(Ending.ENDLESS_REPLY)
        if now - waits_since > self._patience.timeout_s:
            self._end(ending)

    def _listen(self, now: float, pending: bool) -> SpokenLine | None:
        turn = self.turn
        assert turn.reply is not None
        following = next(iter(self.unspoken), None)
        quiet = not pending and self.speech.silent_for(now) >= self._patience.settle_s
        if following is not None and following.line.barge_in_at is not None:
            if now < turn.reply.start + following.line.barge_in_at:
                return None
            return self._speak(following, now)
        if quiet:
            self._report(Moment.REPLY_ENDED, turn, self.speech.stretches[-1].end)
            if following is not None:
                return self._speak(following, now)
            self._end(Ending.FINISHED)
        elif now - turn.reply.start > self._patience.longest_reply_s:
            self._end(Ending.ENDLESS_REPLY)
        return None

    def _speak(self, spoken: SpokenLine, now: float) -> SpokenLine:
        turn = Turn(len(self.turns), spoken, now + spoken.voice_start, now + spoken.voice_end)
        if spoken.line.barge_in_at is not None and self.speech.silent_for(now) <= _AUDIBLE_NOW_S:
            turn.interrupted = self.speech.stretches[-1]
        self.turns.append(turn)
        self._line_ends = now + spoken.seconds
        self._to(Phase.SPEAKING)
        self._report(Moment.LINE_STARTED, turn, now)
        return spoken

    def _complete(self) -> bool:
        return not self.unspoken and self.turn.reply is not None

    def _to(self, phase: Phase) -> None:
        self.phase = phase

    def _end(self, ending: Ending) -> None:
        self.ending = ending
        self._to(Phase.OVER)
