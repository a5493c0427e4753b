"""A server that is a program of ours: a real one, made with the SDK, that does what servers should not."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.mcp import PROGRAM, connected, connection, fake_options, is_alive, noted, until
from voice_agent.dialogue.tools import ToolFailed
from voice_agent.mcp.connection import Connection
from voice_agent.mcp.servers import McpServers

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpServers]:
    os.environ["FAKE_KEY"], os.environ["OTHER"] = "the key", "not for servers"
    async with connected(tmp_path_factory.mktemp("root"), fake=fake_options(pass_env=("FAKE_KEY",))) as built:
        yield built


@pytest_asyncio.fixture(loop_scope="module")
async def fake(servers: McpServers) -> Connection:
    found = connection(servers)
    await until(lambda: found.is_connected)
    return found


async def pid(fake: Connection) -> int:
    return int((await fake.call("notes", {})).llm_response["pid"])


async def test_its_tools_are_listed_with_their_schemas(fake: Connection) -> None:
    tool = fake.tools["add"]
    assert (tool.description, tool.parameter_names) == ("Add two numbers.", ("a", "b"))
    assert tool.parameters["required"] == ["a"]


async def test_a_call_comes_back_with_data(fake: Connection) -> None:
    assert (await fake.call("add", {"a": 2, "b": 3})).llm_response == {"result": 5}
    assert (await fake.call("balance", {"account": "7"})).llm_response == {"ok": True, "account": "7", "balance": 12.5}


async def test_a_server_can_ask_nothing_of_the_service(fake: Connection) -> None:
    assert (await fake.call("abilities", {})).llm_response in ({"text": "none"}, {"text": "{}"}, {})


async def test_pictures_and_files_are_described(fake: Connection) -> None:
    text = (await fake.call("picture", {})).llm_response["text"]
    assert text.splitlines()[:2] == ["Here it is.", "[image, image/png, 4 kB; not shown]"]
    assert len(text) < 400


async def test_a_tool_that_fails_says_so(fake: Connection) -> None:
    with pytest.raises(ToolFailed, match="fail") as fault:
        await fake.call("fail", {})
    assert not fault.value.unreachable


async def test_a_huge_result_is_cut(fake: Connection) -> None:
    text = (await fake.call("huge", {"characters": 2_000_000})).llm_response["text"]
    assert len(text) < 101_000


async def test_a_server_gets_its_own_key_and_no_other_variable(fake: Connection) -> None:
    found = (await fake.call("notes", {})).llm_response
    assert (found["key"], found["home"]) == ("the key", "")


async def test_lines_that_are_no_messages_do_no_harm_and_stay_out_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = f"echo 'Hello, I am not JSON.'; echo '{{\"neither\": 1}}'; exec {sys.executable} {PROGRAM}"
    with caplog.at_level(logging.DEBUG):
        async with connected(tmp_path, fake=fake_options(command="sh", args=("-c", script))) as servers:
            assert (await connection(servers).call("add", {"a": 1})).llm_response == {"result": 2}
    assert "no message" in caplog.text
    assert "I am not JSON" not in caplog.text


async def test_a_list_that_changed_is_asked_for_anew(fake: Connection) -> None:
    await fake.call("learn", {"name": "roll"})
    await until(lambda: "roll" in fake.tools)
    assert (await fake.call("roll", {})).llm_response == {"text": "this is roll"}


async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(fake: Connection) -> None:
    call = asyncio.ensure_future(fake.call("slow", {"seconds": 60}))
    await noted(fake, "begun")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await noted(fake, "cancelled")


async def test_words_of_a_call_are_not_logged(fake: Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await fake.call("echo", {"text": "secret 4711"})
    assert "4711" not in caplog.text


async def test_killed_in_mid_call_it_fails_the_call_and_comes_back(fake: Connection) -> None:
    first = await pid(fake)
    call = asyncio.ensure_future(fake.call("slow", {"seconds": 60}))
    await noted(fake, "begun")
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ToolFailed, match="may or may not have done it") as fault:
        await call
    assert fault.value.unreachable
    assert not fake.tools
    with pytest.raises(ToolFailed, match="cannot be reached at present"):
        await fake.call("add", {"a": 1})
    await until(lambda: fake.is_connected)
    assert await pid(fake) != first


async def test_a_message_without_end_ends_the_connection(fake: Connection) -> None:
    first = await pid(fake)
    with pytest.raises(ToolFailed):
        await fake.call("huge", {"characters": 9_000_000})
    await until(lambda: fake.is_connected)
    assert await pid(fake) != first


async def test_one_that_hangs_is_found_out_after_a_timeout_and_replaced(tmp_path: Path) -> None:
    async with connected(tmp_path, fake=fake_options(connect_timeout_s=20)) as servers:
        fake = connection(servers)
        first = await pid(fake)
        fake._options = fake_options(connect_timeout_s=1)  # so that the test need not wait as long
        call = asyncio.ensure_future(fake.call("hang", {}))
        await asyncio.sleep(0.3)
        call.cancel()
        fake._check()  # what a timeout of the dialogue leads to
        await until(lambda: not fake.is_connected)
        await until(lambda: not is_alive(first))


async def test_nothing_of_it_is_left_once_it_is_closed(tmp_path: Path) -> None:
    async with connected(tmp_path, fake=fake_options()) as servers:
        process = await pid(connection(servers))
        assert is_alive(process)
    assert not is_alive(process)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "mcp.other"]


async def test_a_program_that_ignores_everything_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    options = fake_options(command=sys.executable, args=(str(script),), connect_timeout_s=3)
    async with connected(tmp_path, fake=options) as servers:
        assert not servers.is_connected("fake")
        assert servers.failure("fake") == "it did not answer in time"
        process = int((tmp_path / "pid").read_text())
    assert not is_alive(process)


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with connected(tmp_path, fake=fake_options(command="no-such-program")) as servers:
        assert "no-such-program" in servers.failure("fake")


async def test_a_program_does_not_outlive_a_service_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    code = (
        "import asyncio, sys; from pathlib import Path; from tests.support.mcp import connected, fake_options\n"
        "async def main():\n"
        f"    async with connected(Path({str(tmp_path)!r}), fake=fake_options(args=({str(script)!r},))): pass\n"
        "asyncio.run(main())\n"
    )
    ours = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=Path(__file__).parents[2])
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    process = int((tmp_path / "pid").read_text())
    assert is_alive(process)
    ours.kill()
    await ours.wait()
    await until(lambda: not is_alive(process), 5)
