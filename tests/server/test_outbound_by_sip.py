"""A call asked for by HTTP is placed by the SIP port of the same server."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.support.lines import RecordingService, serving
from tests.support.sip_caller import SipCaller, SipMessage
from voice_agent.config import Channels, OutboundOptions, SipOptions

KEY = "a-key-of-the-application"
SIP_PORT = 23250


async def test_a_telephone_that_is_busy_is_told_by_the_state_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    channels = Channels(
        sip=SipOptions(enabled=True, port=SIP_PORT, rtp_ports=(23260, 23299)),
        outbound=OutboundOptions(allowed_prefixes=("sip:them@",)),
    )
    asked: list[str] = []

    def on_request(message: SipMessage) -> int | None:
        asked.append(message.method)
        return 486 if message.method == "INVITE" else None

    async with serving(RecordingService(channels=channels), channels=channels) as address:
        phone = await SipCaller.open(SIP_PORT)
        phone.on_request = on_request
        headers = {"authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(base_url=f"http://{address}", headers=headers, trust_env=False) as client:
            to = f"sip:them@127.0.0.1:{phone.port}"
            answer = await client.post("/v1/calls", json={"to": to, "via": "sip"})
            assert answer.status_code == 202, answer.text
            async with asyncio.timeout(5):
                while (told := (await client.get(answer.headers["location"])).json())["state"] == "dialing":  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        await phone.close()
    assert (told["state"], told["outcome"], told["via"]) == ("failed", "busy", "sip")
    assert "INVITE" in asked
