"""Imports a project's tool modules without letting projects, or reloads of one, see each other.

While a project is loaded its own packages can be imported, and the import names of the engine whose
projects we accept (``rasa.calm_v2.tools``, ``rasa.mantle.tools``, ``….hooks``, ``cat``) lead to ours. Afterwards both
are gone again: modules stay alive through the functions that use them, not through `sys.modules`.
A tool must therefore import its helpers at the top of its file, not inside a function.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from voice_agent.diagnostics import Problem, Severity
from voice_agent.dialogue import hooks as our_hooks
from voice_agent.dialogue import plugin_tools
from voice_agent.dialogue import tools as our_tools
from voice_agent.dialogue.hooks import HookDefinitionError
from voice_agent.dialogue.plugin_points import hook
from voice_agent.dialogue.tools import Tool, ToolDefinitionError, build_tool, is_tool
from voice_agent.text_file import read_bytes

REMEDIES = {
    "tool": 'Write @tool(description="…") on an `async def` with plain, typed parameters.',
    "plugin": "Write `async def` or `def` with (value) or (value, context) for hooks, and a description for tools.",
    "hook": "Write an `async def` that takes (payload) or (payload, context).",
}
"""What a definition should look like, by kind of file."""

_lock = threading.Lock()
_serial = itertools.count()


class _RootFinder(MetaPathFinder):
    """Finds the top-level packages of one project in its root and nowhere else.

    Putting the root on `sys.path` would not do: a folder without ``__init__.py`` loses there
    against a package of the same name anywhere on the path.
    """

    def __init__(self, root: Path, names: set[str]) -> None:
        self._root, self._names = str(root), names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and fullname in self._names:
            return PathFinder.find_spec(fullname, [self._root])
        return None


@contextmanager
def project_imports(root: Path) -> Iterator[None]:
    """Make the project's own packages and the engine's import names importable, for this block only."""
    with _lock:
        aliases = _aliases()
        names = {p.stem for p in root.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name.isidentifier())}
        names |= {name.partition(".")[0] for name in aliases}
        hidden = _take(lambda name: name.partition(".")[0] in names and not name.startswith("voice_agent"))
        sys.modules.update(aliases)
        finder = _RootFinder(root, names)
        sys.meta_path.insert(0, finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            _take(lambda name: name.partition(".")[0] in names and not name.startswith("voice_agent"))
            sys.modules.update(hidden)


def _take(which: Callable[[str], bool]) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if which(name)}


def _aliases() -> Mapping[str, ModuleType]:
    made: dict[str, ModuleType] = {}
    engines = ("rasa.calm_v2", "rasa.mantle")
    for name in ("rasa", *engines, *(f"{e}.{part}" for e in engines for part in ("tools", "hooks"))):
        made[name] = ModuleType(name)
        made[name].__path__ = []
    for package in (f"{engine}.tools" for engine in engines):
        for module in (package, f"{package}.decorator", f"{package}.result", f"{package}.context"):
            alias = made.setdefault(module, ModuleType(module))
            for public in ("tool", "ToolResult", "ToolContext"):
                setattr(alias, public, getattr(our_tools, public))
    for module in ("cat", "cat.mad_hatter", "cat.mad_hatter.decorators", "cat.core_plugins"):
        alias = made.setdefault(module, ModuleType(module))
        alias.__path__ = []
        for public, value in (("hook", hook), ("tool", plugin_tools.tool), ("plugin", lambda function: function)):
            setattr(alias, public, value)
    for package in (f"{engine}.hooks" for engine in engines):
        for module in (package, *(f"{package}.{part}" for part in ("decorators", "payloads", "context", "exceptions"))):
            alias = made.setdefault(module, ModuleType(module))
            for public, value in vars(our_hooks).items():
                if not public.startswith("_"):
                    setattr(alias, public, value)
    return made


def import_file(
    path: Path, problems: list[Problem], kind: str, refusal: type[Exception] = ToolDefinitionError
) -> ModuleType | None:
    """Import one file of a project inside `project_imports`; None, and a problem, when that fails.

    Args:
        kind: First part of the ids of problems.
        refusal: What a decorator raises; its message is fit for the author as it is.
    """
    name = f"_project_{kind}s_{next(_serial)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def work() -> ModuleType:
        loader.exec_module(module)
        return module

    sys.modules[name] = module
    try:
        imported: ModuleType | None = reported(work, path, problems, kind, refusal=(refusal,))
        return imported
    finally:
        sys.modules.pop(name, None)


def reported(
    work: Callable[[], Any],
    path: Path | None,
    problems: list[Problem],
    kind: str,
    whose: str = "",
    *,
    refusal: tuple[type[Exception], ...] = (ToolDefinitionError, HookDefinitionError),
) -> Any:
    """Return what ``work``, which imports code of an author, returns; None, and a problem, when that fails.

    Args:
        path: The file that is imported; None if that is not one of the project.
        whose: Stands before the message.
    """
    if path is not None and read_bytes(path, problems) is None:
        return None
    try:
        return work()
    except refusal as fault:
        problems.append(Problem(f"{kind}.definition", f"{whose}{fault}", REMEDIES[kind], path, _line(fault, path)))
    except SyntaxError as fault:
        message = f"{whose}Not valid Python: {fault.msg}."
        problems.append(Problem(f"{kind}.syntax", message, "Mend the line.", path, fault.lineno))
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # noqa: BLE001 - a project's module may raise anything, `SystemExit` too
        message = f"{whose}Cannot be imported: {type(fault).__name__}: {fault}."
        remedy = "Mend what it raises, or install what it needs."
        problems.append(Problem(f"{kind}.import", message, remedy, path, _line(fault, path)))
    return None


def load_tools(path: Path, problems: list[Problem]) -> dict[str, Tool]:
    """Import one tool file inside `project_imports` and return the tools it defines.

    A file that cannot be imported, or a tool that cannot work, becomes a problem; nothing raises.
    """
    module = import_file(path, problems, "tool")
    if module is None:
        return {}
    writes = memory_writes(path)
    found: dict[str, Tool] = {}
    for value in vars(module).values():
        if is_tool(value) and value.__module__ == module.__name__:
            try:
                built = build_tool(value)
            except ToolDefinitionError as fault:
                problems.append(Problem("tool.definition", str(fault), REMEDIES["tool"], path, line_in(value)))
                continue
            found[value.__name__] = replace(built, path=path, writes=writes.get(value.__name__, ()))
    return found


def line_in(function: object) -> int | None:
    """Return the first line of a function, its decorators included."""
    code = getattr(function, "__code__", None)
    return None if code is None else int(code.co_firstlineno)


def memory_writes(path: Path) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return, by function, the fields that its text writes by a literal name (``….memory.set("x", …)``), with lines."""
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for function in ast.parse(path.read_bytes()).body:
        if isinstance(function, ast.AsyncFunctionDef):
            calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
            found[function.name] = tuple(write for call in calls if (write := _written(call)) is not None)
    return found


