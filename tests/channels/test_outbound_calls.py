from __future__ import annotations

import asyncio

import pytest

from tests.support.lines import RecordingDesk, until
from voice_agent.channels.desk import CallRequest
from voice_agent.channels.outbound import DialOutcome, DialResult
from voice_agent.channels.outbound_calls import OutboundCalls, allows
from voice_agent.config import OutboundOptions


@pytest.mark.parametrize(
    ("prefix", "to", "allowed"),
    [
        ("+1555", "+15550123", True),
        ("+1555", "+1555", True),
        ("+1555", "+1444", False),
        ("sip:", "sip:anybody@anywhere.example", True),
        ("sip:desk@", "sip:desk@anywhere.example", True),
        ("sip:desk@example.com", "sip:desk@example.com", True),
        ("sip:desk@example.com", "sip:desk@example.com:5070;transport=udp", True),
        ("sip:desk@example.com", "sip:desk@example.com.elsewhere.example", False),
        ("sip:desk@example.com", "sip:desk@example.comx", False),
    ],
)
def test_a_prefix_allows_what_begins_with_it_and_no_other_host(prefix: str, to: str, allowed: bool) -> None:
    assert allows(prefix, to) is allowed


class Ringing:
    """A dialer whose calls nobody answers."""

    def __init__(self) -> None:
        self.rings = self.taken_back = 0

    async def dial(self, to: str, request: CallRequest, *, ring_timeout_s: float = 30.0) -> DialResult:
        self.rings += 1
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.taken_back += 1
            raise
        return DialResult(DialOutcome.ANSWERED)


async def test_a_call_that_is_not_wanted_any_more_is_taken_back_while_it_rings() -> None:
    desk, line = RecordingDesk(), Ringing()
    calls = OutboundCalls(desk, OutboundOptions(allowed_prefixes=("+1",), max_dialing=1), {"sip": line})
    running = asyncio.create_task(calls.run())
    await asyncio.sleep(0)
    call_id = calls.place("+15550123", "sip", "c1", {})
    await until(lambda: line.rings)
    desk.places[0].unwanted.set()
    await until(lambda: (calls.describe(call_id) or {})["state"] == "failed")
    told = calls.describe(call_id)
    assert told is not None
    assert (told["outcome"], line.taken_back, desk.places[0].free) == ("not_ready", 1, True)
    assert len(asyncio.all_tasks()) == 2, "the ringing left nothing behind"
    running.cancel()
    await asyncio.wait({running})
