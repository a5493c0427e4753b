"""Plays one conversation test against a fresh agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from voice_agent.authoring.conversation_file import ConversationTest, TestStep
from voice_agent.authoring.conversation_reader import LocatedTest
from voice_agent.authoring.event_lines import Line
from voice_agent.authoring.expectations import Mismatch, TurnFacts, check, check_never
from voice_agent.authoring.frozen_clock import FrozenClock
from voice_agent.authoring.scripted_model import ScriptedModel
from voice_agent.authoring.stage import ListeningCaller, Stage
from voice_agent.authoring.transcript import Transcript
from voice_agent.authoring.turn_facts import gather
from voice_agent.config_files import ProjectConfig
from voice_agent.dialogue.agent import READ_CHANNELS, Agent
from voice_agent.dialogue.conversation import LiveConversation
from voice_agent.dialogue.events import utc_now
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.reply import SESSION_START, InputKind, UserInput
from voice_agent.llm.protocol import LanguageModel, ModelRequest

CONVERSATION = "conversation-test"


class Status(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a test failed. ``line`` is in the test's file."""

    line: int | None
    what: str
    expected: str = ""
    actual: str = ""
    hint: str = ""
    compare: bool = False


@dataclass(slots=True)
class Outcome:
    """What became of one test."""

    test: LocatedTest
    status: Status = Status.PASSED
    failures: list[Failure] = field(default_factory=list)
    transcript: list[Line] = field(default_factory=list)
    seconds: float = 0.0
    reason: str = ""

    def fail(self, failure: Failure) -> None:
        self.status = Status.FAILED
        self.failures.append(failure)


async def play(test: LocatedTest, config: ProjectConfig, live: LanguageModel | None = None) -> Outcome:
    """Play ``test`` with the agent that ``config`` describes, loaded anew.

    Args:
        live: Answers the model calls; by default the script of the test does.

    Raises:
        ProjectError: The project cannot be loaded.
    """
    outcome = Outcome(test)
    began = time.perf_counter()
    player = _Player(test, config, live, outcome)
    try:
        async with asyncio.timeout(test.test.timeout_s):
            await player.play()
    except TimeoutError:
        outcome.fail(Failure(test.line, f"The test took longer than {test.test.timeout_s:g} seconds."))
    finally:
        await player.close()
    outcome.seconds = time.perf_counter() - began
    return outcome


