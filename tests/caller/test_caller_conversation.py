"""The caller's decisions, frame by frame, against an agent that is a function of time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from voice_agent.caller.audio import FRAME_S
from voice_agent.caller.conversation import Conversation, Ending, Moment, Patience, Phase
from voice_agent.caller.lines import Line, SpokenLine
from voice_agent.caller.playout import PlayedFrame
from voice_agent.caller.verdict import figures, missing

SILENT, AUDIBLE = PlayedFrame(b"", False, None), PlayedFrame(b"", True, None)


def line(seconds: float = 1.0, barge_in_at: float | None = None, lead_in: float = 0.1) -> SpokenLine:
    pcm = np.ones(int(seconds * 16000), np.int16)
    return SpokenLine(Line(text="words", barge_in_at=barge_in_at), pcm, lead_in, seconds - 0.1, seconds)


class Rehearsal:
    """Runs a conversation in audio time; ``agent(now, starts)`` says whether the agent is audible."""

    def __init__(self, *lines: SpokenLine, **patience: float) -> None:
        self.moments: list[tuple[Moment, int, float]] = []
        self.starts: list[float] = []
        self.talk = Conversation(
            lines, Patience(**patience), lambda m, t, at: self.moments.append((m, t.index, round(at, 2)))
        )
        self.now = 0.0

    def run(
        self, agent: Callable[[float, list[float]], bool], until: float = 600.0, clear: bool = False
    ) -> Conversation:
        was_audible, frame = False, 0
        while self.talk.phase is not Phase.OVER and self.now < until:
            self.now = round(frame * FRAME_S, 4)
            audible = agent(self.now, self.starts)
            if clear and was_audible and not audible and self.talk.phase is Phase.SPEAKING:
                self.talk.clear(self.now)
            if audible:
                self.talk.speech.arrive(self.now, True)
            if self.talk.advance(self.now, AUDIBLE if audible else SILENT, pending=False) is not None:
                self.starts.append(self.now)
            was_audible, frame = audible, frame + 1
        return self.talk


def greets_and_answers(reply_s: float = 1.0, line_s: float = 1.0, stops: bool = True) -> Callable[..., bool]:
    """Greet for a second from 0.1 s on, answer 0.5 s after each line, stop 0.1 s after being spoken over."""

    def audible(now: float, starts: list[float]) -> bool:
        if 0.1 <= now < 1.1 and not starts:
            return True
        for index, start in enumerate(starts):
            begins = start + line_s + 0.5
            cut = starts[index + 1] + 0.1 if stops and index + 1 < len(starts) else 1e9
            if begins <= now < min(begins + reply_s, cut):
                return True
        return False

    return audible


def test_each_line_is_spoken_once_the_agent_has_been_silent_for_the_settling_time():
    rehearsal = Rehearsal(line(), line())
    talk = rehearsal.run(greets_and_answers())
    assert rehearsal.starts == [pytest.approx(1.7, abs=0.03), pytest.approx(1.7 + 1.5 + 1.0 + 0.6, abs=0.05)]
    assert talk.ending is Ending.FINISHED and missing(talk, signals_clear=True) == []


def test_the_settling_time_can_be_longer_than_the_pauses_of_a_slow_agent():
    def pausing(now: float, starts: list[float]) -> bool:
        return (0.1 <= now < 0.5 or 1.4 <= now < 2.0) if not starts else greets_and_answers()(now, starts)

    hasty, patient = Rehearsal(line()), Rehearsal(line(), settle_s=1.2)
    hasty.run(pausing)
    patient.run(pausing)
    assert hasty.starts[0] < 1.4 and patient.starts[0] == pytest.approx(3.2, abs=0.03)


def test_a_barge_in_starts_its_given_time_after_the_reply_began_whatever_the_agent_does():
    rehearsal = Rehearsal(line(), line(barge_in_at=1.5))
    talk = rehearsal.run(greets_and_answers(reply_s=10.0), clear=True)
    reply = talk.turns[1].reply
    assert reply is not None
    assert rehearsal.starts[1] == pytest.approx(reply.start + 1.5, abs=FRAME_S)
    assert talk.turns[2].interrupted is reply
    assert missing(talk, signals_clear=True) == []


def test_the_stop_is_measured_from_the_first_voiced_sample_to_the_last_agent_audio():
    rehearsal = Rehearsal(line(), line(barge_in_at=1.5, lead_in=0.04))
    talk = rehearsal.run(greets_and_answers(reply_s=10.0), clear=True)
    measured = figures(talk, talk.turns[2], signals_clear=True)
    assert measured.silenced and measured.heard_stop_s == pytest.approx(0.06, abs=0.021)
    assert measured.response_s == pytest.approx(0.6, abs=0.03)


def test_an_agent_that_talks_on_over_a_barge_in_is_found_out():
    rehearsal = Rehearsal(line(), line(barge_in_at=0.5))
    talk = rehearsal.run(greets_and_answers(reply_s=2.0, stops=False))
    assert "did not silence" in " ".join(missing(talk, signals_clear=True))


def test_falling_silent_by_itself_is_no_obedience_where_the_wire_would_say_so():
    rehearsal = Rehearsal(line(), line(barge_in_at=0.5))
    talk = rehearsal.run(greets_and_answers(reply_s=10.0), clear=False)
    assert "did not silence" in " ".join(missing(talk, signals_clear=True))
    assert missing(talk, signals_clear=False) == []


def test_a_barge_in_after_the_reply_has_ended_says_that_it_came_too_late():
    rehearsal = Rehearsal(line(), line(barge_in_at=5.0))
    talk = rehearsal.run(greets_and_answers(reply_s=1.0))
    assert "had stopped speaking before it" in " ".join(missing(talk, signals_clear=True))


def test_a_barge_in_on_the_first_line_interrupts_the_greeting():
    rehearsal = Rehearsal(line(barge_in_at=0.5))
    talk = rehearsal.run(
        lambda now, starts: 0.1 <= now < (starts[0] + 0.1 if starts else 9) or greets_and_answers()(now, starts),
        clear=True,
    )
    assert rehearsal.starts[0] == pytest.approx(0.6, abs=FRAME_S)
    assert missing(talk, signals_clear=True) == []


def test_a_silent_agent_has_not_greeted():
    rehearsal = Rehearsal(line(), timeout_s=3.0)
    talk = rehearsal.run(lambda now, starts: False)
    assert talk.ending is Ending.NOT_GREETED and rehearsal.now == pytest.approx(3.0, abs=0.05)
    assert missing(talk, signals_clear=True) == ["The caller was not greeted: nothing was heard in time."]


def test_a_line_without_an_answer_ends_the_call_and_names_the_line():
    rehearsal = Rehearsal(line(), line(), timeout_s=4.0)
    talk = rehearsal.run(lambda now, starts: 0.1 <= now < 1.1)
    assert talk.ending is Ending.UNANSWERED
    assert missing(talk, signals_clear=True) == [
        "Line 1 “words” was not answered: nothing was heard in time.",
        "1 line was never spoken.",
    ]


def test_an_answer_that_begins_over_the_callers_last_words_counts_with_a_negative_wait():
    rehearsal = Rehearsal(line(seconds=2.0))
    talk = rehearsal.run(
        lambda now, starts: 0.1 <= now < 1.1 if not starts else starts[0] + 1.5 <= now < starts[0] + 3.0
    )
    assert figures(talk, talk.turns[1], signals_clear=True).response_s == pytest.approx(-0.4, abs=0.03)


def test_a_word_thrown_in_while_the_caller_speaks_is_no_answer():
    rehearsal = Rehearsal(line(seconds=3.0), timeout_s=2.0)
    talk = rehearsal.run(
        lambda now, starts: 0.1 <= now < 1.1 if not starts else starts[0] + 0.5 <= now < starts[0] + 0.8
    )
    assert talk.ending is Ending.UNANSWERED


def test_a_reply_without_end_is_given_up():
    rehearsal = Rehearsal(line(), longest_reply_s=5.0)
    talk = rehearsal.run(lambda now, starts: now > 0.1)
    assert talk.ending is Ending.ENDLESS_REPLY
    assert "without end" in " ".join(missing(talk, signals_clear=True))


def test_an_agent_that_talks_over_a_barge_in_for_ever_is_given_up_too():
    rehearsal = Rehearsal(line(barge_in_at=0.5), longest_reply_s=5.0)
    assert rehearsal.run(lambda now, starts: now > 0.1).ending is Ending.ENDLESS_REPLY


@pytest.mark.parametrize(
    ("leaves_at", "says"),
    [(0.05, "not greeted: the agent left first"), (1.0, "never spoken because the agent left"), (2.0, "not answered")],
)
def test_an_agent_that_leaves_early_is_said_to_have_left(leaves_at, says):
    rehearsal = Rehearsal(line())
    talk = rehearsal.run(greets_and_answers(), until=leaves_at)
    talk.agent_left()
    assert talk.ending is Ending.AGENT_LEFT
    assert says in " ".join(missing(talk, signals_clear=True, left_because="goodbye"))


def test_an_agent_that_hangs_up_after_its_last_answer_has_done_nothing_wrong():
    rehearsal = Rehearsal(line())
    talk = rehearsal.run(greets_and_answers(reply_s=5.0), until=5.0)
    talk.agent_left()
    assert talk.ending is Ending.FINISHED and missing(talk, signals_clear=True) == []


def test_moments_are_reported_in_order_with_their_turns():
    rehearsal = Rehearsal(line())
    rehearsal.run(greets_and_answers())
    assert [(m.value, turn) for m, turn, _ in rehearsal.moments] == [
        ("reply_started", 0),
        ("reply_ended", 0),
        ("line_started", 1),
        ("line_ended", 1),
        ("reply_started", 1),
        ("reply_ended", 1),
    ]


def test_without_lines_the_caller_hears_the_greeting_out_and_hangs_up():
    rehearsal = Rehearsal()
    talk = rehearsal.run(greets_and_answers())
    assert talk.ending is Ending.FINISHED and rehearsal.now == pytest.approx(1.7, abs=0.05)
