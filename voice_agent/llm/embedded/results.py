"""What to say, or do next, once tools have run."""

from __future__ import annotations

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.answers import KNOWN, SKILL_LEAD, answer, read_passages
from voice_agent.llm.embedded.choice import FITS
from voice_agent.llm.embedded.moves import Decision, Moves, call, say
from voice_agent.llm.embedded.questions import asks_back
from voice_agent.llm.embedded.readings import FAILED, read_result
from voice_agent.llm.embedded.turn import FRAMEWORK_TOOLS, Call


def after_tools(moves: Moves) -> Decision:
    """Decide upon the results nothing was said to yet.

    ``complete`` is called with the words that end the skill's work, never beside the tool whose
    result those words need.
    """
    fresh = moves.turn.fresh
    own = [made for made in fresh if made.name not in FRAMEWORK_TOOLS or made.name == "confirm"]
    if own:
        return _tell(moves, own)
    last = fresh[-1]
    if last.name == "search_knowledge":
        return _answer(moves, last)
    if last.name in ("start_skill", "run_block", "set_fields"):
        return _go_on(moves, last)
    if last.name == "deny":
        return say(phrases.NOT_DONE)
    if last.name == "cancel_skill":
        return say(phrases.STOPPED)
    if last.name == "cannot_help":
        return say(phrases.CANNOT_HELP)
    if last.name in ("complete", "complete_skill") and not last.failed:
        return say(phrases.ANYTHING_ELSE)
    return call("listen") if moves.turn.offers("listen") else say(phrases.OFFER)


def _tell(moves: Moves, made: list[Call]) -> Decision:
    if moves.turn.scope.confirming:
        # The tool is held: what it found is still to come.
        return say(phrases.GO_AHEAD)
    readings = [read_result(one.result or "") for one in made]
    ok = all(reading.ok for reading in readings) and not any(one.failed for one in made)
    text = " ".join(reading.text for reading in readings if reading.text)
    if not text:
        text = phrases.DONE if ok else FAILED
    return _closing(moves, text) if ok else say(text)


def _closing(moves: Moves, text: str) -> Decision:
    """Say ``text``, and complete the skill if all of its tools have run and no field is being asked for."""
    turn = moves.turn
    run = {made.name for made in (*turn.calls, *turn.earlier)}
    is_done = all(tool.name in run for tool in turn.own_tools) and not any(card.asked for card in turn.scope.fields)
    if turn.offers("complete") and turn.scope.active_skill and is_done:
        return Decision(text, (("complete", {}),))
    return say(text)


def _go_on(moves: Moves, last: Call) -> Decision:
    if not last.failed:
        return moves.work()
    if last.name == "set_fields":
        return say(phrases.NOT_UNDERSTOOD)
    return moves.give_up()


def _answer(moves: Moves, searched: Call) -> Decision:
    """Answer from the passages, unless a skill fits the caller's words better than they do."""
    turn = moves.turn
    stress = turn.utterance if moves.is_ellipsis else ""
    found = answer(moves.question, read_passages(searched.result or ""), moves.similar, stress=stress)
    skills = moves.rank_skills()
    is_asked = turn.scope.confirming or any(card.asked for card in turn.scope.fields)
    lead = -SKILL_LEAD if asks_back(turn.utterance) else SKILL_LEAD
    fits = skills.score + lead if skills.score >= FITS else 0.0
    if found is not None and found.support >= KNOWN and found.score >= fits:
        text = found.text
        if turn.scope.confirming:
            return say(f"{text} {turn.open_question() or phrases.GO_AHEAD}")
        if (open_question := moves.own_question()) is not None:
            return say(f"{text} {open_question}")
        return say(text) if is_asked else _closing(moves, text)
    if is_asked and not skills.is_clear:
        return moves.give_up()
    return moves.start_skill(skills) or moves.give_up()
