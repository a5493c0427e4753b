from __future__ import annotations

import asyncio
import io
import json
import logging

import pytest

from voice_agent.telemetry.logging import SHOW_PII_ENV, bind, bound, configure


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


log = logging.getLogger("voice_agent.call")


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_carry_ids_and_extras(stream: io.StringIO) -> None:
    configure("info", as_json=True, stream=stream)
    with bind(call="c1", conversation="k1"), bind(turn="t1"):
        log.info("endpoint after %d ms", 300, extra={"words": 4})
    log.info("outside")
    first, second = lines(stream)
    assert first["message"] == "endpoint after 300 ms"
    assert (first["call"], first["conversation"], first["turn"], first["words"]) == ("c1", "k1", "t1", 4)
    assert (first["level"], first["logger"]) == ("info", "voice_agent.call")
    assert "call" not in second


def test_personal_data_is_dropped_unless_asked_for(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    configure("info", as_json=True, stream=stream)
    log.info("heard", extra={"pii": {"transcript": "my number is 427913"}})
    monkeypatch.setenv(SHOW_PII_ENV, "1")
    configure("info", as_json=True, stream=stream)
    log.info("heard", extra={"pii": {"transcript": "my number is 427913"}})
    first, second = lines(stream)
    assert "427913" not in json.dumps(first)
    assert second["pii"] == {"transcript": "my number is 427913"}


def test_configuring_again_does_not_double_the_lines(stream: io.StringIO) -> None:
    configure("info", as_json=True, stream=stream)
    configure("info", as_json=True, stream=stream)
    log.info("once")
    assert len(lines(stream)) == 1


def test_libraries_are_heard_from_warning_up_and_query_strings_never(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("debug", as_json=True, stream=stream)
    server = logging.getLogger("uvicorn.error")
    # litellm, once imported by another test, puts a filter of its own here: ours must do without.
    monkeypatch.setattr(server, "filters", [])
    server.info('%s - "WebSocket %s" [accepted]', "127.0.0.1:5", "/ws?token=secret")
    server.warning('%s - "WebSocket %s" [accepted]', "127.0.0.1:5", "/ws?token=secret")
    [line] = lines(stream)
    assert line["message"] == '127.0.0.1:5 - "WebSocket /ws" [accepted]'


def test_a_clients_bad_utf8_is_a_warning_without_a_traceback(stream: io.StringIO) -> None:
    configure("info", as_json=True, stream=stream)
    try:
        b"\xff".decode()
    except UnicodeDecodeError:
        logging.getLogger("uvicorn.error").exception("Invalid UTF-8 sequence received from client.")
    [line] = lines(stream)
    assert line["level"] == "warning"
    assert "exception" not in line


def test_people_get_one_readable_line_without_colours_in_a_file(stream: io.StringIO) -> None:
    configure("info", stream=stream)
    with bind(call="c1"):
        log.warning("late")
    text = stream.getvalue()
    assert "WARNING call: late  call=c1\n" in text
    assert "\x1b" not in text


async def test_tasks_inherit_the_ids_of_their_call() -> None:
    async def inside() -> str:
        return bound()["call"]

    async def call(name: str) -> str:
        with bind(call=name):
            async with asyncio.TaskGroup() as group:
                return await group.create_task(inside())

    assert await asyncio.gather(call("a"), call("b")) == ["a", "b"]
    assert "call" not in bound()
