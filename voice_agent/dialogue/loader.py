"""Reads a project directory into a `Project`, collecting every problem of every file."""

from __future__ import annotations

import keyword
import os
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from voice_agent.config_files import PluginSections
from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.consequences import without_consequences
from voice_agent.dialogue.declarations import read_memory, read_responses
from voice_agent.dialogue.endpoints import read_endpoints
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.flow_checks import check_flow
from voice_agent.dialogue.hook_loading import load_hooks
from voice_agent.dialogue.hook_runner import HookSet
from voice_agent.dialogue.knowledge import WordIndex, read_references
from voice_agent.dialogue.linking import check_project
from voice_agent.dialogue.memory import PROJECT, Schema
from voice_agent.dialogue.names import Names
from voice_agent.dialogue.plugin_loading import Plugins, load_plugins
from voice_agent.dialogue.plugin_threads import PluginThreads
from voice_agent.dialogue.project import LIFECYCLE, UNSUPPORTED, Constraint, Project, Skill
from voice_agent.dialogue.remote_tools import PREFIX, NoServers, RemoteTool, ToolServers, parse_import, stand_in
from voice_agent.dialogue.responses import Response, Responses
from voice_agent.dialogue.skill_file import SkillFile, read_skill
from voice_agent.dialogue.tool_loading import load_tool_folder, project_imports
from voice_agent.dialogue.tools import Tool
from voice_agent.text_file import read_text
from voice_agent.yaml_source import Reader, read_file

LIFECYCLE_FOLDER = Path(__file__).parent / "lifecycle"
_NOTHING = Constraint()
ENGINE_PLACEHOLDERS = frozenset({"skill_name"})
"""Placeholders of packaged responses that the engine fills by itself."""


