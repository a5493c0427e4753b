"""Finds the hooks of a project: ``hooks.py`` and ``hooks/**/*.py`` at its root."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FunctionType

from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.hooks import NAMES, Hook, HookDefinitionError, build_hook, hook_name, point_of
from voice_agent.dialogue.tool_loading import REMEDIES, import_file, line_in


def load_hooks(root: Path, problems: list[Problem]) -> list[Hook]:
    """Import the hook files inside `project_imports`. Hooks run in the order of files, then of lines.

    What cannot be imported, or is no hook though it looks like one, becomes a problem; nothing raises.
    """
    found: list[Hook] = []
    for path in _files(root):
        module = import_file(path, problems, "hook", HookDefinitionError)
        if module is None:
            continue
        for name, value in vars(module).items():
            # Nothing but a function is asked: an object of the project's may raise at any attribute.
            if not inspect.isfunction(value) or value.__module__ != module.__name__:
                continue
            kind = hook_name(value)
            if kind is None:
                _suspicious(name, value, path, problems)
                continue
            try:
                found.append(build_hook(kind, value))
            except HookDefinitionError as fault:
                problems.append(Problem("hook.definition", str(fault), REMEDIES["hook"], path, line_in(value)))
    return found


def _files(root: Path) -> list[Path]:
    single = root / "hooks.py"
    nested = sorted(p for p in (root / "hooks").rglob("*.py") if p.name != "__init__.py")
    return ([single] if single.is_file() else []) + nested


def _suspicious(name: str, value: FunctionType, path: Path, problems: list[Problem]) -> None:
    """Name a function that is called like a hook but for a slip: it would never be run, silently."""
    if not name.startswith(("on_", "modify_")):
        return
    observed = point_of(f"on_{name.removeprefix('modify_')}")
    if observed is not None:
        message, remedy = f"There is nothing to modify at {observed[0].value}.", f"Call it on_{observed[0].value}."
    else:
        message = f"{name!r} is called like a hook, but there is no such point; it is never run."
        remedy = did_you_mean(name, NAMES) or f"Points: {', '.join(NAMES)}."
    problems.append(Problem("hook.unknown_point", message, remedy, path, line_in(value), Severity.WARNING))