class _Player:
    def __init__(
        self, located: LocatedTest, config: ProjectConfig, live: LanguageModel | None, outcome: Outcome
    ) -> None:
        self._located, self._test, self._outcome = located, located.test, outcome
        self._clock = None if self._test.now is None else FrozenClock(self._test.now)
        self._script = ScriptedModel() if live is None else None
        self._stage = Stage(self._test.stubs)
        self._agent = Agent.load(
            config, live or self._script or ScriptedModel(), clock=self._clock or utc_now, adapt=self._adapt
        )
        self._forget: Callable[[], None] = lambda: None
        self._conversation: LiveConversation = self._open()
        self._facts = TurnFacts()
        self._turns = 0
        self._events: list[Mapping[str, Any]] = []
        self._transcript = Transcript()
        outcome.transcript = self._transcript.lines

    def _adapt(self, project: Project) -> Project:
        if self._clock is not None:
            tools = [tool for skill in project.skills.values() for tool in skill.tools.values()]
            self._clock.freeze(tools, project.root)
        if self._script is not None:
            # A model that endpoints.yml names for rewording must not be asked by a scripted test.
            project = replace(project, endpoints=replace(project.endpoints, rephrase_llm=None))
        return self._stage.prepare(project)

    def _open(self) -> LiveConversation:
        opened = self._agent.open(CONVERSATION, channel=self._test.channel or "websocket", metadata=self._test.metadata)
        # The caller may come back to the same object; it must not tell everything twice.
        self._forget()
        self._forget = opened.on_event(self._event)
        return opened

    def _event(self, event: Mapping[str, Any]) -> None:
        self._events.append(event)
        self._transcript.event(event)

    async def close(self) -> None:
        await self._agent.aclose()

    async def play(self) -> None:
        if self._test.connect:
            await self._turn(SESSION_START, TestStep(connect=True), ())
        for index, step in enumerate(self._test.steps):
            if self._outcome.failures:
                return
            location: tuple[str | int, ...] = ("steps", index)
            self._stage.stub(step.stubs)
            await self._act(step, location)
            if step.expect is not None and not self._outcome.failures:
                for mismatch in check(step.expect, self._facts):
                    self._mismatch(mismatch, (*location, "expect"))

    async def _act(self, step: TestStep, location: tuple[str | int, ...]) -> None:
        match step.input:
            case "say":
                kind = InputKind.TEXT if self._test.channel in READ_CHANNELS else InputKind.SPEECH
                await self._turn(UserInput(step.say or "", kind), step, location)
            case "dtmf":
                await self._turn(UserInput(step.dtmf or "", InputKind.DTMF), step, location)
            case "intent":
                await self._turn(UserInput(step.intent or "", InputKind.INTENT), step, location)
            case "connect":
                self._conversation = self._open()
                await self._turn(SESSION_START, step, location)
            case "disconnect" | "hang_up":
                self._transcript.note("caller", "(the connection is lost)" if step.disconnect else "(hangs up)")
                await self._conversation.close("dropped" if step.disconnect else "completed")
            case "wait" if step.wait is not None and self._clock is not None:
                self._clock.advance(step.wait)
                self._transcript.note("clock", f"{self._clock.now:%A, %d %B %Y, %H:%M}")

    async def _turn(self, user: UserInput, step: TestStep, location: tuple[str | int, ...]) -> None:
        self._turns += 1
        caller = ListeningCaller(step.interrupt, self._transcript.message_begins)
        self._stage.begin(caller)
        if self._script is not None:
            self._script.begin(step.model or ())
        self._events.clear()
        self._transcript.begin_turn(f"keys {user.text}" if user.kind is InputKind.DTMF else user.text)
        turn_id = f"t{self._turns}"
        result = await self._conversation.turn(user, turn_id=turn_id, sink=caller, cancel=caller.cancel)
        caller.end()
        events = list(self._events)
        self._conversation.commit_reply(turn_id, caller.heard)
        self._facts = gather(caller, result, events, self._conversation.state, self._agent.project)
        self._transcript.end_turn(caller)
        self._check_script(location)
        if step.interrupt is not None and not caller.interrupted:
            what = "The caller never got to interrupt: " + (
                f"{step.interrupt.during} did not run that long."
                if step.interrupt.during
                else f"only {len(caller.text.split())} words were said."
            )
            self._fail((*location, "interrupt"), what)
        if result.error is not None and not self._expects_error(location):
            self._fail(location, f"The turn failed: {result.error}")
        for mismatch in check_never(self._test.never, self._facts):
            self._mismatch(mismatch, ("never",))

    def _expects_error(self, location: tuple[str | int, ...]) -> bool:
        """Return whether this step, or the expectations right after it, say that the turn fails."""
        index = location[1] if location else -1
        assert isinstance(index, int)
        for number, step in enumerate(self._test.steps[max(index, 0) :], max(index, 0)):
            if number != index and step.input is not None:
                return False
            if step.expect is not None and step.expect.status == "error":
                return True
        return False

    def _check_script(self, location: tuple[str | int, ...]) -> None:
        if self._script is None:
            return
        where = (*location, "model")
        for request in self._script.unanswered[:1]:
            what = "The model was called, and the test has no reply for it."
            self._fail(where, what, actual=_possible(request), hint="Add one to `model:`, or use `model: live`.")
        left = self._script.left
        if left and not self._script.unanswered:
            count = "One scripted reply was" if len(left) == 1 else f"{len(left)} scripted replies were"
            expected = left[0].text or ", ".join(name for name, _ in left[0].calls)
            self._fail(where, f"{count} never asked for.", f"a model call answered with {expected!r}", "no such call")

    # --- reporting -----------------------------------------------------------------------------

    def _fail(
        self, location: tuple[str | int, ...], what: str, expected: str = "", actual: str = "", hint: str = ""
    ) -> None:
        line = self._located.line_of(*location) or self._located.line
        self._outcome.fail(Failure(line, what, expected, actual, hint))

    def _mismatch(self, mismatch: Mismatch, location: tuple[str | int, ...]) -> None:
        line = self._located.line_of(*location, *mismatch.key) or self._located.line
        what = ".".join(str(part) for part in mismatch.key if isinstance(part, str))
        self._outcome.fail(Failure(line, what, mismatch.expected, mismatch.actual, mismatch.hint, mismatch.compare))


def _possible(request: ModelRequest) -> str:
    """Say what the model could have done."""
    scope = request.scope
    parts = [f"tools: {', '.join(tool.name for tool in request.tools)}"]
    if scope.skills:
        parts.append(f"skills: {', '.join(card.id for card in scope.skills)}")
    if scope.fields:
        parts.append(f"fields: {', '.join(card.name for card in scope.fields)}")
    return "; ".join(parts)


__all__ = ["ConversationTest", "Failure", "Line", "Outcome", "Status", "play"]
