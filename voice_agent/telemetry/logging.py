"""Structured logging: coloured lines for people, JSON lines for machines.

Each line carries the call, turn and conversation it belongs to (`bind`). What callers say, type or
are called is personal: it may appear only under the marked key ``extra={"pii": {...}}``, which is
dropped unless the operator asks for it.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TextIO

_CONTEXT: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar(
    "voice_agent_log_context", default=MappingProxyType({})
)

SHOW_PII_ENV = "VOICE_AGENT_LOG_PII"
"""Set to ``1`` to let personal data into the logs, for debugging on a machine of one's own."""

_REFUSED_UPGRADE = "ASGI callable returned without completing handshake."
"""uvicorn's error after each WebSocket that was refused with an HTTP answer. The channel has logged why already."""
_COLOURS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "pii", "context", "color_message"}


@contextlib.contextmanager
def bind(**ids: str) -> Iterator[None]:
    """Put ids on every log line written inside: ``call``, ``conversation``, ``turn``.

    Tasks started inside inherit them.
    """
    token = _CONTEXT.set({**_CONTEXT.get(), **ids})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def bound() -> Mapping[str, str]:
    """Return the ids that log lines written here would carry."""
    return _CONTEXT.get()


class _ContextFilter(logging.Filter):
    """Adds the bound ids; removes personal data and the query strings that carry tokens."""

    def __init__(self, show_pii: bool) -> None:
        super().__init__()
        self._show_pii = show_pii

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "context"):
            record.context = _CONTEXT.get()
        if not self._show_pii:
            record.__dict__.pop("pii", None)
        if record.name.startswith("uvicorn"):
            if record.msg == _REFUSED_UPGRADE:
                return False
            _calm_uvicorn(record)
        return True


def _calm_uvicorn(record: logging.LogRecord) -> None:
    """uvicorn logs request lines with their query, where a token may stand, and blames clients with tracebacks."""
    if isinstance(record.args, tuple):
        record.args = tuple(a.partition("?")[0] if isinstance(a, str) else a for a in record.args)
    if record.msg == "Invalid UTF-8 sequence received from client.":
        record.levelno, record.levelname, record.exc_info = logging.WARNING, "WARNING", None


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if pii := getattr(record, "pii", None):
        extras["pii"] = pii
    return extras


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``time``, ``level``, ``logger``, ``message``, the bound ids, extras."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "context", {}),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class HumanFormatter(logging.Formatter):
    """``12:00:01.250 INFO  service: ready  call=7f3a``; colours only where they can be seen."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level, name = f"{record.levelname:<7}", record.name.removeprefix("voice_agent.")
        fields = {**getattr(record, "context", {}), **_extras(record)}
        tail = "".join(f"  {key}={value}" for key, value in fields.items())
        if self._colour:
            level = f"\x1b[{_COLOURS.get(record.levelname, '0')}m{level}\x1b[0m"
            name, tail = f"\x1b[2m{name}\x1b[0m", f"\x1b[2m{tail}\x1b[0m"
        text = f"{clock}.{int(record.msecs):03d} {level} {name}: {record.getMessage()}{tail}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def configure(level: str = "info", *, as_json: bool = False, stream: TextIO | None = None) -> logging.Handler:
    """Send the process's log to ``stream`` (standard error by default). Replaces an earlier configuration.

    Libraries are heard from WARNING up; ``level`` is for the project's own loggers.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    colour = stream.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonFormatter() if as_json else HumanFormatter(colour))
    handler.addFilter(_ContextFilter(show_pii=os.environ.get(SHOW_PII_ENV) == "1"))
    root = logging.getLogger()
    for old in [h for h in root.handlers if getattr(h, "_voice_agent", False)]:
        root.removeHandler(old)
    handler._voice_agent = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("voice_agent").setLevel(level.upper())
    return handler
