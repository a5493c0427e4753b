"""A telephone that falls silent without a goodbye is hung up on, and its place is free again."""

from __future__ import annotations

from pathlib import Path

from tests.support.lines import serving, until
from tests.support.sip_caller import SipCaller
from tests.support.small_service import small_service

PORT = 22680
SETTINGS = (
    f"channels:\n  sip: {{enabled: true, port: {PORT}, rtp_ports: [22682, 22689], "
    "turn_taking: {media_timeout_s: 1}}\n"
)


async def test_a_line_that_carries_nothing_any_more_is_hung_up_on(tmp_path: Path) -> None:
    service = small_service(tmp_path, settings=SETTINGS)
    async with serving(service, channels=service.channels):
        await until(lambda: not service.missing)
        phone = await SipCaller.open(PORT)
        assert (await phone.invite()).status == 200
        await until(lambda: service.calls.registry.active)
        [call] = service.calls.registry.active
        await phone.speak(bytes(3200))
        await until(lambda: phone.over, within_s=10)
        await until(lambda: not service.calls.registry.active)
        events = [dict(event) for event in await service.store.events(call.conversation_id)]
        await phone.close()
    [ended] = [event["call_ended"] for event in events if "call_ended" in event]
    assert (ended["outcome"], ended["reason"]) == ("disconnected", "media_timeout")
