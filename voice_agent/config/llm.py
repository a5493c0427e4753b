"""The language model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from voice_agent.config.options import Options, Seconds

ToolCalls = Literal["auto", "native", "tagged", "none"]


class LlmOptions(Options):
    """The language model. ``provider: embedded`` needs no key and no network."""

    provider: str = "embedded"
    """``embedded``, or a litellm provider name such as ``openai``."""
    model: str = "minilm"
    """Model name at the provider."""
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server."""
    temperature: float | None = Field(None, ge=0, le=2)
    """How freely the model words things; the provider's own default if not given."""
    max_tokens: int = Field(400, ge=1, le=32_000)
    """Longest answer to one model call."""
    first_token_timeout_s: Seconds = 8
    """Silence after which a model call that has said nothing yet is given up."""
    between_tokens_timeout_s: Seconds = 5
    """Silence after which a model call that has begun to answer is given up."""
    tool_calls: ToolCalls = "auto"
    """How the model is given tools: ``native`` by its provider's interface, ``tagged`` as text for models that have
    none, ``none`` not at all; ``auto`` finds out."""
    retries: int = Field(1, ge=0, le=5)
    """Retries per model, only before the first token."""
    speculate: Literal["auto", "on", "off"] = "auto"
    """Whether the model begins before the caller has certainly finished; ``auto``: unless it is the embedded one."""
    speculations_per_utterance: int = Field(1, ge=1, le=2)
    """How often it may begin for one utterance: each that is not used costs a request."""
    fallbacks: tuple[LlmOptions, ...] = ()
    """Models tried in order when this one fails before its first token."""
