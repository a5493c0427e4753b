"""One Protocol for every language model: messages and tools in, a stream of deltas out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete tool call as a model asked for it. ``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. ``tool_call_id`` and ``name`` are set on role ``tool`` only."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool the model may call. ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SkillCard:
    """A skill the framework allows the model to start now. ``name`` is what a caller may hear it called."""

    id: str
    description: str
    examples: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class FieldCard:
    """A memory field the model may fill now.

    Attributes:
        type: ``text``, ``categorical``, ``bool``, ``int``, ``float``, ``list`` or ``any``.
        asked: The field whose question the caller is answering; at most one is.
    """

    name: str
    type: str
    description: str = ""
    choices: tuple[str, ...] = ()
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What the framework has decided the model may do in this call, in structured form.

    Everything here also stands in the prompt and the tool schemas, for models that read. A model
    that decides by similarity (the embedded one) reads this instead.

    Attributes:
        utterance: The caller's words of this turn, empty when no caller spoke.
        skills: Skills on the routing menu (already filtered by ``requires``).
        active_skill: The skill on top of the stack, if any.
        fields: Fields ``set_fields`` may write.
        confirming: A tool call is held and the caller was asked yes or no.
        has_knowledge: ``search_knowledge`` is offered and has something to search.
    """

    utterance: str = ""
    skills: tuple[SkillCard, ...] = ()
    active_skill: str | None = None
    fields: tuple[FieldCard, ...] = ()
    confirming: bool = False
    has_knowledge: bool = False


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. ``timeout`` values are the model's own settings, not the request's."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    scope: Scope = field(default_factory=Scope)
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next characters of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of a tool call. ``id`` and ``name`` come with the first fragment of an ``index``."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The model's last event. ``reason``: ``stop``, ``tool_calls``, ``length`` or the provider's own."""

    reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


ModelEvent = TextDelta | ToolCallDelta | Finished


class ModelError(Exception):
    """A model call failed after retries and fallbacks. The message is for the operator, never spoken.

    Attributes:
        kind: ``timeout_first_token``, ``timeout_between_tokens``, ``provider``, ``configuration``.
        refuses_tools: The provider seems to turn the request away because there are tools in it.
    """

    def __init__(self, message: str, kind: str = "provider", *, refuses_tools: bool = False) -> None:
        super().__init__(message)
        self.kind, self.refuses_tools = kind, refuses_tools


class LanguageModel(Protocol):
    """A language model. Safe to use from many calls at once."""

    @property
    def name(self) -> str:
        """Name for logs, metrics and timelines, such as ``embedded`` or ``openai/gpt-4o-mini``."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Run one model call.

        The task that iterates is the task that closes: cancel that task, or leave the loop and
        ``aclose()`` in the same task. Upstream connections are closed within 200 ms of either.

        Raises:
            ModelError: On the first ``__anext__`` or between events.
        """
        ...

    async def warm_up(self) -> None:
        """Load weights or import clients, off the loop, before the first call is admitted."""
        ...

    async def aclose(self) -> None:
        """Release connections. Idempotent."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A model that answers sooner when it has read beforehand what every call will ask about."""

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        """Read skills, and passages of reference texts as ``(title, text)``. After `LanguageModel.warm_up`."""
        ...


async def prepare(model: LanguageModel, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
    """Let ``model`` read beforehand, if it is one that `Prepares`."""
    if isinstance(model, Prepares):
        await model.prepare(skills, passages)
