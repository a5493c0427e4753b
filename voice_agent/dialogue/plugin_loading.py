"""Finds plugins: the project's own in ``plugins/``, and installed ones by the entry point ``voice_agent.plugins``.

A plugin is one file or one folder of files; all that its files define counts. One file that cannot be imported
keeps the whole project from loading, as its own files do: at a reload the old version stays. Of a plugin that is
switched off nothing is imported.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from pydantic import BaseModel

from voice_agent.config_files import PluginSections
from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.hooks import Hook, HookDefinitionError, build_hook, hook_name
from voice_agent.dialogue.plugin_points import FACTORY, POINTS, mark_of, parameters_of, plugin_hook
from voice_agent.dialogue.plugin_settings import LoadContext, check_names, declared_model, read_settings
from voice_agent.dialogue.tool_loading import line_in, reported
from voice_agent.dialogue.tools import Tool, ToolDefinitionError, build_tool, is_tool
from voice_agent.dialogue.workflows.catalogue import BUILT_IN, ConfigClass
from voice_agent.dialogue.workflows.mantle import CoreAgenticWorkflowConfig
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig

log = logging.getLogger(__name__)

FOLDER = "plugins"
GROUP = "voice_agent.plugins"
REMEDY = "Mend it, or take the plugin away."


@dataclass
class Plugins:
    """What the plugins of a project bring with them.

    Attributes:
        names: In alphabetical order, the project's own before installed ones.
        hooks: In the order in which they run.
        workflows: Configurations of workflows that may be used, those built in included.
    """

    names: list[str] = field(default_factory=list)
    tools: dict[str, Tool] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    workflows: tuple[ConfigClass, ...] = BUILT_IN


@dataclass(frozen=True)
class _Loaded:
    name: str
    modules: Sequence[ModuleType]
    path: Path | None
    settings: BaseModel | None = None


@dataclass(frozen=True)
class _Factory:
    priority: float
    plugin: str
    function: FunctionType
    settings: BaseModel | None


def load_plugins(
    root: Path,
    problems: list[Problem],
    settings: PluginSections | None = None,
    *,
    installed: Iterable[EntryPoint] | None = None,
) -> Plugins:
    """Load all plugins inside `project_imports`. What is wrong with them becomes problems; nothing raises.

    Args:
        settings: What agent.yml says of them.
        installed: Entry points; those of the environment by default.
    """
    points = tuple(entry_points(group=GROUP) if installed is None else installed)
    off = frozenset[str]() if settings is None else settings.off
    paths = _paths(root / FOLDER)
    loaded = [*_of_project((path for path in paths if path.stem not in off), problems)]
    names = {plugin.name for plugin in loaded}
    there = {*(path.stem for path in paths), *(point.name for point in points)}
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        if point.name in off:
            continue
        if point.name in names:
            message = f"The plugin {point.name!r} of the project is used, not the installed one of the same name."
            problems.append(Problem("plugin.hidden", message, "Rename one.", root / FOLDER, None, Severity.WARNING))
        else:
            plugin = _installed(point, problems)
            if plugin is not None:
                loaded.append(plugin)
                names.add(point.name)
    found = Plugins()
    factories: list[_Factory] = []
    models = {plugin.name: declared_model(plugin.name, plugin.modules, problems) for plugin in loaded}
    for plugin in loaded:
        found.names.append(plugin.name)
        given = read_settings(plugin.name, models[plugin.name], settings, problems)
        own: list[_Factory] = []
        _read(replace(plugin, settings=given), found, own, problems)
        # One whose settings are refused would only fail for the want of them, and be reported twice.
        factories += own if models[plugin.name] is None or given is not None else []
    # What one that is off, or cannot be read, would say of its settings is not known: they count as good.
    has_settings = dict.fromkeys(there, True) | {name: model is not None for name, model in models.items()}
    check_names(has_settings, settings, problems)
    found.hooks.sort(key=lambda hook: (-hook.priority, hook.plugin))
    found.workflows = _workflows(sorted(factories, key=lambda one: (-one.priority, one.plugin)), root, problems)
    return found


def _paths(folder: Path) -> list[Path]:
    """Return the files and folders that plugins of the project lie in, in the order of their names."""
    if not folder.is_dir():
        return []
    found = (path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    return sorted((path for path in found if path.suffix == ".py" or path.is_dir()), key=lambda path: path.stem)


def _of_project(paths: Iterable[Path], problems: list[Problem]) -> Iterable[_Loaded]:
    for path in paths:
        if path.suffix == ".py":
            module = reported(lambda path=path: _import(f"{FOLDER}.{path.stem}"), path, problems, "plugin")  # type: ignore[misc]
            if module is not None:
                yield _Loaded(path.stem, [module], path)
        else:
            modules = []
            for file in sorted(path.glob("*.py")):
                name = f"{FOLDER}.{path.name}" + ("" if file.stem == "__init__" else f".{file.stem}")
                module = reported(lambda name=name: _import(name), file, problems, "plugin")  # type: ignore[misc]
                if module is not None:
                    modules.append(module)
            if modules:
                yield _Loaded(path.name, modules, path)


def _import(name: str) -> ModuleType:
    return sys.modules.get(name) or importlib.import_module(name)


def _installed(point: EntryPoint, problems: list[Problem]) -> _Loaded | None:
    module = reported(point.load, None, problems, "plugin", f"The installed plugin {point.name!r}: ")
    if module is None:
        return None
    if not isinstance(module, ModuleType):
        message = f"The installed plugin {point.name!r} names {point.value}, which is no module."
        problems.append(Problem("plugin.entry_point", message, "Name the module with its hooks and tools."))
        return None
    # Its parts may lie in modules of the same package.
    package = module.__name__
    parts = [m for n, m in sorted(sys.modules.items()) if n == package or n.startswith(f"{package}.")]
    return _Loaded(point.name, [m for m in parts if isinstance(m, ModuleType)], None)


def _read(plugin: _Loaded, found: Plugins, factories: list[_Factory], problems: list[Problem]) -> None:
    names = {module.__name__ for module in plugin.modules}
    for module in plugin.modules:
        for value in vars(module).values():
            # Nothing but a function is asked: an object of a plugin may raise at any attribute.
            if not inspect.isfunction(value) or value.__module__ != module.__name__ or value.__module__ not in names:
                continue
            path = Path(module.__file__) if module.__file__ else plugin.path
            try:
                if is_tool(value):
                    _add_tool(replace(build_tool(value), settings=plugin.settings), plugin.name, path, found, problems)
                elif mark_of(value) is not None and value.__name__ == FACTORY:
                    factories.append(_Factory(mark_of(value) or 0.0, plugin.name, value, plugin.settings))
                elif mark_of(value) is not None:
                    _add_hook(value, plugin, path, found, problems)
                elif (kind := hook_name(value)) is not None:
                    found.hooks.append(replace(build_hook(kind, value), plugin=plugin.name, settings=plugin.settings))
            except (ToolDefinitionError, HookDefinitionError) as fault:
                problems.append(Problem("plugin.definition", f"{plugin.name}: {fault}", REMEDY, path, line_in(value)))


def _add_hook(value: FunctionType, plugin: _Loaded, path: Path | None, found: Plugins, problems: list[Problem]) -> None:
    hook = plugin_hook(value, plugin.name)
    if hook is not None:
        found.hooks.append(replace(hook, settings=plugin.settings))
        return
    remedy = did_you_mean(value.__name__, (*POINTS, FACTORY)) or f"Points: {', '.join((*POINTS, FACTORY))}."
    message = f"{plugin.name}: there is no point {value.__name__!r}; this hook is never called."
    problems.append(Problem("plugin.unknown_hook", message, remedy, path, line_in(value), Severity.WARNING))


def _add_tool(tool: Tool, plugin: str, path: Path | None, found: Plugins, problems: list[Problem]) -> None:
    if tool.name in found.tools:
        message = f"{plugin}: the tool {tool.name!r} is left out: a plugin that was loaded before has one of that name."
        problems.append(Problem("plugin.tool", message, "Rename one.", path, tool.line, Severity.WARNING))
        return
    found.tools[tool.name] = replace(tool, path=path)


def _workflows(factories: Sequence[_Factory], root: Path, problems: list[Problem]) -> tuple[ConfigClass, ...]:
    """Ask the plugins which workflows may be used. The default one always may."""
    allowed: list[Any] = list(BUILT_IN)
    for factory in factories:
        plugin = factory.plugin
        try:
            arguments = [list(allowed), LoadContext(factory.settings)][: parameters_of(factory.function)]
            given = factory.function(*arguments)
        except Exception as fault:
            log.exception("%s of plugin %s failed", FACTORY, plugin)
            message = f"{plugin}: {FACTORY} raised {type(fault).__name__}: {fault}."
            problems.append(Problem("plugin.workflow", message, REMEDY, root / FOLDER))
            continue
        if given is None:
            continue
        wrong = _wrong(given)
        if wrong:
            problems.append(Problem("plugin.workflow", f"{plugin}: {FACTORY} {wrong}.", REMEDY, root / FOLDER))
        else:
            allowed = list(given)
    rest = [one for one in dict.fromkeys(allowed) if one is not CoreAgenticWorkflowConfig]
    names: Mapping[str, ConfigClass] = {one.__name__: one for one in (CoreAgenticWorkflowConfig, *rest)}
    return tuple(names.values())


def _wrong(given: Any) -> str:
    if not isinstance(given, list | tuple):
        return f"returned {type(given).__name__} instead of a list"
    for one in given:
        if not (isinstance(one, type) and issubclass(one, AgenticWorkflowConfig)):
            return f"returned {one!r:.60}, which is no class derived from AgenticWorkflowConfig"
    return ""
