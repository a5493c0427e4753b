"""What the agent remembers beyond the prompt: past conversations, documents, and which tools fit."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from voice_agent.config.options import Milliseconds, Options, Seconds


class EpisodicOptions(Options):
    """What was said: in earlier conversations with the same caller, and in this one before the prompt's history."""

    enabled: bool = False
    """Whether what callers say is kept for recall, and recalled."""


class DeclarativeOptions(Options):
    """What documents say that were learnt by ``voice-agent learn`` or ``POST /v1/knowledge``."""

    enabled: bool | None = None
    """``true`` or ``false``. Left out: from the moment that something has been learnt."""
    in_prompt: bool = True
    """Whether passages that fit are put into the prompt of each turn, beside what ``search_knowledge`` finds."""


class ProceduralOptions(Options):
    """Which tools and skills fit what the caller said, whatever workflow leads the model."""

    enabled: bool = False
    """Whether the model is offered only those that fit, where there are many."""
    above: int = Field(12, ge=1, le=1000)
    """As many tools, or skills, are offered without choosing among them."""


class IndexOptions(Options):
    """Where passages and their vectors are kept."""

    kind: Literal["embedded", "qdrant"] = "embedded"
    """``embedded``: a file beside the store of conversations. ``qdrant``: a server (extra ``qdrant``)."""
    path: str | None = Field(None, min_length=1)
    """File of the embedded index, from the project's directory on, or ``:memory:``. Defaults to the store's own path
    with ``.recall`` behind it."""
    url: str | None = None
    """Address of the Qdrant server."""
    api_key_env: str = "QDRANT_API_KEY"
    """Environment variable that holds the server's key."""

    @model_validator(mode="after")
    def _server_has_an_address(self) -> Self:
        if self.kind == "qdrant" and not self.url:
            raise ValueError("`kind: qdrant` needs `url`, such as http://127.0.0.1:6333")
        return self


class EmbeddingOptions(Options):
    """What turns sentences into vectors. Vectors of another model are never mixed in: a change embeds all anew."""

    provider: str = "embedded"
    """``embedded`` (MiniLM, English, extra ``embedded``), or a litellm provider such as ``openai``."""
    model: str = "minilm"
    """Model name at the provider."""
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server."""
    timeout_s: Seconds = 20
    """How long one request to the provider may take while documents are learnt."""


class RecallOptions(Options):
    """Memory beyond the prompt. A kind that is off costs nothing."""

    episodic: EpisodicOptions = EpisodicOptions()
    """What was said."""
    declarative: DeclarativeOptions = DeclarativeOptions()
    """What documents say."""
    procedural: ProceduralOptions = ProceduralOptions()
    """Which tools and skills fit."""
    k: int = Field(5, ge=1, le=50)
    """Most items of a kind that are recalled."""
    threshold: float = Field(0.25, ge=0, le=1)
    """Similarity (cosine) below which nothing is put into a prompt. The default suits MiniLM, for which small talk
    lies below it; other models have other scales."""
    latest_n_history: int = Field(3, ge=1, le=20)
    """A short utterance is looked up together with those before it, up to this many in all."""
    budget_ms: Milliseconds = 150
    """From the beginning of a turn; then it goes on without."""
    prompt_tokens: int = Field(600, ge=50, le=20_000)
    """What recalled items may take up in a prompt."""
    index: IndexOptions = IndexOptions()
    """Where it is kept."""
    embeddings: EmbeddingOptions = EmbeddingOptions()
    """What turns sentences into vectors."""
