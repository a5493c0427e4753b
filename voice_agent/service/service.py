"""One running service: configuration → engines → agent → calls and texts; warm-up, readiness, drain.

build     files are read and checked; nothing heavy is loaded
start     engines load side by side off the loop; canned speech is made; then calls are admitted
run       the media clock ticks, idle conversations are closed
drain     nobody is admitted any more; calls end
aclose    engines are let go
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from voice_agent.call.clock import MediaClock
from voice_agent.call.recordings import Recordings
from voice_agent.call.registry import CallRegistry
from voice_agent.call.vocabulary import languages, vocabulary_for
from voice_agent.channels.tokens import CallTokens
from voice_agent.config import Channels
from voice_agent.config_files import ProjectConfig, load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.briefing import brief
from voice_agent.inspector.inspector import Inspector
from voice_agent.mcp.servers import McpServers, build_servers
from voice_agent.recall.memories import Memories
from voice_agent.recall.opening import configured_memories
from voice_agent.service.calls import Calls
from voice_agent.service.engines import VOICE, Engines, build_engines, check_recording
from voice_agent.service.hold_audio import HoldAudio
from voice_agent.service.knowledge import Knowledge
from voice_agent.service.parts import close_each
from voice_agent.service.readiness import Readiness
from voice_agent.service.recall import RecallKeeper
from voice_agent.service.reloading import Reloader
from voice_agent.service.stall_watch import StallWatch
from voice_agent.service.texts import TextConversations
from voice_agent.service.versions import AgentVersions
from voice_agent.service.workflow_settings import WorkflowSettings
from voice_agent.store.memory import MemoryStore
from voice_agent.store.opening import configured_store
from voice_agent.store.protocol import ConversationStore

log = logging.getLogger(__name__)

MODEL, RESPONSES, STORE, RECALL = "language model", "spoken responses", "conversation store", "recall"
CALLS = "admission of calls"
CLOSE_IDLE_EVERY_S = 60.0
SWEEP_EVERY_S = 3600.0
POOL_CLOSE_S = 2.0
Progress = Callable[[str, int, int], None]
"""``progress(part, done, of)`` while the service warms."""


class Service:
    """Implements `voice_agent.server.Service`."""

    def __init__(
        self,
        config: ProjectConfig,
        agent: Agent,
        engines: Engines,
        store: ConversationStore,
        progress: Progress | None = None,
        *,
        memories: Memories,
        watch: bool = False,
        servers: McpServers | None = None,
    ) -> None:
        options = config.integrations
        self.store = store
        self.config, self.agent = config, AgentVersions(agent)
        self._engines, self._progress = engines, progress or (lambda part, done, of: None)
        self._readiness = Readiness(*engines.loads, MODEL, RESPONSES, STORE, RECALL)
        self._clock, self._servers = MediaClock(), servers or McpServers({})
        self._registry = CallRegistry(options.server.max_calls)
        self.texts = TextConversations(
            lambda name, channel: self.agent.open(name, channel=channel),
            self._readiness,
            self._registry.is_live,
            enabled=options.channels.text.enabled,
        )
        self.reloader = Reloader(
            config.root,
            self.agent,
            engines.model,
            store,
            warm=engines.voice.warm,
            watch=watch,
            recalls=memories,
            servers=self._servers,
        )
        days = options.store.retention_days
        self.recall = RecallKeeper(memories, store, lambda: self.agent.project, days, self._registry.is_live)
        self.agent.on_event(self.recall.on_event)
        self.knowledge = Knowledge(self.recall)
        self.settings = WorkflowSettings(store, self.agent)
        self.tokens = CallTokens(lambda: asyncio.get_running_loop().time())
        recording = options.recording
        self.recordings = Recordings(config.root / recording.directory.expanduser(), recording.retention_days)
        self.inspector = Inspector(
            options.inspector, self.agent, store, self._registry, self.recordings, self.recall.forget_conversation
        )
        if options.inspector.enabled is not False:
            self.agent.on_event(self.inspector.on_event)
            self.agent.on_model_call(self.inspector.on_model_call)
        hold_audio = HoldAudio(config.root)
        self.calls = Calls(
            config,
            self.agent,
            engines,
            self._registry,
            self._clock,
            self.texts,
            self.tokens,
            self.recordings,
            hold_audio,
        )

    @property
    def channels(self) -> Channels:
        return self.config.integrations.channels

    @property
    def introduction(self) -> dict[str, str]:
        agent = self.agent.current.config.agent.agent
        return {"name": agent.name, "language": agent.language}

    @property
    def missing(self) -> tuple[str, ...]:
        # Not ready before calls are admitted: whoever asks may ring in the same instant.
        return self._readiness.missing or (() if self._registry.ready else (CALLS,))

    async def start(self) -> None:
        """Load and warm everything, then admit calls.

        Raises:
            RemediableError: A model, package, key or file is missing.
        """
        began = time.perf_counter()
        if self._engines.pool:
            self._engines.pool.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._warm_model(), name="warm-up.model")
                group.create_task(self._warm_speech(), name="warm-up.speech")
                group.create_task(self._open_store(), name="warm-up.store")
                group.create_task(self._open_recall(), name="warm-up.recall")
                group.create_task(self._servers.start(), name="warm-up.servers")
        except ExceptionGroup as faults:
            raise _first(faults) from None
        self._registry.ready = True
        log.info("ready", extra={"seconds": round(time.perf_counter() - began, 1)})

    async def run(self) -> None:
        """Keep the service going until cancelled."""
        async with self._clock, asyncio.TaskGroup() as group:
            group.create_task(self.reloader.run(), name="reloader")
            group.create_task(self._keep_recordings(), name="recordings")
            group.create_task(self.recall.run(), name="recall")
            with StallWatch(self._clock):
                while True:
                    await asyncio.sleep(CLOSE_IDLE_EVERY_S)
                    await self.texts.close_idle()

    async def _keep_recordings(self) -> None:
        """Delete, now and every hour, the recordings that are not to be kept any longer."""

        async def is_known(conversation_id: str) -> bool:
            if self._registry.is_live(conversation_id):
                return True
            return bool(await self.store.events(conversation_id, limit=1))

        while True:
            try:
                # What a store in memory does not know may be from before the process.
                await self.recordings.sweep(None if isinstance(self.store, MemoryStore) else is_known)
            except Exception:
                log.exception("recordings could not be looked through")
            await asyncio.sleep(SWEEP_EVERY_S)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new calls, end those on the line and wait for them."""
        self._readiness.drain()
        self.inspector.close()
        await self._registry.drain(timeout_s)

    async def aclose(self) -> None:
        """Let go of everything, within limits."""
        parts = [
            self.texts.aclose,
            self.agent.aclose,
            self.recall.aclose,
            self._servers.aclose,
            self.store.aclose,
            self._engines.model.aclose,
        ]
        if self._engines.pool:
            parts.append(partial(self._engines.pool.aclose, POOL_CLOSE_S))
        await close_each(parts)

    async def _open_store(self) -> None:
        await self.store.open()
        await self.settings.load()
        self._readiness.have(STORE)

    async def _open_recall(self) -> None:
        await self.recall.open()
        self._readiness.have(RECALL)

    async def _warm_model(self) -> None:
        await self._engines.model.warm_up()
        await brief(self._engines.model, self.agent.current.project)
        await self.agent.current.warm_up()
        self._readiness.have(MODEL)

    async def _warm_speech(self) -> None:
        """Load the speech engines at once; as soon as the voice is there, make the canned speech."""
        loads = dict(self._engines.loads)
        async with asyncio.TaskGroup() as group:
            tasks = {
                part: group.create_task(self._load(part, load), name=f"load.{part}") for part, load in loads.items()
            }
            if voice := tasks.get(VOICE):
                await voice
            await self._engines.voice.warm(self.agent.canned_texts, self._report)
            self._readiness.have(RESPONSES)

    async def _load(self, part: str, load: Callable[[], None]) -> None:
        await asyncio.to_thread(load)
        self._readiness.have(part)
        self._progress(part, 1, 1)

    def _report(self, done: int, of: int) -> None:
        self._readiness.progress(RESPONSES, f"{done} of {of}")
        self._progress(RESPONSES, done, of)


