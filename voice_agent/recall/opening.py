"""From the settings of a project to its memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from voice_agent.config_files import ProjectConfig
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.embedding import build_embedder
from voice_agent.recall.index import Index
from voice_agent.recall.memories import Memories
from voice_agent.store.memory import MemoryStore
from voice_agent.store.opening import MEMORY, configured_store
from voice_agent.store.protocol import ConversationStore
from voice_agent.store.sqlite import SqliteStore


def configured_memories(config: ProjectConfig, store: ConversationStore | None = None, *, threads: int = 1) -> Memories:
    """Return what ``integrations.yml`` asks for. Opens and loads nothing yet.

    Args:
        threads: See `build_embedder`.
        store: Where conversations are kept; the index lies beside it, and in memory where that is.

    Raises:
        RemediableError: The key of a server is missing.
    """
    options = config.integrations.recall
    path = _path(config, store)
    index: Index
    if options.index.kind == "qdrant":
        index = _qdrant(config)
    else:
        from voice_agent.recall.sqlite_index import SqliteIndex

        index = SqliteIndex(path)
    return Memories(
        options,
        index,
        lambda: build_embedder(options.embeddings, threads),
        exists=lambda: options.index.kind == "qdrant" or (path is not None and path.exists()),
    )


def _path(config: ProjectConfig, store: ConversationStore | None) -> Path | None:
    given = config.integrations.recall.index.path
    if given == MEMORY:
        return None
    if given is not None:
        return config.root / Path(given).expanduser()
    kept = configured_store(config) if store is None else store
    if isinstance(kept, SqliteStore):
        return kept.path.with_name(f"{kept.path.name}.recall")
    return None if isinstance(kept, MemoryStore) else config.root / "recall.sqlite3"


def _qdrant(config: ProjectConfig) -> Index:
    from voice_agent.recall.qdrant_index import QdrantIndex
    from voice_agent.recall.qdrant_requests import connect

    options = config.integrations.recall.index
    key, url = os.environ.get(options.api_key_env), options.url or ""
    if key is None and not re.match(r"https?://(localhost|127\.|\[::1\])", url):
        raise RemediableError(
            f"The Qdrant server at {url} would be used without a key.",
            f"Set the environment variable {options.api_key_env}; servers on this machine need none.",
        )
    name = re.sub(r"[^\w-]+", "-", config.agent.agent.id)[:80] or config.root.resolve().name
    return QdrantIndex(lambda: connect(url, key), f"voice-agent-{name}", f"the Qdrant server at {url}")
