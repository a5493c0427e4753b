"""The moves a decision is made of: say something, start a skill, call a tool, look something up, give up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.arguments import asked_for, fill, parameter_cards
from voice_agent.llm.embedded.choice import FITS, SURE, Ranked, Similarity, as_words, candidate, rank, spoken_name
from voice_agent.llm.embedded.fields import Reader
from voice_agent.llm.embedded.questions import question
from voice_agent.llm.embedded.small_talk import without_courtesy
from voice_agent.llm.embedded.turn import Turn
from voice_agent.llm.embedded.yes_no import is_at_a_loss
from voice_agent.llm.protocol import FieldCard, ToolSpec

_ELLIPSIS = re.compile(r"(?i)(?:okay |ok |so )?(?:and|what about|how about)\b(?:\W*\w+){1,5}\W*$")


@dataclass(frozen=True, slots=True)
class Decision:
    """What to say, then what to call: pairs of a tool's name and its arguments."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def say(text: str) -> Decision:
    return Decision(text)


def call(name: str, /, **arguments: Any) -> Decision:
    return Decision(calls=((name, arguments),))


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves open in one turn. None stands for a move that is not open."""

    turn: Turn
    similar: Similarity
    reader: Reader

    @property
    def request(self) -> str:
        """The caller's words without the courtesies around them."""
        return without_courtesy(self.turn.utterance) or self.turn.utterance

    @property
    def is_ellipsis(self) -> bool:
        """The caller goes on from what they said before: "and on Sunday?"."""
        return len(self.turn.exchanges) > 1 and _ELLIPSIS.match(self.turn.utterance) is not None

    @property
    def question(self) -> str:
        """What to look up: the caller's words, made whole where they lean on something said before.

        "And on Sunday?" goes on from the question before it. A caller who does not know what they
        are asked for wants to know where to find it.
        """
        turn = self.turn
        if self.is_ellipsis:
            return f"{turn.exchanges[-2][1]} {turn.utterance}"
        asked = next((card for card in turn.scope.fields if card.asked), None)
        if asked is not None and is_at_a_loss(turn.utterance):
            return phrases.where_to_find(as_words(asked.name))
        return self.request

    def rank_skills(self) -> Ranked:
        """Return the skills that may be started, by how well they fit the caller's words."""
        turn = self.turn
        if not turn.offers("start_skill") or turn.has_called("start_skill"):
            return Ranked()
        allowed = _options(turn.tools["start_skill"], "skill")
        cards = [card for card in turn.scope.skills if card.id != turn.scope.active_skill]
        if allowed is not None:
            cards = [card for card in cards if card.id in allowed]
        return self._rank([candidate(card.id, card.description, card.examples) for card in cards])

    def rank_tools(self) -> Ranked:
        """Return the project's own tools that were not called in this turn, best first."""
        tools = [tool for tool in self.turn.own_tools if not self.turn.has_called(tool.name)]
        return self._rank([candidate(tool.name, tool.description) for tool in tools])

    def _rank(self, candidates: Sequence[Any]) -> Ranked:
        return rank(self.request, candidates, self.similar) if self.turn.utterance else Ranked()

    def start_skill(self, ranked: Ranked) -> Decision | None:
        """Start the best skill, or ask which of two is meant."""
        if ranked.best is None or ranked.score < FITS:
            return None
        if ranked.rival is not None:
            names = {card.id: spoken_name(card) for card in self.turn.scope.skills}
            return say(phrases.which(names[ranked.best], names[ranked.rival]))
        return call("start_skill", skill=ranked.best)

    def call_tool(self, tool: ToolSpec) -> Decision:
        """Call ``tool``, or ask for the first argument that is missing."""
        filled = fill(tool, self.turn, self.reader)
        if filled.missing is not None:
            return say(question(filled.missing))
        return call(tool.name, **filled.values)

    def search(self) -> Decision | None:
        """Look the caller's words up, once in a turn."""
        turn = self.turn
        if not turn.utterance or not turn.offers("search_knowledge") or turn.has_called("search_knowledge"):
            return None
        return call("search_knowledge", query=self.question)

    def give_up(self) -> Decision:
        """Say that this is out of reach; the engine's own way goes before words of ours."""
        if self.turn.offers("cannot_help") and not self.turn.has_called("cannot_help"):
            return call("cannot_help")
        return say(phrases.CANNOT_HELP)

    def own_question(self) -> str | None:
        """Return the question for a tool's argument that we asked last; nobody else asks it again."""
        said = self.turn.last_said
        cards = [card for tool in self.turn.own_tools for card in parameter_cards(tool, self.turn.scope.fields)]
        card = asked_for(said, cards)
        return None if card is None else question(card)

    def goodbye(self) -> Decision:
        """Part from the caller; a project's own way goes before ours."""
        ranked = self.rank_skills()
        if ranked.score >= SURE and ranked.is_clear:
            return call("start_skill", skill=ranked.best)
        return call("hangup") if self.turn.offers("hangup") else say(phrases.GOODBYE)

    def cancel(self) -> Decision:
        """Stop what the active skill does."""
        return call("cancel_skill") if self.turn.offers("cancel_skill") else say(phrases.STOPPED)

    def set_fields(self, values: Mapping[str, Any]) -> Decision | None:
        """Write down those of ``values`` that may be."""
        if not values or not self.turn.offers("set_fields"):
            return None
        allowed = self.turn.tools["set_fields"].parameters.get("properties")
        kept = {name: value for name, value in values.items() if not allowed or name in allowed}
        return call("set_fields", **kept) if kept else None

    def note_mentioned(self, without: Sequence[FieldCard] = ()) -> dict[str, Any]:
        """Return the fields that the caller mentioned without being asked."""
        cards = [card for card in self.turn.scope.fields if card not in without]
        return self.reader.mentioned(cards, self.turn.utterance)

    def work(self) -> Decision:
        """Get on with the active skill: note what was said, call its tool, run its block, or ask."""
        turn = self.turn
        if not turn.has_called("set_fields") and (noted := self.set_fields(self.note_mentioned())):
            return noted
        if (tool := self._next_tool()) is not None:
            return self.call_tool(tool)
        if (block := self._next_block()) is not None:
            return call("run_block", block=block)
        asked = next((card for card in turn.scope.fields if card.asked), None)
        if asked is not None:
            return say(question(asked))
        if (looked_up := self.search()) is not None:
            return looked_up
        known = {name for made in (*turn.earlier, *turn.calls) if made.name == "set_fields" for name in made.arguments}
        unknown = next((card for card in turn.scope.fields if card.name not in known), None)
        return say(question(unknown)) if unknown is not None else say(phrases.OFFER)

    def _next_tool(self) -> ToolSpec | None:
        """Return the tool that fits best; one whose arguments are all known goes first."""
        tools = [tool for tool in self.turn.own_tools if not self.turn.has_called(tool.name)]
        order = {name: place for place, (_, name) in enumerate(self.rank_tools().scores)}
        tools.sort(key=lambda tool: order.get(tool.name, len(order)))
        ready = (tool for tool in tools if fill(tool, self.turn, self.reader).missing is None)
        return next(ready, tools[0] if tools else None)

    def _next_block(self) -> str | None:
        if not self.turn.offers("run_block") or self.turn.has_called("run_block"):
            return None
        blocks = _options(self.turn.tools["run_block"], "block") or []
        ranked = self._rank([candidate(block, "") for block in blocks])
        return ranked.best or (blocks[0] if blocks else None)


def _options(tool: ToolSpec, parameter: str) -> list[str] | None:
    """Return the values ``parameter`` may take; None when the schema does not say."""
    schema = (tool.parameters.get("properties") or {}).get(parameter) or {}
    options = schema.get("enum")
    return [str(option) for option in options] if isinstance(options, list) else None
