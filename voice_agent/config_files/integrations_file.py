"""Reads ``integrations.yml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voice_agent.config import Integrations
from voice_agent.config_files.channels_section import NAME_KNOWN, adapt_channels
from voice_agent.config_files.mcp_servers_section import adapt_servers, check_servers
from voice_agent.config_files.opening import open_settings
from voice_agent.config_files.validation import drop_unused, validate
from voice_agent.diagnostics import Problem, Severity
from voice_agent.yaml_source import LocatedMap, Reader, line_of

_UNUSED_KEYS = ("tracing", "embeddings", "model_groups", "metrics", "nlg")


def read_integrations_file(path: Path, environ: Mapping[str, str], problems: list[Problem]) -> Integrations | None:
    """Return the options; None, with the reasons among ``problems``, if there are errors."""
    opened = open_settings(path, "integrations", environ, problems)
    if opened is None:
        return None
    top, reader = opened
    before = len(problems)
    drop_unused(top, _UNUSED_KEYS, reader)
    adapt_channels(top, reader)
    _fall_back_to_local_engines(top, reader)
    adapt_servers(top, reader)
    options = validate(Integrations, top, reader)
    if options is not None:
        _check_keys(options, top, environ, reader)
        check_servers(options, top, environ, reader)
    return None if any(p.severity is Severity.ERROR for p in problems[before:]) else options


def _fall_back_to_local_engines(top: LocatedMap, reader: Reader) -> None:
    speech = top.get("speech")
    if not isinstance(speech, LocatedMap):
        return
    for key, local in (("stt", "whisper"), ("tts", "piper")):
        engine = speech.get(key)
        if isinstance(engine, LocatedMap) and engine.get("name", local) != local:
            message = f"There is no {key} engine {engine['name']!r} here; {local!r} is used with its defaults."
            reader.warn("engine_fallback", message, NAME_KNOWN, engine.key_lines["name"])
            del speech[key]


def _check_keys(options: Integrations, top: LocatedMap, environ: Mapping[str, str], reader: Reader) -> None:
    for index, llm in enumerate((options.llm, *options.llm.fallbacks)):
        if llm.api_key_env and not environ.get(llm.api_key_env):
            where: list[str | int] = (
                ["llm", "api_key_env"] if index == 0 else ["llm", "fallbacks", index - 1, "api_key_env"]
            )
            message = f"The key of {llm.provider}/{llm.model} is missing: {llm.api_key_env} is not set."
            reader.error("missing_key", message, f"Set {llm.api_key_env} in the environment.", line_of(top, where))
