"""What to do next: one pure function of the request.

The order is fixed:

1. A tool's result is at the end → say what it means, or get on with the skill (`results`).
2. Only fields may be written → write down what was mentioned.
3. A question of yes or no is open → `confirm` or `deny`.
4. A field, or an argument of a tool, was asked for → fill it, or follow a side question.
5. A courtesy → a fixed line.
6. The skill, tool or reference text that lies nearest.
7. Otherwise `cannot_help`, or its words.

Nothing is called that is not on offer. Caller text only ever becomes an argument's value or the
question of a search: it chooses among what is allowed and cannot widen it.
"""

from __future__ import annotations

import re
from datetime import date

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.arguments import asked_for, fill, parameter_cards
from voice_agent.llm.embedded.choice import FITS, SURE, Similarity, as_words
from voice_agent.llm.embedded.fields import Reader
from voice_agent.llm.embedded.moves import Decision, Moves, call, say
from voice_agent.llm.embedded.questions import Kind, is_question, kind_of, question
from voice_agent.llm.embedded.results import after_tools
from voice_agent.llm.embedded.small_talk import SmallTalk, small_talk
from voice_agent.llm.embedded.turn import FRAMEWORK_TOOLS, Turn
from voice_agent.llm.embedded.yes_no import plain_answer
from voice_agent.llm.protocol import FieldCard, ModelRequest, ToolSpec

ACTIVE_BONUS = 0.05
"""What a tool of the active skill has ahead of other skills."""


def decide(request: ModelRequest, similar: Similarity, today: date) -> Decision:
    """Return what to say and call for ``request``. Deterministic; no I/O but for ``similar``.

    Args:
        similar: Cosine similarity of a sentence to several others.
        today: The caller's date, for "tomorrow" and "next Tuesday".
    """
    turn = Turn.read(request)
    moves = Moves(turn, similar, Reader(today, similar))
    if turn.tools and turn.tools.keys() <= {"set_fields", "listen"}:
        return moves.set_fields(moves.note_mentioned()) or _wait(turn)
    if turn.fresh:
        return after_tools(moves)
    if not turn.utterance:
        return moves.work() if turn.scope.active_skill else _wait(turn)
    if turn.scope.confirming:
        return _confirm(moves)
    asked = next((card for card in turn.scope.fields if card.asked), None)
    if asked is not None:
        return _fill_field(moves, asked)
    for tool in turn.own_tools:
        card = asked_for(turn.last_said, parameter_cards(tool))
        if card is not None:
            return _fill_argument(moves, tool, card)
    return _courtesy(moves) or _which(moves) or _route(moves)


def _wait(turn: Turn) -> Decision:
    return call("listen") if turn.offers("listen") else say(phrases.OFFER)


def _confirm(moves: Moves) -> Decision:
    """A yes must be plain; a no may have reasons; anything else leaves the question open."""
    turn = moves.turn
    held = next((made for made in reversed(turn.earlier) if made.name not in FRAMEWORK_TOOLS), None)
    context = [turn.last_said, *(map(str, held.arguments.values()) if held else ())]
    verdict = plain_answer(turn.utterance, context)
    if verdict is not None and turn.offers("confirm" if verdict else "deny"):
        return call("confirm" if verdict else "deny")
    if small_talk(turn.utterance) is SmallTalk.REPEAT and turn.last_said:
        return say(turn.last_said)
    if held is not None and held.name in turn.tools:
        changed = {**held.arguments, **fill(turn.tools[held.name], turn, moves.reader).values}
        if changed != dict(held.arguments):
            return call(held.name, **changed)
    aside = _aside(moves)
    if aside is not None:
        return aside
    if turn.offers("cannot_help"):
        return call("cannot_help")
    return say(f"{phrases.YES_OR_NO} {turn.last_question()}".strip())


def _fill_field(moves: Moves, asked: FieldCard) -> Decision:
    turn = moves.turn
    if (way_out := _way_out(moves, asked)) is not None:
        return way_out
    value = None if turn.has_called("set_fields") else moves.reader.asked(asked, turn.utterance)
    # Anything answers an open question, and so does a side question; the others are told by their type.
    if value is not None and kind_of(asked) in (Kind.TEXT, Kind.NAME) and is_question(turn.utterance):
        value = None
    if value is not None:
        noted = moves.set_fields({**moves.note_mentioned(without=[asked]), asked.name: value})
        if noted is not None:
            return noted
    aside = _aside(moves)
    if aside is not None:
        return aside
    if turn.offers("cannot_help") and not turn.has_called("cannot_help"):
        return call("cannot_help")
    # The engine asks again after words that are no question.
    return say(f"{phrases.NOT_UNDERSTOOD} {_hint(asked)}".strip())


