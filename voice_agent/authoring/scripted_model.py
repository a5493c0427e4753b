"""A language model that answers from a conversation test."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable

from voice_agent.authoring.conversation_file import ScriptedReply
from voice_agent.dialogue.framework_tools import LISTEN, SET_FIELDS
from voice_agent.llm.protocol import Finished, ModelError, ModelEvent, ModelRequest, Scope, TextDelta, ToolCallDelta


class ScriptedModel:
    """Implements `LanguageModel`: each call gets the next reply of the step that runs.

    Attributes:
        unanswered: Requests of this step for which the script had no reply.
        left: Replies of this step that nobody asked for.
    """

    name = "scripted"

    def __init__(self) -> None:
        self._replies: deque[ScriptedReply] = deque()
        self.unanswered: list[ModelRequest] = []

    def begin(self, replies: Iterable[ScriptedReply]) -> None:
        """A step begins, with ``replies`` for its model calls."""
        self._replies, self.unanswered = deque(replies), []

    @property
    def left(self) -> tuple[ScriptedReply, ...]:
        return tuple(self._replies)

    async def warm_up(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Play the next reply; see `LanguageModel.stream`."""
        if not request.tools and request.scope == Scope():
            # Not a turn of the dialogue: a response that might be reworded. Tests see it as it is written.
            raise ModelError("responses are said as written in scripted tests", "configuration")
        if _only_fills(request) and not (self._replies and _fills(self._replies[0])):
            yield Finished("stop")
            return
        if not self._replies:
            self.unanswered.append(request)
            raise ModelError("the test has no reply for this model call", "configuration")
        reply = self._replies.popleft()
        if reply.error is not None:
            raise ModelError(reply.error)
        for word in re.findall(r"\s*\S+", reply.text):
            yield TextDelta(word)
        for index, (name, arguments) in enumerate(reply.calls):
            yield ToolCallDelta(index, f"call_{index}", name, json.dumps(arguments, ensure_ascii=False))
        yield Finished("tool_calls" if reply.calls else "stop")


def _only_fills(request: ModelRequest) -> bool:
    """Return whether nothing but fields may come of this call: the one after a skill was started."""
    return {tool.name for tool in request.tools} == {SET_FIELDS, LISTEN}


def _fills(reply: ScriptedReply) -> bool:
    return [name for name, _ in reply.calls] == [SET_FIELDS]
