"""Checks that reach across files: names of tools, responses, skills and blocks, and what can never work."""

from __future__ import annotations

from collections.abc import Mapping

from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.blocks import ActionStep, Block, CallStep, CollectStep, LinkStep, Step, ToolStep
from voice_agent.dialogue.framework_tools import FRAMEWORK_TOOLS, SEND_DIGITS, TRANSFER
from voice_agent.dialogue.memory import PROJECT
from voice_agent.dialogue.project import SESSION_START, Project, Skill
from voice_agent.dialogue.remote_tools import RemoteTool
from voice_agent.dialogue.skill_file import SkillFile
from voice_agent.dialogue.tools import Tool


def check_project(project: Project, files: Mapping[str, SkillFile], problems: list[Problem]) -> None:
    """Append every cross-file problem of ``project``."""
    for skill in project.skills.values():
        _SkillChecker(project, skill, files[skill.id], problems).check()


class _SkillChecker:
    def __init__(self, project: Project, skill: Skill, file: SkillFile, problems: list[Problem]) -> None:
        self.project, self.skill, self.file, self.problems = project, skill, file, problems

    def _report(
        self, id: str, message: str, remedy: str, line: int | None, severity: Severity = Severity.ERROR
    ) -> None:
        self.problems.append(Problem(id, message, remedy, self.skill.path, line, severity))

    def check(self) -> None:
        skill, file = self.skill, self.file
        for tool in skill.tools.values():
            self._name(tool)
            self._writes(tool)
        for name, constraint in skill.constraints.items():
            line = file.constraint_lines[name]
            self._tool(name, "tool_constraints", line, builtin=True)
            if name == TRANSFER and constraint.confirmation is not None:
                message = (
                    "A transfer is not asked about: its announcement is, as long as it sounds, the time to object."
                )
                remedy = "Collect a yes or no before it, and take `requires_confirmation` out."
                self._report("skill.transfer_confirmation", message, remedy, line)
            if name == SEND_DIGITS and constraint.confirmation is not None:
                message = "Keys are not asked about: a menu waits for them, and whoever is on the line is no caller."
                remedy = "Collect a yes or no before it, and take `requires_confirmation` out."
                self._report("skill.digits_confirmation", message, remedy, line)
            names = [constraint.on_success]
            if constraint.confirmation is not None:
                names += [constraint.confirmation.ask, constraint.confirmation.denied]
            for response in names:
                self._response(response, line)
        for trigger, line in file.triggers:
            self._response(trigger.response, line)
        for block in skill.blocks.values():
            for step in block.steps:
                self._step(block, step)
        if not skill.prose and not skill.blocks:
            self._report("skill.empty", "The skill has neither instructions nor blocks.", "Say what to do.", 1)
        if not skill.prose and len(skill.blocks) > 1:
            message = f"Without prose only the first block, {next(iter(skill.blocks))!r}, ever starts."
            self._report("skill.unreachable_block", message, "Name the others with `call`.", 1, Severity.WARNING)
        if skill.id == SESSION_START and skill.path.is_relative_to(self.project.root):
            self._greets()

    def _name(self, tool: Tool) -> None:
        """Report a name that means something else already."""
        for taken, id, whose in (
            (self.project.skills, "skill.tool_is_skill", "a skill"),
            (FRAMEWORK_TOOLS, "skill.tool_is_builtin", "a built-in tool"),
        ):
            if tool.name in taken:
                message = f"The tool {tool.name!r} has the name of {whose}."
                self.problems.append(Problem(id, message, "Rename it.", tool.path or self.skill.path, tool.line))

    def _writes(self, tool: Tool) -> None:
        """Report fields that a tool writes by a literal name and nobody declares where the tool can see them."""
        for field, line in tool.writes:
            if self.project.schema.resolve(field, self.skill.id) is None:
                near = self.project.schema.suggestion(field, (self.skill.id, PROJECT))
                message = f"The tool {tool.name!r} writes {field!r}, which skill {self.skill.id!r} does not declare."
                remedy = near or "Declare it in the skill's memory.yml or in the root's."
                self.problems.append(Problem("undeclared_memory_write", message, remedy, tool.path, line))

    def _step(self, block: Block, step: Step) -> None:
        if isinstance(step, ActionStep):
            self._response(step.response, step.line)
        elif isinstance(step, CollectStep):
            self._collect(step)
        elif isinstance(step, ToolStep):
            self._tool(step.tool, f"step {step.id!r}", step.line)
            self._arguments(step)
        elif isinstance(step, CallStep | LinkStep):
            kind, id = step.target.kind, step.target.id
            if kind == "block" and id not in self.skill.blocks and id in self.project.skills:
                kind = "skill"
            self._target(kind, id, step.line)

    def _collect(self, step: CollectStep) -> None:
        if step.utterance is not None:
            self._response(step.utterance, step.line)
        elif self.project.responses.find(f"utter_ask_{step.field.name}", self.skill.id) is None:
            message = f"Step {step.id!r} has no `utterance:`; the model will word the question."
            remedy = f"Add `utterance:`, or a response utter_ask_{step.field.name}."
            self._report("skill.block.no_utterance", message, remedy, step.line, Severity.WARNING)

    def _arguments(self, step: ToolStep) -> None:
        tool = self.skill.tools.get(step.tool)
        if tool is None or isinstance(tool, RemoteTool):
            return  # what a server's tool takes is known once the server is asked
        for name in step.arguments:
            if name not in tool.parameter_names:
                near = did_you_mean(name, tool.parameter_names)
                self._report(
                    "skill.block.unknown_argument", f"The tool {tool.name!r} takes no {name!r}.", near, step.line
                )
        for name in tool.parameters.get("required", ()):
            if name not in step.arguments and self.project.schema.resolve(name, self.skill.id) is None:
                message = f"Nothing gives the tool {tool.name!r} its argument {name!r}."
                self._report(
                    "skill.block.missing_argument", message, "Add `args:`, or a memory field of that name.", step.line
                )

    def _response(self, name: str | None, line: int) -> None:
        if name is not None and self.project.responses.find(name, self.skill.id) is None:
            near = did_you_mean(name, self.project.responses.names(self.skill.id))
            self._report("skill.unknown_response", f"There is no response {name!r}.", near or "Add it.", line)

    def _tool(self, name: str, where: str, line: int, *, builtin: bool = False) -> None:
        if name in self.skill.tools or (builtin and name in FRAMEWORK_TOOLS):
            return
        if any(name in other.tools for other in self.project.skills.values()):
            remedy = "Import it with `import_tools` if it is shared; another skill's own tools cannot be used."
        else:
            remedy = did_you_mean(name, self.skill.tools) or "Define it in tools.py, or import it with `import_tools`."
        self._report("skill.unknown_tool", f"There is no tool {name!r} for {where}.", remedy, line)

    def _target(self, kind: str, id: str, line: int) -> None:
        known = self.project.skills if kind == "skill" else self.skill.blocks
        if id not in known:
            near = did_you_mean(id, known)
            self._report(f"skill.unknown_{kind}", f"There is no {kind} {id!r}.", near, line)
        elif kind == "skill" and id == self.skill.id:
            self._report("skill.starts_itself", "A skill cannot start itself.", "Use a block and `next`.", line)

    def _greets(self) -> None:
        steps = [step for block in self.skill.blocks.values() for step in block.steps]
        if not any(isinstance(step, ActionStep) for step in steps) and not self.skill.triggers:
            message = "This override of default_session_start says nothing, so callers hear silence first."
            remedy = "Add a step `action: utter_greet` with a response of that name."
            self._report("skill.silent_greeting", message, remedy, 1, Severity.WARNING)