def _fill_argument(moves: Moves, tool: ToolSpec, card: FieldCard) -> Decision:
    """The question was ours, so asking again is too."""
    if (way_out := _way_out(moves, card)) is not None:
        return way_out
    if moves.reader.asked(card, moves.turn.utterance) is not None and not (
        kind_of(card) in (Kind.TEXT, Kind.NAME) and is_question(moves.turn.utterance)
    ):
        return moves.call_tool(tool)
    return _aside(moves) or say(f"{phrases.NOT_UNDERSTOOD} {question(card, hint=True)}")


def _way_out(moves: Moves, card: FieldCard) -> Decision | None:
    """Asked something, the caller may want it repeated, want to stop, or want to leave."""
    talk = small_talk(moves.turn.utterance)
    if talk is SmallTalk.REPEAT:
        return say(moves.turn.last_said or question(card))
    if talk is SmallTalk.GOODBYE:
        return _goodbye(moves)
    if talk is SmallTalk.CANCEL and kind_of(card) is not Kind.BOOL:
        return _cancel(moves.turn)
    return None


def _aside(moves: Moves) -> Decision | None:
    """Something else than an answer: another skill, clearly, or a question to look up."""
    ranked = moves.rank_skills()
    if ranked.score >= SURE:
        return moves.start_skill(ranked)
    if is_question(moves.turn.utterance) and (looked_up := moves.search()) is not None:
        return looked_up
    return moves.start_skill(ranked) if ranked.is_clear else None


def _hint(card: FieldCard) -> str:
    if kind_of(card) is Kind.BOOL:
        return phrases.YES_OR_NO
    return "Please say it digit by digit." if kind_of(card) is Kind.DIGITS else ""


def _courtesy(moves: Moves) -> Decision | None:
    turn = moves.turn
    talk = small_talk(turn.utterance)
    if talk is SmallTalk.GOODBYE:
        return _goodbye(moves)
    if talk is SmallTalk.CANCEL:
        return _cancel(turn)
    if talk is SmallTalk.REPEAT:
        return say(turn.last_said or phrases.NOTHING_TO_REPEAT)
    if talk is SmallTalk.ABILITIES:
        names = [as_words(card.id) for card in turn.scope.skills]
        return say(phrases.abilities([name for name in names if "goodbye" not in name]))
    if talk is SmallTalk.NOTHING_MORE:
        was_offered = re.search(r"\b(?:else|help|do for you)\b", turn.last_question()) is not None
        said_so = re.search(r"(?i)\b(?:all|it|everything|nothing|done|set)\b", turn.utterance) is not None
        return _goodbye(moves) if was_offered or said_so else say(phrases.ANYTHING_ELSE)
    fixed = {
        SmallTalk.GREETING: phrases.GREETING,
        SmallTalk.HOW_ARE_YOU: phrases.HOW_ARE_YOU,
        SmallTalk.THANKS: phrases.WELCOME,
        SmallTalk.ASSENT: phrases.OFFER,
    }
    return say(fixed[talk]) if talk in fixed else None


def _goodbye(moves: Moves) -> Decision:
    """A project's own way to part goes before ours."""
    ranked = moves.rank_skills()
    if ranked.score >= SURE and ranked.is_clear:
        return call("start_skill", skill=ranked.best)
    return call("hangup") if moves.turn.offers("hangup") else say(phrases.GOODBYE)


def _cancel(turn: Turn) -> Decision:
    return call("cancel_skill") if turn.offers("cancel_skill") else say(phrases.STOPPED)


def _which(moves: Moves) -> Decision | None:
    """The answer to "Is this about A, or about B?", given by its place."""
    asked = re.search(r"Is this about (.+), or about (.+)\?$", moves.turn.last_said)
    place = re.search(r"(?i)\b(first|former|second|latter|last|other)\b", moves.turn.utterance)
    if asked is None or place is None or not moves.turn.offers("start_skill"):
        return None
    wanted = asked[1] if place[1].lower() in ("first", "former") else asked[2]
    chosen = next((card.id for card in moves.turn.scope.skills if as_words(card.id) == wanted), None)
    return call("start_skill", skill=chosen) if chosen is not None else None


def _route(moves: Moves) -> Decision:
    """Choose by similarity. What is not sure is looked up first, if there is something to look in."""
    skills, tools = moves.rank_skills(), moves.rank_tools()
    if tools.best is not None and tools.score >= FITS and tools.score + ACTIVE_BONUS >= skills.score:
        return moves.call_tool(moves.turn.tools[tools.best])
    if skills.score < SURE and (looked_up := moves.search()) is not None:
        return looked_up
    return moves.start_skill(skills) or moves.give_up()
