"""Small projects written to disk, and a caller who talks to them in text."""

from __future__ import annotations

import asyncio
import itertools
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes.model import Entry, ScriptedModel
from tests.fakes.sink import CollectingSink
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.reply import SESSION_START, HeardReply, TurnResult, UserInput
from voice_agent.recall.protocol import Recalls
from voice_agent.store import ConversationStore

AGENT = "agent:\n  id: test\n  persona: You help callers.\n"


def write_project(root: Path, files: Mapping[str, str]) -> Path:
    """Write files (paths relative to the project); agent.yml and integrations.yml are filled in if missing."""
    for name, text in {"agent.yml": AGENT, "integrations.yml": "{}\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def skill(body: str, **front: str) -> str:
    """Return a skill.md with ``body``; front matter values are YAML text."""
    matter = {"name": "A skill", "description": "Does something.", **front}
    lines = "\n".join(f"{key}: {value}" for key, value in matter.items())
    return f"---\n{lines}\n---\n{textwrap.dedent(body).lstrip()}"


def block(steps: str, id: str = "main") -> str:
    """Return a fenced ordered block; ``steps`` is the YAML list."""
    body = textwrap.indent(textwrap.dedent(steps).strip("\n"), "  ")
    return f":::ordered_block id={id}\nsteps:\n{body}\n:::\n"


class Calendar:
    """A calendar clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2030, 5, 6, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@dataclass
class Said:
    """One turn as the caller saw it."""

    result: TurnResult
    sink: CollectingSink

    @property
    def messages(self) -> list[str]:
        return self.sink.messages


@dataclass
class Caller:
    """Talks to one conversation, letting every reply play to its end unless told otherwise."""

    agent: Agent
    model: Any
    calendar: Calendar
    conversation: LiveConversation
    _turns: Iterable[int] = field(default_factory=itertools.count)

    async def says(
        self, text: str | UserInput, *, cancel: CancelToken | None = None, heard: HeardReply | None = None,
        commit: bool = True,
    ) -> Said:  # fmt: skip
        user = UserInput(text) if isinstance(text, str) else text
        sink, turn_id = CollectingSink(), f"t{next(iter(self._turns))}"
        result = await self.conversation.turn(user, turn_id=turn_id, sink=sink, cancel=cancel or CancelToken())
        if commit:
            self.conversation.commit_reply(turn_id, heard or sink.heard())
        return Said(result, sink)

    async def connects(self) -> Said:
        return await self.says(SESSION_START)

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the payloads of all events of one kind."""
        return [payload for k, payload in map(payload_of, self.conversation.events) if k == kind]

    @property
    def kinds(self) -> list[str]:
        return [payload_of(event)[0] for event in self.conversation.events]

    def read(self, namespace: str, entry: str) -> Any:
        """Return a memory value as the engine has it."""
        return self.conversation._core.state.memory.read(namespace, entry)

    @property
    def stack(self) -> list[str]:
        return [frame.skill.id for frame in self.conversation._core.state.stack]


def caller(
    root: Path,
    files: Mapping[str, str],
    script: Iterable[Entry] = (),
    *,
    channel: str = "text",
    metadata: Mapping[str, Any] | None = None,
    store: ConversationStore | None = None,
    model: Any = None,
    recalls: Recalls | None = None,
) -> Caller:
    """Load a project with a scripted model and open a conversation."""
    calendar = Calendar()
    model = ScriptedModel(script) if model is None else model
    config = load_config(write_project(root, files), {})
    agent = Agent.load(config, model, store=store, clock=calendar, recalls=recalls)
    return Caller(agent, model, calendar, agent.open("c1", channel=channel, metadata=metadata))


async def cancel_after(seconds: float, token: CancelToken, reason: Any) -> None:
    await asyncio.sleep(seconds)
    token.cancel(reason)
