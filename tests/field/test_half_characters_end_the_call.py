"""Half a character (a lone surrogate, which JSON can carry and UTF-8 cannot) from a client or a model ended the call.

Right: it is replaced where it comes in and where it leaves, by every channel; the call goes on.
"""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from tests.support.lines import serving, until
from tests.support.small_service import small_service
from tests.support.websocket_caller import WebSocketCaller


async def test_a_call_survives_half_characters_both_ways(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["It costs \ud83d five.", "Yes."])
    async with serving(service) as address:
        await until(lambda: not service.missing)
        caller = await WebSocketCaller.dial(address)
        await until(lambda: bool(caller.of("transcript")))
        for words in ("What \ud800 does it cost?", "Are you there?"):
            before = len(caller.of("transcript"))
            await caller.socket.send(json.dumps({"type": "text", "text": words}))
            await until(lambda before=before: any(m["role"] == "agent" for m in caller.of("transcript")[before:]))
        assert not caller.over
        said = [m["text"] for m in caller.of("transcript")]
        assert "What \ufffd does it cost?" in said
        await caller.close()


async def test_text_by_http_survives_half_characters_both_ways(tmp_path: Path) -> None:
    service = small_service(tmp_path, model=["It costs \ud83d five."] * 2)
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await until(lambda: not service.missing)
        for accept in ("application/json", "text/event-stream"):
            answer = await client.post(
                f"/v1/conversations/c-{accept[:4]}/messages",
                content=b'{"text": "What \\ud800 does it cost?"}',
                headers={"accept": accept},
            )
            assert answer.status_code == 200
            assert "It costs \ufffd five." in answer.text
