"""From the records of a conversation to its skills: which ran, where each stands in its blocks, which steps were done.

Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from voice_agent.dialogue.blocks import (
    ActionStep,
    Block,
    CallStep,
    CollectStep,
    HangUpStep,
    InstructionsStep,
    LinkStep,
    ListenStep,
    SendDigitsStep,
    SetMemoryStep,
    Step,
    ToolStep,
)
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.project import Project

MAX_ACTIVATIONS = 40
"""Skills of one session that are told of, the newest."""

Record = Mapping[str, Any]
Payload = Mapping[str, Any]


def flow(records: Iterable[Record], project: Project) -> dict[str, Any]:
    """Return the skills of the last session.

    ``activations`` are ``{skill, name, status, sequence, blocks: [{block, status, step, done}]}`` in the
    order in which they began; status is ``active``, ``paused``, ``completed``, ``cancelled`` or ``ended``
    (with the session). ``graphs`` holds by ``skill/block`` what the project says of each block now.
    """
    teller = _Flow(project)
    for record in records:
        kind, payload = payload_of(record)
        handle = getattr(teller, f"on_{kind}", None)
        if handle is not None:
            handle(record, payload)
    shown = teller.activations[-MAX_ACTIVATIONS:]
    graphs = {}
    for activation in shown:
        skill = project.skills.get(activation["skill"])
        for place in activation["blocks"]:
            block = None if skill is None else skill.blocks.get(place["block"])
            if block is not None:
                graphs[f"{activation['skill']}/{block.id}"] = graph(block)
    return {"activations": shown, "graphs": graphs}


def graph(block: Block) -> dict[str, Any]:
    """Return a block as ``{id, steps: [{id, kind, label, next: [{to, if}]}]}``; ``to`` is a step or ``END``."""
    following = [step.id for step in block.steps[1:]] + ["END"]
    return {
        "id": block.id,
        "steps": [
            {
                "id": step.id,
                **_told(step),
                "next": [{"to": b.then, "if": None if b.condition is None else b.condition.source} for b in step.next]
                or ([] if isinstance(step, LinkStep | HangUpStep) else [{"to": below, "if": None}]),
            }
            for step, below in zip(block.steps, following, strict=True)
        ],
    }


def _told(step: Step) -> dict[str, str]:
    match step:
        case CollectStep():
            return {"kind": "collect", "label": step.field.name}
        case ActionStep():
            return {"kind": "action", "label": step.response}
        case ToolStep():
            return {"kind": "tool", "label": step.tool}
        case SetMemoryStep():
            return {"kind": "set memory", "label": ", ".join(declared.name for declared, _ in step.values)}
        case CallStep() | LinkStep():
            return {"kind": "call" if isinstance(step, CallStep) else "link", "label": step.target.id}
        case InstructionsStep():
            return {"kind": "instructions", "label": step.complete_when.source if step.complete_when else "converse"}
        case ListenStep():
            return {"kind": "listen", "label": "wait for the caller"}
        case SendDigitsStep():
            return {"kind": "keys", "label": "press keys"}
        case HangUpStep():
            return {"kind": "hang up", "label": "end the call"}
        case _:
            return {"kind": "branch", "label": ""}


class _Flow:
    def __init__(self, project: Project) -> None:
        self._project = project
        self.activations: list[dict[str, Any]] = []

    def _running(self, skill: Any) -> dict[str, Any] | None:
        alive = (a for a in reversed(self.activations) if a["skill"] == skill and a["status"] in ("active", "paused"))
        return next(alive, None)

    def on_session_started(self, record: Record, payload: Payload) -> None:
        self.activations = []

    def on_session_ended(self, record: Record, payload: Payload) -> None:
        for activation in self.activations:
            if activation["status"] in ("active", "paused"):
                activation["status"] = "ended"

    def on_skill_activated(self, record: Record, payload: Payload) -> None:
        known = self._project.skills.get(str(payload.get("skill", "")))
        name = known.name if known is not None else str(payload.get("skill", ""))
        began = {"skill": payload.get("skill"), "name": name, "status": "active", "sequence": record.get("sequence")}
        self.activations.append({**began, "blocks": []})

    def _becomes(self, payload: Payload, status: str) -> None:
        activation = self._running(payload.get("skill"))
        if activation is not None:
            activation["status"] = status

    def on_skill_interrupted(self, record: Record, payload: Payload) -> None:
        self._becomes(payload, "paused")

    def on_skill_resumed(self, record: Record, payload: Payload) -> None:
        self._becomes(payload, "active")

    def on_skill_completed(self, record: Record, payload: Payload) -> None:
        self._becomes(payload, "completed")

    def on_skill_cancelled(self, record: Record, payload: Payload) -> None:
        self._becomes(payload, "cancelled")

    def on_ordered_block_started(self, record: Record, payload: Payload) -> None:
        activation = self._running(payload.get("skill"))
        if activation is not None:
            place = {"block": payload.get("block"), "status": "active", "step": self._first(payload)}
            activation["blocks"].append({**place, "done": []})

    def _first(self, payload: Payload) -> str | None:
        skill = self._project.skills.get(str(payload.get("skill", "")))
        block = None if skill is None else skill.blocks.get(str(payload.get("block", "")))
        return block.steps[0].id if block is not None and block.steps else None

    def on_ordered_block_completed(self, record: Record, payload: Payload) -> None:
        # A skill that has just been marked as over may still be the one whose block ended.
        for activation in reversed(self.activations):
            if activation["skill"] != payload.get("skill"):
                continue
            place = _open(activation, payload.get("block"))
            if place is not None:
                place.update(status="completed", step=None, done=list(payload.get("steps", place["done"])))
            return

    def on_turn_finished(self, record: Record, payload: Payload) -> None:
        for at in payload.get("at") or ():
            activation = self._running(at.get("skill"))
            for there in at.get("blocks", ()) if activation is not None else ():
                place = _open(activation, there.get("block"))
                if place is None:
                    place = {"block": there.get("block"), "status": "active"}
                    activation["blocks"].append(place)  # type: ignore[index]
                place.update(step=there.get("step"), done=list(there.get("done", ())))


def _open(activation: Any, block: Any) -> dict[str, Any] | None:
    places = reversed(activation["blocks"])
    return next((p for p in places if p["block"] == block and p["status"] == "active"), None)
