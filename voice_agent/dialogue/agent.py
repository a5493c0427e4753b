"""A loaded agent: opens conversations, each isolated from the others."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from voice_agent.config import LlmOptions, TurnTaking
from voice_agent.config_files import ProjectConfig
from voice_agent.diagnostics import Problem, ProjectError, RemediableError, Severity
from voice_agent.dialogue.agent_checks import catalogue_of, check_agent
from voice_agent.dialogue.agent_id import keep_id
from voice_agent.dialogue.assembly import READ_CHANNELS as READ_CHANNELS
from voice_agent.dialogue.assembly import Assembly
from voice_agent.dialogue.blocks import ActionStep
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.events import Clock, utc_now
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.plugin_threads import PluginThreads
from voice_agent.dialogue.project import SESSION_START, Project
from voice_agent.dialogue.remote_tools import ToolServers
from voice_agent.dialogue.seeds import read_metadata
from voice_agent.dialogue.speaking import can_rephrase
from voice_agent.dialogue.workflows.catalogue import WorkflowChoice
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import LanguageModel, ModelError
from voice_agent.recall.protocol import Recalls
from voice_agent.store.memory import MemoryStore
from voice_agent.store.protocol import ConversationStore

log = logging.getLogger(__name__)

MakeStore = Callable[[ProjectConfig], ConversationStore]
MAX_ID_CHARS = 200
DEFAULT_RESUME_WINDOW_S = 30.0


def speculations_of(llm: LlmOptions) -> int:
    """Return how often the model may begin early for one utterance: never where it answers at once anyway."""
    wanted = llm.speculate == "on" or (llm.speculate == "auto" and llm.provider != "embedded")
    return llm.speculations_per_utterance if wanted else 0


class Agent:
    """One project, ready for conversations. Use `Agent.load`."""

    def __init__(
        self,
        config: ProjectConfig,
        project: Project,
        model: LanguageModel,
        store: ConversationStore,
        clock: Clock,
        recalls: Recalls | None = None,
    ) -> None:
        self.config, self.project = config, project
        self.problems: tuple[Problem, ...] = config.problems
        self._store = store
        self._rephraser, self._owns_rephraser = self._choose_rephraser(model)
        self.workflows = WorkflowChoice(catalogue_of(config, project))
        destinations = config.integrations.transfers
        self._assembly = Assembly(
            config.agent,
            project,
            model,
            self._rephraser,
            store,
            clock,
            self.workflows,
            destinations,
            speculations_of(config.integrations.llm),
            recalls,
        )
        self._live: weakref.WeakValueDictionary[str, LiveConversation] = weakref.WeakValueDictionary()
        self._owns_store = self._owns_threads = False

    @classmethod
    def load(
        cls,
        config: ProjectConfig,
        model: LanguageModel,
        *,
        store: ConversationStore | MakeStore | None = None,
        clock: Clock = utc_now,
        adapt: Callable[[Project], Project] | None = None,
        recalls: Recalls | None = None,
        servers: ToolServers | None = None,
        threads: PluginThreads | None = None,
    ) -> Agent:
        """Load and check the project that ``config`` belongs to.

        Args:
            model: Closed by whoever made it, not by the agent.
            store: Keeps conversations, or makes what does from the settings once the agent's id is known; in memory
                by default.
            clock: The calendar, for timestamps and the expiry of sessions.
            adapt: Changes the loaded project before it is used, such as to stub its tools in a test.
            recalls: Memory beyond the prompt. Closed by whoever made it.
            servers: Where the tools come from that skills import from servers; they stay away without.
            threads: Where functions of plugins run that are not ``async``. Closed by whoever made them; the agent has
                some of its own without.

        Raises:
            ProjectError: With every problem found, if any is an error.
        """
        project, problems = load_project(config.root, servers, config.plugins, threads)
        found = (*config.problems, *problems, *check_agent(config, project))
        if any(problem.severity is Severity.ERROR for problem in found):
            raise ProjectError(found)
        if not config.agent.agent.id:
            id, problem = keep_id(config.root / "agent.yml", clock())
            identity = config.agent.agent.model_copy(update={"id": id})
            config = replace(config, agent=config.agent.model_copy(update={"agent": identity}))
            found = (*found, problem)
        project = project if adapt is None else adapt(project)
        kept = MemoryStore() if store is None else store(config) if callable(store) else store
        agent = cls(config, project, model, kept, clock, recalls)
        agent.problems = found
        agent._owns_store, agent._owns_threads = store is None, threads is None
        return agent

    @property
    def store(self) -> ConversationStore:
        """Where its conversations are kept."""
        return self._store

    @property
    def threads(self) -> PluginThreads:
        """Where functions of its plugins run that are not ``async``."""
        return self.project.hooks.threads

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
            RemediableError: The id is empty, too long or not printable.
        """
        # An id stands in logs and is a key of the store: no line breaks, no half characters.
        if not 0 < len(conversation_id) <= MAX_ID_CHARS or not conversation_id.isprintable():
            raise RemediableError(
                "The conversation id is empty, too long, or holds characters that cannot be printed.",
                f"Use 1 to {MAX_ID_CHARS} printable characters.",
            )
        live = self._live.get(conversation_id)
        if live is None:
            window_s = self._resume_window_s(channel)
            live = self._assembly.conversation(conversation_id, channel, dict(metadata or {}), window_s)
            self._live[conversation_id] = live
        else:
            live.use_channel(channel, voice=channel not in READ_CHANNELS)
            if metadata:
                live.use_metadata(metadata)
        return live

    def read_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return metadata for `open` with each value as its field's type.

        Raises:
            BadMetadata: A key is no ``seed: true`` field of the project's memory, or a value does not fit.
        """
        return read_metadata(self.project.schema, metadata)

    def _choose_rephraser(self, model: LanguageModel) -> tuple[LanguageModel | None, bool]:
        """Return the model that rewords responses, and whether it is the agent's to close."""
        named = self.project.endpoints.rephrase_llm
        if named is not None:
            try:
                return build_model(named), True
            except RemediableError as fault:
                log.warning("responses are reworded by the agent's own model: %s", fault)
        return (model if can_rephrase(model) else None), False

    def _resume_window_s(self, channel: str) -> float:
        options = getattr(self.config.integrations.channels, channel, None)
        turn_taking: TurnTaking | None = getattr(options, "turn_taking", None)
        return DEFAULT_RESUME_WINDOW_S if turn_taking is None else turn_taking.resume_window_s

    async def warm_up(self) -> None:
        """Make ready the model that rewords, if the project names one. If it cannot be, lines are said as written.

        The agent's own model is warmed by whoever made it.
        """
        if self._rephraser is not None and self._owns_rephraser:
            try:
                await self._rephraser.warm_up()
            except (ModelError, RemediableError) as fault:
                log.warning("responses are said as written: %s", fault)

    async def aclose(self) -> None:
        """Release what the agent made itself. Idempotent."""
        if self._owns_threads:
            self.threads.close()
        if self._rephraser is not None and self._owns_rephraser:
            await self._rephraser.aclose()
        if self._owns_store:
            await self._store.aclose()
