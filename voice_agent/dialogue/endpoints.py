"""Reads ``endpoints.yml``: the model that rewords responses, and the model groups it may be chosen from.

The rest of the file (stores, brokers, tracing, metrics) is read and named in warnings, so that a
project written for another service loads and its author knows what is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from voice_agent.config import LlmOptions
from voice_agent.diagnostics import Problem, did_you_mean
from voice_agent.variables import expand_variables
from voice_agent.yaml_source import LocatedMap, Reader, read_file

_NOT_ACTED_ON = {
    "tracker_store": "Conversations are kept where integrations.yml says.",
    "event_broker": "Events are not published.",
    "tracing": "Traces are set up in integrations.yml.",
    "metrics": "Metrics are served under /metrics.",
    "lock_store": "Turns of a conversation are kept in order by the service itself.",
    "action_endpoint": "Tools run inside the service.",
    "vector_store": "References are searched by the service itself.",
}
_MODEL_KEYS = {"temperature", "max_tokens"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What ``endpoints.yml`` says that is acted on.

    Attributes:
        rephrase: ``nlg: {type: rephrase}`` is there, so packaged wording may be reworded too.
        rephrase_llm: The model it names; None for the agent's own.
        model_groups: Every usable group: its first model, with the others as fallbacks.
    """

    rephrase: bool = False
    rephrase_llm: LlmOptions | None = None
    model_groups: Mapping[str, LlmOptions] = field(default_factory=dict)


def read_endpoints(path: Path, problems: list[Problem], environ: Mapping[str, str]) -> Endpoints:
    """Read the file, if there is one. Nothing in it is an error: what cannot be used is a warning."""
    source = read_file(path, problems) if path.is_file() else None
    if source is None:
        return Endpoints()
    reader = Reader(path, problems, "endpoints")
    top = reader.mapping(source.value, path.name)
    for key, message in _NOT_ACTED_ON.items():
        if key in top:
            remedy = _store_remedy(top[key]) if key == "tracker_store" else ""
            reader.warn("unused", f"`{key}` is not acted on. {message}", remedy, top.key_lines[key])
    reader.unknown(top, ["nlg", "model_groups", *_NOT_ACTED_ON], path.name)
    groups: dict[str, LlmOptions] = {}
    for item, line in reader.items(top.get("model_groups"), "`model_groups`"):
        raw = reader.mapping(item, "A model group", line)
        options = _group(raw, reader, environ)
        if options is not None:
            groups[reader.text(raw, "id", "`id`", required=True)] = options
    return _nlg(top, groups, reader)


def _store_remedy(store: object) -> str:
    """Return the line that keeps conversations where ``tracker_store`` does; nothing for stores that we do not have.

    It is not acted on by itself: the file may hold another service's records, which are not to be written over.
    """
    found = store if isinstance(store, Mapping) else {}
    path = found.get("db") or found.get("path")
    is_sqlite = str(found.get("type", "")).lower() in ("sql", "sqlite") and found.get("dialect", "sqlite") == "sqlite"
    if not is_sqlite or not isinstance(path, str):
        return ""
    name = json.dumps(str(Path(path).with_suffix(".sqlite3")), ensure_ascii=False)
    return f"Write `store: {{path: {name}}}` in integrations.yml for a file of that name."


def _nlg(top: LocatedMap, groups: Mapping[str, LlmOptions], reader: Reader) -> Endpoints:
    nlg = reader.mapping(top.get("nlg"), "`nlg`")
    if not nlg:
        return Endpoints(model_groups=groups)
    line = top.key_lines["nlg"]
    if nlg.get("type") != "rephrase":
        reader.warn("nlg", f"`nlg.type` {nlg.get('type')!r} is not acted on.", "The type `rephrase` is.", line)
        return Endpoints(model_groups=groups)
    llm = reader.mapping(nlg.get("llm"), "`nlg.llm`")
    group = llm.get("model_group")
    if group is None:
        return Endpoints(True, None, groups)
    if group not in groups:
        message = f"There is no usable model group {group!r}; the agent's own model rewords."
        reader.warn("unknown_model_group", message, did_you_mean(str(group), groups), llm.key_lines["model_group"])
    return Endpoints(True, groups.get(group), groups)


def _group(raw: LocatedMap, reader: Reader, environ: Mapping[str, str]) -> LlmOptions | None:
    """Return the first model of a group, the others as its fallbacks; None when one cannot be used."""
    reader.unknown(raw, ["id", "models", "router"], "A model group")
    models: list[LlmOptions] = []
    for item, line in reader.items(raw.get("models"), "`models`", raw.line):
        options = _model(reader.mapping(item, "A model", line), line, reader, environ)
        if options is None:
            return None
        models.append(options)
    if not models:
        reader.warn("empty_model_group", "This model group has no models.", "Add `models:`.", raw.line)
        return None
    return models[0].model_copy(update={"fallbacks": tuple(models[1:])})


def _model(raw: LocatedMap, line: int, reader: Reader, environ: Mapping[str, str]) -> LlmOptions | None:
    key = raw.pop("api_key", None)
    variable = _VARIABLE.fullmatch(str(key)) if key is not None else None
    if key is not None and variable is None:
        message = "A key that stands in a file is read by everybody who reads the file; this model is not used."
        reader.warn("api_key", message, "Write `api_key: ${NAME}`.", line)
        return None
    missing: list[str] = [] if variable is None or environ.get(variable.group(1)) else [variable.group(1)]
    expand_variables(raw, environ, lambda name, _: missing.append(name))
    if missing:
        message = f"Environment variable {missing[0]} is not set; this model is not used."
        reader.warn("missing_variable", message, f"Set {missing[0]}.", line)
        return None
    values: dict[str, Any] = {name: raw[name] for name in _MODEL_KEYS if name in raw}
    values["provider"], values["model"] = raw.get("provider"), raw.get("model")
    values["base_url"] = raw.get("base_url") or raw.get("api_base")
    values["api_key_env"] = variable.group(1) if variable else raw.get("api_key_env")
    reader.unknown(
        raw, ["provider", "model", "api_base", "base_url", "api_key_env", "timeout", *_MODEL_KEYS], "A model"
    )
    try:
        return LlmOptions.model_validate(values)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        reader.warn("model", f"`{where}`: {first['msg']}; this model is not used.", "", line)
        return None
