"""Reads ``agent.yml`` and ``integrations.yml`` into `voice_agent.config`, naming file and line of every fault."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from voice_agent.config import AgentFile, Channels, Integrations, StyleOptions
from voice_agent.diagnostics import Problem, ProjectError, Severity, did_you_mean
from voice_agent.variables import expand_variables
from voice_agent.yaml_source import LocatedList, LocatedMap, Reader, YamlFile, line_of, read_file

SETTINGS_FILES = ("agent.yml", "integrations.yml")
"""A directory with neither is no project."""
LOCAL_ENGINES: Mapping[str, str] = {"asr": "whisper", "tts": "piper"}
"""The engine used for a named one we do not have."""

Model = TypeVar("Model", bound=BaseModel)

_LEAVE, _NAME_KNOWN = "Remove it, or leave it for another engine.", "Name a known engine, or leave it."
_UNUSED_AGENT_KEYS = ("nlg", "hooks")
_UNUSED_INTEGRATION_KEYS = ("tracing", "embeddings", "model_groups", "metrics", "nlg")
_UNUSED_CHANNEL_KEYS = ("background_audio", "server_url", "token", "username", "password", "credentials")
_VOICE_KEYS = ("turn_taking", "interruptions", "silence_timeout", *LOCAL_ENGINES)


@dataclass(frozen=True, slots=True)
class PluginSections:
    """``plugins:`` of agent.yml as it was written: the plugins' own models say what may stand there.

    Attributes:
        sections: Settings by the name of the plugin.
        line: Where it stands; None if it is missing.
    """

    path: Path
    sections: LocatedMap
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The settings of a project and what there is to say about them.

    Attributes:
        root: Directory of the project.
        problems: Warnings; a project with errors is not loaded.
        plugins: Settings of plugins, not yet checked.
    """

    root: Path
    agent: AgentFile
    integrations: Integrations
    problems: tuple[Problem, ...] = ()
    plugins: PluginSections | None = None


def load_config(root: Path, environ: Mapping[str, str] | None = None) -> ProjectConfig:
    """Read the settings of the project in ``root``.

    Args:
        environ: Variables for ``${NAME}`` and for API keys; the process environment by default.

    Raises:
        ProjectError: With every problem of both files, if any of them is an error.
    """
    environ = os.environ if environ is None else environ
    problems: list[Problem] = []
    if not root.is_dir():
        raise ProjectError(
            [Problem("project.missing", f"{root} is not a directory.", "Name a project directory.", root)]
        )
    if not any((root / name).is_file() for name in SETTINGS_FILES):
        what = f"{root.resolve()} is no project: it has no {' and no '.join(SETTINGS_FILES)}."
        raise ProjectError([Problem("project.missing", what, "Name a project, or make one: voice-agent new NAME.")])
    read = _read_agent(root / "agent.yml", environ, problems)
    integrations = _read_integrations(root / "integrations.yml", environ, problems)
    if any(p.severity is Severity.ERROR for p in problems) or read is None or integrations is None:
        raise ProjectError(problems)
    agent, plugins = read
    return ProjectConfig(root, agent, integrations, tuple(problems), plugins)


def _open(
    path: Path, kind: str, environ: Mapping[str, str], problems: list[Problem]
) -> tuple[LocatedMap, Reader] | None:
    if not path.is_file():
        problems.append(Problem(f"{kind}.missing", f"{path.name} is missing.", "A project needs this file.", path))
        return None
    source: YamlFile | None = read_file(path, problems)
    if source is None:
        return None
    reader = Reader(path, problems, kind)
    top = reader.mapping(source.value, path.name)

    def missing(name: str, line: int | None) -> None:
        remedy = f"Set it, or write ${{{name}:-default}}."
        reader.error("missing_variable", f"Environment variable {name} is not set.", remedy, line)

    expand_variables(top, environ, missing)
    return top, reader


# --- agent.yml ---------------------------------------------------------------------------------


