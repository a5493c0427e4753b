"""A barge-in around the end of a call left it neither ended nor going on, or ended in the tracker only.

Right: at each of five instants (before the goodbye, in its first word, in its last word, while the far end still plays,
after the wire has hung up) it is either over everywhere or nowhere, and a caller who stayed can end the call again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call
from tests.support.dialogue_projects import Caller, block, caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.call.call import CallOutcome
from voice_agent.call.clock import MediaClock
from voice_agent.transfers import TransferReason

GOODBYE = "Thank you for calling us today. Goodbye."
FILES = {
    "skills/talk/skill.md": skill("Talk."),
    "skills/default_session_start/skill.md": skill(block("- action: utter_hi")),
    "skills/bye/skill.md": skill(block("- action: utter_bye\n- execute_tool: hangup"), description="Bye."),
    "skills/person/skill.md": skill(
        block("- {id: through, execute_tool: transfer, args: {destination: people}}"), description="A person."
    ),
    "responses.yml": f"responses: {{utter_hi: Hi., utter_bye: '{GOODBYE}', utter_transfer: '{GOODBYE}'}}\n",
    "integrations.yml": "transfers: {people: {to: '+15550100', description: People.}}\n",
}
WAYS: dict[str, Any] = {
    "words and a call": [f"{GOODBYE} ", tool_call("hangup")],
    "a step": tool_call("start_skill", skill="bye"),
    "a transfer by words and a call": [f"{GOODBYE} ", tool_call("transfer", destination="people")],
    "a transfer by a step": tool_call("start_skill", skill="person"),
}
MODEL_S = 0.5
SCRIPT_AFTER = ("Yes?", tool_call("hangup"))
INSTANTS: dict[str, Callable[[float, float], float]] = {
    "before the goodbye": lambda first, last: first - 0.3,
    "in its first word": lambda first, last: first + 0.1,
    "in its last word": lambda first, last: last - 0.3,
    "while the far end plays": lambda first, last: last + 0.2,
    "after the end": lambda first, last: last + 2.5,
}
"""Instants by name, from when the goodbye is first and last audible."""


async def call_with(bench: Caller, wire: FakeWire) -> CallOutcome:
    async with MediaClock() as clock:
        return await make_call(wire, bench.conversation, clock, voice=FakeVoice()).run()  # type: ignore[arg-type]


def ends_of(bench: Caller) -> list[str]:
    """Return what the tracker holds as done to end the call."""
    done = [e["tool"] for e in bench.events("tool_executed") if e["success"]]
    return [tool for tool in done if tool in ("hangup", "transfer")]


def agent_and_wire(root: Path, way: str) -> tuple[Caller, FakeWire]:
    model = ScriptedModel([WAYS[way], *SCRIPT_AFTER], first_token_s=MODEL_S, then="Yes?")
    bench = caller(root, FILES, model=model, channel="websocket")
    wire = FakeWire(40, drain_s=1.0, transfers=[(0.5, TransferReason.COMPLETED)])
    wire.speak(0.8, "that is all")
    return bench, wire


@virtual_time
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("instant", list(INSTANTS))
async def test_the_call_is_over_everywhere_or_nowhere(tmp_path: Path, way: str, instant: str) -> None:
    tool = "transfer" if "transfer" in way else "hangup"
    bench, wire = agent_and_wire(tmp_path / "undisturbed", way)
    undisturbed = await call_with(bench, wire)
    assert ends_of(bench) == [tool]
    goodbye = wire.timelines()[-1].timeline
    first, last = goodbye["first_audio"], goodbye["last_audio"]
    assert first is not None and last is not None

    bench, wire = agent_and_wire(tmp_path / "disturbed", way)
    wire.speak(INSTANTS[instant](first, last), "wait one more question")
    wire.speak(12.0, "now that is all")
    outcome = await call_with(bench, wire)
    users = [e["text"] for e in bench.events("user") if e["kind"] == "speech"]
    if instant == "after the end":
        assert users == ["that is all"]
        assert (ends_of(bench), outcome.reason) == ([tool], undisturbed.reason)
        assert outcome.seconds == pytest.approx(undisturbed.seconds)
    else:
        # Whatever was undone, the words were answered, and the caller ended the call with the next ones.
        assert users[1].endswith("wait one more question")
        assert users[2:] == ["now that is all"]
        assert ends_of(bench) == ["hangup"]
        assert not wire.transferred
        assert outcome.seconds > 12.0
        assert "Yes?" in [e["text"] for e in bench.events("bot")]
    assert outcome.outcome == ("transferred" if ends_of(bench) == ["transfer"] else "completed")
    assert len(wire.hung_up) == 1
    assert bench.stack == []
