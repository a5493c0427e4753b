"""``voice-agent call`` as its users run it: a process of its own against an agent on a real socket."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.scripted_agent import Script, scripted_agent
from voice_agent.audio.wav import write_wav
from voice_agent.caller import command
from voice_agent.caller.lines import Line
from voice_agent.diagnostics import RemediableError

COMMAND = [sys.executable, "-c", "from voice_agent.caller.command import call; call()"]
DEADLINE_S = 60


@dataclass
class Ended:
    status: int
    out: str
    err: str


async def start(*args: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, *map(str, args), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def run(*args: str | Path) -> Ended:
    process = await start(*args)
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def beep(tmp_path: Path) -> Path:
    wave = (np.sin(np.arange(4000) * 2 * np.pi * 440 / 8000) * 9000).astype("<i2")
    write_wav(tmp_path / "beep.wav", wave.tobytes(), 8000)
    return tmp_path / "beep.wav"


async def test_an_answered_call_ends_with_0_prints_who_spoke_and_leaves_its_files(tmp_path, beep):
    async with scripted_agent(Script(greeting_s=0.3, replies_s=(4.0, 0.4))) as agent:
        ended = await run(
            *("--url", agent.url, "--wav", beep, "--barge-in-at", "0.8", "--wav", beep),
            *("--record", tmp_path / "out", "--settle", "0.4"),
        )
    assert ended.status == 0, ended
    for expected in ("connected", "[beep.wav]", "barges in", "understood as", "first audio", "2 of 2 lines answered"):
        assert expected in ended.out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["call.json", "call.wav", "timeline.png"]
    account = json.loads((tmp_path / "out" / "call.json").read_text())
    assert account["ok"] and account["turns"][2]["silenced"]


async def test_json_is_one_line_on_stdout_and_all_else_goes_to_stderr(beep):
    async with scripted_agent(Script(greeting_s=0.3, replies_s=(0.3,))) as agent:
        ended = await run("--url", agent.url, "--wav", beep, "--json", "--settle", "0.4")
    result = json.loads(ended.out)
    assert ended.out.count("\n") == 1 and result["ok"] and result["status"] == 0
    assert result["turns"][1]["line"] == "[beep.wav]" and "connected" in ended.err


async def test_an_unanswered_call_ends_with_1_and_says_what_was_missing(beep):
    async with scripted_agent(Script(greeting_s=0.3, replies_s=(0,))) as agent:
        ended = await run("--url", agent.url, "--wav", beep, "--timeout", "0.8", "--settle", "0.4")
    assert ended.status == 1 and "was not answered" in ended.out


async def test_a_connection_nobody_takes_ends_with_2_and_names_the_command_that_starts_the_service():
    ended = await run("--url", "ws://127.0.0.1:1/ws", "--json")
    assert ended.status == 2 and "voice-agent run" in ended.err and "--url" in ended.err
    assert json.loads(ended.out)["status"] == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--say", "A", "--barge-in-at", "1"), "no line after it"),
        (("--say", ""), "empty"),
        (("--wav", "missing.wav"), "missing.wav"),
        (("--rate", "11025"), "16000"),
        (("--timeout", "0"), "--timeout"),
        (("--via", "pigeon"), "--via"),
        (("--url", "http://host/"), "no WebSocket address"),
    ],
)
async def test_bad_usage_ends_with_2_and_says_what_would_be_right(args, says):
    ended = await run(*args)
    assert ended.status == 2 and says in ended.err + ended.out
    assert "Traceback" not in ended.err


async def test_help_names_every_option_and_loads_no_engine():
    ended = await run("--help")
    assert ended.status == 0
    for option in ("--say", "--wav", "--barge-in-at", "--record", "--token", "--conversation", "--json"):
        assert option in ended.out


async def test_control_c_hangs_up_and_keeps_the_recording(tmp_path):
    async with scripted_agent(Script(greeting_s=30.0)) as agent:
        process = await start("--url", agent.url, "--record", tmp_path / "out")
        async with asyncio.timeout(DEADLINE_S):
            await agent.answered.wait()
            await agent.calls[0].flowing.wait()
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        assert agent.calls[0].messages == [{"type": "hangup"}]
    assert process.returncode == 130 and b"Traceback" not in err
    assert b"ended early" in out
    assert (tmp_path / "out" / "call.wav").stat().st_size > 44 + 10 * 640
    assert (tmp_path / "out" / "call.json").exists()


def test_say_wav_and_barge_in_keep_their_common_order(beep, monkeypatch):
    placed = []
    monkeypatch.setattr(command, "_place", lambda lines, options, console: placed.append(lines) or 0)
    args = ["--say", "A", "--barge-in-at", "1.5", "--wav", str(beep), "--say", "B"]
    assert CliRunner().invoke(command.call, args).exit_code == 0
    assert placed == [(Line(text="A"), Line(wav=beep, barge_in_at=1.5), Line(text="B"))]


def test_remedies_that_name_an_extra_are_shown_with_their_brackets(monkeypatch):
    def unplaced(lines, options, console):
        raise RemediableError("Piper is missing.", 'Install "voice-agent[piper]".')

    monkeypatch.setattr(command, "_place", unplaced)
    shown = CliRunner().invoke(command.call, ["--say", "A"])
    assert shown.exit_code == 2 and 'Install "voice-agent[piper]".' in shown.output


async def test_a_call_without_lines_hears_the_greeting_and_is_content():
    async with scripted_agent(Script(greeting_s=0.3)) as agent:
        ended = await run("--url", agent.url, "--settle", "0.4")
    assert ended.status == 0 and "Greeted." in ended.out
