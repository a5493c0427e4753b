"""A loaded agent: opens conversations, each isolated from the others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from voice_agent.config_files import ProjectConfig
from voice_agent.diagnostics import Problem, ProjectError, RemediableError, Severity
from voice_agent.dialogue.blocks import ActionStep
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import Dispatcher, Limits
from voice_agent.dialogue.events import Clock, EventLog, to_json, utc_now
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.loop import RuntimeLoop
from voice_agent.dialogue.memory import Field, Memory, Writer
from voice_agent.dialogue.project import SESSION_START, Project
from voice_agent.dialogue.prompt import PromptBuilder
from voice_agent.dialogue.sessions import Sessions
from voice_agent.dialogue.state import DialogueState
from voice_agent.llm.protocol import LanguageModel
from voice_agent.store.memory import MemoryStore
from voice_agent.store.protocol import ConversationStore

MAX_ID_CHARS = 200
READ_CHANNELS = frozenset(("text", "rest"))
"""Channels whose replies are read rather than heard."""
DEFAULT_RESUME_WINDOW_S = 30.0


class Agent:
    """One project, ready for conversations. Use `Agent.load`."""

    def __init__(
        self, config: ProjectConfig, project: Project, model: LanguageModel, store: ConversationStore, clock: Clock
    ) -> None:
        self.config, self.project = config, project
        self.problems: tuple[Problem, ...] = config.problems
        self._model, self._store, self._clock = model, store, clock
        self._prompts = PromptBuilder(config.agent, project)
        self._live: weakref.WeakValueDictionary[str, LiveConversation] = weakref.WeakValueDictionary()
        self._owns_store = False

    @classmethod
    def load(
        cls,
        config: ProjectConfig,
        model: LanguageModel,
        *,
        store: ConversationStore | None = None,
        clock: Clock = utc_now,
        adapt: Callable[[Project], Project] | None = None,
    ) -> Agent:
        """Load and check the project that ``config`` belongs to.

        Args:
            model: Closed by whoever made it, not by the agent.
            store: Keeps conversations; in memory by default.
            clock: The calendar, for timestamps and the expiry of sessions.
            adapt: Changes the loaded project before it is used, such as to stub its tools in a test.

        Raises:
            ProjectError: With every problem found, if any is an error.
        """
        project, problems = load_project(config.root)
        found = (*config.problems, *problems)
        if any(problem.severity is Severity.ERROR for problem in found):
            raise ProjectError(found)
        project = project if adapt is None else adapt(project)
        agent = cls(config, project, model, MemoryStore() if store is None else store, clock)
        agent.problems = found
        agent._owns_store = store is None
        return agent

    @property
    def canned_texts(self) -> tuple[str, ...]:
        """Every configured text without placeholders, the greeting first: worth synthesising beforehand."""
        greeting = self.project.skills[SESSION_START]
        steps = [step for block in greeting.blocks.values() for step in block.steps]
        first = [(step.response, SESSION_START) for step in steps if isinstance(step, ActionStep)]
        return self.project.responses.constant_texts(first)

    def open(
        self, conversation_id: str, *, channel: str, metadata: Mapping[str, Any] | None = None
    ) -> LiveConversation:
        """Open a conversation, new or known.

        A live id gives the same object; a stored one goes on where it stood, from its first turn on.

        Args:
            metadata: Fills project memory declared with ``seed: true`` when a session begins;
                ``user_id`` and ``environment`` go into the tracker's envelope.

        Raises:
            RemediableError: The id is empty or too long.
        """
        if not conversation_id or len(conversation_id) > MAX_ID_CHARS:
            raise RemediableError("The conversation id is empty or too long.", f"Use 1 to {MAX_ID_CHARS} characters.")
        live = self._live.get(conversation_id)
        if live is None:
            live = self._make(conversation_id, channel, dict(metadata or {}))
            self._live[conversation_id] = live
        else:
            live.use_channel(channel, voice=channel not in READ_CHANNELS)
        return live

    def _make(self, conversation_id: str, channel: str, metadata: dict[str, Any]) -> LiveConversation:
        agent = self.config.agent
        user, environment = (str(metadata.get(key, "")) for key in ("user_id", "environment"))
        events = EventLog(conversation_id, self._clock, user_id=user, environment=environment)

        def written(declared: Field, value: Any, writer: Writer) -> None:
            payload = {"namespace": declared.namespace, "key": declared.name, "value_json": to_json(value)}
            events.append("memory_set", {**payload, "source": writer.value})

        memory = Memory(self.project.schema, written)
        limits = Limits(agent.tool_timeout, agent.cancellation_grace)
        core = Core(
            project=self.project,
            agent=agent,
            state=DialogueState(memory),
            events=events,
            dispatcher=Dispatcher(memory, events, limits),
            channel=channel,
            voice=channel not in READ_CHANNELS,
        )
        sessions = Sessions(core, metadata, self._resume_window_s(channel))
        loop = RuntimeLoop(core, self._model, self._prompts, lambda: f"{self._clock():%A, %d %B %Y, %H:%M}")
        return LiveConversation(core, loop, sessions, self._store, self._clock)

    def _resume_window_s(self, channel: str) -> float:
        options = getattr(self.config.integrations.channels, channel, None)
        return DEFAULT_RESUME_WINDOW_S if options is None else options.turn_taking.resume_window_s

    async def aclose(self) -> None:
        """Release what the agent made itself. Idempotent."""
        if self._owns_store:
            await self._store.aclose()
