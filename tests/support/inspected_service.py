"""A service with something to inspect: a skill in steps, personal data, a tool, and a recorded call with a barge-in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.fakes.model import Entry, tool_call
from tests.support.dialogue_projects import block, skill
from tests.support.lines import until
from tests.support.small_service import GREETING, small_service, spoken
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.audio.frames import SILENCE
from voice_agent.service.service import Service

NUMBER = "471182"
SPOKEN = "it is four seven double one eight two"
HEARS = ("i want to know my balance", SPOKEN, "stop", "thank you that is all")
STEPS = """
- id: ask_number
  collect: account_number
  utterance: utter_ask_number
- id: look_up
  execute_tool: get_balance
  next:
    - if: session.balance.amount < 0
      then: overdrawn
    - else: tell
- id: overdrawn
  action: utter_overdrawn
  next: END
- id: tell
  action: utter_balance
- id: anything_else
  noop: true
  next: END
"""
TOOLS = """
from voice_agent.dialogue import tool, ToolContext, ToolResult

@tool(description="Look up the balance of an account.")
async def get_balance(account_number: str, context: ToolContext = None) -> ToolResult:
    context.memory.set("amount", 42.5)
    return ToolResult(llm_response={"account": account_number, "amount": 42.5})
"""
FILES = {
    "skills/balance/skill.md": skill(block(STEPS), name="Account balance", description="Tell the balance."),
    "skills/balance/memory.yml": (
        "schema:\n  public:\n"
        "    account_number: {type: text, pii: true, description: six-digit account number}\n"
        "    amount: {type: float}\n"
    ),
    "skills/balance/tools.py": TOOLS,
    "responses.yml": (
        f"responses:\n  utter_greet: {GREETING}\n  utter_ask_number: What is your account number?\n"
        "  utter_overdrawn: Your account is overdrawn by {session.balance.amount} dollars.\n"
        "  utter_balance: The balance of your account is {session.balance.amount} dollars, as of this morning.\n"
    ),
}
MODEL: tuple[Entry, ...] = (
    tool_call("start_skill", skill="balance"),
    tool_call("listen"),
    tool_call("set_fields", account_number=NUMBER),
)
SETTINGS = "recording: {enabled: true, directory: calls}\nstore: {path: kept.sqlite3}\n"


def inspected_service(
    root: Path, *, settings: str = "", hears: Iterable[str] = HEARS, model: Iterable[Entry] = MODEL
) -> Service:
    return small_service(root, model=model, hears=hears, settings=SETTINGS + settings, files=FILES)


def voiced(seconds: float, silence_s: float = 1.0) -> bytes:
    """Caller audio that rises and falls, as speech does in a picture."""
    pcm = np.frombuffer(spoken(seconds, silence_s), np.int16)
    return pcm.tobytes()


async def speak_in_time(caller: WebSocketCaller, pcm: bytes) -> None:
    """Send audio as fast as it sounds."""
    for at in range(0, len(pcm), 640):
        await caller.speak(pcm[at : at + 640])
        await asyncio.sleep(0.02)


async def hold_call(address: str, conversation: str = "user-42") -> WebSocketCaller:
    """Ring, ask for the balance, give the number in words; returns when the answer was said."""
    caller = await WebSocketCaller.dial(address, f"?conversation={conversation}&events=1&metrics=1")

    def events(kind: str) -> list[dict[str, object]]:
        return [m["event"] for m in caller.of("event") if kind in m["event"]]

    async def patiently(count: int) -> None:
        async with asyncio.timeout(15):
            while len(caller.of("metrics")) < count:
                await speak_in_time(caller, SILENCE * 5)

    await patiently(1)
    await speak_in_time(caller, voiced(0.7))
    await patiently(2)
    await speak_in_time(caller, voiced(1.2))
    await until(lambda: events("ordered_block_completed"), within_s=10)
    await speak_in_time(caller, SILENCE * 50)
    return caller


async def interrupt(caller: WebSocketCaller) -> None:
    """Speak over the answer, then hang up."""
    turns = len(caller.of("metrics"))
    await speak_in_time(caller, voiced(0.8))
    async with asyncio.timeout(15):
        while len(caller.of("metrics")) <= turns:
            await speak_in_time(caller, SILENCE * 5)
    await caller.hang_up()
    await until(lambda: caller.over)