def _written(call: ast.Call) -> tuple[str, int] | None:
    target = call.func
    if not (isinstance(target, ast.Attribute) and target.attr == "set" and call.args):
        return None
    owner, key = target.value, call.args[0]
    is_memory = isinstance(owner, ast.Attribute) and owner.attr == "memory"
    return (
        (key.value, key.lineno) if is_memory and isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    )


def _line(fault: BaseException, path: Path | None) -> int | None:
    """Return the line of ``path`` that the exception passed through last."""
    line, trace = None, fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def load_tool_folder(folder: Path, problems: list[Problem], *, single_file: bool = True) -> dict[str, Tool]:
    """Load ``tools.py`` (with ``single_file``) and ``tools/*.py`` of a skill or of the project root.

    A definition in ``tools/`` shadows one in ``tools.py``, and the duplicate is reported.
    """
    found: dict[str, tuple[Tool, Path]] = {}
    single = folder / "tools.py"
    files = [single] if single_file and single.is_file() else []
    files += sorted(p for p in (folder / "tools").glob("*.py") if p.name != "__init__.py")
    for path in files:
        for name, loaded in load_tools(path, problems).items():
            if name in found:
                message = f"The tool {name!r} is defined here and in {found[name][1].name}; this one is used."
                problems.append(Problem("tool.duplicate", message, "Remove one.", path, loaded.line, Severity.WARNING))
            found[name] = (loaded, path)
    return {name: loaded for name, (loaded, _) in found.items()}
