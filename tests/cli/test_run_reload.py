"""``voice-agent run`` while its project changes, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.small_service import GREETING, write_project

pytestmark = [pytest.mark.service, pytest.mark.models]

NEW = "responses:\n  utter_greet: Welcome to the second version.\n"


def eventually(holds: Callable[[], bool], seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            if holds():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    pytest.fail(f"did not become so within {seconds} s")


@pytest.mark.parametrize("watch", [True, False])
def test_an_edit_is_used_without_a_restart_and_a_broken_one_leaves_the_old_version(watch: bool, tmp_path: Path) -> None:
    root = write_project(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "voice_agent", "run", str(root), "--port", str(port)]
    process = subprocess.Popen([*command, "--reload"] if watch else command, stderr=subprocess.PIPE, text=True)
    numbers = iter(range(1000))

    def greeting() -> str:
        url = f"http://127.0.0.1:{port}/v1/conversations/c{next(numbers)}/messages"
        return httpx.post(url, json={"intent": "/session_start"}, timeout=10).text

    def changed(text: str) -> None:
        (root / "responses.yml").write_text(text)
        if not watch:
            os.kill(process.pid, signal.SIGHUP)

    try:
        eventually(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2).status_code == 200)
        assert GREETING in greeting()
        changed("responses:\n  utter_greet: a: b\n")
        time.sleep(1.5)
        assert GREETING in greeting()
        changed(NEW)
        eventually(lambda: "Welcome to the second version." in greeting(), 20)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
    assert process.returncode == 0
    assert "the old one stays" in log and "responses.yml:2" in log and "[yaml.syntax]" in log
    assert "Traceback" not in log
