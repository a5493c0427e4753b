"""What is kept of conversations: recordings and records."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from voice_agent.config.options import Options


class RecordingOptions(Options):
    """Recording of calls: stereo WAV, caller left, agent as heard right."""

    enabled: bool = False
    """Whether calls are recorded. Callers may have to be told."""
    directory: Path = Path("recordings")
    """Where, from the project's directory on; one file per call, named after its id."""


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
