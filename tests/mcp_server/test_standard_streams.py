"""A client that sends and never reads is not read either, and does not keep the process from ending."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from voice_agent.mcp_server.standard_streams import InputLines, OutputLines

BIG = "x" * 1_000_000


async def test_a_client_that_does_not_read_is_read_again_once_it_does() -> None:
    read_end, write_end = os.pipe()
    output, reader = OutputLines(write_end), asyncio.StreamReader()
    lines = InputLines(reader, output)
    reader.feed_data(b"one\ntwo\n")
    assert await anext(lines) == "one\n"
    answering = asyncio.ensure_future(output.write(BIG))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(lines), 0.05)
    taken = 0
    while taken < len(BIG):
        taken += len(await asyncio.to_thread(os.read, read_end, 65_536))
    await answering
    assert await asyncio.wait_for(anext(lines), 10) == "two\n"
    os.close(read_end)
    with pytest.raises(BrokenPipeError):
        await output.write("late")
    os.close(write_end)


_PROGRAM = """
import asyncio
from voice_agent.mcp_server.standard_streams import OutputLines

async def main():
    try:
        await asyncio.wait_for(OutputLines(1).write("x" * 1_000_000), 0.05)
    except TimeoutError:
        pass

asyncio.run(main())
"""


def test_output_that_nobody_reads_does_not_keep_the_process_from_ending() -> None:
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run([sys.executable, "-c", _PROGRAM], stdout=write_end, timeout=60, check=False)
    finally:
        os.close(write_end)
        os.close(read_end)
    assert done.returncode == 0