class ProjectLoader:
    """Loads one project. Use `load_project`."""

    def __init__(
        self,
        root: Path,
        problems: list[Problem],
        servers: ToolServers,
        settings: PluginSections | None = None,
        threads: PluginThreads | None = None,
    ) -> None:
        self.root, self.problems, self._servers, self._settings = root, problems, servers, settings
        self._threads = threads
        own = self._folders(root / "skills")
        bundled = self._folders(LIFECYCLE_FOLDER)
        self.folders: dict[str, Path] = {**bundled, **own}
        self.bundled = bundled

    def _folders(self, parent: Path) -> dict[str, Path]:
        if not parent.is_dir():
            return {}
        # Some file systems take letters and their accents apart; conditions name skills in the composed form.
        return {unicodedata.normalize("NFKC", p.parent.name): p.parent for p in sorted(parent.glob("*/skill.md"))}

    def load(self) -> Project:
        root = self.root
        if not any(folder.is_relative_to(root) for folder in self.folders.values()):
            remedy = "Add skills/<name>/skill.md."
            self._problem("project.no_skills", f"{root} has no skills.", remedy, root / "skills")
        schema = Schema(self._memory())
        shared, local, hooks, plugins = self._code()
        files = {skill: f for skill, folder in self.folders.items() if (f := self._skill_file(skill, folder, schema))}
        responses = self._responses(schema)
        skills = {id: self._skill(id, file, schema, shared, local[id]) for id, file in files.items()}
        references = read_references(root / "references", root, self.problems)
        endpoints = read_endpoints(root / "endpoints.yml", self.problems, os.environ)
        index = WordIndex(references) if references else None
        project = Project(root, skills, schema, responses, index, hooks, endpoints, plugins.workflows)
        check_project(project, files, self.problems)
        return project

    def _problem(
        self,
        id: str,
        message: str,
        remedy: str,
        path: Path,
        severity: Severity = Severity.ERROR,
        line: int | None = None,
    ) -> None:
        self.problems.append(Problem(id, message, remedy, path, line, severity))

    # --- one kind of file each -----------------------------------------------------------------

    def _memory(self) -> list[Field]:
        fields = self._memory_file(self.root / "memory.yml", PROJECT)
        for skill, folder in self.folders.items():
            own = self._memory_file(folder / "memory.yml", skill)
            if skill in self.bundled and folder != self.bundled[skill]:
                # The engine writes the bundled fields whoever words the skill.
                bundled = self._memory_file(self.bundled[skill] / "memory.yml", skill)
                own += [f for f in bundled if f.name not in {o.name for o in own}]
            fields += own
        return fields

    def _memory_file(self, path: Path, namespace: str) -> list[Field]:
        source = read_file(path, self.problems) if path.is_file() else None
        return [] if source is None else read_memory(source.value, namespace, Reader(path, self.problems, "memory"))

    def _responses(self, schema: Schema) -> Responses:
        packaged = self._response_file(LIFECYCLE_FOLDER / "responses.yml", PROJECT, schema)
        root = self._response_file(self.root / "responses.yml", PROJECT, schema)
        by_skill: dict[str, Mapping[str, Response]] = {
            skill: self._response_file(folder / "responses.yml", skill, schema)
            for skill, folder in self.folders.items()
        }
        return Responses(packaged, root, by_skill)

    def _response_file(self, path: Path, skill: str, schema: Schema) -> dict[str, Response]:
        source = read_file(path, self.problems) if path.is_file() else None
        if source is None:
            return {}
        names = Names(skill, schema, Reader(path, self.problems, "responses"))
        return read_responses(source.value, names, extra=ENGINE_PLACEHOLDERS)

    def _code(self) -> tuple[dict[str, Tool], dict[str, dict[str, Tool]], HookSet, Plugins]:
        with project_imports(self.root):
            shared = load_tool_folder(self.root, self.problems, single_file=False)
            local = {skill: load_tool_folder(folder, self.problems) for skill, folder in self.folders.items()}
            own = load_hooks(self.root, self.problems)
            plugins = load_plugins(self.root, self.problems, self._settings)
        for name in sorted(plugins.tools.keys() & shared.keys()):
            message = f"The tool {name!r} of the project is used, not the one that a plugin brings."
            tool = shared[name]
            self._problem("plugin.tool", message, "Rename one.", tool.path or self.root, Severity.WARNING, tool.line)
        # The project's own hooks have the last word.
        return {**plugins.tools, **shared}, local, HookSet((*plugins.hooks, *own), self._threads), plugins

    def _skill_file(self, skill: str, folder: Path, schema: Schema) -> SkillFile | None:
        path = folder / "skill.md"
        reader = Reader(path, self.problems, "skill")
        text = read_text(path, self.problems)
        if text is None:
            return None
        self._check_id(skill, reader)
        return read_skill(path, text, Names(skill, schema, reader))

    @staticmethod
    def _check_id(skill: str, reader: Reader) -> None:
        if not skill.replace("-", "_").isidentifier():
            reader.error("id", f"The folder name {skill!r} cannot be a skill id.", "Use letters, digits, underscores.")
        elif skill == PROJECT:
            message = f"A skill cannot be called {skill!r}: that is the memory of the whole conversation."
            reader.error("id", message, "Rename the folder.")
        elif "-" in skill:
            message = f"Conditions cannot name the memory of {skill!r} because of the hyphen."
            reader.warn("id_hyphen", message, f"Call the folder {skill.replace('-', '_')}.")
        elif keyword.iskeyword(skill):
            message = f"Conditions cannot name the memory of {skill!r} because that is a word of their own."
            reader.warn("id_keyword", message, "Rename the folder.")

    def _skill(
        self, id: str, file: SkillFile, schema: Schema, shared: Mapping[str, Tool], local: Mapping[str, Tool]
    ) -> Skill:
        folder = self.folders[id]
        lifecycle = id in LIFECYCLE
        if id == UNSUPPORTED and file.engine_managed is False:
            message = "This skill is started by the engine only."
            self._problem("skill.engine_managed", message, "Remove `engine_managed: false`.", file.path,
                          line=file.engine_managed_line)  # fmt: skip
        managed = lifecycle if file.engine_managed is None else file.engine_managed
        own = folder.is_relative_to(self.root)
        passages = read_references(folder / "references", self.root, self.problems) if own else []
        return Skill(
            id=id,
            name=file.name,
            description=file.description,
            path=file.path,
            examples=file.examples,
            requires=file.requires,
            complete_when=file.complete_when,
            constraints=file.constraints,
            triggers=tuple(trigger for trigger, _ in file.triggers),
            prose=file.prose,
            blocks=file.blocks,
            criteria=file.criteria,
            tools={
                name: replace(tool, interruptible=tool.interruptible and constraint.interruptible)
                for name, tool in {**self._imported(file, shared, local), **local}.items()
                if (constraint := file.constraints.get(name, _NOTHING))
            },
            fields=tuple(schema.of(id)),
            menu=not managed,
            lifecycle=lifecycle,
            knowledge=WordIndex(passages) if passages else None,
            workflow=file.workflow,
        )

    def _imported(self, file: SkillFile, shared: Mapping[str, Tool], local: Mapping[str, Tool]) -> dict[str, Tool]:
        found: dict[str, Tool] = {}
        for name, line in file.imports.items():
            if name.startswith(PREFIX):
                self._remote(name, line, file, {**shared, **local}, found)
            elif name in shared:
                found[name] = shared[name]
                if name in local:
                    message = f"The tool {name!r} of this skill is used, not the shared one that is imported here."
                    self._problem(
                        "skill.tool_hides_shared", message, "Rename one, or remove the import.", file.path,
                        Severity.WARNING, line,
                    )  # fmt: skip
            else:
                near = did_you_mean(name, shared)
                remedy = near or f"Shared tools: {', '.join(sorted(shared)) or 'none; they live in tools/*.py'}."
                self._problem(
                    "skill.unknown_import", f"There is no shared tool {name!r}.", remedy, file.path, line=line
                )
        return found

    def _remote(self, name: str, line: int, file: SkillFile, own: Mapping[str, Tool], found: dict[str, Tool]) -> None:
        """Import a server's tool."""
        remote = parse_import(name)
        if remote is None:
            remedy = 'Write "mcp/<server>:<tool>", one for each tool.'
            self._problem("skill.mcp_name", f"{name!r} names no tool of a server.", remedy, file.path, line=line)
            return
        taken = own.get(remote.bare) or found.get(remote.bare)
        if taken is None:
            found[remote.bare] = stand_in(remote, self._servers, line)
            return
        other = taken.remote if isinstance(taken, RemoteTool) else "a tool of this project"
        message = f"{name!r} has the name of {other}: a skill could not tell them apart."
        self._problem("skill.mcp_collision", message, "Rename one, or import only one.", file.path, line=line)


def load_project(
    root: Path,
    servers: ToolServers | None = None,
    settings: PluginSections | None = None,
    threads: PluginThreads | None = None,
) -> tuple[Project, tuple[Problem, ...]]:
    """Load the project in ``root``; problems come back whether or not they are errors.

    Args:
        servers: Where tools come from that skills import as ``mcp/<server>:<tool>``; they stay away without.
        settings: Those of its plugins (`ProjectConfig.plugins`); without, their models' defaults.
        threads: Where functions of its plugins run that are not ``async``; threads of its own (`Project.hooks`) by
            default. None begins before the first such call; closed by the caller.
    """
    problems: list[Problem] = []
    project = ProjectLoader(root, problems, servers or NoServers(), settings, threads).load()
    check_flow(project, problems)
    return project, tuple(without_consequences(problems))
