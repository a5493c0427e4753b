"""``voice-agent run`` in a process of its own: what an operator sees when something is missing, and how it stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.small_service import write_project

pytestmark = pytest.mark.service


def command(root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "voice_agent", "run", str(root), *arguments]


def refused(root: Path, *arguments: str, **environment: str) -> str:
    """Run until it gives up; return what it wrote to standard error, which must be calm."""
    env = {k: v for k, v in os.environ.items() if k != "VOICE_AGENT_API_KEY"} | {"NO_COLOR": "1", **environment}
    done = subprocess.run(
        command(root, "--log-level", "warning", *arguments), capture_output=True, text=True, timeout=60, env=env
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@contextmanager
def running(root: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(command(root, "--port", str(port), *arguments), stderr=subprocess.PIPE, text=True)
    try:
        yield process, port
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        assert process.stderr
        process.stderr.close()


def wait_for(url: str, seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail(f"{url} did not answer 200 within {seconds} s")


def test_a_port_in_use_is_one_line_with_its_remedy(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        [line] = refused(write_project(tmp_path), "--port", str(port)).splitlines()
    assert line == (
        f"error: Port {port} on 127.0.0.1 is in use. "
        "Stop the program that holds it, or choose another port with --port."
    )


def test_listening_wider_without_a_key_is_refused(tmp_path: Path) -> None:
    [line] = refused(write_project(tmp_path), "--host", "0.0.0.0").splitlines()
    assert "Set VOICE_AGENT_API_KEY" in line


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ("speech: {tts: {voice: /nowhere/voice.onnx}}\n", "/nowhere/voice.onnx"),
        ("speech: {stt: {model: /nowhere/whisper}}\n", "/nowhere/whisper"),
    ],
)
@pytest.mark.models
def test_a_missing_model_or_voice_is_one_error_that_names_it(tmp_path: Path, settings: str, names: str) -> None:
    errors = refused(write_project(tmp_path, settings), "--port", "0").splitlines()
    assert names in errors[-1]


def test_missing_skill_files_are_named(tmp_path: Path) -> None:
    root = write_project(tmp_path)
    for file in root.glob("skills/*/skill.md"):
        file.unlink()
    assert "Add skills/<name>/skill.md." in refused(root)


@pytest.mark.models
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_becomes_ready_and_stops_with_0_when_asked_to(tmp_path: Path, number: signal.Signals) -> None:
    with running(write_project(tmp_path), "--json-logs") as (process, port):
        wait_for(f"http://127.0.0.1:{port}/healthz")
        wait_for(f"http://127.0.0.1:{port}/readyz")
        process.send_signal(number)
        _, written = process.communicate(timeout=20)
    assert process.returncode == 0
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["message"] for line in lines if line["level"] not in ("info", "warning")] == []
    assert any(line["message"].startswith("listening on") for line in lines)
    assert any(line["message"] == "ready" for line in lines)
    assert any(line["message"] == f"open http://127.0.0.1:{port}/ in a browser and talk to it" for line in lines)


def test_it_can_be_stopped_while_it_warms(tmp_path: Path) -> None:
    with running(write_project(tmp_path), "--json-logs") as (process, port):
        wait_for(f"http://127.0.0.1:{port}/healthz")
        process.terminate()
        _, written = process.communicate(timeout=40)
    assert process.returncode == 0, written
    assert "Traceback" not in written
