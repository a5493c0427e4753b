"""The prompts of a conversation, exactly as a model got them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.authoring.stage import ListeningCaller
from voice_agent.config_files import ProjectConfig
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.dialogue.prompt_sections import MESSAGE_TOKENS, estimate, message_tokens
from voice_agent.dialogue.reply import SESSION_START, InputKind, UserInput
from voice_agent.llm.protocol import LanguageModel, Message, ToolSpec


@dataclass(frozen=True, slots=True)
class TurnPrompts:
    """The model calls of one turn. ``number`` is 0 for the greeting."""

    number: int
    utterance: str
    reply: str
    calls: tuple[ModelCallRecord, ...]


async def talk(config: ProjectConfig, model: LanguageModel, lines: Iterable[str], channel: str) -> list[TurnPrompts]:
    """Hold a conversation in which the caller says ``lines``, and return what the model was given in each turn.

    Raises:
        ProjectError: The project cannot be loaded.
    """
    agent = Agent.load(config, model)
    try:
        conversation = agent.open("prompt", channel=channel)
        calls: list[ModelCallRecord] = []
        conversation.on_model_call(calls.append)
        turns = []
        kind = InputKind.TEXT if channel in ("text", "rest") else InputKind.SPEECH
        for number, user in enumerate([SESSION_START, *(UserInput(line, kind) for line in lines)]):
            calls.clear()
            caller = ListeningCaller()
            await conversation.turn(user, turn_id=f"t{number}", sink=caller, cancel=caller.cancel)
            conversation.commit_reply(f"t{number}", caller.heard)
            turns.append(TurnPrompts(number, user.text, caller.text, tuple(calls)))
        return turns
    finally:
        await agent.aclose()


def tool_tokens(tools: Sequence[ToolSpec]) -> int:
    """Return roughly how many tokens the schemas of ``tools`` are."""
    return sum(estimate(f"{t.name} {t.description} {json.dumps(t.parameters)}") + MESSAGE_TOKENS for t in tools)


def as_json(turn: TurnPrompts, record: ModelCallRecord) -> dict[str, Any]:
    """Return one model call as JSON-ready data."""
    request = record.request
    return {
        "turn": turn.number,
        "utterance": turn.utterance,
        "purpose": record.purpose,
        "model": record.model,
        "sections": [
            {"key": s.key, "title": s.title, "tokens": s.tokens, "omitted": s.omitted} for s in record.sections
        ],
        "messages": [_message(message) for message in request.messages],
        "tools": [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in request.tools],
        "tokens": {"messages": sum(map(message_tokens, request.messages)), "tools": tool_tokens(request.tools)},
    }


def _message(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.content, "tokens": message_tokens(message)}
    if message.tool_calls:
        made["tool_calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls]
    if message.tool_call_id is not None:
        made.update(tool_call_id=message.tool_call_id, name=message.name)
    return made
