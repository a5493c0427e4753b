"""``docs/configuration.md``: every option of integrations.yml and agent.yml, from the models that check them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from voice_agent import config
from voice_agent.authoring.settings_schemas import docstrings
from voice_agent.config import AgentFile, Integrations

INTRODUCTION = """\
# Settings

Made by `python -m voice_agent.authoring.settings_reference`; do not edit.

A project needs `agent.yml` with a persona, and an `integrations.yml`, which may be empty: every other option has the
default given here. A heading names the section that its options stand in; `speech.stt` is `stt:` within `speech:`.

A key that nobody knows is an error with a suggestion. `${NAME}` takes a value from the environment, `${NAME:-default}`
with a default. Names ending in `_s` are seconds, in `_ms` milliseconds. Keys of language models do not belong in the
files: name the variable that holds them.

`voice-agent check` reads the files without starting anything. `integrations.yml` takes effect at the next start.
"""
_YAML_KEYS = {"references_instructions": "references.instructions"}
_ENVIRONMENT = (
    (
        "VOICE_AGENT_API_KEY",
        "The key that callers must present; needed beyond loopback. `server.api_key_env` renames it.",
    ),
    ("VOICE_AGENT_LOG_PII", "`1` lets texts and digits into the log, for debugging alone."),
    ("NO_COLOR", "Set to anything: no colours in terminals."),
    ("XDG_CACHE_HOME, XDG_DATA_HOME", "Where prepared speech, and conversations, lie instead of under `~`."),
    (
        "VOICE_AGENT_VENV, PYTHON",
        "For `scripts/run` and `scripts/test`: the environment's folder, and the Python to make it.",
    ),
)


def as_markdown() -> str:
    """Return ``docs/configuration.md``."""
    documented = docstrings(config)
    lines = [INTRODUCTION.rstrip()]
    for file, model in (("integrations.yml", Integrations), ("agent.yml", AgentFile)):
        lines += ["", f"## {file}", *_section(model, "", documented)]
    lines += ["", "## The environment", "", "| variable | meaning |", "|-|-|"]
    lines += [f"| {', '.join(f'`{n}`' for n in names.split(', '))} | {_cell(text)} |" for names, text in _ENVIRONMENT]
    return "\n".join(lines) + "\n"


def _section(model: type[BaseModel], path: str, documented: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the options of ``model``, then those of each model within it under a heading of its own."""
    texts = documented[model.__name__]
    within = {name: option for name, option in model.model_fields.items() if _model(option) is not None}
    named = {name: option for name, option in model.model_fields.items() if _named(option) is not None}
    plain = [name for name in model.model_fields if name not in within and name not in named]
    if plain:
        yield from ("", "| option | default | meaning |", "|-|-|-|")
        for name in plain:
            key = _YAML_KEYS.get(name, name)
            yield f"| `{key}` | {_default(model.model_fields[name])} | {_cell(texts.get(name, ''))} |"
    for name, option in {**within, **named}.items():
        inner = _model(option) or _named(option)
        assert inner is not None
        if any(_model(option) is None for option in inner.model_fields.values()):
            heading = f"{path}{name}.NAME" if name in named else f"{path}{name}"
            yield from ("", f"### `{heading}`", "", texts.get(name, ""))
        yield from _section(inner, f"{path}{name}.", documented)


def _named(option: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a mapping whose keys are names that the project gives."""
    of = get_args(option.annotation) if get_origin(option.annotation) is dict else ()
    return of[1] if len(of) == 2 and isinstance(of[1], type) and issubclass(of[1], BaseModel) else None


def _model(option: FieldInfo) -> type[BaseModel] | None:
    """Return the model that stands at an option, be it one that may be left out."""
    kind: Any = option.annotation
    if isinstance(kind, UnionType):
        kind = next((of for of in get_args(kind) if of is not type(None)), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _default(option: FieldInfo) -> str:
    value: Any = option.default
    if option.default_factory is not None:
        return "–"
    if value is PydanticUndefined:
        return "required"
    if value is None or value == ():
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if isinstance(value, (str, Path)) and str(value) else "–" if value == "" else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
