"""Transcripts, keys and phone numbers stood in the information log.

Right: a whole call with speech, typed text and keys leaves none of its words or digits in the log at INFO.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.lines import serving, until
from tests.support.small_service import small_service, spoken
from tests.support.websocket_caller import WebSocketCaller

SECRETS = ("plum", "427913", "tangerine", "marzipan")


async def test_a_call_leaves_no_words_and_no_digits_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service = small_service(tmp_path, model=["Your fruit is marzipan."] * 3, hears=["my word is plum"])
    async with serving(service) as address:
        await until(lambda: not service.missing)
        caller = await WebSocketCaller.dial(address, "?conversation=c1")
        await until(lambda: caller.of("transcript"))
        await caller.speak(spoken())
        await until(lambda: any(m["role"] == "user" for m in caller.of("transcript")))
        await caller.say(type="text", text="tangerine")
        for digit in "427913#":
            await caller.press(digit)
        await until(lambda: "427913" in str(caller.of("transcript")))
        await caller.socket.send('{"type":"tangerine"}')
        await until(lambda: caller.of("error"))
        await caller.close()
        await until(lambda: not service.calls.registry.active)
    written = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records if record.levelno >= 20)
    assert "call ended" in written
    for secret in SECRETS:
        assert secret not in written
