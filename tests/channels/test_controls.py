from __future__ import annotations

from tests.support.lines import RecordedInputs
from voice_agent.channels.controls import ERRORS, FLOOD, MESSAGES, Controls


def test_messages_reach_the_call_and_the_hang_up_its_wire() -> None:
    controls, call = Controls(lambda code, text: None, 0), RecordedInputs()
    said = ['{"type":"text","text":"Hello"}', '{"type":"dtmf","digit":"5"}', '{"type":"played","ms":40}']
    assert [controls.read(text, call, 0) for text in said] == [None] * 3
    assert (call.texts, call.keys, call.positions, controls.reports_position) == (["Hello"], ["5"], [40.0], True)
    assert controls.read('{"type":"hangup"}', call, 0) == "hang_up"


def test_errors_are_told_at_a_bounded_rate() -> None:
    told: list[str] = []
    controls = Controls(lambda code, text: told.append(code), 0)
    for _ in range(50):
        controls.read("no JSON", RecordedInputs(), 0)
    assert told == ["not_json"] * int(ERRORS[0])


def test_a_flood_is_ignored_and_then_hung_up_on() -> None:
    controls, call = Controls(lambda code, text: None, 0), RecordedInputs()
    ends = [controls.read('{"type":"dtmf","digit":"1"}', call, 0) for _ in range(int(MESSAGES[0]) + FLOOD + 1)]
    assert len(call.keys) == int(MESSAGES[0])
    assert ends == [None] * (len(ends) - 1) + ["disconnected"]
