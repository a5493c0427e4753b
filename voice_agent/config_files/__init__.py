"""Reads ``agent.yml`` and ``integrations.yml`` into `voice_agent.config`, naming file and line of every fault."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voice_agent.config import AgentFile, Integrations
from voice_agent.config_files.agent_file import PluginSections, read_agent_file
from voice_agent.config_files.integrations_file import read_integrations_file
from voice_agent.diagnostics import Problem, ProjectError, Severity

__all__ = ["SETTINGS_FILES", "PluginSections", "ProjectConfig", "load_config"]

SETTINGS_FILES = ("agent.yml", "integrations.yml")
"""A directory with neither is no project."""


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The settings of a project and what there is to say about them.

    Attributes:
        root: Directory of the project.
        problems: Warnings; a project with errors is not loaded.
        plugins: Settings of plugins, not yet checked.
    """

    root: Path
    agent: AgentFile
    integrations: Integrations
    problems: tuple[Problem, ...] = ()
    plugins: PluginSections | None = None


def load_config(root: Path, environ: Mapping[str, str] | None = None) -> ProjectConfig:
    """Read the settings of the project in ``root``.

    Args:
        environ: Variables for ``${NAME}`` and for API keys; the process environment by default.

    Raises:
        ProjectError: With every problem of both files, if any of them is an error.
    """
    environ = os.environ if environ is None else environ
    problems: list[Problem] = []
    if not root.is_dir():
        raise ProjectError(
            [Problem("project.missing", f"{root} is not a directory.", "Name a project directory.", root)]
        )
    if not any((root / name).is_file() for name in SETTINGS_FILES):
        what = f"{root.resolve()} is no project: it has no {' and no '.join(SETTINGS_FILES)}."
        raise ProjectError([Problem("project.missing", what, "Name a project, or make one: voice-agent new NAME.")])
    read = read_agent_file(root / "agent.yml", environ, problems)
    integrations = read_integrations_file(root / "integrations.yml", environ, problems)
    if any(p.severity is Severity.ERROR for p in problems) or read is None or integrations is None:
        raise ProjectError(problems)
    agent, plugins = read
    return ProjectConfig(root, agent, integrations, tuple(problems), plugins)
