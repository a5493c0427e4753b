"""Reads the YAML of an ordered block into steps, reporting every fault with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voice_agent.diagnostics import did_you_mean
from voice_agent.dialogue.blocks import (
    END,
    ActionStep,
    Block,
    Branch,
    CallStep,
    CollectStep,
    HangUpStep,
    InstructionsStep,
    LinkStep,
    ListenStep,
    NoopStep,
    SendDigitsStep,
    SetMemoryStep,
    Step,
    Target,
    ToolStep,
    TransferStep,
)
from voice_agent.dialogue.delivery import DELIVERY_KEYS, read_delivery
from voice_agent.dialogue.fields import Field, MemoryRefused, coerce
from voice_agent.dialogue.framework_tools import SEND_DIGITS, TRANSFER
from voice_agent.dialogue.names import Names, paragraphs
from voice_agent.dialogue.remote_tools import bare_name
from voice_agent.digits import BadDigits, read_digits
from voice_agent.yaml_source import LocatedMap

_KINDS = ("instructions", "collect", "action", "execute_tool", "noop", "set_memory", "call", "link")
_EXTRA: Mapping[str, tuple[str, ...]] = {
    "instructions": ("complete_when",),
    "collect": ("utterance", "description"),
    "action": DELIVERY_KEYS,
    "execute_tool": ("args", "arguments"),
}
_LISTEN, _HANG_UP = ("listen", "action_listen"), ("hangup", "action_hangup")


class BlockReader:
    """Reads one block."""

    def __init__(self, names: Names) -> None:
        self.names, self.reader = names, names.reader

    def read(self, block_id: str, value: Any, line: int) -> Block | None:
        top = self.reader.mapping(value, f"Block {block_id!r}", line)
        self.reader.unknown(top, ["steps", "name", "description"], f"Block {block_id!r}")
        steps: list[Step] = []
        seen: dict[str, int] = {}
        lost: set[str] = set()
        items = self.reader.items(top.get("steps"), "`steps`", line)
        for number, (item, at) in enumerate(items):
            raw = self.reader.mapping(item, "A step", at)
            if set(raw) == {"id"} and raw["id"] == END:
                continue
            step = self._step(raw, number, at)
            if step is None:
                # Reported already; it is there all the same, for those that lead to it.
                lost.add(str(raw.get("id", "")))
                continue
            if step.id in seen:
                message = f"Step id {step.id!r} is already used on line {seen[step.id]}."
                self.reader.error("block.duplicate_step", message, "Ids are unique in a block.", at)
            seen[step.id] = at
            steps.append(step)
        if not items:
            self.reader.error("block.empty", f"Block {block_id!r} has no steps.", "Add `steps:` with a list.", line)
            return None
        self._check_targets(steps, {**dict.fromkeys(lost, line), **seen})
        if not lost:
            self._check_reach(steps)
        name, description = (self.reader.text(top, key, f"`{key}`") for key in ("name", "description"))
        return Block(block_id, tuple(steps), line, name, description)

    def _step(self, raw: LocatedMap, number: int, line: int) -> Step | None:
        kinds = [key for key in _KINDS if key in raw]
        step_id = str(raw.get("id", f"step_{number + 1}"))
        if len(kinds) != 1:
            found = f"has {' and '.join(f'`{k}`' for k in kinds)}" if kinds else "does nothing"
            near = next((n for key in raw if key not in ("id", "next") and (n := did_you_mean(key, _KINDS))), "")
            remedy = near or f"A step has exactly one of: {', '.join(_KINDS)}."
            self.reader.error("block.step_kind", f"Step {step_id!r} {found}.", remedy, line)
            return None
        kind = kinds[0]
        self.reader.unknown(raw, ["id", "next", kind, *_EXTRA.get(kind, ())], f"Step {step_id!r}", strict=True)
        builder: Callable[..., Step | None] = getattr(self, f"_{kind}")
        if step_id == END:
            self.reader.error("block.step_id", "A step that does something cannot be called END.", "Rename it.", line)
        return builder(raw, raw.key_lines[kind], {"id": step_id, "line": line, "next": self._next(raw, step_id)})

    def _next(self, raw: LocatedMap, step_id: str) -> tuple[Branch, ...]:
        value, line = raw.get("next"), raw.key_lines.get("next")
        if value is None:
            return ()
        if isinstance(value, str):
            return (Branch(value),)
        branches: list[Branch] = []
        for item, at in self.reader.items(value, f"`next` of step {step_id!r}", line):
            raw_branch = self.reader.mapping(item, "A branch", at)
            if branches and branches[-1].condition is None:
                message = "No branch after `else` can ever be taken."
                self.reader.error("block.unreachable_branch", message, "Put `else` last.", at)
            if set(raw_branch) == {"if", "then"}:
                condition = self.names.condition(raw_branch["if"], raw_branch.key_lines["if"])
                if condition is not None:
                    branches.append(Branch(str(raw_branch["then"]), condition))
            elif set(raw_branch) == {"else"}:
                branches.append(Branch(str(raw_branch["else"])))
            else:
                remedy = "Write `- if: <condition>` with `then: <step id>`, or `- else: <step id>`."
                self.reader.error("block.branch", "This is no branch.", remedy, at)
        return tuple(branches)

    def _check_targets(self, steps: list[Step], seen: Mapping[str, int]) -> None:
        for step in steps:
            for branch in step.next:
                if branch.then != END and branch.then not in seen:
                    near = did_you_mean(branch.then, [*seen, END])
                    message = f"Step {step.id!r} goes to {branch.then!r}, which does not exist."
                    remedy = near or f"Steps here: {', '.join(seen)}, END."
                    self.reader.error("block.missing_target", message, remedy, step.line)

    def _check_reach(self, steps: list[Step]) -> None:
        """Report steps that no way leads to."""
        reached: set[int] = set()
        frontier = [0]
        while frontier:
            index = frontier.pop()
            if index >= len(steps) or index in reached:
                continue
            reached.add(index)
            step = steps[index]
            targets = [branch.then for branch in step.next]
            frontier += [i for i, s in enumerate(steps) if s.id in targets]
            if not step.next and not isinstance(step, LinkStep | HangUpStep):
                frontier.append(index + 1)
        for index, step in enumerate(steps):
            if index not in reached:
                message = f"Step {step.id!r} is never reached."
                self.reader.warn("block.unreachable_step", message, "Let a `next` lead to it, or remove it.", step.line)

    # One method per kind of step, called as `_<key>`.

    def _instructions(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        text = raw["instructions"]
        if not isinstance(text, str) or not text.strip():
            self.reader.error("block.instructions", "`instructions` must be text.", "", line)
            return None
        before = len(self.reader.problems)
        condition, criteria = self.names.completion(raw)
        if condition is None and len(self.reader.problems) == before:
            only = "only criteria" if criteria else "no `complete_when`"
            message = f"Step {common['id']!r} has {only}; it ends with the model's first reply."
            self.reader.warn("block.no_complete_when", message, "Give the condition on which it is done.", line)
        said = paragraphs(text, line + 1, self.names)
        return InstructionsStep(instructions=said, complete_when=condition, criteria=criteria, **common)

    def _collect(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        declared = self.names.field(raw["collect"], line)
        if declared is None:
            return None
        if declared.namespace != self.names.skill:
            message = f"`collect` cannot fill {declared.reference}: the caller's answers go to the skill's own memory."
            self.reader.error("block.collect_foreign", message, "Declare the field in this skill's memory.yml.", line)
            return None
        utterance = self.reader.text(raw, "utterance", "`utterance`") or None
        description = self.reader.text(raw, "description", "`description`")
        return CollectStep(field=declared, utterance=utterance, description=description, **common)

    def _action(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        name = str(raw["action"])
        if name in _LISTEN:
            return ListenStep(**common)
        if name in _HANG_UP:
            return HangUpStep(**common)
        if not name.startswith("utter_"):
            remedy = "To run a tool write `execute_tool:`."
            self.reader.error("block.action", f"`action` says responses; {name!r} is none.", remedy, line)
            return None
        return ActionStep(response=name, delivery=read_delivery(raw, self.reader), **common)

    def _execute_tool(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        name = bare_name(str(raw["execute_tool"]))
        if name in _LISTEN:
            return ListenStep(**common)
        if name in _HANG_UP:
            return HangUpStep(**common)
        given = self.reader.mapping(raw.get("args", raw.get("arguments")), "`args`", line)
        if name == TRANSFER:
            return self._transfer(given, line, common)
        if name == SEND_DIGITS:
            return self._send_digits(given, line, common)
        arguments: dict[str, Any] = {}
        for key, value in given.items():
            arguments[key] = self._argument(value, given.key_lines[key])
        return ToolStep(tool=name, arguments=arguments, **common)

    def _argument(self, value: Any, line: int) -> Any:
        is_reference = isinstance(value, str) and value.startswith("session.") and value.count(".") == 2
        return self.names.field(value, line) if is_reference else value

    def _transfer(self, given: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        self.reader.unknown(given, ["destination"], "`args` of transfer", strict=True)
        value = given.get("destination")
        if not isinstance(value, str) or not value.strip():
            message = f"Step {common['id']!r} does not say where to put the caller through to."
            remedy = "Write `args: {destination: NAME}` with a name from `transfers:` in integrations.yml."
            self.reader.error("block.transfer", message, remedy, line)
            return None
        destination = self._argument(value.strip(), given.key_lines["destination"])
        return None if destination is None else TransferStep(destination=destination, **common)

    def _send_digits(self, given: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        self.reader.unknown(given, ["digits"], "`args` of send_digits", strict=True)
        value = given.get("digits")
        fault = "Write them in quotes, since YAML reads numbers otherwise, or name a field."
        try:
            if isinstance(value, str):
                found = self._argument(value.strip(), given.key_lines["digits"])
                digits = read_digits(found) if isinstance(found, str) else found
                return None if digits is None else SendDigitsStep(digits=digits, **common)
        except BadDigits as bad:
            fault = str(bad)
        message = f"Step {common['id']!r} does not say which keys to press."
        self.reader.error("block.send_digits", message, f'{fault} For example `args: {{digits: "1w42#"}}`.', line)
        return None

    def _noop(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        if not common["next"]:
            self.reader.error("block.noop", f"Step {common['id']!r} leads nowhere.", "A noop needs `next`.", line)
        return NoopStep(**common)

    def _set_memory(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        given = self.reader.mapping(raw["set_memory"], "`set_memory`", line)
        values: list[tuple[Field, Any]] = []
        for key, value in given.items():
            at = given.key_lines[key]
            declared = self.names.field(key, at)
            if declared is None:
                continue
            try:
                values.append((declared, coerce(declared, value)))
            except MemoryRefused as fault:
                self.reader.error("block.set_memory", str(fault), "", at)
        return SetMemoryStep(values=tuple(values), **common)

    def _call(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        target = self._target(raw["call"], line)
        return None if target is None else CallStep(target=target, **common)

    def _link(self, raw: LocatedMap, line: int, common: dict[str, Any]) -> Step | None:
        if common["next"]:
            self.reader.error("block.link", "`link` does not come back, so it takes no `next`.", "Use `call`.", line)
        target = self._target(raw["link"], line)
        return None if target is None else LinkStep(target=target, **common)

    def _target(self, value: Any, line: int) -> Target | None:
        text = str(value).removeprefix("@").strip()
        kind, _, name = text.partition(".")
        if kind == "skill" and name:
            return Target("skill", name)
        if kind == "block" and name:
            return Target("block", name)
        if text and "." not in text:
            # A bare name is one of this skill's blocks if there is one; the loader settles it.
            return Target("block", text)
        remedy = "Write @skill.<id> or @block.<id>."
        self.reader.error("block.target", f"{value!r} is nothing to run.", remedy, line)
        return None
