"""From the settings of a project to its store."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from voice_agent.config_files import ProjectConfig
from voice_agent.store.memory import MemoryStore
from voice_agent.store.protocol import ConversationStore
from voice_agent.store.sqlite import SqliteStore
from voice_agent.store.writer import Retention

MEMORY = ":memory:"


def configured_store(config: ProjectConfig) -> ConversationStore:
    """Return the store that ``integrations.yml`` asks for: a file, unless it says otherwise. Opens nothing yet."""
    options = config.integrations.store
    if options.path == MEMORY:
        return MemoryStore(max_conversations=min(options.max_conversations, 10_000), max_events=options.max_events)
    retention = Retention(options.retention_days, options.max_conversations, options.max_events)
    if options.path is not None:
        return SqliteStore(config.root / Path(options.path).expanduser(), retention)
    return SqliteStore(data_directory() / f"{_file_name(config)}.sqlite3", retention)


def data_directory() -> Path:
    """Return ``$XDG_DATA_HOME/voice-agent``, or ``~/.local/share/voice-agent``. It need not exist yet."""
    configured = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rule: a relative path is to be ignored.
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".local" / "share"
    return base / "voice-agent"


def _file_name(config: ProjectConfig) -> str:
    """The agent's id; for an agent without one, a name that belongs to its directory alone."""
    name = re.sub(r"[^\w.-]+", "-", config.agent.agent.id).strip(".-")[:80]
    if name:
        return name
    root = str(config.root.resolve())
    return f"{Path(root).name or 'agent'}-{hashlib.sha256(root.encode()).hexdigest()[:8]}"
