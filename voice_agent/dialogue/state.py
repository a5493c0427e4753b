"""What a conversation is in the middle of: the stack of skills, memory, the open question, the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.project import Project, Skill
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.stepper import Cursor, Mark
from voice_agent.llm.protocol import Message, ToolCall

MAX_DEPTH = 10
"""Skills on the stack, and blocks within one skill."""


@dataclass(slots=True)
class Frame:
    """One skill on the stack.

    Attributes:
        activation: Number of the activation within the conversation; part of idempotency keys.
        returns: Called from the one below, which goes on by itself afterwards.
        cursors: Places in blocks, innermost last; empty while the prose is in charge.
        fired: Indexes of triggers already said in this activation.
        runs: How often each step that runs a tool has succeeded in it; part of idempotency keys.
        interrupted: Another skill came on top in the middle of a block.
        fresh: Its prose has not had a model call yet.
    """

    skill: Skill
    activation: int
    returns: bool = False
    cursors: list[Cursor] = field(default_factory=list)
    fired: set[int] = field(default_factory=set)
    interrupted: bool = False
    fresh: bool = True
    runs: dict[str, int] = field(default_factory=dict)

    @property
    def cursor(self) -> Cursor | None:
        return self.cursors[-1] if self.cursors else None


@dataclass(slots=True)
class PendingCall:
    """A tool call held until the caller says yes.

    Attributes:
        step: The step that wants it; None when the model asked for it.
        asked: Number of the turn in which the caller was asked.
        turn_id: Id of that turn, with ``scratch``.
        scratch: What led to the call and is still to be known once it may run.
        unheard: The caller took the floor before a word of the question had sounded.
    """

    tool: str
    arguments: dict[str, Any]
    skill: str
    asked: int
    step: str | None = None
    turn_id: str = ""
    scratch: tuple[Message, ...] = ()
    unheard: bool = False


@dataclass(slots=True)
class ResumeOffer:
    """The caller was asked whether to go on with an interrupted skill."""

    skill: str
    asked: int


Question = PendingCall | ResumeOffer


@dataclass(slots=True)
class Session:
    """The stretch of a conversation in which memory lives. ``id`` is empty before the first and after the end."""

    id: str = ""
    last_activity: datetime | None = None
    started_at: datetime | None = None
    user_turns: int = 0
    dropped_at: datetime | None = None


@dataclass(slots=True)
class DialogueState:
    """Everything a conversation is in the middle of.

    Attributes:
        farewell: Skills still to run before the call is ended; None while nobody wants to end it.
        took_leave: They have run, or begun to, in this session: once is enough.
        owed: What tells of a thing that was done, and that a cancelled turn could not say: said in the next one.
    """

    memory: Memory
    stack: list[Frame] = field(default_factory=list)
    question: Question | None = None
    session: Session = field(default_factory=Session)
    turn: int = 0
    activations: int = 0
    silences: int = 0
    farewell: list[str] | None = None
    took_leave: bool = False
    owed: list[Wording] = field(default_factory=list)

    @property
    def top(self) -> Frame | None:
        return self.stack[-1] if self.stack else None

    def frame_of(self, skill_id: str) -> Frame | None:
        return next((f for f in self.stack if f.skill.id == skill_id), None)

    def callers(self, frame: Frame) -> list[Frame]:
        """Return the frames that wait for ``frame`` to come back to them, the nearest first."""
        found: list[Frame] = []
        index = self.stack.index(frame)
        while index > 0 and self.stack[index].returns and not self.stack[index].skill.lifecycle:
            index -= 1
            found.append(self.stack[index])
        return found

    def joined(self, frame: Frame) -> list[Frame]:
        """Return ``frame`` with those that wait for it and those it waits for, in the order of the stack."""
        return next(
            group
            for group in ([*reversed(self.callers(top)), top] for top in reversed(self.stack))
            if any(member is frame for member in group)
        )

    def raise_to_top(self, frame: Frame) -> None:
        """Put ``frame`` on top with all that it is joined to: who called stays below who was called."""
        group = self.joined(frame)
        self.stack[:] = [other for other in self.stack if not any(other is member for member in group)] + group

    def heard(self, turn: int, last_message: str, unheard: str) -> None:
        """All of a turn's reply but ``unheard`` was heard: was the caller asked about the call that its end holds?"""
        question = self.question
        if isinstance(question, PendingCall) and question.asked == turn:
            question.unheard = unheard.strip().endswith(last_message.strip())

    def clear(self) -> None:
        """A session is over: nothing of it is kept here."""
        self.stack.clear()
        self.memory.clear()
        self.question, self.silences = None, 0
        self.farewell, self.took_leave = None, False
        self.owed.clear()


