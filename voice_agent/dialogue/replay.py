"""From the tracker to the state: what a conversation was in the middle of, as far as its records tell.

Records are the source of truth; a snapshot of the state saves replaying them. Replayed are the
session, memory, the stack of skills and the place in their blocks. What records do not tell is left
out on the safe side: a held tool call is not rebuilt, so it is asked about again instead of run.

Pure: no clock, no I/O, no records are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from voice_agent.dialogue.blocks import Block, CallStep, CollectStep, SendDigitsStep, Step, ToolStep, TransferStep
from voice_agent.dialogue.corrections import go_back
from voice_agent.dialogue.events import SIGNS_OF_PRESENCE, payload_of
from voice_agent.dialogue.framework_tools import SEND_DIGITS, TRANSFER
from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.reply import SILENCE
from voice_agent.dialogue.state import DialogueState, Frame, Session
from voice_agent.dialogue.stepper import Cursor, Mark, digest, following

Payload = Mapping[str, Any]
_OF_STEPS: Mapping[str, type[Step]] = {TRANSFER: TransferStep, SEND_DIGITS: SendDigitsStep}
"""Steps that run a tool of the framework."""


def moment_of(event: Mapping[str, Any]) -> datetime | None:
    """Return a record's timestamp; None if it has none that can be read."""
    try:
        return datetime.fromisoformat(str(event.get("timestamp", "")))
    except ValueError:
        return None


