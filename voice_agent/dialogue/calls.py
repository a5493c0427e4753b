"""Runs the tool calls of one model reply, in order, each through its gates."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from voice_agent.dialogue import framework_tools as ft
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.framework_calls import FrameworkCalls, Refused, Reply
from voice_agent.dialogue.model_call import ModelReply
from voice_agent.dialogue.offer import Offer, open_tools
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.steps import StepRunner
from voice_agent.dialogue.turn import Turn, cut
from voice_agent.llm.protocol import Message, ToolCall


class After(Enum):
    """What follows a batch of calls."""

    GO_ON = "go_on"
    WAIT = "wait"
    ENDED = "ended"
    STUCK = "stuck"
    """The model makes the same call again and again."""


class CallRunner:
    def __init__(self, core: Core, router: Router, steps: StepRunner) -> None:
        self._core, self._steps = core, steps
        self._framework = FrameworkCalls(core, router, steps)

    async def run(self, turn: Turn, offer: Offer, reply: ModelReply) -> After:
        """Run the calls of ``reply`` and put them, with their results, into the turn's scratch.

        Raises:
            TurnCancelled: A tool was cut off; the calls after it were not made.
        """
        calls = tuple(_canonical(call) for call in reply.calls)
        turn.scratch.append(Message("assistant", reply.text.strip(), tool_calls=calls))
        after = After.GO_ON
        answered: set[str] = set()
        if reply.text.strip():
            turn.answer_due = False
        try:
            for call in calls:
                turn.cancel.check()
                if turn.is_repeat(call.name, call.arguments):
                    after = After.STUCK
                elif after is After.GO_ON:
                    result = await self._run_one(turn, offer, call, reply)
                    self._answer(turn, call, result.text)
                    answered.add(call.id)
                    after = result.after or After.GO_ON
        finally:
            # A call never stands without its result, whatever ended the batch.
            for call in calls:
                if call.id not in answered:
                    self._answer(turn, call, _error("Not executed."))
        if after is After.GO_ON and [call.name for call in calls] == [ft.LISTEN] and not reply.text.strip():
            turn.silent = True
            return After.WAIT
        return after

    @staticmethod
    def _answer(turn: Turn, call: ToolCall, text: str) -> None:
        turn.scratch.append(Message("tool", cut(text), tool_call_id=call.id, name=call.name))

    async def _run_one(self, turn: Turn, offer: Offer, call: ToolCall, reply: ModelReply) -> _Result:
        try:
            if call.name in reply.withheld:
                raise Refused(f"{call.name} cannot be used now.")
            arguments = _arguments(call, offer)
            if call.name in ft.FRAMEWORK_TOOLS:
                if call.name not in offer.names:
                    raise Refused(f"{call.name} cannot be used now.")
                if call.name == ft.SEARCH_KNOWLEDGE:
                    self._spend(turn)
                    turn.procedures += 1
                return _Result.of(await self._framework.run(turn, offer, call.name, arguments, reply))
            return await self._project_tool(turn, offer, call, arguments)
        except Refused as fault:
            turn.answer_due = True
            return _Result(_error(str(fault)))

    @staticmethod
    def _spend(turn: Turn) -> None:
        if not turn.may_run_tools:
            turn.refused_procedures += 1
            raise Refused("Not executed: this turn has used all of its tool calls. Answer with what you have.")

    async def _project_tool(self, turn: Turn, offer: Offer, call: ToolCall, arguments: dict[str, Any]) -> _Result:
        # Asked again, not taken from the offer: an earlier call of the batch may have shut the gate.
        tools = open_tools(self._core.state)
        frame = self._core.state.top
        if frame is None or call.name not in tools:
            names = sorted({*tools, *offer.names} - {ft.LISTEN})
            raise Refused(f"There is no tool {call.name!r} here. Available: {', '.join(names) or 'none'}.")
        tool = tools[call.name]
        self._spend(turn)
        if frame.skill.constraint(call.name).confirmation is not None:
            self._steps.questions.hold(turn, frame.skill, call.name, arguments, step=None)
            return _Result(_error("Held: the caller was asked to confirm. Not executed yet."), After.WAIT)
        said = len(turn.reply.said)
        outcome = await self._steps.tool_runs.run(turn, frame, tool, arguments, step=None)
        turn.answer_due = len(turn.reply.said) == said
        return _Result(outcome.json)


class _Result:
    """What one call gives the model, and what it means for the batch."""

    __slots__ = ("after", "text")

    def __init__(self, text: str, after: After | None = None) -> None:
        self.text, self.after = text, after

    @classmethod
    def of(cls, reply: Reply) -> _Result:
        after = After.ENDED if reply.ended else After.WAIT if reply.wait else None
        return cls(reply.text, after)


def _canonical(call: ToolCall) -> ToolCall:
    return ToolCall(call.id, ft.ALIASES.get(call.name, call.name), call.arguments)


def _arguments(call: ToolCall, offer: Offer) -> dict[str, Any]:
    spec = next((spec for spec in offer.specs if spec.name == call.name), None)
    properties = spec.parameters.get("properties") if spec is not None else None
    shape = f"a JSON object with {', '.join(properties)}" if properties else "a JSON object"
    try:
        value = json.loads(call.arguments or "{}")
        # Python reads NaN and infinities, which are no JSON: no limit holds for them, and no other reader takes them.
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as fault:
        raise Refused(f"The arguments of {call.name} are not valid JSON. Send {shape}.") from fault
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused(f"The arguments of {call.name} must be {shape}.")
    return value


def _error(message: str) -> str:
    return json.dumps({"error": message}, ensure_ascii=False)
