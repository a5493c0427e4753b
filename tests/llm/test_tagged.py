"""The tagged format: what is heard, which tool is asked for, and that nothing a model writes breaks it."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voice_agent.llm.tagged import TaggedAction, TaggedReader
from voice_agent.llm.tagged_syntax import cleaned

SECRET, PUBLIC = "wombat", "otter"


def read(text: str, size: int | None = None) -> tuple[str, TaggedAction | None]:
    """Read ``text`` in pieces of ``size`` characters."""
    reader, heard = TaggedReader(), ""
    for start in range(0, len(text), size or max(1, len(text))):
        heard += reader.feed(text[start : start + (size or len(text))])
    return heard + reader.finish(), reader.action


def act(name: str, given: str | None = None) -> TaggedAction:
    return TaggedAction(name, given)


@pytest.mark.parametrize(
    ("text", "heard", "action"),
    [
        pytest.param("<answer>Hi there</answer> and more", "Hi there", None, id="an answer"),
        pytest.param("Let me see. <answer> Hi </answer>", "Hi", None, id="thinking before an answer is not heard"),
        pytest.param('<action>a</action><input>{"x": 1}</input>', "", act("a", '{"x": 1}'), id="an action"),
        pytest.param("<Action>\n a\n</ACTION> <INPUT> 5 </Input>", "", act("a", "5"), id="any case, white space"),
        pytest.param("<action>a</action><input>x", "", act("a", "x"), id="an unclosed input reaches to the end"),
        pytest.param("<action>a</action><input>x</inp", "", act("a", "x"), id="a broken closing tag is no input"),
        pytest.param("<action>a</action>", "", act("a"), id="no input"),
        pytest.param("<action>a", "", act("a"), id="an unclosed action"),
        pytest.param("<action></action><input>{}</input>", "", act("", "{}"), id="an empty name"),
        pytest.param("<action>a<input>5</input></action>", "", act("a", "5"), id="an input inside its action"),
        pytest.param("<action>a</action><action>b</action>", "", act("a"), id="of two actions the first"),
        pytest.param(
            "<action>a</action><input>{}</input><answer>made up</answer>", "", act("a", "{}"), id="answer after action"
        ),
        pytest.param("<answer>one</answer><action>a</action><input>{}</input>", "one", None, id="action after answer"),
        pytest.param(
            "<action>a</action><input>{}</input>\nObservation: 5", "", act("a", "{}"), id="a made-up observation"
        ),
        pytest.param(
            "<thought>say <answer>no</answer></thought><answer>yes</answer>", "yes", None, id="an answer in a thought"
        ),
        pytest.param(
            "<think>maybe <action>a</action></think><answer>yes</answer>", "yes", None, id="action in thought"
        ),
        pytest.param("<thought>then <action>a</action><input>{}</input>", "", act("a", "{}"), id="unclosed thought"),
        pytest.param("<thought>nothing but this", "", None, id="nothing but an unclosed thought"),
        pytest.param("Hello. <thought>hm", "Hello.", None, id="prose before an unclosed thought"),
        pytest.param("```xml\n<action>a</action>\n<input>{}</input>\n```", "", act("a", "{}"), id="in a code fence"),
        pytest.param("&lt;answer&gt;2 &lt; 3&lt;/answer&gt;", "2 &lt; 3", None, id="escaped tags"),
        pytest.param('<answer tone="calm">Hi</answer>', "Hi", None, id="attributes"),
        pytest.param("<answer>a < b & c <x</answer>", "a < b & c <x", None, id="signs that begin no tag"),
        pytest.param("<answer>Well <thought>hm</thought>yes</answer>", "Well yes", None, id="a thought in an answer"),
        pytest.param("<answer>See <action>a</action> now</answer>", "See  now", None, id="an action in an answer"),
        pytest.param("<say>One moment.</say><action>a</action>", "One moment.", act("a"), id="words before a tool"),
        pytest.param("<say>One.</say><answer>Two.</answer>", "One. Two.", None, id="words before an answer"),
        pytest.param("<say>One moment. <action>a</action>", "One moment.", act("a"), id="unclosed words"),
        pytest.param("<answer>It is", "It is", None, id="an unclosed answer reaches to the end"),
        pytest.param("<answer>It is</answ", "It is", None, id="a broken closing tag is not heard"),
        pytest.param("Hello there.", "Hello there.", None, id="only prose"),
        pytest.param("", "", None, id="nothing"),
        pytest.param(
            '<action>a</action><input>{"x": "</input> and \\" more"}</input>',
            "",
            act("a", '{"x": "</input> and \\" more"}'),
            id="a closing tag inside a string",
        ),
        pytest.param(
            "<action>a</action><input>{broken</input> tail",
            "",
            act("a", "{broken"),
            id="the first closing tag of no JSON",
        ),
    ],
)
def test_a_reply_is_read_the_same_in_pieces_of_any_size(text: str, heard: str, action: TaggedAction | None) -> None:
    assert [read(text, size) for size in (None, 1, 2, 3, 5)] == [(heard, action)] * 5


def test_an_answer_is_heard_while_it_is_written() -> None:
    reader = TaggedReader()
    pieces = [reader.feed(piece) for piece in ("hm <ans", "wer>Your ", "balance", " is 42. </an", "swer>")]
    assert pieces == ["", "Your", " balance", " is 42.", ""]
    assert reader.done


def test_nothing_is_read_beyond_a_complete_action() -> None:
    reader = TaggedReader()
    reader.feed("<action>a</action><input>{}</input>")
    assert reader.done
    assert reader.feed("<answer>made up</answer>") == reader.finish() == ""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A <b>bold</b> word", "A bold word"),
        ("Yes. <reflection>hm</reflection>", "Yes."),
        ("Thought: hm\nAction: look\nAction Input: {}\nObservation: 5\nFinal Answer: It is 5.", "It is 5."),
        ("**Answer:** It is 5.", "It is 5."),
        ("```\nIt is 5.\n```", "It is 5."),
        ("5 < 6 and 7 > 6", "5 < 6 and 7 > 6"),
        ("</answer>Well", "Well"),
        ("<think>only this</think>", ""),
    ],
)
def test_prose_is_cleaned_of_what_nobody_should_hear(text: str, left: str) -> None:
    assert cleaned(text) == left


TAGS = [
    f"{'</' if c else '<'}{n}>" for n in ("answer", "action", "input", "say", "thought", "think", "x") for c in (0, 1)
]
PIECES = st.sampled_from(
    [
        *TAGS,
        "&lt;answer&gt;",
        "</answ",
        "<",
        "&",
        "{",
        '"',
        "'",
        "}",
        "\\",
        " ",
        "\n",
        "lookup",
        '{"a": 1}',
        "```",
        "\ud800",
    ]
)
REPLY = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=30).map("".join)


@settings(max_examples=400, deadline=None)
@given(REPLY, st.integers(0, 2**32))
@example("<say><answer>", 0)
@example("<action>a</action><input>{" + "</input>" * 30, 1)
def test_no_reply_breaks_the_reader_and_pieces_make_no_difference(text: str, seed: int) -> None:
    whole, cuts = read(text), random.Random(seed)
    reader, heard, at = TaggedReader(), "", 0
    while at < len(text):
        size = cuts.randint(1, 9)
        heard += reader.feed(text[at : at + size])
        at += size
    assert (heard + reader.finish(), reader.action) == whole
    spoken = whole[0].lower()
    assert not re.search(r"</?(?:answer|action|input|say|thought|think)>", spoken)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([SECRET, "\n", "hm", "<x>", "Observation: 5"]), max_size=4),
    st.sampled_from(["thought", "think", "reasoning", ""]),
    st.sampled_from([f"<answer>{PUBLIC}</answer>", f"<answer>{PUBLIC}", "<action>a</action><input>1</input>"]),
    st.integers(1, 6),
)
def test_what_stands_before_the_answer_is_never_heard(thinking: list[str], tag: str, rest: str, size: int) -> None:
    inside = " ".join([SECRET, *thinking])
    heard, action = read((f"<{tag}>{inside}</{tag}>" if tag else inside) + rest, size)
    assert SECRET not in heard
    assert heard == (PUBLIC if "answer" in rest else "")
    assert (action is None) == ("answer" in rest)


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 7000,
        "<a>x</a>" * 2500,
        "&lt;" * 5000,
        "</input>" * 2500,
        "<" * 20_000,
        "Thought: x\n" * 1800,
        " " * 20_000,
    ],
)
@pytest.mark.parametrize("before", ["", "<answer>", '<action>a</action><input>{"', "<thought>"])
def test_a_hostile_reply_costs_no_noticeable_time(before: str, text: str) -> None:
    began = time.process_time()
    read(before + text, 7)
    assert time.process_time() - began < 1.0
