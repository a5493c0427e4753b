from pathlib import Path

import pytest

from voice_agent.caller.lines import MAX_LINES, MAX_TEXT, Line, LineError, order_lines


def test_lines_keep_their_command_line_order():
    lines = order_lines([("say", "one"), ("wav", Path("two.wav")), ("say", "three")])
    assert lines == (Line(text="one"), Line(wav=Path("two.wav")), Line(text="three"))


def test_a_barge_in_binds_to_the_line_after_it_and_to_no_other():
    lines = order_lines([("say", "A"), ("barge_in_at", 1.5), ("say", "B"), ("say", "C")])
    assert [line.barge_in_at for line in lines] == [None, 1.5, None]


def test_a_barge_in_before_the_first_line_interrupts_the_greeting():
    assert order_lines([("barge_in_at", 0.0), ("wav", Path("x.wav"))]) == (Line(wav=Path("x.wav"), barge_in_at=0.0),)


def test_white_space_in_a_line_is_folded_and_its_label_is_what_is_said():
    (line,) = order_lines([("say", "  hello \n there ")])
    assert line.text == line.label == "hello there"
    assert Line(wav=Path("/a/b.wav")).label == "[b.wav]"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([("say", "A"), ("barge_in_at", 2.0)], "no line after it"),
        ([("barge_in_at", 1.0), ("barge_in_at", 2.0), ("say", "A")], "follows another"),
        ([("barge_in_at", -1.0), ("say", "A")], "is not a moment"),
        ([("barge_in_at", float("nan")), ("say", "A")], "is not a moment"),
        ([("barge_in_at", 1e9), ("say", "A")], "is not a moment"),
        ([("say", "   ")], "empty"),
        ([("say", "x" * (MAX_TEXT + 1))], "characters"),
        ([("say", "x")] * (MAX_LINES + 1), "too many"),
    ],
)
def test_options_that_make_no_lines_are_refused_with_what_would_be_right(options, says):
    with pytest.raises(LineError, match=says):
        order_lines(options)
