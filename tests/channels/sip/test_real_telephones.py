"""Debian's own SIP programs on the channel: a telephone, a load generator, a proxy. No speech models."""

from __future__ import annotations

import asyncio
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.channels.contract import ended, speak, tone
from tests.channels.sip.conftest import Exchange, Open, setup
from tests.support.baresip import Baresip, baresip
from tests.support.debian import program
from tests.support.lines import until
from voice_agent.call.wire import PressingWire


@pytest.fixture
def humming(tmp_path: Path) -> Path:
    """A WAV file at 8 kHz for a telephone to play."""
    path = tmp_path / "hum.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        at = np.arange(8000 * 60) / 8000
        file.writeframes((np.sin(2 * np.pi * 200 * at) * 6000).astype("<i2").tobytes())
    return path


def told(phone: Baresip) -> list[str]:
    """The keys that a telephone was told of."""
    return [event["param"] for event in phone.events if event["type"] == "CALL_DTMF_START"]


async def test_a_telephone_presses_keys_holds_resumes_and_hangs_up(
    exchange: Exchange, tmp_path: Path, humming: Path
) -> None:
    async with baresip(tmp_path / "phone", 22420, speaks=humming) as phone:
        await phone.dial(f"sip:agent@127.0.0.1:{exchange.port}")
        line = await exchange.desk.next_line()
        await phone.event("CALL_ESTABLISHED")
        await until(lambda: len(line.inputs.heard) > 16000)
        await phone.press("42#")
        await until(lambda: line.inputs.keys == list("42#"))
        await phone.command("hold")
        await until(lambda: line.inputs.holds == [True])
        await phone.command("resume")
        await until(lambda: line.inputs.holds == [True, False])
        assert isinstance(line.wire, PressingWire)
        assert (await line.wire.send_digits("7w1#")).sent
        await until(lambda: told(phone) == list("71#"))
        heard = len(line.inputs.heard)
        await until(lambda: len(line.inputs.heard) > heard + 16000)
        await phone.hang_up()
        assert await ended(line) == "hang_up"


async def test_the_agents_hang_up_reaches_a_telephone_after_the_last_word(
    exchange: Exchange, tmp_path: Path, humming: Path
) -> None:
    async with baresip(tmp_path / "phone", 22460, codec="pcma", speaks=humming) as phone:
        await phone.dial(f"sip:agent@127.0.0.1:{exchange.port}")
        line = await exchange.desk.next_line()
        await phone.event("CALL_ESTABLISHED")
        await asyncio.sleep(0.3)
        speak(line, tone(0.5))
        await line.wire.hang_up("completed")
        await phone.event("CALL_CLOSED")
        with wave.open(str(phone.heard())) as file:
            heard = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(int)
        assert (np.abs(heard) > 3000).sum() > 0.8 * 0.5 * 8000 * 0.8


async def test_twenty_calls_at_once_are_set_up_and_taken_down(exchange: Exchange, tmp_path: Path) -> None:
    command = [str(program("sip-tester", "sipp")), "-sn", "uac", f"127.0.0.1:{exchange.port}"]
    options = ["-m", "20", "-r", "40", "-l", "20", "-d", "1500", "-i", "127.0.0.1", "-p", "22480", "-nostdin"]
    process = await asyncio.create_subprocess_exec(
        *command, *options, cwd=tmp_path, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    most = 0
    async with asyncio.timeout(20):
        while process.returncode is None:
            most = max(most, len([line for line in exchange.desk.lines if not line.ended.done()]))
            await asyncio.sleep(0.05)
    assert process.returncode == 0
    assert most == 20
    await until(lambda: exchange.channel.legs == 0)
    assert [line.ended.result() for line in exchange.desk.lines] == ["hang_up"] * 20


PROXY = """
listen=udp:127.0.0.1:{port}
children=1
log_stderror=yes
debug=1
disable_tcp=yes
auto_aliases=no
loadmodule "sl.so"
loadmodule "tm.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "siputils.so"
request_route {{
    if (is_method("CANCEL")) {{ if (t_check_trans()) t_relay(); exit; }}
    if (has_totag()) {{
        if (loose_route()) {{ t_relay(); exit; }}
        if (is_method("ACK")) {{ if (t_check_trans()) t_relay(); exit; }}
        sl_send_reply("404", "Not here");
        exit;
    }}
    if (is_method("INVITE")) record_route();
    $du = "sip:127.0.0.1:{agent}";
    t_relay();
}}
"""


async def test_a_call_through_a_proxy_that_stays_on_the_way(open_exchange: Open, tmp_path: Path, humming: Path) -> None:
    exchange = await open_exchange(setup())
    config = tmp_path / "kamailio.cfg"
    config.write_text(PROXY.format(port=22500, agent=exchange.port))
    kamailio = await asyncio.create_subprocess_exec(
        str(program("kamailio", "kamailio")),
        *("-f", str(config), "-DD", "-E", "-m", "16", "-M", "4", "-w", str(tmp_path), "-Y", str(tmp_path)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=(tmp_path / "kamailio.log").open("wb"),
    )
    try:
        await asyncio.sleep(1.0)
        async with baresip(tmp_path / "phone", 22520, speaks=humming) as phone:
            await phone.dial("sip:agent@127.0.0.1:22500")
            line = await exchange.desk.next_line()
            await phone.event("CALL_ESTABLISHED")
            await until(lambda: len(line.inputs.heard) > 16000)
            await line.wire.hang_up("completed")
            await phone.event("CALL_CLOSED")
            assert await ended(line) == "closed"
    finally:
        kamailio.terminate()
        try:
            async with asyncio.timeout(5):
                await kamailio.wait()
        except TimeoutError:
            kamailio.kill()
            await kamailio.wait()