def snapshot(state: DialogueState) -> dict[str, Any]:
    """Return the state as JSON-ready data."""
    session = state.session
    return {
        "version": 1,
        "turn": state.turn,
        "activations": state.activations,
        "silences": state.silences,
        "farewell": state.farewell,
        "took_leave": state.took_leave,
        "owed": [asdict(wording) for wording in state.owed],
        "memory": state.memory.snapshot(),
        "session": {
            "id": session.id,
            "user_turns": session.user_turns,
            **{k: _iso(getattr(session, k)) for k in ("last_activity", "started_at", "dropped_at")},
        },
        "question": _question(state.question),
        "stack": [
            {
                "skill": frame.skill.id,
                "activation": frame.activation,
                "returns": frame.returns,
                "interrupted": frame.interrupted,
                "fired": sorted(frame.fired),
                "runs": dict(frame.runs),
                "cursors": [
                    {
                        "block": c.block.id,
                        "step": c.step.id if c.step else None,
                        "since": c.since,
                        "answered": c.answered,
                        "declined": c.declined,
                        "passed": _marks(c.passed),
                        "again": _marks(c.again),
                    }
                    for c in frame.cursors
                ],
            }
            for frame in state.stack
        ],
    }


def _marks(marks: Mapping[str, Mark]) -> list[list[Any]]:
    return [[id, mark.arguments, sorted(mark.read)] for id, mark in marks.items()]


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _question(question: Question | None) -> dict[str, Any] | None:
    if isinstance(question, PendingCall):
        return {
            "tool": question.tool,
            "arguments": question.arguments,
            "skill": question.skill,
            "asked": question.asked,
            "step": question.step,
            "turn_id": question.turn_id,
            "scratch": [asdict(message) for message in question.scratch],
        }
    return None if question is None else {"resume": question.skill, "asked": question.asked}


def restore(state: DialogueState, data: Mapping[str, Any], project: Project) -> list[str]:
    """Fill ``state`` from a snapshot. What the project no longer has is left out and named in the result."""
    lost: list[str] = []
    state.turn, state.activations, state.silences = data["turn"], data["activations"], data["silences"]
    state.farewell, state.took_leave = data.get("farewell"), bool(data.get("took_leave"))
    state.owed = [Wording(**{**wording, "values": tuple(wording["values"])}) for wording in data.get("owed", ())]
    state.memory.restore(data["memory"])
    raw = data["session"]
    moments = {
        k: datetime.fromisoformat(raw[k]) if raw[k] else None for k in ("last_activity", "started_at", "dropped_at")
    }
    state.session = Session(raw["id"], user_turns=raw["user_turns"], **moments)
    gap = False
    for item in data["stack"]:
        skill = project.skills.get(item["skill"])
        cursors = None if skill is None else _cursors(skill, item["cursors"])
        if skill is None or cursors is None:
            lost.append(item["skill"])
            gap = True
            continue
        fired, runs = set(item["fired"]), dict(item.get("runs", {}))
        # Who called it may be what was left out; then there is nothing to come back to.
        returns = item["returns"] and (skill.lifecycle or not gap)
        frame = Frame(skill, item["activation"], returns, cursors, fired, item["interrupted"], False, runs)
        state.stack.append(frame)
        gap = False
    question = data["question"]
    if question is not None and "tool" in question and state.frame_of(question["skill"]) is not None:
        kept = tuple(map(_message, question.get("scratch", ())))
        state.question = PendingCall(**{**question, "scratch": kept})
    elif question is not None and "resume" in question and state.top and state.top.skill.id == question["resume"]:
        state.question = ResumeOffer(question["resume"], question["asked"])
    return lost


def _message(data: Mapping[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in data["tool_calls"])
    return Message(data["role"], data["content"], calls, data["tool_call_id"], data["name"])


def _cursors(skill: Skill, items: list[Mapping[str, Any]]) -> list[Cursor] | None:
    found = []
    for item in items:
        block = skill.blocks.get(item["block"])
        if block is None:
            return None
        index = len(block.steps) if item["step"] is None else block.index(item["step"])
        if index is None:
            return None
        passed, again = (
            {id: Mark(arguments, frozenset(read)) for id, arguments, read in item.get(key, [])}
            for key in ("passed", "again")
        )
        found.append(Cursor(block, index, item["since"], item["answered"], item["declined"], passed, again))
    return found
