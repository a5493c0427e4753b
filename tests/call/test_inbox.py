"""Inputs that wait together become one turn; lines give way to the caller."""

from __future__ import annotations

from tests.support.virtual_time import virtual_time
from voice_agent.call.inbox import MAX_CHARACTERS, MAX_WAITING, Inbox
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.turn import Entry, SpokenOver
from voice_agent.dialogue.reply import SILENCE, InputKind, UserInput


def _speech(text: str) -> Entry:
    return Entry(UserInput(text, InputKind.SPEECH))


async def _take_all(inbox: Inbox) -> list[str]:
    taken = []
    while inbox:
        entry = await inbox.next()
        taken.append(entry.user.text if entry.user is not None else f"<{entry.line}>")
    return taken


@virtual_time
async def test_two_utterances_that_wait_are_answered_once() -> None:
    inbox = Inbox()
    inbox.add(_speech("I'd like"))
    inbox.add(_speech("to pay."))
    assert await _take_all(inbox) == ["I'd like to pay."]


@virtual_time
async def test_words_and_keys_stay_apart() -> None:
    inbox = Inbox()
    inbox.add(_speech("my number is"))
    inbox.add(Entry(UserInput("1234", InputKind.DTMF)))
    assert await _take_all(inbox) == ["my number is", "1234"]


@virtual_time
async def test_the_caller_displaces_lines_and_intents_but_not_a_goodbye() -> None:
    inbox = Inbox()
    inbox.add(Entry(SILENCE))
    inbox.add(Entry(line="utter_could_not_hear"))
    inbox.add(Entry(line="utter_hangup_goodbye", hang_up="max_duration"))
    inbox.add(_speech("hello"))
    assert await _take_all(inbox) == ["<utter_hangup_goodbye>", "hello"]


@virtual_time
async def test_it_is_bounded() -> None:
    inbox = Inbox()
    for index in range(3 * MAX_WAITING):
        inbox.add(Entry(line=str(index)))
    assert len(await _take_all(inbox)) == MAX_WAITING
    for _ in range(100):
        inbox.add(_speech("word " * 100))
    (text,) = await _take_all(inbox)
    assert len(text) == MAX_CHARACTERS


@virtual_time
async def test_after_its_end_it_takes_nothing() -> None:
    inbox = Inbox()
    inbox.add(_speech("hello"))
    inbox.close()
    inbox.add(_speech("hello"))
    assert not inbox


@virtual_time
async def test_what_answers_a_question_is_not_put_together_with_what_was_said_before_it() -> None:
    ledger = PlayoutLedger()
    ledger.said("Shall I book it?")
    inbox = Inbox()
    early = _speech("Yes, please.")
    early.over = SpokenOver(ledger, -1)
    inbox.add(early)
    inbox.add(_speech("No."))
    inbox.add(_speech("Not yet."))
    assert await _take_all(inbox) == ["Yes, please.", "No. Not yet."]
