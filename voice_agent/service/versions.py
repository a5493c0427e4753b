"""The agent as it is now, while its files change: each turn runs with the newest version there is when it begins.

version 1   ── turn ──────────▶ │            its turn keeps it to the end
version 2        ▲ replaced     ├── turn ──▶  goes on where version 1 stood
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from voice_agent.diagnostics import Problem
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.direct_tools import DirectTool
from voice_agent.dialogue.events import Listener
from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.reply import ExpectedAnswer, HeardReply, ReplySink, TurnResult, TurnStatus, UserInput
from voice_agent.dialogue.workflows.catalogue import Stored

ModelCallListener = Callable[[str, ModelCallRecord], None]

MAX_RETIRED = 16
"""Earlier versions of one conversation whose hooks may still be at work."""


class AgentVersions:
    """An `Agent` that can be replaced. Conversations opened here outlive the version they began with."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._former: list[Agent] = []
        self._settings: Callable[[], Stored] | None = None
        self._listeners: list[Listener] = []
        self._call_listeners: list[ModelCallListener] = []
        self._live: weakref.WeakValueDictionary[str, VersionedConversation] = weakref.WeakValueDictionary()

    @property
    def current(self) -> Agent:
        return self._agent

    @property
    def project(self) -> Project:
        return self._agent.project

    def on_event(self, listener: Listener) -> None:
        """Call back with each tracker event of every conversation. For the life of the service."""
        self._listeners.append(listener)

    def on_model_call(self, listener: ModelCallListener) -> None:
        """Call back with the conversation's id and each model call, once it has ended. For the life of the service."""
        self._call_listeners.append(listener)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._agent.problems

    @property
    def canned_texts(self) -> tuple[str, ...]:
        return self._agent.canned_texts

    def replace(self, agent: Agent) -> None:
        """Use ``agent`` for every turn that begins from now on."""
        if self._settings is not None:
            agent.workflows.follow(self._settings)
        self._former.append(self._agent)
        self._agent = agent

    def follow_settings(self, stored: Callable[[], Stored]) -> None:
        """Let this version and later ones use the settings of workflows that ``stored`` returns."""
        self._settings = stored
        self._agent.workflows.follow(stored)

    def open(
        self, conversation_id: str, *, channel: str, metadata: Mapping[str, Any] | None = None
    ) -> VersionedConversation:
        """Open a conversation, new or known; see `Agent.open`."""
        live = self._live.get(conversation_id)
        if live is None:
            live = VersionedConversation(self, conversation_id, channel, metadata)
            self._live[conversation_id] = live
        else:
            live.use_channel(channel)
            if metadata:
                live.use_metadata(metadata)
        return live

    async def aclose(self) -> None:
        for agent in (*self._former, self._agent):
            await agent.aclose()


class VersionedConversation:
    """Implements `voice_agent.dialogue.reply.Conversation` over all versions of an agent."""

    def __init__(
        self, versions: AgentVersions, conversation_id: str, channel: str, metadata: Mapping[str, Any] | None
    ) -> None:
        self._versions, self._id, self._channel, self._metadata = versions, conversation_id, channel, metadata
        self._listeners: list[Listener] = []
        self._agent = versions.current
        self._conversation = self._open(self._agent)
        self._retired: list[LiveConversation] = []

    def _open(self, agent: Agent) -> LiveConversation:
        opened = agent.open(self._id, channel=self._channel, metadata=self._metadata)
        this = weakref.ref(self)

        def tell(event: Mapping[str, Any]) -> None:
            conversation = this()
            for listener in tuple(conversation._listeners) if conversation is not None else ():
                listener(event)

        opened.on_event(tell)
        for listener in self._versions._listeners:
            opened.on_event(listener)
        for listen in self._versions._call_listeners:
            opened.on_model_call(partial(listen, self._id))
        return opened

    @property
    def id(self) -> str:
        return self._id

    @property
    def expected(self) -> ExpectedAnswer | None:
        return self._conversation.expected

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        return self._conversation.events

    def use_channel(self, channel: str) -> None:
        """The caller has come back by another channel."""
        self._channel = channel
        self._agent.open(self._id, channel=channel)

    def use_metadata(self, metadata: Mapping[str, Any]) -> None:
        """The caller has come back, with what the application knows of them now."""
        self._metadata = metadata
        self._agent.open(self._id, channel=self._channel, metadata=metadata)

    def on_event(self, callback: Listener) -> Callable[[], None]:
        """Call back with each new tracker event, whichever version it comes from. Returns an unsubscriber."""
        self._listeners.append(callback)

        def forget() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return forget

    def line(self, name: str, nth: int = 0) -> str:
        return self._conversation.line(name, nth)

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        newest = self._versions.current
        if newest is not self._agent:
            following = self._open(newest)
            try:
                await following.go_on_from(self._conversation, cancel)
            except TurnCancelled:
                return TurnResult(turn_id, TurnStatus.CANCELLED)
            self._retired = [*self._retired, self._conversation][-MAX_RETIRED:]
            self._agent, self._conversation = newest, following
        return await self._conversation.turn(user, turn_id=turn_id, sink=sink, cancel=cancel)

    @property
    def is_expired(self) -> bool:
        """Whether the next words begin a new session; see `LiveConversation.is_expired`."""
        return self._conversation.is_expired

    def direct_tools(self) -> Mapping[str, DirectTool]:
        """Return the tools that a program may call now, by name."""
        return self._conversation.direct_tools()

    async def run_tool(self, name: str, arguments: Mapping[str, Any], cancel: CancelToken) -> Outcome:
        """Run one of `direct_tools`; see `LiveConversation.run_tool`."""
        return await self._conversation.run_tool(name, arguments, cancel)

    @property
    def speculations_per_utterance(self) -> int:
        """See `voice_agent.dialogue.reply.Speculating`. None while the next turn is another version's."""
        return self._conversation.speculations_per_utterance if self._versions.current is self._agent else 0

    async def speculate(
        self, user: UserInput, *, can_transfer: bool, can_send_digits: bool = False, cancel: CancelToken
    ) -> None:
        """See `voice_agent.dialogue.reply.Speculating`."""
        await self._conversation.speculate(
            user, can_transfer=can_transfer, can_send_digits=can_send_digits, cancel=cancel
        )

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        self._conversation.commit_reply(turn_id, reply)

    def note(self, kind: str, **data: Any) -> None:
        self._conversation.note(kind, **data)

    async def close(self, outcome: str) -> None:
        await self._conversation.close(outcome)
        for conversation in self._retired:
            await conversation.retire()
        self._retired.clear()
