"""What a conversation test puts around a project's tools: stubs, and the moment at which the caller barges in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voice_agent.authoring.conversation_file import Interruption, Stub
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.memory import MemoryHandle
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.remote_tools import RemoteTool
from voice_agent.dialogue.reply import HangUp, HeardReply, ReplyItem, Say
from voice_agent.dialogue.tools import Tool, ToolContext, ToolResult

_CONTEXT = "conversation_test_context"


class StubFailure(Exception):
    """What a stubbed tool raises."""


class Stage:
    """The tools of one test, and the turn that is on."""

    def __init__(self, stubs: Mapping[str, Sequence[Stub]]) -> None:
        self._stubs: dict[str, list[Stub]] = {}
        self.stub(stubs)
        self._turn: ListeningCaller | None = None

    def stub(self, stubs: Mapping[str, Sequence[Stub]]) -> None:
        """Stub tools from here on, in place of earlier stubs of the same names."""
        self._stubs.update({name: list(results) for name, results in stubs.items()})

    def begin(self, turn: ListeningCaller) -> None:
        self._turn = turn

    def prepare(self, project: Project) -> Project:
        """Return ``project`` with every tool going through the stage."""
        skills = {
            id: replace(skill, tools={name: self._wrap(tool) for name, tool in skill.tools.items()})
            for id, skill in project.skills.items()
        }
        return replace(project, skills=skills)

    def _wrap(self, tool: Tool) -> Tool:
        if isinstance(tool, RemoteTool):
            # Tests start no servers: what is not stubbed is out of reach.
            tool = Tool(tool.name, tool.description, tool.function, tool.parameters, interruptible=tool.interruptible)
        own_context = tool.takes_context

        async def run(**arguments: Any) -> Any:
            context: ToolContext = arguments[own_context] if own_context else arguments.pop(_CONTEXT)
            if self._turn is not None:
                self._turn.tool_begins(tool.name)
            stub = self._next(tool.name)
            if stub is None:
                return await tool.function(**arguments)
            return await _play(stub, context.memory)

        return replace(tool, function=run, takes_context=own_context or _CONTEXT)

    def _next(self, name: str) -> Stub | None:
        results = self._stubs.get(name)
        if results is None:
            return None
        return results.pop(0) if len(results) > 1 else results[0]


async def _play(stub: Stub, memory: MemoryHandle) -> ToolResult:
    if stub.takes_s:
        await asyncio.sleep(stub.takes_s)
    for name, value in stub.sets.items():
        memory.set(name, value)
    if stub.error is not None:
        raise StubFailure(stub.error)
    return ToolResult(llm_response=stub.result)


class ListeningCaller:
    """The caller during one turn: takes the reply, and barges in where the test says so.

    Implements `ReplySink`.

    Attributes:
        cancel: The turn's token.
        hung_up: The agent has ended the call.
        interrupted: The caller did barge in.
    """

    def __init__(
        self, interruption: Interruption | None = None, message_begins: Callable[[int], None] = lambda number: None
    ) -> None:
        self.cancel = CancelToken()
        self.says: list[Say] = []
        self.hung_up = self.interrupted = False
        self._interruption, self._message_begins = interruption, message_begins
        self._timers: list[asyncio.TimerHandle] = []

    def emit(self, item: ReplyItem) -> None:
        if isinstance(item, HangUp):
            self.hung_up = True
            return
        if all(say.message != item.message for say in self.says[-1:]):
            self._message_begins(item.message)
        self.says.append(item)
        wanted = None if self._interruption is None else self._interruption.after_words
        if wanted is not None and item.interruptible and len(self.text.split()) >= wanted:
            self._interrupt()

    def tool_begins(self, name: str) -> None:
        if self._interruption is not None and self._interruption.during == name:
            # Not at once: the tool shall be at its first await, or so far into its work, when it is cut off.
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._interruption.after_s, self._interrupt))

    def end(self) -> None:
        """The turn is over: nothing can be interrupted any more."""
        for timer in self._timers:
            timer.cancel()

    def _interrupt(self) -> None:
        self.interrupted = True
        self.cancel.cancel(CancelReason.BARGE_IN)

    @property
    def messages(self) -> list[tuple[str, str | None]]:
        """(text, response name) of each message, pieces joined."""
        return list(self.by_number.values())

    @property
    def by_number(self) -> dict[int, tuple[str, str | None]]:
        """``messages`` by their numbers."""
        texts: dict[int, str] = {}
        names: dict[int, str | None] = {}
        for say in self.says:
            texts[say.message] = texts.get(say.message, "") + say.text
            names[say.message] = say.response or names.get(say.message)
        return {number: (text.strip(), names[number]) for number, text in texts.items() if text.strip()}

    @property
    def text(self) -> str:
        return " ".join(text for text, _ in self.messages)

    @property
    def heard(self) -> HeardReply:
        """What the caller heard: everything, or the words up to the interruption."""
        wanted = None if self._interruption is None else self._interruption.after_words
        if wanted is None or not self.interrupted:
            return HeardReply(self.text)
        words = self.text.split()
        return HeardReply(" ".join(words[:wanted]), " ".join(words[wanted:]))
