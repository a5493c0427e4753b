"""What each framework tool does when the model calls it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from typing import Any

from voice_agent.dialogue import framework_tools as ft
from voice_agent.dialogue.blocks import CollectStep
from voice_agent.dialogue.cancellation import race
from voice_agent.dialogue.conditions import Reference
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.corrections import revisit
from voice_agent.dialogue.dispatch import record_tool
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.fields import Field, MemoryRefused, coerce
from voice_agent.dialogue.hook_runner import HookFailed
from voice_agent.dialogue.hooks import KnowledgeQueryPayload, KnowledgeResultsPayload, Point
from voice_agent.dialogue.knowledge import Passage, ScoredPassage
from voice_agent.dialogue.memory import Writer
from voice_agent.dialogue.model_call import ModelReply
from voice_agent.dialogue.offer import Offer, away_tools, may_press, may_transfer, routable
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.pressing import result_json as pressed_json
from voice_agent.dialogue.project import UNSUPPORTED
from voice_agent.dialogue.routing import Router, RoutingRefused
from voice_agent.dialogue.skill_file import mentions
from voice_agent.dialogue.state import Frame, PendingCall
from voice_agent.dialogue.stepper import Budget
from voice_agent.dialogue.steps import StepRunner
from voice_agent.dialogue.transferring import result_json
from voice_agent.dialogue.turn import Turn
from voice_agent.digits import BadDigits, read_digits
from voice_agent.recall.fusion import fused

MAX_PASSAGES = 3
MOST_PASSAGES = 20
"""What a hook may raise that to."""


class Refused(Exception):
    """The call is not allowed or makes no sense; the message goes back to the model."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Text for the model, and whether the turn waits or the call ends."""

    text: str = '{"ok": true}'
    wait: bool = False
    ended: bool = False


OK = Reply()
Handler = Callable[[Turn, Offer, dict[str, Any], ModelReply], Awaitable[Reply]]


