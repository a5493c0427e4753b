"""Settings of plugins: ``plugins: {NAME: {…}}`` in agent.yml, checked by the model that the plugin declares.

A plugin declares a pydantic model by a class ``Settings``, or by a function ``settings_model`` that returns one.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from pydantic import BaseModel, ValidationError

from voice_agent.config_files import PluginSections
from voice_agent.config_files.fitting import what_fits
from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.tool_loading import line_in
from voice_agent.yaml_source import LocatedMap, line_of

log = logging.getLogger(__name__)

CLASS, FUNCTION = "Settings", "settings_model"
REMEDY = "Write `class Settings(pydantic.BaseModel)`, or a function `settings_model()` that returns such a class."


@dataclass(frozen=True, slots=True)
class LoadContext:
    """What ``factory_allowed_agentic_workflows`` is given beside its value: the project is not there yet."""

    settings: Any = None


def declared_model(plugin: str, modules: Iterable[ModuleType], problems: list[Problem]) -> type[BaseModel] | None:
    """Return the model of a plugin's settings; None where it declares none, or none that can be used."""
    found: list[type[BaseModel]] = []
    for module in modules:
        path = Path(module.__file__) if module.__file__ else None
        own, function = vars(module).get(CLASS), vars(module).get(FUNCTION)
        if _is_model(own) and own.__module__ == module.__name__:
            found.append(own)
        if not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        try:
            if asyncio.iscoroutinefunction(function):
                raise TypeError("it must not be `async`")
            given = function()
            if not _is_model(given):
                raise TypeError(f"it returned {type(given).__name__}, and no class derived from pydantic.BaseModel")
            found.append(given)
        except Exception as fault:  # noqa: BLE001 - the plugin's own code may raise anything
            message = f"{plugin}: {FUNCTION} cannot be used: {type(fault).__name__}: {fault}."
            problems.append(Problem("plugin.settings_model", message, REMEDY, path, line_in(function)))
    if len(set(found)) > 1:
        names = " and ".join(model.__qualname__ for model in dict.fromkeys(found))
        problems.append(Problem("plugin.settings_model", f"{plugin} declares two models: {names}.", "Keep one.", None))
    return found[0] if found else None


def _is_model(value: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(value, type) and issubclass(value, BaseModel)


def read_settings(
    plugin: str, model: type[BaseModel] | None, given: PluginSections | None, problems: list[Problem]
) -> BaseModel | None:
    """Return the settings of a plugin. What does not fit becomes problems with the line of the field.

    Args:
        given: None where agent.yml could not be read: then nothing is said of what is missing.
    """
    if model is None:
        return None
    section: Mapping[str, Any] = {} if given is None else given.sections.get(plugin) or {}
    lines = LocatedMap() if given is None else given.sections

    def tell(id: str, message: str, remedy: str, location: Iterable[str | int], severity: Severity) -> None:
        if given is not None:
            line = line_of(lines, [plugin, *location])
            problems.append(Problem(id, message, remedy, given.path, line or given.line, severity))

    try:
        settings = model.model_validate(section)
    except ValidationError as fault:
        for error in fault.errors(include_url=False, include_input=False):
            where = ".".join(map(str, ("plugins", plugin, *error["loc"])))
            # What stands there is not repeated: it may be a key.
            remedy = _remedy(model, error["type"], error.get("ctx", {}))
            tell("plugin.setting", f"`{where}`: {error['msg']}.", remedy, error["loc"], Severity.ERROR)
        return None
    except Exception as fault:
        log.exception("the settings model of plugin %s failed", plugin)
        message = f"`plugins.{plugin}`: its model raised {type(fault).__name__}: {fault}."
        tell("plugin.setting", message, "Mend the plugin.", (), Severity.ERROR)
        return None
    if model.model_config.get("extra", "ignore") == "ignore":
        names = _names(model)
        for key in sorted(section.keys() - set(names)):
            near = did_you_mean(key, [name for name in names if name not in section])
            message, severity = f"`plugins.{plugin}` has no key {key!r}.", Severity.ERROR if near else Severity.WARNING
            tell("plugin.unknown_setting", message, near or _known(model), (key,), severity)
    return settings


def _names(model: type[BaseModel]) -> list[str]:
    found = [(name, option.alias, option.validation_alias) for name, option in model.model_fields.items()]
    return [name for names in found for name in names if isinstance(name, str)]


def _remedy(model: type[BaseModel], kind: str, context: Mapping[str, Any]) -> str:
    """Return what to write: other keys where the key is wrong, another value where the value is."""
    if kind == "extra_forbidden":
        return _known(model)
    return what_fits(kind, context) or "Write a value that fits, as the message says."


def _known(model: type[BaseModel]) -> str:
    return f"Known keys: {', '.join(sorted(model.model_fields)) or 'none'}."


def check_names(models: Mapping[str, bool], given: PluginSections | None, problems: list[Problem]) -> None:
    """Report sections that nobody reads: of a plugin that there is not, or that has no settings.

    Args:
        models: Whether a plugin has settings, by name.
    """
    for name in () if given is None else given.sections:
        assert given is not None
        line = given.sections.key_lines.get(name, given.line)
        if name not in models:
            near = did_you_mean(name, models)
            severity = Severity.ERROR if near else Severity.WARNING
            known = f"Plugins: {', '.join(sorted(models)) or 'none'}."
            message = f"`plugins` has settings for {name!r}, but there is no such plugin."
            problems.append(Problem("plugin.unknown", message, near or known, given.path, line, severity))
        elif not models[name]:
            message = f"The plugin {name!r} has no settings; what stands here is not read."
            problems.append(Problem("plugin.no_settings", message, REMEDY, given.path, line, Severity.WARNING))
