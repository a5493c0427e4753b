"""Checks that need both the settings and the skills of a project."""

from __future__ import annotations

from pathlib import Path

from voice_agent.config import LlmOptions
from voice_agent.config_files import ProjectConfig
from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.blocks import TransferStep
from voice_agent.dialogue.hooks import Point
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.remote_tools import RemoteTool
from voice_agent.dialogue.workflows.catalogue import BUILT_IN, WorkflowCatalogue


def check_agent(config: ProjectConfig, project: Project) -> tuple[Problem, ...]:
    """Return what is wrong or worth knowing about ``project`` as ``config`` runs it."""
    return (
        *_before_end(config, project),
        *_transfers(config, project),
        *_rephrase(config, project),
        *_hooks(project),
        *_workflows(config, project),
        *_servers(config, project),
    )


def _servers(config: ProjectConfig, project: Project) -> list[Problem]:
    known, found = config.integrations.mcp_servers, []
    for skill in project.skills.values():
        for tool in skill.tools.values():
            if isinstance(tool, RemoteTool) and tool.remote.server not in known:
                near = did_you_mean(tool.remote.server, known)
                remedy = near or "Name it under `mcp_servers:` in integrations.yml."
                message = f"{str(tool.remote)!r}: there is no MCP server {tool.remote.server!r}."
                found.append(Problem("skill.unknown_mcp_server", message, remedy, skill.path, tool.line))
    return found


def _workflows(config: ProjectConfig, project: Project) -> list[Problem]:
    known = catalogue_of(config, project).workflows
    named = [(config.agent.workflow, config.root / "agent.yml", "agent")]
    named += [(skill.workflow, skill.path, "skill") for skill in project.skills.values() if skill.workflow is not None]
    found = []
    for name, path, kind in named:
        if name not in known:
            remedy = did_you_mean(name, known) or f"Known workflows: {', '.join(known)}."
            line = _line_of(path, "workflow:")
            found.append(Problem(f"{kind}.unknown_workflow", f"There is no workflow {name!r}.", remedy, path, line))
    return found


def catalogue_of(config: ProjectConfig, project: Project) -> WorkflowCatalogue:
    """Return the workflows that ``project`` may use."""
    return WorkflowCatalogue(config.agent, project.workflows or BUILT_IN)


def _line_of(path: Path, beginning: str) -> int | None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.startswith(beginning)), None)


def _before_end(config: ProjectConfig, project: Project) -> list[Problem]:
    path, found = config.root / "agent.yml", []
    for name in config.agent.conversation.before_end:
        if name not in project.skills:
            remedy = did_you_mean(name, project.skills) or "Name a skill, such as default_customer_satisfaction."
            found.append(Problem("agent.unknown_skill", f"`before_end` names no skill {name!r}.", remedy, path))
    return found


def _transfers(config: ProjectConfig, project: Project) -> list[Problem]:
    destinations, found = config.integrations.transfers, []
    path = config.root / "integrations.yml"
    for name, destination in destinations.items():
        if project.responses.find(destination.utter, None) is None:
            message = f"The destination {name!r} is announced with {destination.utter!r}, which does not exist."
            near = did_you_mean(destination.utter, project.responses.names(None))
            found.append(Problem("transfer.unknown_response", message, near or "Add it to responses.yml.", path))
        if destination.hold_audio is not None and not (config.root / destination.hold_audio).is_file():
            message = f"The destination {name!r} names no file with {destination.hold_audio!r}."
            found.append(Problem("transfer.hold_audio", message, "Name a WAV file within the project.", path))
    if not destinations:
        # Steps that put callers through then fail as not supported, and the block goes on.
        return found
    for skill in project.skills.values():
        for step in (step for block in skill.blocks.values() for step in block.steps):
            to = step.destination if isinstance(step, TransferStep) else None
            if isinstance(to, str) and to not in destinations:
                message = f"Step {step.id!r} puts the caller through to {to!r}, which is not known."
                remedy = did_you_mean(to, destinations) or f"Destinations: {', '.join(destinations)}."
                found.append(Problem("transfer.unknown_destination", message, remedy, skill.path, step.line))
    return found


def writes_text(llm: LlmOptions) -> bool:
    return any(one.provider != "embedded" for one in (llm, *llm.fallbacks))


def _rephrase(config: ProjectConfig, project: Project) -> list[Problem]:
    wanted = [r for group in project.responses.own for r in group.values() if any(v.rephrase for v in r.variants)]
    if not wanted and not project.endpoints.rephrase:
        return []
    if project.endpoints.rephrase_llm is not None or writes_text(config.integrations.llm):
        return []
    what = f"{wanted[0].name} asks" if len(wanted) == 1 else f"{len(wanted) or 'Packaged'} responses ask"
    message = f"{what} to be rephrased, but the embedded model writes no text of its own: they are said as written."
    remedy = "Set another `llm:` in integrations.yml, or a model group for `nlg:` in endpoints.yml."
    return [Problem("responses.rephrase", message, remedy, config.root / "responses.yml", None, Severity.NOTE)]


def _hooks(project: Project) -> list[Problem]:
    found = []
    for point in (Point.MODEL_RESPONSE, Point.OUTGOING_MESSAGE):
        if project.hooks.modifying(point):
            first = project.hooks.modifying(point)[0]
            name = f"{first.name} of plugin {first.plugin}" if first.plugin else first.name
            where = None if first.plugin else project.root / "hooks.py"
            message = (
                f"The hook {name} must see whole messages, so replies are not spoken while the model still writes."
            )
            remedy = "Leave it out if the first word must come sooner."
            found.append(Problem("hook.waits", message, remedy, where, None, Severity.NOTE))
    return found
