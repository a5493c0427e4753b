"""A caller speaks over the agent: measured from their first packet with voice to the agent's last, on the line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from tests.support.lines import serving, until
from tests.support.sip_caller import SipCaller
from tests.support.small_service import small_service
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode

PORT = 22690
SETTINGS = f"channels: {{sip: {{enabled: true, port: {PORT}, rtp_ports: [22700, 22719]}}}}\n"
GREETING = (
    "responses:\n  utter_greet: Welcome to the test, which goes on and on for quite a long time before it ends.\n"
)
VOICE = ulaw_encode(np.full(160, 9000, np.int16).tobytes())
SILENCE = b"\xff" * 160


def is_loud(packet: bytes) -> bool:
    return bool(np.abs(np.frombuffer(ulaw_decode(packet[12:]), np.int16).astype(int)).max() > 500)


async def test_the_agents_voice_ends_on_the_line_soon_after_the_callers_begins(tmp_path: Path) -> None:
    service = small_service(
        tmp_path, hears=["no stop this please"], files={"responses.yml": GREETING}, settings=SETTINGS
    )
    async with serving(service, channels=service.channels):
        await until(lambda: not service.missing)
        phone = await SipCaller.open(PORT)
        assert (await phone.invite()).status == 200
        loop, speaks = asyncio.get_running_loop(), asyncio.Event()

        async def talk() -> None:
            while True:
                phone.send_rtp(VOICE if speaks.is_set() else SILENCE)
                phone._timestamp += 160
                await asyncio.sleep(0.02)

        talking = asyncio.create_task(talk())
        await until(lambda: sum(is_loud(packet) for _, packet in phone.packets) > 60)
        onset = loop.time()
        speaks.set()
        await asyncio.sleep(1.5)
        talking.cancel()
        await phone.hang_up()
        await phone.close()
    loud = [at for at, packet in phone.packets if is_loud(packet)]
    after = [at - onset for at in loud if at > onset]
    assert max(after) < 0.6, "without the interruption it would go on for seconds"
