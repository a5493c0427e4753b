"""Symptom: a library under a tool calls ``sys.exit`` and every call of the process is gone.

Right: it is a failure of that tool; the loop goes on. The loop runs in a process of its own here,
since a regression would end the test run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from voice_agent.diagnostics import Problem
from voice_agent.dialogue.tool_loading import load_tools

_PROGRAM = """
import asyncio
from voice_agent.dialogue.cancellation import CancelToken, WorkExited, race

async def work():
    raise {fault}

async def main():
    try:
        await race(work(), CancelToken(), name="tool")
    except WorkExited as error:
        print(error)
    await asyncio.sleep(0.01)
    print("alive")

asyncio.run(main())
"""


_BESIDE = """
import asyncio
from voice_agent.dialogue.background import Background

async def work():
    raise SystemExit(3)

async def main():
    Background(1).start(work(), "hook")
    await asyncio.sleep(0.01)
    print("alive")

asyncio.run(main())
"""


def test_an_observing_hook_that_exits_fails_and_the_loop_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", _BESIDE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize("fault", ["SystemExit(3)", "KeyboardInterrupt()"])
def test_a_tool_that_exits_fails_and_the_loop_goes_on(fault: str) -> None:
    program = _PROGRAM.format(fault=fault)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [f"tool tried to end the process ({fault.split('(')[0]})", "alive"], done.stderr


def test_a_tool_file_that_exits_at_import_is_a_problem_of_that_file(tmp_path: Path) -> None:
    path = tmp_path / "tools.py"
    path.write_text("import sys\n\nsys.exit(3)\n")
    problems: list[Problem] = []
    assert not load_tools(path, problems)
    assert [(problem.id, problem.line) for problem in problems] == [("tool.import", 3)]
