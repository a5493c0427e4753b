"""What is kept of conversations, recordings and records, and who may look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from voice_agent.config.options import Options


class RecordingOptions(Options):
    """Recording of calls in stereo: caller left, agent as heard right."""

    enabled: bool = False
    """Whether calls are recorded. Callers may have to be told."""
    format: Literal["wav", "opus"] = "wav"
    """``wav`` (3.8 MB a minute) or ``opus`` (about 0.5 MB a minute; needs the extra ``whisper`` or ``opus``)."""
    directory: Path = Path("recordings")
    """Where, from the project's directory on: a directory per conversation, a file per call, named after its id."""
    retention_days: float = Field(30, ge=0, le=36_500)
    """A recording older than this is deleted; 0 keeps it as long as its conversation."""


class InspectorOptions(Options):
    """The inspector at ``/inspect``: live calls and past conversations."""

    enabled: bool | None = None
    """``true``: also beyond loopback, for those who present the API key. ``false``: nowhere. Left out: on loopback."""
    personal_data: bool = False
    """Whether values of memory fields marked ``pii: true`` may be shown, to those who ask for them."""
    prompts: bool = True
    """Whether the prompts of recent model calls are kept, in memory, for the inspector to show."""
    max_viewers: int = Field(20, ge=1, le=1000)
    """Pages that may follow calls live at the same time."""


class StoreOptions(Options):
    """Where conversations are kept, and for how long."""

    path: str | None = Field(None, min_length=1)
    """A database file, from the project's directory on, or ``:memory:`` to keep nothing beyond the process.
    Defaults to ``voice-agent/<agent id>.sqlite3`` in the user's data directory."""
    retention_days: float = Field(30, ge=0, le=36_500)
    """A conversation untouched for this long is deleted; 0 keeps it."""
    max_conversations: int = Field(100_000, ge=1, le=100_000_000)
    """Beyond this the conversation untouched for longest is deleted."""
    max_events: int = Field(20_000, ge=100, le=1_000_000)
    """Records kept per conversation, the newest."""