class FrameworkCalls:
    def __init__(self, core: Core, router: Router, steps: StepRunner) -> None:
        self._core, self._router, self._steps = core, router, steps
        self._questions = steps.questions
        self._handlers: dict[str, Handler] = {
            ft.START_SKILL: self._start_skill,
            ft.RUN_BLOCK: self._run_block,
            ft.SET_FIELDS: self._set_fields,
            ft.COMPLETE: self._complete,
            ft.CANCEL_SKILL: self._cancel_skill,
            ft.LISTEN: self._listen,
            ft.HANG_UP: self._hang_up,
            ft.TRANSFER: self._transfer,
            ft.SEND_DIGITS: self._send_digits,
            ft.SEARCH_KNOWLEDGE: self._search_knowledge,
            ft.CANNOT_HELP: self._cannot_help,
            ft.CONFIRM: self._confirm,
            ft.DENY: self._deny,
        }

    async def run(self, turn: Turn, offer: Offer, name: str, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        """Run one framework tool that was offered.

        Raises:
            Refused: Its arguments, or the moment, are wrong; nothing was done.
        """
        return await self._handlers[name](turn, offer, arguments, reply)

    async def _start_skill(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        id, top = str(arguments.get("skill", "")), self._core.state.top
        if top is not None and id == top.skill.id:
            return Reply('{"ok": true, "note": "It is already active."}')
        allowed = routable(self._core.project, self._core.state)
        if id not in allowed:
            raise Refused(f"There is no skill {id!r} to start now. Available: {', '.join(allowed) or 'none'}.")
        self._steps.ending.stay()
        top = self._core.state.top
        named = top is not None and not top.cursors and id in mentions(top.skill.prose)["skill"]
        try:
            self._router.start(turn, allowed[id], returns=named)
        except RoutingRefused as fault:
            raise Refused(str(fault)) from fault
        turn.fill_due = True
        turn.answer_due = True
        return OK

    async def _run_block(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        top = self._core.state.top
        block = top.skill.blocks.get(str(arguments.get("block"))) if top else None
        if top is None or block is None or top.cursors:
            raise Refused(f"There is no block {arguments.get('block')!r} to run now.")
        self._router.enter(top, block)
        turn.fill_due = True
        return OK

    async def _set_fields(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        state = self._core.state
        values: list[tuple[Field, Any]] = []
        for name, value in arguments.items():
            declared = offer.fields.get(name)
            if declared is None:
                raise Refused(f"{name!r} cannot be set. Fields: {', '.join(offer.fields) or 'none'}. Nothing was set.")
            if value is None or value == "":
                continue
            try:
                values.append((declared, coerce(declared, value)))
            except MemoryRefused as fault:
                raise Refused(f"{fault} Nothing was set.") from fault
        if not values:
            raise Refused("No value was given. Nothing was set.")
        read = state.memory.read
        corrected = {f.reference for f, value in values if read(f.namespace, f.name) not in (None, value)}
        for declared, value in values:
            state.memory.write(declared, value, Writer.MODEL)
        top = state.top
        if isinstance(state.question, PendingCall) and state.question.step is not None:
            self._router.drop_question("its arguments have changed")
        if top is not None and top.cursor is not None:
            top.cursor.declined = False
            if isinstance(top.cursor.step, CollectStep):
                turn.answer_due = False
            self._go_back(turn, top, corrected)
        return OK

    def _go_back(self, turn: Turn, frame: Frame, corrected: Set[Reference]) -> None:
        """What the block has done with an answer that was corrected is done again with the new one."""
        cursor = frame.cursor
        step = None if cursor is None else revisit(cursor, frame.skill, corrected, self._core.state.memory.read)
        if cursor is None or step is None:
            return
        # The same way once more is no circle.
        turn.budget = Budget()
        payload = {"skill": frame.skill.id, "block": cursor.block.id, "step": step.id}
        self._core.events.append("ordered_block_revisited", payload)

    async def _complete(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        top = self._core.state.top
        if top is None or top.cursors:
            raise Refused("There is no skill that could be completed now.")
        others = [call.name for call in reply.calls if ft.ALIASES.get(call.name, call.name) != ft.COMPLETE]
        if any(name not in ft.FRAMEWORK_TOOLS or name == ft.SEARCH_KNOWLEDGE for name in others):
            raise Refused("Use the results first, then call complete in a response of its own.")
        condition = top.skill.complete_when
        if top.skill.criteria and condition is not None and not condition.holds(self._core.state.memory.read):
            raise Refused("The skill is not done: what it has to reach has not been reached yet.")
        if reply.text.strip():
            turn.answer_due = False
        self._router.finish(turn, top)
        return OK

    async def _cancel_skill(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        top = self._core.state.top
        if top is None:
            raise Refused("No skill is active.")
        self._router.cancel(turn, top, reason="caller")
        turn.answer_due = False
        if self._core.state.farewell is not None:
            return OK
        if not reply.text.strip() and self._core.state.question is None:
            self._core.say(turn, "utter_skill_cancelled", top.skill.id)
        turn.answer_due = False
        return Reply(wait=self._core.state.top is None)

    async def _listen(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        record_tool(self._core.events, ft.LISTEN, "{}", Outcome(True, "{}"))
        return OK

    async def _hang_up(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        state = self._core.state
        if state.farewell is not None:
            # Saying goodbye once more is answer enough to whatever was to be asked before the end.
            state.farewell = []
        elif not reply.text.strip() and self._steps.ending.says_goodbye:
            self._core.say(turn, "utter_hangup_goodbye")
        return Reply(ended=self._steps.ending.end(turn))

    async def _transfer(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        name, top = str(arguments.get("destination", "")), self._core.state.top
        if name not in self._core.transfers:
            known = ", ".join(self._core.transfers)
            raise Refused(f"There is no destination {name!r}. Destinations: {known}. Nothing was done.")
        if not may_transfer(self._core.state):
            raise Refused("The caller cannot be put through now. Nothing was done.")
        announced = bool(reply.text.strip())
        skill = None if top is None else top.skill.id
        result = await self._steps.transfers.to(turn, name, skill=skill, announced=announced)
        turn.answer_due = not result.completed
        return Reply(result_json(result), ended=result.completed)

    async def _send_digits(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        top = self._core.state.top
        if top is None or not may_press(self._core.state):
            raise Refused("No keys can be pressed now. Nothing was done.")
        try:
            digits = read_digits(str(arguments.get("digits", "")))
        except BadDigits as fault:
            raise Refused(f"{fault} Nothing was pressed.") from fault
        return Reply(pressed_json(await self._steps.presses.press(turn, digits, skill=top.skill.id)))

    async def _search_knowledge(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        hooks = self._core.hooks
        given = KnowledgeQueryPayload(str(arguments.get("query") or turn.utterance), MAX_PASSAGES)
        try:
            asked = await hooks.run(Point.KNOWLEDGE_QUERY, given, turn.cancel)
            query = str(asked.query)
            passages = await self._passages(turn, asked)
            results = await hooks.run(Point.KNOWLEDGE_RESULTS, KnowledgeResultsPayload(query, passages), turn.cancel)
        except HookFailed as fault:
            raise Refused(f"Nothing was searched: {fault}.") from fault
        turn.searched, turn.answer_due = True, True
        sources = [passage.source for passage in results.passages]
        self._core.events.append("knowledge_searched", {"query": query, "sources": sources})
        return Reply(
            to_json({"passages": [{"title": p.title, "text": p.text, "source": p.source} for p in results.passages]})
        )

    async def _passages(self, turn: Turn, asked: KnowledgeQueryPayload) -> tuple[Passage, ...]:
        most = max(1, min(int(asked.limit), MOST_PASSAGES))
        top, recalls, query = self._core.state.top, self._core.recalls, str(asked.query)
        indexes = {"": self._core.project.knowledge}
        if top is not None:
            indexes = {top.skill.id: top.skill.knowledge, **indexes}
        learnt: list[Passage] = []
        if recalls is not None and recalls.knows_documents:
            owners = [owner for owner, index in indexes.items() if index is not None and recalls.has_references(owner)]
            search = recalls.search(query, owners, most)
            if (found := (await race(search, turn.cancel, name="knowledge search")).value) is not None:
                learnt = [one.passage for one in found if one.score >= asked.threshold]
                indexes = {owner: index for owner, index in indexes.items() if owner not in owners}
        own: list[ScoredPassage] = []
        for index in indexes.values():
            if index is not None and len(own) < most:
                by_words = index.search(query, limit=most - len(own))
                own += (await race(by_words, turn.cancel, name="knowledge search")).value
        return tuple(fused(learnt, [one.passage for one in own if one.score >= asked.threshold])[:most])

    async def _cannot_help(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        state = self._core.state
        turn.answer_due = False
        if reply.text.strip():
            return Reply(wait=state.question is not None)
        if state.question is not None:
            self._core.say(turn, "utter_not_understood")
            self._questions.repeat(turn)
            return Reply(wait=True)
        if offer.asked is not None:
            # Not an answer to the question that is open: the step asks again.
            self._core.say(turn, "utter_not_understood")
            return OK
        if away_tools(state):
            # What it takes is only out of reach, and will be back.
            self._core.say_unreachable(turn, state.top.skill.id if state.top else None)
            return Reply(wait=True)
        self._core.events.append("request_unsupported", {"reason": str(arguments.get("reason", ""))[:200]})
        self._router.start(turn, self._core.project.skills[UNSUPPORTED], returns=True)
        return OK

    async def _confirm(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        if self._questions.unasked(turn, worded=bool(reply.text.strip())):
            return Reply('{"error": "Not executed: the caller spoke before the question was heard."}', wait=True)
        return Reply(await self._questions.yes(turn))

    async def _deny(self, turn: Turn, offer: Offer, arguments: dict[str, Any], reply: ModelReply) -> Reply:
        text = self._questions.no(turn, worded=bool(reply.text.strip()))
        return Reply(text, wait=True)
