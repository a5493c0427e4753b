"""The section ``channels`` of integrations.yml: what another engine's project may have there becomes our options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.config import Channels
from voice_agent.config_files.validation import drop_unused
from voice_agent.diagnostics import did_you_mean
from voice_agent.yaml_source import LocatedMap, Reader

LOCAL_ENGINES: Mapping[str, str] = {"asr": "whisper", "tts": "piper"}
"""The engine used for a named one we do not have."""
NAME_KNOWN = "Name a known engine, or leave it."
_UNUSED_KEYS = ("background_audio", "server_url", "token", "username", "password", "credentials")
_VOICE_KEYS = ("turn_taking", "interruptions", "silence_timeout", *LOCAL_ENGINES)


def adapt_channels(top: LocatedMap, reader: Reader) -> None:
    """Drop unknown channels and what is not acted on, each with a warning; turn older keys into ours."""
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
            unused = _UNUSED_KEYS if name != "text" else (*_UNUSED_KEYS, *_VOICE_KEYS)
            drop_unused(channel, unused, reader, "by this channel")
            _adapt_channel(channel, reader)


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
                reader.warn("engine_fallback", message, NAME_KNOWN, channel.key_lines[key])
    if turn:
        channel["turn_taking"] = turn
        channel.key_lines.setdefault("turn_taking", channel.line)