def _read_agent(
    path: Path, environ: Mapping[str, str], problems: list[Problem]
) -> tuple[AgentFile, PluginSections] | None:
    opened = _open(path, "config", environ, problems)
    if opened is None:
        return None
    top, reader = opened
    before = len(problems)
    section = reader.mapping(top.get("agent"), "`agent`", top.line)
    persona = section.get("persona")
    if not isinstance(persona, str) or not persona.strip():
        line = section.key_lines.get("persona", top.key_lines.get("agent"))
        reader.error(
            "agent.missing_persona", "`agent.persona` is missing.", "Say in a sentence who the agent is.", line
        )
    _move_older_keys(top, section, reader)
    _check_rules(top, reader)
    references = reader.mapping(top.pop("references", None), "`references`")
    reader.unknown(references, ["instructions"], "`references`")
    voice = section.pop("voice", None)
    if voice is not None:
        reader.warn("unused", "`agent.voice` is not acted on.", "Set `speech:` in integrations.yml.", section.line)
    for key in _UNUSED_AGENT_KEYS:
        if key in top:
            reader.warn("unused", f"`{key}` is not acted on yet.", _LEAVE, top.key_lines[key])
            del top[key]
    instructions = references.get("instructions")
    if isinstance(instructions, str):
        top["references_instructions"] = instructions
        top.key_lines["references_instructions"] = references.key_lines["instructions"]
    if any(p.severity is Severity.ERROR for p in problems[before:]):
        _validate(AgentFile, top, reader, skip_missing=True)
        return None
    plugins = _plugin_sections(top, reader)
    agent = _validate(AgentFile, top, reader)
    return None if agent is None else (agent, plugins)


def _plugin_sections(top: LocatedMap, reader: Reader) -> PluginSections:
    """Return ``plugins:``, each a mapping; one that is empty has its defaults."""
    plugins = reader.mapping(top.get("plugins"), "`plugins`", top.key_lines.get("plugins"))
    for name in plugins:
        plugins[name] = reader.mapping(plugins[name], f"`plugins.{name}`", plugins.key_lines[name])
    if "plugins" in top:
        top["plugins"] = plugins
    return PluginSections(reader.path, plugins, top.key_lines.get("plugins"))


def _move_older_keys(top: LocatedMap, section: LocatedMap, reader: Reader) -> None:
    """Accept ``rules`` and ``references`` inside ``agent:``, and ``prompts.<kind>_rules``."""
    for key in ("rules", "references"):
        if key in section:
            value, line = section.pop(key), section.key_lines[key]
            if key in top:
                reader.error("duplicate", f"`{key}` stands both in `agent:` and beside it.", "Keep one.", line)
                continue
            top[key], top.key_lines[key] = value, line
    prompts = top.get("prompts")
    if isinstance(prompts, LocatedMap):
        style = top.get("orchestrator")
        if not isinstance(style, LocatedMap):
            style = LocatedMap()
            style.key_lines = {}
        for name in ("text_rules", "voice_rules"):
            if name in prompts and name not in style:
                style[name], style.key_lines[name] = prompts.pop(name), prompts.key_lines[name]
        if style:
            top["orchestrator"] = style
            top.key_lines.setdefault("orchestrator", prompts.line)
        if not prompts:
            del top["prompts"]
    style = top.get("orchestrator")
    if isinstance(style, LocatedMap):
        for name in StyleOptions.model_fields:
            if isinstance(style.get(name), str):
                rules = LocatedList(line.strip(" -") for line in style[name].splitlines() if line.strip(" -"))
                rules.item_lines = [style.key_lines[name]] * len(rules)
                style[name] = rules


def _check_rules(top: LocatedMap, reader: Reader) -> None:
    """Say plainly that a rule with ``: `` in it parses as a mapping, the commonest slip in this file."""
    rules = top.get("rules")
    for index, (rule, line) in enumerate(reader.items(rules, "`rules`")):
        if isinstance(rules, LocatedList) and not isinstance(rule, str):
            rules[index] = ""  # reported here, not once more by what validates the file
        if isinstance(rule, LocatedMap):
            said = next(iter(rule), "")
            message = f"The rule {said!r} is read as a mapping because it contains ': '."
            reader.error("rule_is_mapping", message, "Put the whole rule in quotes.", line)
        elif not isinstance(rule, str):
            reader.error("type", "A rule must be text.", "Put it in quotes.", line)


# --- integrations.yml --------------------------------------------------------------------------


