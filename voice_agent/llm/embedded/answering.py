"""A caller who was asked something: yes or no, a field, or an argument of a tool."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import date
from itertools import takewhile
from typing import Any

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.arguments import fill
from voice_agent.llm.embedded.choice import SURE, as_words
from voice_agent.llm.embedded.counted_digits import counted, length_of, part, parts_before
from voice_agent.llm.embedded.moves import Decision, Moves, call, say
from voice_agent.llm.embedded.questions import Kind, asks_back, is_question, kind_of, question
from voice_agent.llm.embedded.small_talk import SmallTalk, small_talk
from voice_agent.llm.embedded.turn import FRAMEWORK_TOOLS, Call, Turn
from voice_agent.llm.embedded.yes_no import affirms_by_repeating, is_at_a_loss, is_bare_answer, plain_answer
from voice_agent.llm.protocol import FieldCard, ToolSpec

MAX_ATTEMPTS = 4
"""A question that was asked this often in a row without an answer is given up."""
_LEAVING = (SmallTalk.GOODBYE, SmallTalk.NOTHING_MORE)
_OPEN = (Kind.TEXT, Kind.NAME)
"""Kinds that any words answer."""
_ALTERNATIVE = re.compile(r"(?i)\b(?:just|only|instead|rather|use)\b")
"""With another value beside it, a no: "just twenty dollars" to "Do you want to pay all of it?"."""


def confirm(moves: Moves) -> Decision:
    """A yes must be plain; a no may have reasons; other values are taken up; anything else leaves the question open."""
    turn = moves.turn
    held = next((made for made in reversed(turn.earlier) if made.name not in FRAMEWORK_TOOLS), None)
    context = [turn.last_said, *(_as_said(value) for value in (held.arguments.values() if held else ()))]
    verdict = plain_answer(turn.utterance, context)
    if verdict is True and turn.offers("confirm"):
        return call("confirm")
    if held is not None and (changed := _changed(moves, held)) is not None:
        return changed
    if verdict is False and turn.offers("deny"):
        return call("deny")
    if small_talk(turn.utterance) is SmallTalk.REPEAT and turn.last_said:
        return say(turn.last_said)
    aside = _aside(moves)
    if aside is not None:
        return aside
    if turn.offers("cannot_help"):
        return call("cannot_help")
    return say(f"{phrases.YES_OR_NO} {turn.open_question()}".strip())


def _as_said(value: Any) -> str:
    """Return a value in words that a caller may repeat: of a day its names, too."""
    with contextlib.suppress(ValueError):
        day = date.fromisoformat(str(value))
        return f"{day:%A %B} {day.day} {value}"
    return str(value)


def _changed(moves: Moves, held: Call) -> Decision | None:
    """Take up values other than those of the held call: "no, make it Tuesday"."""
    turn = moves.turn
    if asks_back(turn.utterance):
        return None
    if held.name in turn.tools:
        arguments = {**held.arguments, **fill(turn.tools[held.name], turn, moves.reader).values}
        return call(held.name, **arguments) if arguments != dict(held.arguments) else None
    mentioned = moves.note_mentioned().items()
    return moves.set_fields({name: v for name, v in mentioned if name in held.arguments and v != held.arguments[name]})


def fill_field(moves: Moves, asked: FieldCard) -> Decision:
    """The framework has asked for ``asked``, and asks again by itself after words that are no question."""
    turn = moves.turn
    if (way_out := _way_out(moves, asked)) is not None:
        return way_out
    if not turn.has_called("set_fields") and not asks_back(turn.utterance):
        if (rest := _ask_for_the_rest(moves, asked)) is not None:
            return rest
        if (noted := moves.set_fields(_values(moves, asked))) is not None:
            return noted
    aside = _aside(moves)
    if aside is not None:
        return aside
    if _attempts(turn) >= MAX_ATTEMPTS and turn.offers("cancel_skill"):
        return Decision(phrases.GIVEN_UP, (("cancel_skill", {}),))
    if turn.offers("cannot_help") and not turn.has_called("cannot_help"):
        return call("cannot_help")
    return say(f"{phrases.NOT_UNDERSTOOD} {_hint(asked)}".strip())


def _values(moves: Moves, asked: FieldCard) -> Mapping[str, Any]:
    """Return what the words say for the field asked for, and for others beside it or in its place."""
    kind, text = kind_of(asked), moves.turn.utterance
    others = moves.note_mentioned(without=[asked])
    kinds = {card.name: kind_of(card) for card in moves.turn.scope.fields}
    if kind is not Kind.CHOICE:
        # The same digits are not a second number as well.
        others = {name: value for name, value in others.items() if kinds[name] is not kind}
    if kind in _OPEN and is_question(text):
        return others
    value = _whole_number(moves, asked) or moves.reader.asked(
        asked, text, guess=not others, question=moves.turn.last_question()
    )
    if value is None and kind is Kind.BOOL and others and _ALTERNATIVE.search(text):
        value = False
    if value is None and kind is Kind.BOOL and not others and affirms_by_repeating(text, moves.turn.last_question()):
        value = True
    return others if value is None else {**others, asked.name: value}


def _whole_number(moves: Moves, asked: FieldCard) -> str | None:
    """Return a number that was given in parts, once its last part is there."""
    length = length_of(asked)
    before = parts_before(moves.turn.exchanges)
    if length is None or not before or kind_of(asked) is not Kind.DIGITS:
        return None
    text = moves.turn.utterance
    return counted(text, length) or counted(before + (moves.reader.asked(asked, text) or ""), length)


def _ask_for_the_rest(moves: Moves, asked: FieldCard) -> Decision | None:
    length = length_of(asked)
    if length is None or kind_of(asked) is not Kind.DIGITS or counted(moves.turn.utterance, length):
        return None
    before = parts_before(moves.turn.exchanges)
    now = part(moves.turn.utterance, length) or ""
    together = before + now if len(before) + len(now) <= length else now
    return say(phrases.and_then(together)) if now and len(together) < length else None


def fill_argument(moves: Moves, tool: ToolSpec, card: FieldCard) -> Decision:
    """The question was ours, so asking again is too."""
    turn = moves.turn
    if (way_out := _way_out(moves, card)) is not None:
        return way_out
    is_aside = asks_back(turn.utterance) or (kind_of(card) in _OPEN and is_question(turn.utterance))
    if not is_aside and moves.reader.asked(card, turn.utterance) is not None:
        return moves.call_tool(tool)
    if (aside := _aside(moves)) is not None:
        return aside
    if _attempts(turn) >= MAX_ATTEMPTS and turn.offers("cancel_skill"):
        return Decision(phrases.GIVEN_UP, (("cancel_skill", {}),))
    return say(f"{phrases.NOT_UNDERSTOOD} {question(card, hint=True)}")


def _attempts(turn: Turn) -> int:
    """Return how often the question that is open was asked in a row."""
    asked = turn.last_question()
    return len(list(takewhile(lambda pair: asked and pair[0].endswith(asked), reversed(turn.exchanges))))


def _way_out(moves: Moves, card: FieldCard) -> Decision | None:
    """Asked something, the caller may want it repeated, want to stop, or want to leave."""
    talk = small_talk(moves.turn.utterance)
    if talk is SmallTalk.REPEAT:
        return say(moves.turn.last_said or question(card))
    if talk in _LEAVING and _is_formality(moves.turn):
        return call("hangup")
    if talk is SmallTalk.GOODBYE:
        return moves.goodbye()
    if talk is SmallTalk.CANCEL and kind_of(card) is not Kind.BOOL:
        return moves.cancel()
    return None


def _is_formality(turn: Turn) -> bool:
    """Whether what asks is the engine's own, such as a survey before the end: nobody has to answer that."""
    return (turn.scope.active_skill or "").startswith("default_") and turn.offers("hangup")


def _aside(moves: Moves) -> Decision | None:
    """Something else than an answer: another skill, clearly, or a question to look up."""
    utterance = moves.turn.utterance
    is_lost = is_at_a_loss(utterance)
    if is_bare_answer(utterance) and not is_lost:
        return None
    ranked = moves.rank_skills()
    if ranked.score >= SURE:
        return moves.start_skill(ranked)
    # "I don't know my number" asks where to find it.
    if (is_question(utterance) or is_lost) and (looked_up := moves.search()) is not None:
        return looked_up
    return moves.start_skill(ranked) if ranked.is_clear else None


def _hint(card: FieldCard) -> str:
    kind = kind_of(card)
    if kind is Kind.BOOL:
        return phrases.YES_OR_NO
    if kind is Kind.CHOICE and 1 < len(card.choices) <= 5:
        return phrases.or_choices([as_words(choice) for choice in card.choices])
    return "Please say it digit by digit." if kind is Kind.DIGITS else ""