def _first(fault: Exception) -> Exception:
    """The first cause inside nested groups: one error is enough to tell the operator what to mend."""
    while isinstance(fault, ExceptionGroup):
        fault = fault.exceptions[0]
    return fault


def build_service(
    root: Path,
    *,
    engines: Engines | None = None,
    store: ConversationStore | None = None,
    progress: Progress | None = None,
    watch: bool = False,
    sip_port: int | None = None,
) -> Service:
    """Build the service of the project in ``root``. Loads nothing heavy.

    Args:
        engines: Used instead of those that ``integrations.yml`` names.
        store: Keeps conversations; the one that ``integrations.yml`` names by default. Closed with the service.
        watch: Reload the project when its files change.
        sip_port: Answer calls by SIP there, whatever ``integrations.yml`` says of it.

    Raises:
        ProjectError: Problems in the project's files.
        RemediableError: An unknown engine, a missing package or key.
    """
    config = load_config(root)
    if sip_port is not None:
        config = _answering_sip(config, sip_port)
    check_recording(config.integrations.recording)
    language = config.agent.agent.language
    if vocabulary_for(language) is None:
        log.warning(
            "no backchannels and stop words are known for the language %r: English ones are used beside `backchannels` "
            "and `stop_words` of integrations.yml; known languages are %s",
            language,
            ", ".join(languages()),
        )
    engines = engines or build_engines(config.integrations, language)
    memories = configured_memories(config, store)
    servers = build_servers(config.integrations.mcp_servers, root)
    kept = configured_store if store is None else store
    agent = Agent.load(config, engines.model, store=kept, recalls=memories, servers=servers)
    return Service(config, agent, engines, agent.store, progress, memories=memories, watch=watch, servers=servers)


def _answering_sip(config: ProjectConfig, port: int) -> ProjectConfig:
    channels = config.integrations.channels
    sip = channels.sip.model_copy(update={"enabled": True, "port": port})
    channels = channels.model_copy(update={"sip": sip})
    return replace(config, integrations=config.integrations.model_copy(update={"channels": channels}))
