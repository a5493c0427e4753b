"""Loads a new version of the project beside the old one, when asked to or when its files change.

files     ──●●●──────────────    ● = written
polls     ·  ·  ·  ·  ·         a change that has come to rest is loaded
version   ──── 1 ────────│─ 2    a version with errors is reported, and 1 stays
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

from voice_agent.config_files import load_config
from voice_agent.diagnostics import Problem, ProjectError, RemediableError, Severity
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.briefing import brief
from voice_agent.dialogue.remote_tools import ToolServers
from voice_agent.llm.protocol import LanguageModel, ModelError
from voice_agent.recall.protocol import Recalls
from voice_agent.service.versions import AgentVersions
from voice_agent.store.protocol import ConversationStore

log = logging.getLogger(__name__)

POLL_S = 0.5
MAX_FILES = 20_000
SUFFIXES = (".yml", ".yaml", ".md", ".py")
RESTART_FILES = ("integrations.yml",)
"""Files whose changes reach engines, channels and ports, which live as long as the process."""
_LEFT_OUT = frozenset(
    ("__pycache__", "node_modules", "site-packages", "recordings", "build", "dist", "tests", "conversations", "docs")
)

Fingerprint = dict[str, tuple[int, int]]
"""Modification time and size of each file of a project."""


def fingerprint(root: Path) -> Fingerprint:
    """Return what tells versions of the project in ``root`` apart. Blocks for as long as the file system does."""
    found: Fingerprint = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if _is_watched(Path(folder, name))]
        for name in files:
            if not name.endswith(SUFFIXES) or name.startswith("."):
                continue
            with contextlib.suppress(OSError):
                status = Path(folder, name).stat()
                found[str(Path(folder, name))] = status.st_mtime_ns, status.st_size
            if len(found) >= MAX_FILES:
                return found
    return found


def _is_watched(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _LEFT_OUT
    return not hidden and not (folder / "pyvenv.cfg").exists()


class Reloader:
    """Replaces the agent of ``versions`` by newer ones.

    Args:
        warm: Prepares canned texts; runs once a version is in use.
        report: Told of the errors of a version that cannot be used; they are logged by default.
        recalls: Memory beyond the prompt, for versions to come.
        watch: Look at the files, too; without it only `request` and SIGHUP reload.
        servers: Where tools come from that skills import from servers.
    """

    def __init__(
        self,
        root: Path,
        versions: AgentVersions,
        model: LanguageModel,
        store: ConversationStore,
        *,
        warm: Callable[[Iterable[str]], Awaitable[None]] | None = None,
        report: Callable[[list[Problem]], None] | None = None,
        watch: bool = False,
        poll_s: float = POLL_S,
        recalls: Recalls | None = None,
        servers: ToolServers | None = None,
    ) -> None:
        self._recalls = recalls
        self._root, self._versions, self._model, self._store = root, versions, model, store
        self._warm, self._report, self._watch, self._poll_s = warm, report or _log_errors, watch, poll_s
        self._asked, self._servers = asyncio.Event(), servers
        self._loaded: Fingerprint = fingerprint(root) if watch else {}
        self.reloads = self.failures = 0

    def request(self) -> None:
        """Reload soon, whether or not anything has changed."""
        self._asked.set()

    async def run(self) -> None:
        """Reload when asked or when the files have changed, until cancelled."""
        with _on_hang_up_signal(self.request):
            while True:
                await self._wait()
                try:
                    await self.reload()
                except Exception:
                    # Calls are on the line: whatever is wrong with the new version, the old one goes on.
                    log.exception("the new version could not be loaded; the old one stays")

    async def refresh(self) -> None:
        """Reload if the files have changed since the last time."""
        if await asyncio.to_thread(fingerprint, self._root) != self._loaded:
            await self.reload()

    async def _wait(self) -> None:
        """Return when somebody asks, or when a change has come to rest."""
        before = self._loaded
        while True:
            if not self._watch:
                await self._asked.wait()
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._asked.wait(), self._poll_s)
            if self._asked.is_set():
                self._asked.clear()
                return
            now = await asyncio.to_thread(fingerprint, self._root)
            if now != self._loaded and now == before:
                return
            before = now

    async def reload(self) -> bool:
        """Load the project as it is now and use it from the next turns on.

        Returns:
            Whether it is in use; its errors are logged otherwise, and nothing has changed.
        """
        if self._watch:
            before, self._loaded = self._loaded, await asyncio.to_thread(fingerprint, self._root)
            self._name_what_needs_a_restart(before)
        try:
            agent = await asyncio.to_thread(self._load)
        except ProjectError as fault:
            self.failures += 1
            self._report([problem for problem in fault.problems if problem.severity is Severity.ERROR])
            return False
        except RemediableError as fault:
            self.failures += 1
            log.error("the new version cannot be used; the old one stays: %s", fault)
            return False
        await self._prepare(agent)
        known, told = set(self._versions.canned_texts), set(map(str, self._versions.problems))
        self._versions.replace(agent)
        self.reloads += 1
        log.info("reloaded: the next turns use the new version")
        for problem in agent.problems:
            if str(problem) not in told:
                log.warning("%s", problem)
        if self._warm is not None:
            await self._warm([text for text in agent.canned_texts if text not in known])
        return True

    async def _prepare(self, agent: Agent) -> None:
        """Let the models read what is new before a caller has to wait for it."""
        try:
            await brief(self._model, agent.project)
            await agent.warm_up()
        except (ModelError, RemediableError) as fault:
            log.warning("the new version is not prepared and may answer late at first: %s", fault)

    def _load(self) -> Agent:
        return Agent.load(
            load_config(self._root),
            self._model,
            store=self._store,
            recalls=self._recalls,
            servers=self._servers,
            # Those of the first version, which end with it: what hangs in one version counts in the next.
            threads=self._versions.current.threads,
        )

    def _name_what_needs_a_restart(self, before: Fingerprint) -> None:
        for name in RESTART_FILES:
            path = str(self._root / name)
            if before.get(path) != self._loaded.get(path):
                log.warning("%s has changed: engines, channels and ports follow after a restart", name)


def _log_errors(errors: list[Problem]) -> None:
    number = "an error" if len(errors) == 1 else f"{len(errors)} errors"
    log.error("the new version has %s; the old one stays", number)
    for problem in errors:
        log.error("%s", problem)


@contextlib.contextmanager
def _on_hang_up_signal(request: Callable[[], None]) -> Iterator[None]:
    """Let SIGHUP ask for a reload, unless it says that the terminal is gone."""

    def hung_up() -> None:
        if _has_terminal_gone():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            request()

    loop = asyncio.get_running_loop()
    installed = False
    if sys.platform != "win32":
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(signal.SIGHUP, hung_up)
            installed = True
    try:
        yield
    finally:
        if installed:
            loop.remove_signal_handler(signal.SIGHUP)


def _has_terminal_gone() -> bool:
    """Return whether standard input is a terminal that nobody sits at any more."""
    try:
        os.ttyname(0)
    except OSError:
        return False  # no terminal to begin with
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return True
    return False
