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
from voice_agent.llm.embedded.answering import confirm, fill_argument, fill_field
from voice_agent.llm.embedded.arguments import asked_for, parameter_cards
from voice_agent.llm.embedded.choice import FITS, SURE, SURE_OF_A_QUESTION, Similarity, spoken_name
from voice_agent.llm.embedded.fields import Reader, is_named
from voice_agent.llm.embedded.moves import Decision, Moves, call, say
from voice_agent.llm.embedded.questions import asks_back
from voice_agent.llm.embedded.results import after_tools
from voice_agent.llm.embedded.small_talk import SmallTalk, small_talk
from voice_agent.llm.embedded.turn import Turn
from voice_agent.llm.protocol import ModelRequest

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
        return confirm(moves)
    asked = next((card for card in turn.scope.fields if card.asked), None)
    if asked is not None:
        return fill_field(moves, asked)
    for tool in turn.own_tools:
        card = asked_for(turn.last_said, parameter_cards(tool, turn.scope.fields))
        if card is not None:
            return fill_argument(moves, tool, card)
    if _is_number_alone(turn.utterance) and turn.scope.active_skill is None:
        return say(phrases.WHAT_ABOUT)
    return _take_up(moves) or _courtesy(moves) or _which(moves) or _route(moves)


def _is_number_alone(text: str) -> bool:
    """Whether the caller only gives a number, before anybody asked for one: "My account number is 427913"."""
    return re.fullmatch(r"(?i)\W*(?:(?:my|the|it's|it|account|customer|number|is) *)*[\d\W]{4,}", text) is not None


def _take_up(moves: Moves) -> Decision | None:
    """Note a value of the active skill that nobody asked for: after a no to its question, "Wednesday, then"."""
    turn = moves.turn
    if turn.scope.active_skill is None or turn.has_called("set_fields") or asks_back(turn.utterance):
        return None
    named = (card for card in turn.scope.fields if is_named(card, turn.last_question()))
    asked = {card.name: value for card in named if (value := moves.reader.asked(card, turn.utterance, guess=False))}
    return moves.set_fields({**asked, **moves.note_mentioned()})


def _wait(turn: Turn) -> Decision:
    return call("listen") if turn.offers("listen") else say(phrases.OFFER)


def _courtesy(moves: Moves) -> Decision | None:
    turn = moves.turn
    talk = small_talk(turn.utterance)
    if talk is SmallTalk.GOODBYE:
        return moves.goodbye()
    if talk is SmallTalk.CANCEL:
        return moves.cancel()
    if talk is SmallTalk.REPEAT:
        return say(turn.last_said or phrases.NOTHING_TO_REPEAT)
    if talk is SmallTalk.ABILITIES:
        names = [spoken_name(card) for card in turn.scope.skills]
        return say(phrases.abilities([name for name in names if "goodbye" not in name.lower()]))
    if talk is SmallTalk.NOTHING_MORE:
        was_offered = re.search(r"\b(?:else|help|do for you)\b", turn.last_question()) is not None
        said_so = re.search(r"(?i)\b(?:all|it|everything|nothing|done|set)\b", turn.utterance) is not None
        if turn.offers("cancel_skill") and not was_offered and not said_so:
            return moves.cancel()
        return moves.goodbye() if was_offered or said_so else say(phrases.ANYTHING_ELSE)
    fixed = {
        SmallTalk.GREETING: phrases.GREETING,
        SmallTalk.HOW_ARE_YOU: phrases.HOW_ARE_YOU,
        SmallTalk.THANKS: phrases.WELCOME,
        SmallTalk.ASSENT: turn.last_question() if turn.scope.active_skill else phrases.OFFER,
    }
    return say(fixed[talk] or phrases.OFFER) if talk in fixed else None


def _which(moves: Moves) -> Decision | None:
    """The answer to "Is this about A, or about B?", given by its place."""
    asked = re.search(r"Is this about (.+), or about (.+)\?$", moves.turn.last_said)
    place = re.search(r"(?i)\b(first|former|second|latter|last|other)\b", moves.turn.utterance)
    if asked is None or place is None or not moves.turn.offers("start_skill"):
        return None
    wanted = asked[1] if place[1].lower() in ("first", "former") else asked[2]
    chosen = next((card.id for card in moves.turn.scope.skills if spoken_name(card) == wanted), None)
    return call("start_skill", skill=chosen) if chosen is not None else None


def _route(moves: Moves) -> Decision:
    """Choose by similarity. What is not sure is looked up first, if there is something to look in."""
    skills, tools = moves.rank_skills(), moves.rank_tools()
    if tools.best is not None and tools.score >= FITS and tools.score + ACTIVE_BONUS >= skills.score:
        return moves.call_tool(moves.turn.tools[tools.best])
    sure = SURE_OF_A_QUESTION if asks_back(moves.turn.utterance) else SURE
    if skills.score < sure and (looked_up := moves.search()) is not None:
        return looked_up
    return moves.start_skill(skills) or moves.give_up()
