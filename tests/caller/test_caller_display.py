import io

import numpy as np
import pytest
from rich.console import Console

from voice_agent.caller.account import Account, Said
from voice_agent.caller.agent_speech import Stretch
from voice_agent.caller.conversation import Conversation, Moment, Turn
from voice_agent.caller.display import Display, heard_text
from voice_agent.caller.lines import Line, SpokenLine
from voice_agent.caller.session import Closed, Opened, TurnMoment
from voice_agent.caller.wire import AgentHangUp, Fault, TurnTimeline, Words


@pytest.fixture
def shown():
    """A display of a call with a greeting on the air and a line after it; returns what observe prints."""
    conversation = Conversation([])
    line = SpokenLine(Line(text="What is my balance?"), np.zeros(16000, np.int16), 0.0, 1.0, 1.0)
    conversation.turns[:] = [Turn(0, reply=Stretch(0.1, 1.0, 0.05))]
    out = io.StringIO()
    console = Console(file=out, width=100, no_color=True)
    display = Display(console, conversation, Account(conversation), signals_clear=True)

    def show(at, happening):
        before = len(out.getvalue())
        display.observe(at, happening)
        return out.getvalue()[before:]

    show.turn = lambda: conversation.turns.append(Turn(1, line, 2.0, 3.0, Stretch(3.7, 5.0, 3.6)))
    show.turns = conversation.turns
    return show


def test_unheard_words_are_struck_out_and_heard_ones_are_not():
    text = heard_text(Said("one two three", "one two"))
    assert text.plain == "one two — not heard: three"
    assert [text.plain[s.start : s.end] for s in text.spans if s.style == "dim strike"] == ["three"]
    for heard in (None, "one two", "one two "):
        whole = heard_text(Said("one two", heard))
        assert (whole.plain, whole.spans) == ("one two", [])
    assert heard_text(Said("one two", "")).plain == "not heard: one two"


def test_words_announced_and_then_heard_whole_are_printed_once(shown):
    assert "Hello." in shown(0.1, Words("agent", "Hello.", True))
    assert shown(1.0, Words("agent", "Hello.", True, "Hello.")) == ""


def test_words_announced_and_cut_off_are_followed_by_what_was_heard(shown):
    shown(0.1, Words("agent", "Hello there.", True))
    assert "heard: Hello — not heard: there." in shown(0.6, Words("agent", "Hello there.", True, "Hello"))


def test_words_of_which_nothing_was_heard_are_not_called_heard(shown):
    shown(0.1, Words("agent", "Hello there.", True))
    printed = shown(0.6, Words("agent", "Hello there.", True, ""))
    assert "not heard: Hello there." in printed
    assert printed.count("heard:") == 1


def test_latencies_of_a_turn_are_printed_when_its_reply_begins(shown):
    shown.turn()
    printed = shown(3.7, TurnMoment(Moment.REPLY_STARTED, shown.turns[1]))
    assert "end of speech → first audio 0.60 s" in printed
    assert "connected → greeting 0.05 s" in shown(0.1, TurnMoment(Moment.REPLY_STARTED, shown.turns[0]))


def test_the_agents_own_instants_are_printed_as_offsets_from_the_end_of_speech(shown):
    shown(0.2, TurnTimeline("greeting", {"first_audio": 0.05}))
    shown.turn()
    printed = shown(
        5.0, TurnTimeline("t1", {"speech_end": 3.0, "endpoint": 3.31, "stt_final": 3.4, "first_audio": 3.6})
    )
    assert " ".join(printed.split()) == "5.00 agent's own account: endpoint +0.31 transcript +0.40 first audio +0.60"


def test_what_the_agent_sends_is_never_taken_for_markup(shown):
    assert "[bold]x[/bold]" in shown(0.1, Words("agent", "[bold]x[/bold]", True))
    assert "[/red]" in shown(0.2, Fault("code", "[/red]"))


def test_beginning_and_end_are_printed(shown):
    assert "in 12 ms" in shown(0.0, Opened(0.012))
    assert "hangs up (goodbye)" in shown(3.0, AgentHangUp("goodbye"))
    assert "goodbye" in shown(3.1, Closed("goodbye"))
