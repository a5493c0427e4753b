"""Puts one conversation's engine together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.config import AgentFile, TransferOptions
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import Dispatcher, Limits
from voice_agent.dialogue.events import Clock, EventLog, to_json
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.history import MAX_RECORDS, history
from voice_agent.dialogue.hook_runner import HookRunner
from voice_agent.dialogue.hooks import HistoryLine, HookContext
from voice_agent.dialogue.loop import RuntimeLoop
from voice_agent.dialogue.memory import Memory, MemoryHandle, Writer
from voice_agent.dialogue.model_call import ModelCaller
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.prompt import PromptBuilder
from voice_agent.dialogue.reply import InputKind
from voice_agent.dialogue.sessions import Sessions
from voice_agent.dialogue.speaking import REJECTED, Speaker
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.workflows.catalogue import WorkflowChoice
from voice_agent.llm.protocol import LanguageModel
from voice_agent.recall.protocol import Recalls
from voice_agent.store.protocol import ConversationStore

READ_CHANNELS = frozenset(("text", "rest"))
"""Channels whose replies are read rather than heard."""


class Assembly:
    """Makes conversations of one agent.

    Args:
        rephraser: The model that rewords responses; None to say everything as written.
        choice: How the model is led.
        transfers: Where callers can be put through to.
        recalls: Memory beyond the prompt.
    """

    def __init__(
        self,
        agent: AgentFile,
        project: Project,
        model: LanguageModel,
        rephraser: LanguageModel | None,
        store: ConversationStore,
        clock: Clock,
        choice: WorkflowChoice,
        transfers: Mapping[str, TransferOptions] | None = None,
        speculations: int = 0,
        recalls: Recalls | None = None,
    ) -> None:
        self._recalls = recalls
        self._transfers, self._speculations = dict(transfers or {}), speculations
        self._agent, self._project, self._model, self._rephraser = agent, project, model, rephraser
        self._store, self._clock, self._choice = store, clock, choice
        self._prompts = PromptBuilder(agent, project)

    def conversation(
        self, conversation_id: str, channel: str, metadata: Mapping[str, Any], resume_window_s: float
    ) -> LiveConversation:
        """Make the conversation ``conversation_id``; what is stored of it is read by its first turn."""
        user, environment = (str(metadata.get(key, "")) for key in ("user_id", "environment"))
        events = EventLog(conversation_id, self._clock, user_id=user, environment=environment)

        def written(declared: Field, value: Any, writer: Writer) -> None:
            payload = {"namespace": declared.namespace, "key": declared.name, "value_json": to_json(value)}
            # Marked, so that it is known for what it is when the project has changed.
            marks = {"pii": True} if declared.pii else {}
            events.append("memory_set", {**payload, "source": writer.value, **marks})

        core = self._core(events, Memory(self._project.schema, written), channel)
        sessions = Sessions(core, metadata, resume_window_s)
        loop = RuntimeLoop(
            core, self._model, self._prompts, lambda: f"{self._clock():%A, %d %B %Y, %H:%M}", self._choice
        )
        return LiveConversation(core, loop, sessions, self._store, self._clock)

    def _core(self, events: EventLog, memory: Memory, channel: str) -> Core:
        agent, state = self._agent, DialogueState(memory)

        def context(may_write: bool, settings: Any = None) -> HookContext:
            skill = state.top.skill.id if state.top else None
            handle = MemoryHandle(memory, skill, Writer.HOOK)
            if not may_write:
                handle.close()
            turn, user, turn_id = core.turn, core.user, events.turn_id
            spoke = user is not None and user.kind is not InputKind.INTENT
            return HookContext(
                events.conversation_id,
                turn_id,
                core.channel,
                core.voice,
                handle,
                user.text if spoke and user is not None else "",
                user.kind.value if spoke and user is not None else "",
                skill or "",
                tuple(one.passage for one in turn.recalled) if turn is not None and turn.recalled else (),
                settings,
                lambda: _said(events, state.session.id, turn_id),
            )

        hooks = HookRunner(self._project.hooks, context)
        caller = ModelCaller(hooks)
        core = Core(
            project=self._project,
            agent=agent,
            state=state,
            events=events,
            dispatcher=Dispatcher(memory, events, Limits(agent.tool_timeout, agent.cancellation_grace), hooks),
            hooks=hooks,
            models=caller,
            speaker=Speaker(agent, hooks, caller, self._rephraser, self._rejected()),
            channel=channel,
            voice=channel not in READ_CHANNELS,
            transfers=self._transfers,
            speculations=self._speculations,
            recalls=self._recalls,
        )
        return core

    def _rejected(self) -> str:
        response = self._project.responses.find(REJECTED, None)
        plain = response.choose(lambda namespace, entry: None) if response is not None else None
        return plain.template.source if plain is not None and plain.template.is_constant else ""


def _said(events: EventLog, session_id: str, turn_id: str) -> tuple[HistoryLine, ...]:
    """Return what was said before ``turn_id``, as the model is told it, without tools."""
    messages, _ = history(events.recent(MAX_RECORDS), session_id, before_turn=turn_id)
    roles = {"user": "caller", "assistant": "agent"}
    return tuple(HistoryLine(roles[m.role], m.content) for m in messages if m.role in roles and m.content)
