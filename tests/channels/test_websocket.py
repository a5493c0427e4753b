"""The WebSocket channel on a real socket: what callers send that they should not, and what is then said to them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.channels.contract import ended, speak, tone
from tests.support.lines import Line, RecordingService, serving, until
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.call.wire import EventMessage, MetricsMessage
from voice_agent.channels.desk import CallRefused
from voice_agent.channels.streaming import writer as stream_writer
from voice_agent.channels.websocket import BadParameter, read_parameters


@pytest.fixture
def service() -> RecordingService:
    return RecordingService()


@pytest.fixture
async def address(service: RecordingService) -> AsyncIterator[str]:
    async with serving(service) as address:
        yield address


async def ring(service: RecordingService, address: str, query: str = "") -> tuple[Line, WebSocketCaller]:
    caller = await WebSocketCaller.dial(address, query)
    return await service.calls.next_line(), caller


async def test_ready_names_the_conversation_and_the_rate(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address, "?conversation=abc-1&rate=16000")
    await until(lambda: caller.messages)
    assert caller.messages[0] == {"type": "ready", "conversation": "abc-1", "rate": 16000}
    assert (line.request.conversation_id, line.request.channel) == ("abc-1", "websocket")
    await caller.close()


def test_parameters_have_defaults() -> None:
    one, other = read_parameters(b""), read_parameters(b"events=0&unknown=7")
    assert (one.rate, one.events, one.metrics, one.states) == (16000, False, False, False)
    assert read_parameters(b"states=1").states
    assert one.conversation_id != other.conversation_id


@pytest.mark.parametrize("query", [b"rate=44100", b"rate=", b"rate=16000.0", b"rate=%31", b"rate=\xff"])
def test_a_wrong_rate_names_the_right_ones(query: bytes) -> None:
    with pytest.raises(BadParameter, match="8000, 16000, 24000, 48000"):
        read_parameters(query)


@pytest.mark.parametrize("query", ["?rate=44100", "?conversation=../../etc/passwd", f"?conversation={'x' * 129}"])
async def test_a_wrong_parameter_is_said_once_and_the_socket_closed(
    service: RecordingService, address: str, query: str
) -> None:
    caller = await WebSocketCaller.dial(address, query)
    await until(lambda: caller.over)
    assert [m["type"] for m in caller.messages] == ["error"]
    assert caller.closed_with == 1008
    assert service.calls.lines == []


async def test_a_refused_call_hears_why_and_may_try_later(service: RecordingService, address: str) -> None:
    service.calls.refuse = CallRefused("full", "All lines are busy.")
    caller = await WebSocketCaller.dial(address)
    await until(lambda: caller.over)
    assert caller.messages == [{"type": "error", "code": "full", "message": "All lines are busy."}]
    assert caller.closed_with == 1013


async def test_audio_cut_at_odd_bytes_is_heard_sample_by_sample(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address)
    said = tone(0.3)
    for at in range(0, len(said), 333):
        await caller.socket.send(said[at : at + 333])
    await until(lambda: len(line.inputs.heard) == len(said))
    assert bytes(line.inputs.heard) == said
    await caller.close()


async def test_empty_and_unusable_messages_cost_one_error_each_and_the_call_goes_on(
    service: RecordingService, address: str
) -> None:
    line, caller = await ring(service, address)
    for message in (b"", "", "no json", '{"type":"sing"}'):
        await caller.socket.send(message)
    await until(lambda: len(caller.of("error")) == 4)
    await caller.say(type="text", text="still here")
    await until(lambda: line.inputs.texts)
    assert line.inputs.texts == ["still here"]
    await caller.close()


async def test_a_flood_of_nonsense_provokes_few_errors_and_ends_the_call(
    service: RecordingService, address: str
) -> None:
    line, caller = await ring(service, address)
    with contextlib.suppress(ConnectionClosed):
        for _ in range(900):
            await caller.socket.send("x")
    assert await ended(line) == "disconnected"
    await until(lambda: caller.over)
    assert len(caller.of("error")) < 10


async def test_a_flood_of_tiny_messages_is_read_at_a_bounded_rate(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(1000):
        await caller.socket.send(b"ab")
    await until(lambda: len(line.inputs.heard) == 2000)
    assert loop.time() - began >= 1.9
    await caller.close()


@pytest.mark.parametrize("huge", [bytes(64 * 1024 + 1), "x" * (64 * 1024 + 1)])
async def test_a_huge_message_closes_the_socket_as_too_big_and_no_other_call_notices(
    service: RecordingService, address: str, huge: bytes | str
) -> None:
    other, bystander = await ring(service, address)
    line, caller = await ring(service, address)
    await caller.socket.send(huge)
    assert await ended(line) == "disconnected"
    await until(lambda: caller.over)
    assert caller.closed_with == 1009
    await bystander.speak(tone(0.1))
    await until(lambda: len(other.inputs.heard) == len(tone(0.1)))
    await bystander.close()


async def test_text_that_is_no_utf8_ends_that_call_without_an_error_log(
    service: RecordingService, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    line, caller = await ring(service, address)
    await caller.socket.send(b"\xff\xfe", text=True)
    assert await ended(line) == "disconnected"
    await caller.close()


async def test_audio_faster_than_real_time_loses_its_oldest_part_with_one_error(
    service: RecordingService, address: str
) -> None:
    line, caller = await ring(service, address)
    for _ in range(20):
        await caller.socket.send(bytes(32000))  # 20 s
    await until(lambda: caller.of("error"))
    assert [m["code"] for m in caller.of("error")] == ["audio_too_fast"]
    assert len(line.inputs.heard) <= 4 * 32000
    await caller.say(type="text", text="hello")
    await until(lambda: line.inputs.texts)
    await caller.close()


async def test_a_stalled_backlog_is_heard_without_waiting_for_more(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address)
    await caller.socket.send(bytes(60000))
    await caller.socket.send(bytes(24000))  # 0.625 s more than is let through at once
    await until(lambda: len(line.inputs.heard) == 84000)
    await caller.close()


async def test_events_and_metrics_come_only_when_asked_for(service: RecordingService, address: str) -> None:
    plain_line, plain = await ring(service, address)
    asked_line, asked = await ring(service, address, "?events=1&metrics=1")
    for line in (plain_line, asked_line):
        line.wire.send(EventMessage({"user": {"text": "hi"}}))
        line.wire.send(MetricsMessage("t1", {"first_audio": 0.4}))
    await until(lambda: len(asked.messages) == 3)
    assert asked.messages[1] == {"type": "event", "event": {"user": {"text": "hi"}}}
    assert asked.messages[2] == {"type": "metrics", "turn_id": "t1", "timeline": {"first_audio": 0.4}}
    assert (plain_line.request.events, asked_line.request.events) == (False, True)
    assert not asked_line.wire.traits.follows_state
    following_line, following = await ring(service, address, "?states=1")
    assert following_line.wire.traits.follows_state
    await following.close()
    await asyncio.gather(plain.close(), asked.close())
    assert [m["type"] for m in plain.messages] == ["ready"]


async def test_a_client_that_does_not_read_costs_bounded_memory_and_hears_the_newest_audio(
    service: RecordingService, address: str
) -> None:
    caller = await WebSocketCaller.dial(address, max_queue=1)
    line = await service.calls.next_line()
    caller._reader.cancel()
    caller.socket.transport.pause_reading()
    for _ in range(400):  # 80 s of speech, far more than socket buffers and outbox hold
        speak(line, tone(0.2))
        await asyncio.sleep(0)
    assert line.wire._outbox.frames <= 100  # type: ignore[attr-defined]
    await line.wire.hang_up("completed")
    assert await ended(line) == "closed"
    caller.socket.transport.abort()


async def test_a_client_that_takes_nothing_for_too_long_is_gone(
    service: RecordingService, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_writer, "STUCK_S", 0.2)
    caller = await WebSocketCaller.dial(address, max_queue=1)
    line = await service.calls.next_line()
    caller._reader.cancel()
    caller.socket.transport.pause_reading()
    while not line.ended.done():
        speak(line, tone(0.2))
        await asyncio.sleep(0.001)
    assert line.ended.result() == "disconnected"
    caller.socket.transport.abort()


async def test_a_hang_up_names_its_reason_before_the_close(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address)
    await line.wire.hang_up("completed")
    await until(lambda: caller.over)
    assert caller.messages[-1] == {"type": "hangup", "reason": "completed"}
    assert caller.closed_with == 1000


async def test_clear_overtakes_queued_audio(service: RecordingService, address: str) -> None:
    line, caller = await ring(service, address)
    speak(line, tone(1.0))
    line.wire.clear()
    await until(lambda: caller.clears)
    assert not any(isinstance(m, bytes) for m in caller.received)
    await caller.close()


async def test_another_path_is_not_found(service: RecordingService, address: str) -> None:
    with pytest.raises(InvalidStatus) as caught:
        await connect(f"ws://{address}/other")
    assert caught.value.response.status_code == 404


async def test_a_caller_who_leaves_before_the_answer_leaves_nothing(service: RecordingService, address: str) -> None:
    host, port = address.split(":")
    for cut in (10, 60, 150):
        request = (
            f"GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(request[:cut].encode() if cut < 150 else request.encode())
        writer.transport.abort()
    caller = await WebSocketCaller.dial(address, "?conversation=the-one-who-stays")
    await caller.speak(tone(0.1))
    await until(lambda: any(line.inputs.heard for line in service.calls.lines))
    await caller.close()
    await until(lambda: all(line.ended.done() for line in service.calls.lines))
