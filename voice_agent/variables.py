"""Variables of the environment in the texts of settings files: ``${NAME}`` and ``${NAME:-default}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from voice_agent.yaml_source import LocatedList, LocatedMap

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand_variables(value: Any, environ: Mapping[str, str], missing: Callable[[str, int | None], None]) -> Any:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in every text below ``value``, in place.

    ``missing(name, line)`` is called for a variable that is neither set nor has a default.
    """

    def fill(text: str, line: int | None) -> str:
        def one(found: re.Match[str]) -> str:
            name, default = found.group(1), found.group(2)
            if name in environ:
                return environ[name]
            if default is None:
                missing(name, line)
            return default or ""

        return _VARIABLE.sub(one, text)

    if isinstance(value, LocatedMap):
        for key, child in value.items():
            line = value.key_lines[key]
            value[key] = fill(child, line) if isinstance(child, str) else expand_variables(child, environ, missing)
    elif isinstance(value, LocatedList):
        for index, child in enumerate(value):
            line = value.item_lines[index]
            value[index] = fill(child, line) if isinstance(child, str) else expand_variables(child, environ, missing)
    return value
