"""A clock that stands still for one agent: the engine's calendar, and what its project's own code reads.

Each test loads the project anew, so its modules belong to the test alone and can be given other
``datetime``, ``date`` and ``time`` than the process has.
"""

from __future__ import annotations

import datetime as real_datetime
import sys
import time as real_time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from voice_agent.dialogue.tools import Tool


class FrozenClock:
    """Implements `voice_agent.dialogue.events.Clock`: stands at ``now`` until it is moved."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by

    def today(self) -> date:
        return self.now.date()

    def freeze(self, tools: Iterable[Tool], root: Path) -> None:
        """Make the modules under ``root`` that ``tools`` come from, and those they use, read this clock."""
        replacements = _replacements(self)
        for names in _namespaces(tools, root.resolve()):
            for name, value in list(names.items()):
                if id(value) in replacements:
                    names[name] = replacements[id(value)]


def _replacements(clock: FrozenClock) -> dict[int, Any]:
    """Return what stands in for each source of time, by the identity of the real one."""

    class Kin(type):
        """Lets real dates count as instances of the frozen class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime if issubclass(cls, datetime) else date)

    class FrozenDatetime(datetime, metaclass=Kin):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> FrozenDatetime:
            moment = clock.now.replace(tzinfo=None) if tz is None else clock.now.astimezone(tz)
            return cls.fromisoformat(moment.isoformat())

        @classmethod
        def today(cls) -> FrozenDatetime:
            return cls.now()

        @classmethod
        def utcnow(cls) -> FrozenDatetime:
            return cls.now(UTC).replace(tzinfo=None)

    class FrozenDate(date, metaclass=Kin):
        @classmethod
        def today(cls) -> FrozenDate:
            return cls.fromordinal(clock.today().toordinal())

    def seconds() -> float:
        return clock.now.timestamp()

    def struct(convert: Callable[[float], Any]) -> Callable[..., Any]:
        return lambda secs=None: convert(seconds() if secs is None else secs)

    times = {
        "time": seconds,
        "time_ns": lambda: int(seconds() * 1e9),
        "localtime": struct(real_time.localtime),
        "gmtime": struct(real_time.gmtime),
    }
    functions = {id(getattr(real_time, name)): frozen for name, frozen in times.items()}
    return {
        id(real_datetime): _like(real_datetime, {"datetime": FrozenDatetime, "date": FrozenDate}),
        id(real_time): _like(real_time, times),
        id(datetime): FrozenDatetime,
        id(date): FrozenDate,
        **functions,
    }


def _like(module: ModuleType, changes: dict[str, Any]) -> ModuleType:
    made = ModuleType(module.__name__)
    made.__dict__.update({**vars(module), **changes})
    return made


def _namespaces(tools: Iterable[Tool], root: Path) -> list[dict[str, Any]]:
    """Return the globals of every module under ``root`` that can be reached from the tools."""
    found: dict[int, dict[str, Any]] = {}
    waiting = [names for tool in tools if (names := _globals_of(tool.function)) is not None]
    while waiting:
        names = waiting.pop()
        if id(names) in found or not _belongs_to(names, root):
            continue
        found[id(names)] = names
        for value in list(names.values()):
            reached = _globals_of(value)
            if reached is not None:
                waiting.append(reached)
    return list(found.values())


def _globals_of(value: Any) -> dict[str, Any] | None:
    if isinstance(value, ModuleType):
        return vars(value)
    if isinstance(value, FunctionType):
        return value.__globals__
    if isinstance(value, type):
        method = next((v for v in vars(value).values() if isinstance(v, FunctionType)), None)
        return None if method is None else method.__globals__
    return None


def _belongs_to(names: dict[str, Any], root: Path) -> bool:
    """Return whether a module is of the project, and of this load of it only."""
    file, loaded = names.get("__file__"), sys.modules.get(str(names.get("__name__")))
    shared = loaded is not None and vars(loaded) is names
    return not shared and isinstance(file, str) and Path(file).resolve().is_relative_to(root)
