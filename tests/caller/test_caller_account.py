import numpy as np

from voice_agent.caller.account import Account
from voice_agent.caller.agent_speech import Stretch
from voice_agent.caller.conversation import Conversation, Turn
from voice_agent.caller.lines import Line, SpokenLine
from voice_agent.caller.wire import Clear, TurnTimeline, Words


def call_of(*turns: Turn) -> tuple[Conversation, Account]:
    conversation = Conversation([])
    conversation.turns[:] = list(turns)
    return conversation, Account(conversation)


def spoken(index: int, start: float, reply: Stretch | None = None) -> Turn:
    line = SpokenLine(Line(text=f"line {index}"), np.zeros(1600, np.int16), 0.0, 0.1, 0.1)
    return Turn(index, line, start, start + 0.1, reply)


def agent(text: str, heard: str | None = None) -> Words:
    return Words("agent", text, True, heard)


def test_what_the_caller_was_understood_to_say_belongs_to_the_line_last_spoken():
    _, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.08)), spoken(1, 2.0), spoken(2, 5.0))
    account.observe(6.0, Words("user", "line two", True))
    assert [words.understood for words in account.words] == [[], [], ["line two"]]


def test_words_of_a_reply_on_the_air_belong_to_it():
    conversation, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.08)))
    account.observe(1.0, agent("Hello.", "Hello."))
    conversation.turns.append(spoken(1, 2.0, Stretch(3.0, 4.0, 2.9)))
    account.observe(4.0, agent("Your balance is ten.", "Your balance is ten."))
    assert [[p.text for p in words.said] for words in account.words] == [["Hello."], ["Your balance is ten."]]


def test_what_was_heard_replaces_the_pieces_that_announced_the_reply():
    conversation, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.08)))
    account.observe(0.05, agent("Hello."))
    account.observe(0.06, agent("How can I help?"))
    conversation.turns.append(spoken(1, 0.9))  # barges in
    account.observe(1.0, agent("I also"))  # still worded before the interruption was decided
    account.observe(1.1, agent("Hello. How can I help? I also", "Hello. How"))
    account.observe(1.9, agent("Yes?"))
    assert [[(p.text, p.heard) for p in words.said] for words in account.words] == [
        [("Hello. How can I help? I also", "Hello. How")],
        [("Yes?", None)],
    ]


def test_the_words_of_an_interrupted_reply_belong_to_it_and_not_to_the_answer_to_come():
    conversation, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.08)))
    account.observe(1.0, agent("Hello.", "Hello."))
    conversation.turns.append(spoken(1, 2.0, Stretch(3.0, 4.0, 2.9)))
    conversation.turns.append(spoken(2, 3.9))  # barges in, not yet answered
    account.observe(4.2, agent("One two three four.", "One two"))
    account.observe(4.9, agent("Five.", None))
    assert [(p.text, p.heard) for p in account.words[1].said] == [("One two three four.", "One two")]
    assert [(p.text, p.heard) for p in account.words[2].said] == [("Five.", None)]


def test_words_announced_before_their_sound_wait_for_it_and_then_learn_what_was_heard():
    conversation, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.08)))
    account.observe(0.05, agent("Hello."))
    account.observe(1.0, agent("Hello.", "Hello."))
    conversation.turns.append(spoken(1, 2.0))
    account.observe(2.5, agent("Ten dollars."))
    conversation.turns[1].reply = Stretch(3.0, 4.0, 2.9)
    account.observe(4.0, agent("Ten dollars.", "Ten"))
    assert [[(p.text, p.heard) for p in w.said] for w in account.words] == [
        [("Hello.", "Hello.")],
        [("Ten dollars.", "Ten")],
    ]


def test_partial_transcripts_are_no_part_of_the_account():
    _, account = call_of(Turn(0))
    assert account.observe(0.5, Words("user", "hel", False)) is None
    assert account.words[0].understood == []


def test_the_agents_clock_is_tied_to_the_callers_by_the_nearest_first_audio():
    _, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.10)), spoken(1, 2.0, Stretch(3.0, 4.0, 2.9)))
    assert account.clock_offset_s is None
    account.observe(1.0, TurnTimeline("a", {"first_audio": 0.02}))
    account.observe(4.0, TurnTimeline("b", {"speech_end": 2.0, "first_audio": 2.87}))
    assert account.clock_offset_s is not None and round(account.clock_offset_s, 3) == 0.03
    assert account.words[1].instants["speech_end"] == 2.0


def test_a_turn_that_never_spoke_takes_no_replys_place():
    _, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.10)))
    assert account.observe(1.0, TurnTimeline("a", {"speech_end": 0.5, "cancel": 0.6})) is None
    assert account.observe(1.0, TurnTimeline("b", {"first_audio": 0.02})) is account.words[0]


def test_instants_of_a_reply_that_was_not_matched_to_a_line_take_no_others_place():
    _, account = call_of(Turn(0, reply=Stretch(0.1, 1.0, 0.10)), spoken(1, 2.0, Stretch(9.0, 9.5, 8.9)))
    account.observe(1.0, TurnTimeline("greeting", {"first_audio": 0.08}))
    assert account.observe(6.0, TurnTimeline("are you there?", {"first_audio": 5.0})) is None
    assert account.observe(9.5, TurnTimeline("answer", {"first_audio": 8.87})) is account.words[1]


def test_clears_are_noted_with_their_moment():
    _, account = call_of(Turn(0))
    account.observe(1.25, Clear())
    assert account.clears == [1.25]
