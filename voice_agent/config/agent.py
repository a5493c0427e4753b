"""All of ``agent.yml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from voice_agent.config.options import Options, Seconds


class AgentIdentity(Options):
    """The ``agent:`` section of ``agent.yml``."""

    id: str = ""
    """Stable name of the agent, under which its conversations are kept; made at its first start if missing."""
    name: str = "Agent"
    """What it calls itself."""
    language: str = "en"
    """Language it speaks unless the caller speaks another; also that of its voice's texts."""
    description: str = ""
    """What the agent is for; part of the model's prompt."""
    persona: str
    """Who the agent is and how it speaks, in a sentence or a few."""


class SessionOptions(Options):
    """The ``session_config:`` section of ``agent.yml``."""

    session_expiration_time: float = Field(60, ge=0, le=525_600)
    """Minutes without a turn after which the next one starts a new session; 0 never expires."""
    start_session_after_expiry: bool = True
    """Whether an expired session is followed by ``default_session_start``."""


class StyleOptions(Options):
    """The ``orchestrator:`` section of ``agent.yml``: how replies are worded, per kind of channel."""

    voice_rules: tuple[str, ...] | None = None
    """Replaces the built-in rules for speech."""
    text_rules: tuple[str, ...] | None = None
    """Replaces the built-in rules for text."""


Tokens = Annotated[int, Field(ge=50, le=200_000)]


class PromptOptions(Options):
    """The ``prompts:`` section of ``agent.yml``. A section of the prompt beyond its tokens is cut, and says so."""

    ack_enabled: bool | None = None
    """Whether the model says a few words before a tool that takes time; by default in speech and not in text."""
    routing_no_active_skill: str | None = None
    """Replaces the rule for small talk."""
    rules_tokens: Tokens = 2000
    """Rules, and style, each."""
    skills_tokens: Tokens = 3000
    """The list of skills."""
    instructions_tokens: Tokens = 4000
    """The active skill's text."""
    memory_tokens: Tokens = 1500
    """Known values, each of the three groups of them."""
    history_tokens: Tokens = 6000
    """Turns before this one; the oldest go first."""
    turn_tokens: Tokens = 8000
    """Tool calls and results of this turn; the oldest results are shortened first."""


class ReactOptions(Options):
    """The ``react:`` section of ``agent.yml``, for turns led by the workflow ``react``."""

    # The settings page shows them.
    model_config = ConfigDict(use_attribute_docstrings=True)

    system_prompt: str = "You are a careful agent: you look things up before you state them, and answer briefly."
    """What the model is told about its task, beside persona and rules."""
    max_iterations: int = Field(5, ge=1, le=100)
    """Model calls within one turn."""
    max_procedures_calls: int = Field(10, ge=1, le=1000)
    """Tools the model may have run within one turn."""
    at_limit: Literal["finalize", "last_text", "fixed_message"] = "finalize"
    """How a turn at a limit ends: ``finalize`` asks once more, without tools; ``last_text`` leaves it at what was
    said; ``fixed_message``, and the others where they have nothing, says ``utter_limit_reached``."""


class ConversationOptions(Options):
    """The ``conversation:`` section of ``agent.yml``."""

    before_end: tuple[str, ...] = ()
    """Skills that run before the agent hangs up, such as ``default_customer_satisfaction``."""
    silence_prompts: int = Field(2, ge=0, le=100)
    """Silences in a row that are answered with ``utter_silence_prompt``; the next one ends the call."""


class AgentFile(Options):
    """All of ``agent.yml`` that is acted on."""

    agent: AgentIdentity
    """Who the agent is."""
    rules: tuple[str, ...] = ()
    """What it must always or never do; part of the model's prompt."""
    references_instructions: str = ""
    """How the model should use the agent-wide knowledge (``references.instructions``)."""
    session_config: SessionOptions = SessionOptions()
    """When a conversation begins anew."""
    orchestrator: StyleOptions = StyleOptions()
    """How replies are worded."""
    prompts: PromptOptions = PromptOptions()
    """What the model is given, and how much of it."""
    conversation: ConversationOptions = ConversationOptions()
    """What happens around the talk itself."""
    tool_timeout: Seconds = 10
    """Seconds a tool may take."""
    cancellation_grace: Seconds = 1.0
    """Seconds a cancelled tool is awaited before it is abandoned."""
    max_model_iterations: int = Field(10, ge=1, le=100)
    """Model calls within one turn of the workflow ``mantle``."""
    workflow: str = "mantle"
    """How the model is led: ``mantle``, ``react`` or one of a plugin. A skill may name its own."""
    react: ReactOptions = ReactOptions()
    """The workflow ``react``."""
    plugins: dict[str, dict[str, Any] | Literal[False]] = Field(default_factory=dict)
    """Settings of plugins, each under its name; what may stand there says the plugin. ``false`` switches one off."""
