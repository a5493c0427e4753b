"""What was left behind keeps the process neither alive nor from telling why it ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import asyncio, contextlib
from voice_agent.cli import run
from voice_agent.diagnostics import RemediableError

async def main():
    async def deaf():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
    kept.append(asyncio.create_task(deaf()))
    await asyncio.sleep(0.01)
    {end}

kept = []
run.LEAVE_S = 0.2
run.run_loop(main())
"""


@pytest.mark.parametrize(
    ("end", "status", "told"),
    [("return", 0, ""), ('raise RemediableError("No model.", "Install one.")', 2, "Install one.")],
)
def test_a_task_that_ignores_its_end_changes_neither_status_nor_words(end: str, status: int, told: str) -> None:
    code = CODE.replace("{end}", end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, told in done.stderr) == (status, True), done.stderr
