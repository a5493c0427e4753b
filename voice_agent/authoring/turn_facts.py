"""Gathers what one turn did, for `expectations`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from voice_agent.authoring.event_lines import parsed
from voice_agent.authoring.expectations import ToolRun, TurnFacts
from voice_agent.authoring.stage import ListeningCaller
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.reply import TurnResult
from voice_agent.dialogue.state import DialogueState, PendingCall


def gather(
    caller: ListeningCaller,
    result: TurnResult,
    events: Iterable[Mapping[str, Any]],
    state: DialogueState,
    project: Project,
) -> TurnFacts:
    """Return the facts of a turn. ``state`` is as the turn has left it, and is read for as long as they are used."""
    happened: dict[str, list[str]] = {}
    runs = []
    for kind, payload in map(payload_of, events):
        if kind == "tool_executed":
            runs.append(_run(payload))
        elif kind.startswith("skill_"):
            happened.setdefault(kind, []).append(str(payload.get("skill", "")))
    return TurnFacts(
        messages=caller.messages,
        runs=runs,
        hung_up=caller.hung_up,
        status=result.status.value,
        heard=caller.heard.heard,
        active=state.top.skill.id if state.top else None,
        started=happened.get("skill_activated", []),
        completed=happened.get("skill_completed", []),
        cancelled=happened.get("skill_cancelled", []),
        confirming=state.question.tool if isinstance(state.question, PendingCall) else None,
        read=_reader(state),
        entries=[f"{f.namespace}.{f.name}" for f in project.schema],
        skills=list(project.skills),
        tools=[name for skill in project.skills.values() for name in skill.tools],
    )


def _reader(state: DialogueState) -> Callable[[str], tuple[bool, Any]]:
    """Return a function that looks up memory by the names that tests use."""

    def read(name: str) -> tuple[bool, Any]:
        parts = name.removeprefix("session.").split(".")
        schema = state.memory.schema
        if len(parts) == 1:
            declared = schema.resolve(parts[0], state.top.skill.id if state.top else None)
        else:
            declared = next((f for f in schema.of(parts[0]) if [f.name] == parts[1:]), None)
        return (False, None) if declared is None else (True, state.memory.read(declared.namespace, declared.name))

    return read


def _run(payload: Mapping[str, Any]) -> ToolRun:
    arguments, result = (parsed(payload.get(key)) for key in ("arguments_json", "result_json"))
    return ToolRun(str(payload.get("tool")), arguments, result, bool(payload.get("success")))
