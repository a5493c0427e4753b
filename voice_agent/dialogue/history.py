"""From the tracker to the messages a model may see: what the caller said and what was heard in reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.prompt_sections import message_tokens
from voice_agent.dialogue.turn import cut
from voice_agent.llm.protocol import Message, Role, ToolCall

MAX_MESSAGES = 60
MAX_RECORDS = 600
"""Tracker records worth looking at for `MAX_MESSAGES`: a turn writes about ten."""
MAX_USER_CHARS = 8000
HIDDEN_TOOLS = frozenset(("listen", "hangup"))


def history(
    events: Sequence[Mapping[str, Any]],
    session_id: str,
    *,
    before_turn: str,
    max_tokens: int = 1_000_000,
    carried: tuple[str, Sequence[Message]] | None = None,
) -> tuple[list[Message], bool]:
    """Return the messages of this session before turn ``before_turn``, oldest first, and whether any were left out.

    At most `MAX_MESSAGES`, and about ``max_tokens``.

    Only what was heard of a reply is in it, and wording that is to be known whole (`Say.record`). A call and its
    result always come together. A turn that was superseded before anything of it was heard is left out: its words
    came again.

    Args:
        carried: Messages that stand for the tools of one turn, as (its id, the messages).
    """
    kept_turn, kept_messages = carried if carried is not None else ("", ())
    kept_tools = {message.name for message in kept_messages if message.role == "tool"}
    records = [(event, *payload_of(event)) for event in events if event.get("session_id", session_id) == session_id]
    superseded = {payload.get("turn_id") for _, kind, payload in records if kind == "turn_superseded"}
    # What the engine prepares by itself ends up in memory; the model has not asked for it.
    silent = {p.get("turn_id") for _, kind, p in records if kind == "user" and p.get("kind") == "intent"}
    # Each makes its messages only if there is room for them: most of a long conversation has none.
    groups: list[Callable[[], list[Message]]] = []
    for event, kind, payload in records:
        turn_id = payload.get("turn_id")
        if kind in ("bot", "reply_unheard"):
            said = payload.get("context") or (payload.get("text") if kind == "bot" else "")
            if said:
                groups.append(partial(_one, "assistant", str(said)))
        elif turn_id == before_turn or turn_id in silent:
            continue
        elif kind == "user" and turn_id not in superseded:
            groups.append(partial(_one, "user", str(payload.get("text", "")), MAX_USER_CHARS))
            if carried is not None and turn_id == kept_turn:
                groups.append(partial(list, kept_messages))
        elif kind == "tool_executed" and turn_id == kept_turn and payload.get("tool") in kept_tools:
            continue
        elif kind == "tool_executed" and payload.get("tool") not in HIDDEN_TOOLS:
            groups.append(partial(_tool_pair, event, payload))
    kept: list[Message] = []
    tokens = 0
    for make in reversed(groups):
        group = make()
        tokens += sum(map(message_tokens, group))
        if len(kept) + len(group) > MAX_MESSAGES or tokens > max_tokens:
            return kept, True
        kept = group + kept
    return kept, len(events) >= MAX_RECORDS


def _one(role: Role, text: str, max_chars: int | None = None) -> list[Message]:
    return [Message(role, text if max_chars is None else cut(text, max_chars))]


def _tool_pair(event: Mapping[str, Any], payload: Mapping[str, Any]) -> list[Message]:
    name = str(payload.get("tool", ""))
    call = ToolCall(f"call_e{event.get('sequence', 0)}", name, str(payload.get("arguments_json", "{}")))
    result = cut(str(payload.get("result_json", "")))
    return [Message("assistant", tool_calls=(call,)), Message("tool", result, tool_call_id=call.id, name=name)]