def _read_integrations(path: Path, environ: Mapping[str, str], problems: list[Problem]) -> Integrations | None:
    opened = _open(path, "integrations", environ, problems)
    if opened is None:
        return None
    top, reader = opened
    before = len(problems)
    for key in _UNUSED_INTEGRATION_KEYS:
        if key in top:
            reader.warn("unused", f"`{key}` is not acted on yet.", _LEAVE, top.key_lines[key])
            del top[key]
    channels = reader.mapping(top.get("channels"), "`channels`")
    for name in list(channels):
        line = channels.key_lines[name]
        if name not in Channels.model_fields:
            near = did_you_mean(name, Channels.model_fields)
            reader.warn("unknown_channel", f"There is no channel {name!r} here; it is ignored.", near, line)
            del channels[name]
        elif channels[name] is None:
            del channels[name]
        else:
            channel = reader.mapping(channels[name], f"`channels.{name}`", line)
            unused = _UNUSED_CHANNEL_KEYS if name != "text" else (*_UNUSED_CHANNEL_KEYS, *_VOICE_KEYS)
            _warn_of_unused(channel, unused, reader)
            _adapt_channel(channel, reader)
    _fall_back_to_local_engines(top, reader)
    _adapt_servers(top, reader)
    options = _validate(Integrations, top, reader)
    if options is not None:
        _check_keys(options, top, environ, reader)
        _check_servers(options, top, environ, reader)
    return None if any(p.severity is Severity.ERROR for p in problems[before:]) else options


def _warn_of_unused(channel: LocatedMap, keys: Iterable[str], reader: Reader) -> None:
    for key in keys:
        if key in channel:
            reader.warn("unused", f"`{key}` is not acted on by this channel.", _LEAVE, channel.key_lines[key])
            del channel[key]


def _adapt_channel(channel: LocatedMap, reader: Reader) -> None:
    """Turn the older keys of a channel into ``turn_taking`` options."""
    turn = channel.get("turn_taking")
    if not isinstance(turn, LocatedMap):
        turn = LocatedMap()
        turn.key_lines = {}

    def put(key: str, value: Any, line: int) -> None:
        if key not in turn:
            turn[key], turn.key_lines[key] = value, line

    if "interruptions" in channel:
        line = channel.key_lines["interruptions"]
        options = reader.mapping(channel.pop("interruptions"), "`interruptions`", line)
        reader.unknown(options, ["enabled", "min_words"], "`interruptions`")
        if "enabled" in options:
            put("barge_in", options["enabled"], options.key_lines["enabled"])
        if "min_words" in options:
            put("min_words", options["min_words"], options.key_lines["min_words"])
    if "silence_timeout" in channel:
        put("silence_timeout_s", channel.pop("silence_timeout"), channel.key_lines["silence_timeout"])
    for key, local in LOCAL_ENGINES.items():
        if key in channel:
            engine = channel.pop(key)
            name = engine.get("name") if isinstance(engine, LocatedMap) else engine
            if name != local:
                message = f"There is no {key} engine {name!r} here; {local!r} is used instead."
                reader.warn("engine_fallback", message, _NAME_KNOWN, channel.key_lines[key])
    if turn:
        channel["turn_taking"] = turn
        channel.key_lines.setdefault("turn_taking", channel.line)


def _fall_back_to_local_engines(top: LocatedMap, reader: Reader) -> None:
    speech = top.get("speech")
    if not isinstance(speech, LocatedMap):
        return
    for key, local in (("stt", "whisper"), ("tts", "piper")):
        engine = speech.get(key)
        if isinstance(engine, LocatedMap) and engine.get("name", local) != local:
            message = f"There is no {key} engine {engine['name']!r} here; {local!r} is used with its defaults."
            reader.warn("engine_fallback", message, _NAME_KNOWN, engine.key_lines["name"])
            del speech[key]


def _check_keys(options: Integrations, top: LocatedMap, environ: Mapping[str, str], reader: Reader) -> None:
    for index, llm in enumerate((options.llm, *options.llm.fallbacks)):
        if llm.api_key_env and not environ.get(llm.api_key_env):
            where: list[str | int] = (
                ["llm", "api_key_env"] if index == 0 else ["llm", "fallbacks", index - 1, "api_key_env"]
            )
            message = f"The key of {llm.provider}/{llm.model} is missing: {llm.api_key_env} is not set."
            reader.error("missing_key", message, f"Set {llm.api_key_env} in the environment.", line_of(top, where))


