"""``scripts/run`` with an agent that plays from a script in place of the real service."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.packaging.test_container import copied

ROOT = Path(__file__).parents[2]
DEADLINE_S = 100


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the scripts with an environment that is taken as installed."""
    for name in ("run", "environment.sh", "demo"):
        source, target = ROOT / "scripts" / name, tmp_path / "scripts" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    (tmp_path / "pyproject.toml").touch()
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    (commands / "python").symlink_to(sys.executable)
    (tmp_path / ".venv" / ".installed-local").touch()
    return tmp_path


def install(place: Path, code: str) -> None:
    """Put a ``voice-agent`` in place that is this Python code; its ``run`` leaves its process id behind."""
    command = place / ".venv" / "bin" / "voice-agent"
    note = f"""\
        #!{sys.executable}
        import os, pathlib, sys
        sys.path.insert(0, {str(ROOT)!r})
        if sys.argv[1] == "run":
            pathlib.Path("service.pid").write_text(str(os.getpid()))
        """
    command.write_text(textwrap.dedent(note) + textwrap.dedent(code))
    command.chmod(0o755)


def install_scripted(place: Path, script: str) -> None:
    """Let ``voice-agent run`` be a scripted agent and ``voice-agent call`` the real caller."""
    install(
        place,
        f"""
        import asyncio, signal
        if sys.argv[1] == "call":
            from voice_agent.caller.command import call
            call(sys.argv[2:])
        from tests.support.scripted_agent import Script, scripted_agent
        async def serve():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            async with scripted_agent({script}, port=int(sys.argv[sys.argv.index("--port") + 1])):
                await stop.wait()
        asyncio.run(serve())
        """,
    )


def start(place: Path, *args: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("VOICE_AGENT_VENV", "VOICE_AGENT_API_KEY")}
    return subprocess.Popen(
        ["bash", "scripts/run", *args],
        cwd=place,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def run(place: Path, *args: str) -> tuple[int, str]:
    process = start(place, *args)
    out, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out


def service_is_gone(place: Path) -> bool:
    try:
        os.kill(int((place / "service.pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.alone
@pytest.mark.models
@pytest.mark.service
def test_the_demonstration_greets_looks_up_yields_and_answers_says_where_its_files_lie_and_leaves_no_process(place):
    for name in copied():
        if not (place / name).exists():
            (place / name).symlink_to(ROOT / name)
    install(place, "from voice_agent.cli import main; main()")
    status, out = run(place, "--demo-only", "--port", str(free_port()))
    assert status == 0, out
    assert "ready after" in out and "barges in" in out
    for name in ("call.wav", "timeline.png"):
        assert str(place / "recordings" / "demo" / name) in out
        assert (place / "recordings" / "demo" / name).stat().st_size > 1000
    assert service_is_gone(place)
    turns = json.loads((place / "recordings" / "demo" / "call.json").read_text())["turns"]
    said = [" ".join(piece["text"] for piece in turn["said"]) for turn in turns]
    assert "Northline" in said[0] and "account number" in said[1] and "$42.50" in said[2] and "Saturday" in said[3]
    assert turns[3]["silenced"]
    (cut,) = turns[2]["said"]
    assert cut["text"].startswith(cut["heard"].strip()) and 0 < len(cut["heard"]) < len(cut["text"])


@pytest.mark.models
def test_after_a_failed_call_the_demonstration_fails_and_leaves_no_process(place):
    install_scripted(place, "Script(greeting_s=0.3, hangs_up_after=1)")
    status, out = run(place, "--demo-only", "--port", str(free_port()))
    assert status == 1 and "demonstration call failed" in out and "the agent left" in out
    assert service_is_gone(place)


@pytest.mark.models
def test_without_demo_only_it_stays_up_until_control_c_ends_both(place):
    install_scripted(place, "Script(greeting_s=0.3, hangs_up_after=1)")
    process = start(place, "--port", str(free_port()))
    assert process.stdout is not None
    try:
        told = any("Ctrl-C ends the service" in line for line in process.stdout)
        assert told, "it ended by itself"
        assert process.poll() is None and not service_is_gone(place)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=DEADLINE_S) == 130
    finally:
        process.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert service_is_gone(place)


def test_a_port_in_use_is_named_before_anything_is_started(place):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        status, out = run(place, "--port", str(port))
    assert status == 2 and f"Port {port} is in use" in out and f"--port {port + 1}" in out
    assert not (place / "recordings").exists()


def test_a_service_that_does_not_start_is_reported_with_its_own_words(place):
    command = place / ".venv" / "bin" / "voice-agent"
    command.write_text("#!/bin/sh\necho 'error: agent.yml: what is wrong with it' >&2\nexit 2\n")
    command.chmod(0o755)
    status, out = run(place, "--demo-only", "--port", str(free_port()))
    assert status == 1 and "what is wrong with it" in out and "did not start" in out


@pytest.mark.parametrize("args", [("--port",), ("--port", "x"), ("--port", "0"), ("--port", "70000"), ("--nonsense",)])
def test_bad_options_are_refused_with_what_would_be_right(place, args):
    status, out = run(place, *args)
    assert status == 2 and "--port" in out


def test_help_says_what_the_options_do(place):
    status, out = run(place, "--help")
    assert status == 0 and "--demo-only" in out and "--port N" in out
