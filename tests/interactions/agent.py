"""The conversation of a script: its turns do what the script says, and everything that happens is told as a story."""

from __future__ import annotations

from typing import Any

from tests.fakes.conversation import BOOKKEEPING, ScriptedConversation, Speaker
from tests.fakes.conversation import Script as Turn
from tests.interactions.script import AgentTurn, Script
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.reply import HeardReply, ReplySink, TurnResult, UserInput

LINES = {
    "utter_could_not_hear": "Sorry, I could not hear you.",
    "utter_call_ending_soon": "This call ends in a minute.",
    "utter_hangup_goodbye": "Goodbye.",
    "utter_internal_error": "Something went wrong.",
}
HEARD_TO = " | "
"""Divides what was heard of a reply from what was not."""


def divided(heard: str, unheard: str) -> str:
    """Write a reply as ``heard | unheard``, without the bar if all of it was heard."""
    return (
        f"{heard.strip()}{HEARD_TO if heard.strip() else '| '}{unheard.strip()}" if unheard.strip() else heard.strip()
    )


class ScriptAgent(ScriptedConversation):
    """A `ScriptedConversation` made of a script's turns.

    Attributes:
        settled: Replies and lines that were committed so far.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(*(_turn(steps) for steps in script.agent), lines=LINES | script.lines)
        self._for_silence = [_turn(steps) for steps in script.silence]
        self.settled = 0
        self.tokens: list[CancelToken] = []

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        self.tokens.append(cancel)
        result = super().turn(user, turn_id=turn_id, sink=sink, cancel=cancel)
        cancel.on_cancel(lambda: self.log.append(("cancelled", cancel.reason.value if cancel.reason else "")))
        return await result

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        self.settled += 1
        self.log.append(("heard", divided(reply.heard, reply.unheard)))
        if reply.context is not None:
            self.log.append(("known", reply.context.strip()))
        self.replies.append((turn_id, reply))

    def note(self, kind: str, **data: Any) -> None:
        if kind in BOOKKEEPING:
            self.records.append((kind, data))
        elif kind == "line":
            self.settled += 1
            self.log.append(("line", f"{data['name']}: {data['heard'].strip()}"))
        else:
            self.log.append(("note", f"{kind} {data['text']}" if "text" in data else kind))

    @property
    def story(self) -> list[dict[str, str]]:
        """Everything that happened, in order."""
        return [{kind: str(data)} for kind, data in self.log]

    def entries(self) -> list[str]:
        """The story as cues name it: ``turn what is my balance?``."""
        return [f"{kind} {data}" for kind, data in self.log]

    def _script(self, user: UserInput) -> Turn:
        if user.text == "/silence" and self._for_silence:
            count = sum(1 for i in self.inputs if i.text == "/silence")
            return self._for_silence[min(count, len(self._for_silence)) - 1]
        return super()._script(user)


def _turn(steps: AgentTurn) -> Turn:
    async def turn(speaker: Speaker) -> None:
        for step in steps:
            if step.say is not None:
                speaker.say(step.say)
            elif step.protected is not None:
                speaker.say(step.protected, interruptible=False)
            elif step.discarding is not None:
                speaker.say(step.discarding, interruptible=False, while_uninterruptible="discard")
            elif step.recorded is not None:
                speaker.say(step.recorded, record="full")
            elif step.stream is not None:
                await speaker.stream(step.stream)
            elif step.wait is not None:
                await speaker.wait(step.wait)
            elif step.tool is not None:
                await speaker.tool(step.tool.name, step.tool.seconds, interruptible=step.tool.interruptible)
            elif step.transfer is not None:
                if await speaker.transfer(step.transfer):
                    return
            elif step.fail is not None:
                raise RuntimeError(step.fail)
            else:
                speaker.hang_up(step.hang_up or "completed")

    return turn