def _adapt_servers(top: LocatedMap, reader: Reader) -> None:
    """Accept a list of MCP servers with their names in them, and ``type`` for ``transport``."""
    servers = top.get("mcp_servers")
    if servers is None:
        top.pop("mcp_servers", None)
        return
    if isinstance(servers, LocatedList):
        named = LocatedMap()
        named.key_lines = {}
        for item, line in reader.items(servers, "`mcp_servers`"):
            server = reader.mapping(item, "An MCP server", line)
            name = str(server.pop("name", ""))
            named[name], named.key_lines[name] = server, line
        top["mcp_servers"] = servers = named
    for server in servers.values() if isinstance(servers, LocatedMap) else ():
        if isinstance(server, LocatedMap) and "type" in server and "transport" not in server:
            server["transport"], server.key_lines["transport"] = server.pop("type"), server.key_lines["type"]


def _check_servers(options: Integrations, top: LocatedMap, environ: Mapping[str, str], reader: Reader) -> None:
    """Check what is needed to reach each MCP server: a program or an address, and a key that is not in the file."""
    for name, server in options.mcp_servers.items():

        def line(*keys: str, name: str = name) -> int | None:
            return line_of(top, ["mcp_servers", name, *keys])

        needed, other = ("command", "url") if server.transport == "stdio" else ("url", "command")
        if getattr(server, needed) is None:
            message = f"The MCP server {name!r} ({server.transport}) has no `{needed}`."
            near = "Set `transport: http`, or add `command`." if needed == "command" and server.url else ""
            reader.error("mcp_incomplete", message, near or f"Add `{needed}`.", line())
        elif getattr(server, other) is not None:
            message = f"`{other}` means nothing to the MCP server {name!r} ({server.transport})."
            reader.warn("mcp_unused", message, "Remove it, or set another `transport`.", line(other))
        for header in server.headers:
            if header.lower() in ("authorization", "cookie", server.key_header.lower()):
                message = f"The MCP server {name!r} has a key among its `headers`."
                reader.error("mcp_key", message, "Name its variable with `key_env`.", line("headers"))
        for variable, key in [(server.key_env, "key_env"), *((variable, "pass_env") for variable in server.pass_env)]:
            if variable and not environ.get(variable):
                message = f"What the MCP server {name!r} needs is missing: {variable} is not set."
                reader.error("missing_key", message, f"Set {variable} in the environment.", line(key))


# --- models ------------------------------------------------------------------------------------


def _drop_unknown(model: type[BaseModel], value: LocatedMap, location: tuple[str | int, ...], reader: Reader) -> None:
    """Report a key that no option has: an error when it looks like a slip, else a warning; drop it."""
    parent: Any = value
    for part in location[:-1]:
        parent = parent[part]
    key, known = str(location[-1]), _siblings(model, location[:-1])
    near = did_you_mean(key, known)
    where = ".".join(str(part) for part in location[:-1])
    message = f"{f'`{where}`' if where else reader.path.name} has no key {key!r}."
    report = reader.error if near else reader.warn
    report("unknown_key", message, near or f"Known keys: {', '.join(sorted(known))}.", line_of(value, location))
    del parent[key]


def _validate(model: type[Model], value: LocatedMap, reader: Reader, *, skip_missing: bool = False) -> Model | None:
    try:
        return model.model_validate(value)
    except ValidationError as fault:
        errors = fault.errors(include_url=False)
    for error in errors:
        location, kind = error["loc"], error["type"]
        if kind == "extra_forbidden":
            _drop_unknown(model, value, location, reader)
        elif not (kind == "missing" and skip_missing):
            where = ".".join(str(part) for part in location)
            message, remedy = f"`{where}`: {error['msg']}.", f"It is {error['input']!r:.80}."
            reader.error(f"value.{kind}", message, remedy, line_of(value, location))
    if any(error["type"] != "extra_forbidden" for error in errors):
        return None
    # Only unknown keys were in the way, and they are reported and gone.
    return model.model_validate(value)


def _siblings(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Names of the options that may stand at ``location``."""
    current: type[BaseModel] = model
    for part in location:
        field = current.model_fields.get(str(part))
        if field is None:
            continue
        inner = field.annotation
        options = [inner, *getattr(inner, "__args__", ())]
        current = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), current)
    return list(current.model_fields)
