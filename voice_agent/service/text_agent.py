"""An agent by text alone: no ears, no voice, no calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.events import Listener
from voice_agent.dialogue.reply import Conversation
from voice_agent.llm.factory import build_model
from voice_agent.mcp.servers import build_servers
from voice_agent.recall.opening import configured_memories
from voice_agent.service.parts import close_each
from voice_agent.service.readiness import Readiness
from voice_agent.service.recall import RecallKeeper
from voice_agent.service.reloading import Reloader
from voice_agent.service.texts import TextConversations
from voice_agent.service.versions import AgentVersions
from voice_agent.store.memory import MemoryStore
from voice_agent.store.opening import configured_store


@dataclass(frozen=True)
class TextAgent:
    """An agent without ears and voice. ``reloader`` looks at its files when asked to."""

    texts: TextConversations
    reloader: Reloader
    versions: AgentVersions


@asynccontextmanager
async def text_agent(
    root: Path,
    *,
    ephemeral: bool = False,
    listener: Listener | None = None,
    report: Callable[[list[Problem]], None] | None = None,
) -> AsyncIterator[TextAgent]:
    """The agent of the project in ``root`` by text, ready; closed when left.

    Args:
        ephemeral: Nothing of what is said outlives this.
        listener: Told of every tracker event.
        report: Told of the errors of a new version that cannot be used.

    Raises:
        ProjectError: Problems in the project's files.
        RemediableError: A missing package, key or model.
    """
    config = load_config(root)
    model = build_model(config.integrations.llm)
    kept = MemoryStore() if ephemeral else None
    memories = configured_memories(config, kept)
    servers = build_servers(config.integrations.mcp_servers, root)
    agent = Agent.load(
        config, model, store=configured_store if kept is None else kept, recalls=memories, servers=servers
    )
    versions, store = AgentVersions(agent), agent.store
    recall = RecallKeeper(memories, store, lambda: versions.project, config.integrations.store.retention_days)
    versions.on_event(recall.on_event)

    def open_one(name: str, channel: str) -> Conversation:
        conversation = versions.open(name, channel=channel)
        if listener is not None:
            conversation.on_event(listener)
        return conversation

    texts = TextConversations(open_one, Readiness(), lambda name: False)

    try:
        await store.open()
        await model.warm_up()
        await recall.open()
        await recall.catch_up()
        await servers.start()
        reloader = Reloader(root, versions, model, store, report=report, watch=True, recalls=memories, servers=servers)
        yield TextAgent(texts, reloader, versions)
    finally:
        parts = [texts.aclose, versions.aclose, servers.aclose, recall.aclose, store.aclose, model.aclose]
        await close_each(parts)


@contextmanager
def open_texts(
    root: Path,
    runner: asyncio.Runner,
    *,
    ephemeral: bool = False,
    listener: Listener | None = None,
    report: Callable[[list[Problem]], None] | None = None,
) -> Iterator[TextAgent]:
    """`text_agent` on a loop that runs only now and then."""
    agent = text_agent(root, ephemeral=ephemeral, listener=listener, report=report)
    opened = runner.run(agent.__aenter__())
    try:
        yield opened
    finally:
        runner.run(agent.__aexit__(None, None, None))
