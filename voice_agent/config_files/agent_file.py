"""Reads ``agent.yml``, older spellings included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voice_agent.config import AgentFile, StyleOptions
from voice_agent.config_files.opening import open_settings
from voice_agent.config_files.validation import drop_unused, validate
from voice_agent.diagnostics import Problem, Severity
from voice_agent.yaml_source import LocatedList, LocatedMap, Reader

_UNUSED_KEYS = ("nlg", "hooks")


@dataclass(frozen=True, slots=True)
class PluginSections:
    """``plugins:`` of agent.yml as it was written: the plugins' own models say what may stand there.

    Attributes:
        sections: Settings by the name of the plugin.
        line: Where it stands; None if it is missing.
        off: Plugins that are switched off; nothing of them is imported.
    """

    path: Path
    sections: LocatedMap
    line: int | None = None
    off: frozenset[str] = frozenset()


def read_agent_file(
    path: Path, environ: Mapping[str, str], problems: list[Problem]
) -> tuple[AgentFile, PluginSections] | None:
    """Return the options and the settings of plugins; None, and the reasons among ``problems``, if it has faults."""
    opened = open_settings(path, "config", environ, problems)
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
    drop_unused(top, _UNUSED_KEYS, reader)
    instructions = references.get("instructions")
    if isinstance(instructions, str):
        top["references_instructions"] = instructions
        top.key_lines["references_instructions"] = references.key_lines["instructions"]
    if any(p.severity is Severity.ERROR for p in problems[before:]):
        validate(AgentFile, top, reader, skip_missing=True)
        return None
    plugins = _plugin_sections(top, reader)
    agent = validate(AgentFile, top, reader)
    return None if agent is None else (agent, plugins)


def _plugin_sections(top: LocatedMap, reader: Reader) -> PluginSections:
    """Return ``plugins:``, each a mapping or false; one that is empty has its defaults."""
    plugins = reader.mapping(top.get("plugins"), "`plugins`", top.key_lines.get("plugins"))
    off = frozenset(name for name in plugins if plugins[name] is False)
    for name in plugins:
        given = None if name in off else plugins[name]
        plugins[name] = reader.mapping(given, f"`plugins.{name}`", plugins.key_lines[name])
    if "plugins" in top:
        top["plugins"] = dict(plugins) | dict.fromkeys(off, False)
    return PluginSections(reader.path, plugins, top.key_lines.get("plugins"), off)


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
