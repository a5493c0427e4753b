"""A service that was told to stop stayed: a task that swallows its cancellation, or a thread, kept the process alive.

Right: once everything of ours is closed, what a tool left behind has a few seconds, and then the process ends.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, time
from voice_agent.cli import run

async def stubborn():
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass

async def main():
    work = {work}
    task = asyncio.get_running_loop().create_task(work)
    await asyncio.sleep(0.05)
    {end}

run.LEAVE_S = 0.2
run.run_loop(main())
"""


@pytest.mark.parametrize("work", ["stubborn()", "asyncio.to_thread(time.sleep, 3600)"])
@pytest.mark.parametrize(("end", "status"), [("pass", 0), ("raise RuntimeError", 1)])
def test_nothing_that_was_left_behind_keeps_the_process_alive(work: str, end: str, status: int) -> None:
    program = [sys.executable, "-c", PROGRAM.format(work=work, end=end)]
    assert subprocess.run(program, timeout=60, capture_output=True, check=False).returncode == status


def test_what_kept_the_service_from_starting_is_told_all_the_same() -> None:
    end = 'from voice_agent.diagnostics import RemediableError; raise RemediableError("No model.", "Install it.")'
    program = [sys.executable, "-c", PROGRAM.format(work="asyncio.to_thread(time.sleep, 3600)", end=end)]
    done = subprocess.run(program, timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 2, "as where nothing is left behind"
    assert "error: No model. Install it." in done.stderr
