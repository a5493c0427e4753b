"""The number that a wire tells of its caller fills a field of the project's memory, if there is one for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fakes.synthesizer import FakeSynthesizer
from tests.support.lines import serving, until
from tests.support.sip_caller import SipCaller
from tests.support.small_service import small_service
from voice_agent.audio.g711 import ulaw_decode

PORT = 22730
SETTINGS = f"channels: {{sip: {{enabled: true, port: {PORT}, rtp_ports: [22732, 22739]}}}}\n"


@pytest.mark.parametrize(
    ("memory", "known"),
    [("caller_number: {type: text, seed: true}\n", True), ("caller_number: {type: text}\n", False)],
)
async def test_it_is_known_before_the_first_word_where_the_project_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str, known: bool
) -> None:
    texts: list[str] = []
    synthesize = FakeSynthesizer.synthesize

    async def listening(self: FakeSynthesizer, text: str, **more: Any) -> Any:
        texts.append(text)
        return await synthesize(self, text, **more)

    monkeypatch.setattr(FakeSynthesizer, "synthesize", listening)
    greeting = (
        "responses:\n  utter_greet:\n"
        "    - {text: 'You call from {caller_number}.', condition: 'session.project.caller_number != None'}\n"
        "    - text: I know nothing of you.\n"
    )
    service = small_service(tmp_path, files={"memory.yml": memory, "responses.yml": greeting}, settings=SETTINGS)
    async with serving(service, channels=service.channels):
        await until(lambda: not service.missing)
        phone = await SipCaller.open(PORT)
        assert (await phone.invite()).status == 200
        await until(lambda: any(is_loud(packet) for _, packet in phone.packets))
        assert ("You call from +15550123." in texts) is known
        await phone.hang_up()
        await phone.close()


def is_loud(packet: bytes) -> bool:
    return bool(np.abs(np.frombuffer(ulaw_decode(packet[12:]), np.int16).astype(int)).max() > 500)