def open_turns(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the ids of turns that began and have no end, oldest first."""
    found: dict[str, None] = {}
    for event in events:
        kind, payload = payload_of(event)
        turn_id = str(payload.get("turn_id", ""))
        if kind == "turn_started":
            found[turn_id] = None
        elif kind == "turn_finished":
            found.pop(turn_id, None)
    return list(found)


def replay(state: DialogueState, events: Iterable[Mapping[str, Any]], project: Project) -> None:
    """Move ``state`` on by ``events``; records it does not understand are passed over."""
    replayer = _Replayer(state, project)
    for event in events:
        kind, payload = payload_of(event)
        handle = replayer.handlers.get(kind)
        if handle is not None:
            handle(event, payload)


class _Replayer:
    def __init__(self, state: DialogueState, project: Project) -> None:
        self._state, self._project = state, project
        self.handlers: Mapping[str, Callable[[Mapping[str, Any], Payload], None]] = {
            "session_started": self._session_started,
            "session_ended": self._session_ended,
            "turn_started": self._turn_started,
            "user": self._user,
            **dict.fromkeys(SIGNS_OF_PRESENCE, self._is_present),
            "memory_set": self._memory_set,
            "skill_activated": self._activated,
            "skill_completed": self._ended,
            "skill_cancelled": self._ended,
            "skill_interrupted": self._interrupted,
            "skill_resumed": self._resumed,
            "ordered_block_started": self._block_started,
            "ordered_block_completed": self._block_completed,
            "ordered_block_revisited": self._block_revisited,
            "tool_executed": self._tool_executed,
        }

    # --- sessions and turns --------------------------------------------------------------------

    def _session_started(self, event: Mapping[str, Any], payload: Payload) -> None:
        moment = moment_of(event)
        self._state.clear()
        self._state.session = Session(str(event.get("session_id", "")), moment, moment)

    def _session_ended(self, event: Mapping[str, Any], payload: Payload) -> None:
        self._state.clear()
        self._state.session.id = ""

    def _turn_started(self, event: Mapping[str, Any], payload: Payload) -> None:
        self._state.turn = int(payload.get("number", self._state.turn + 1))
        self._state.session.last_activity = moment_of(event) or self._state.session.last_activity
        self._state.session.dropped_at = None

    def _user(self, event: Mapping[str, Any], payload: Payload) -> None:
        if payload.get("kind") != "intent":
            self._state.session.user_turns += 1
            self._state.silences = 0
        elif payload.get("text") == SILENCE.text:
            self._state.silences += 1

    def _is_present(self, event: Mapping[str, Any], payload: Payload) -> None:
        self._state.silences = 0

    def _memory_set(self, event: Mapping[str, Any], payload: Payload) -> None:
        restore_value(self._state.memory, payload)

    # --- skills --------------------------------------------------------------------------------

    def _frame(self, payload: Payload) -> Frame | None:
        return self._state.frame_of(str(payload.get("skill", "")))

    def _activated(self, event: Mapping[str, Any], payload: Payload) -> None:
        self._state.activations += 1
        skill = self._project.skills.get(str(payload.get("skill", "")))
        if skill is None:
            return
        self._state.question = None
        self._state.memory.begin(skill.id)
        top = self._state.top
        # Called by a step, it gives control back there. Older records do not say so.
        step = top.cursor.step if top is not None and top.cursor is not None else None
        called = isinstance(step, CallStep) and step.target.id == skill.id
        returns = bool(payload.get("returns", skill.lifecycle or called))
        self._state.stack.append(Frame(skill, self._state.activations, returns, fresh=False))

    def _ended(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        if frame is None:
            return
        self._state.stack.remove(frame)
        self._state.memory.end(frame.skill.id)
        self._state.question = None
        top = self._state.top
        called = frame.returns and not frame.skill.lifecycle and payload.get("reason") != "link"
        if called and top is not None and top.cursor is not None and isinstance(top.cursor.step, CallStep):
            self._pass(top.cursor)

    def _interrupted(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        if frame is not None:
            frame.interrupted = True

    def _resumed(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        if frame is None:
            return
        self._state.raise_to_top(frame)
        self._state.question = None
        for each in self._state.joined(frame):
            each.interrupted = False
            if each.cursor is not None:
                each.cursor.since = None

    # --- blocks --------------------------------------------------------------------------------

    def _pass(self, cursor: Cursor, mark: Mark | None = None) -> None:
        cursor.leave(following(cursor.block, cursor.index, self._state.memory.read), mark)

    def _block_started(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        block = None if frame is None else frame.skill.blocks.get(str(payload.get("block", "")))
        if frame is None or block is None:
            return
        cursor = frame.cursor
        if cursor is not None:
            call = _call_of(cursor.block, block)
            if call is None:
                # Nothing here calls it, so it was gone to and not entered.
                frame.cursors.pop()
            else:
                cursor.go(call)
        frame.cursors.append(Cursor(block))

    def _block_completed(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        if frame is None or not frame.cursors:
            return
        frame.cursors.pop()
        if frame.cursor is not None and isinstance(frame.cursor.step, CallStep):
            self._pass(frame.cursor)

    def _block_revisited(self, event: Mapping[str, Any], payload: Payload) -> None:
        frame = self._frame(payload)
        cursor = None if frame is None else frame.cursor
        to = None if cursor is None else cursor.block.find(str(payload.get("step", "")))
        if frame is None or cursor is None or not isinstance(to, CollectStep):
            return
        self._state.question = None
        go_back(cursor, to, frame.skill, {to.field.reference}, self._state.memory.read)

    def _tool_executed(self, event: Mapping[str, Any], payload: Payload) -> None:
        """A tool that a step ran is behind the cursor: it is not run again."""
        self._state.question = None
        top, tool = self._state.top, str(payload.get("tool", ""))
        if top is None or (tool not in top.skill.tools and tool not in _OF_STEPS):
            return
        name, cursor = str(payload.get("step", "")), top.cursor
        steps = [] if cursor is None else list(enumerate(cursor.block.steps))
        if cursor is not None and name in ("", tool):
            # An older record, or one of a tool that the model asked for: no step behind the cursor is meant.
            steps = steps[cursor.index :]
        index = next((i for i, s in steps if _runs(s, tool) and name in ("", s.id)), None)
        if cursor is not None and index is not None:
            name = name or cursor.block.steps[index].id
            cursor.go(index)
            arguments = digest(str(payload.get("arguments_json", ""))) if payload.get("success") else ""
            self._pass(cursor, Mark(arguments))
        if payload.get("success"):
            name = name or tool
            top.runs[name] = top.runs.get(name, 0) + 1


def _runs(step: Step, tool: str) -> bool:
    if kind := _OF_STEPS.get(tool):
        return isinstance(step, kind)
    return isinstance(step, ToolStep) and step.tool == tool


def _call_of(outer: Block, inner: Block) -> int | None:
    return next(
        (
            index
            for index, step in enumerate(outer.steps)
            if isinstance(step, CallStep) and step.target.kind == "block" and step.target.id == inner.id
        ),
        None,
    )


def restore_value(memory: Memory, payload: Payload) -> None:
    """Put one recorded value back; one whose declaration has gone or changed is left out."""
    try:
        value = json.loads(str(payload.get("value_json", "null")))
    except ValueError:
        return
    memory.restore([[str(payload.get("namespace", "")), str(payload.get("key", "")), value]])
