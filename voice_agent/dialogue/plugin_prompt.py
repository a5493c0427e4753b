"""What plugins make of a prompt before it is sent: its beginning, its end, and which tools are offered."""

from __future__ import annotations

from dataclasses import replace

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.hook_runner import HookRunner
from voice_agent.dialogue.plugin_points import AllowedTool, AllowedToolsPayload, PluginPoint, TextPayload
from voice_agent.dialogue.prompt_sections import Prompt, Section, fit

MAX_TOKENS = 4_000
"""Of what plugins put before and behind the prompt, each."""


async def by_plugins(prompt: Prompt, hooks: HookRunner, cancel: CancelToken) -> tuple[Prompt, frozenset[str]]:
    """Return the prompt as plugins leave it, and the names of the tools that they took away.

    Tools of the engine stay: a plugin cannot keep a caller's yes from being understood.

    Raises:
        TurnCancelled: The turn was cancelled meanwhile.
    """
    sections = prompt.sections
    if hooks.modifies(PluginPoint.PROMPT_PREFIX) and sections:
        given = TextPayload(sections[0].body)
        text = (await hooks.check(PluginPoint.PROMPT_PREFIX, given, cancel)).text
        if text != given.text:
            sections = (fit(replace(sections[0], body=text), MAX_TOKENS), *sections[1:])
    if hooks.modifies(PluginPoint.PROMPT_SUFFIX):
        text = (await hooks.check(PluginPoint.PROMPT_SUFFIX, TextPayload(""), cancel)).text
        if text.strip():
            sections = (*sections, fit(Section("suffix", "", text.strip()), MAX_TOKENS))
    offer, withheld = prompt.offer, frozenset[str]()
    if offer.tools and hooks.modifies(PluginPoint.ALLOWED_TOOLS):
        offered = tuple(AllowedTool(spec.name, spec.description) for spec in offer.specs if spec.name in offer.tools)
        kept = (await hooks.check(PluginPoint.ALLOWED_TOOLS, AllowedToolsPayload(offered), cancel)).tools
        withheld = frozenset(offer.tools) - {tool.name for tool in kept}
        offer = replace(offer, specs=tuple(spec for spec in offer.specs if spec.name not in withheld))
    return replace(prompt, sections=sections, offer=offer), withheld
