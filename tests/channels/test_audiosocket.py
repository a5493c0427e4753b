from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.channels.contract import tone
from tests.support.audiosocket_caller import AudioSocketCaller
from tests.support.lines import Line, RecordedInputs, RecordingDesk, RecordingService, serving, until
from voice_agent.call.wire import Wire
from voice_agent.channels import audiosocket
from voice_agent.channels import audiosocket_messages as messages
from voice_agent.channels.audiosocket import AudioSocketChannel
from voice_agent.channels.audiosocket_messages import AudioSocketSerializer
from voice_agent.channels.desk import CallRequest
from voice_agent.channels.handshakes import MAX_HANDSHAKES
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key
from voice_agent.channels.streaming.serializer import Media
from voice_agent.config import AudioSocketOptions, Channels
from voice_agent.diagnostics import RemediableError
from voice_agent.server.ports import open_ports
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED


@asynccontextmanager
async def channel(desk: RecordingDesk, *, registered_only: bool = False) -> AsyncIterator[int]:
    sock = socket.create_server(("127.0.0.1", 0))
    running = asyncio.create_task(AudioSocketChannel(desk, desk.tokens, registered_only=registered_only).run(sock))
    try:
        yield sock.getsockname()[1]
    finally:
        running.cancel()
        await asyncio.wait({running}, timeout=10)
        assert running.done()


def test_messages_are_read_as_the_protocol_says() -> None:
    wire = AudioSocketSerializer(8000)
    assert wire.read(bytes.fromhex("100004") + b"\x01\x02\x03\x04") == (Media(b"\x01\x02\x03\x04"),)
    assert wire.read(bytes.fromhex("03000135")) == (Key("5"),)
    assert wire.read(bytes.fromhex("000000")) == (CallerHangUp(),)
    assert wire.read(bytes.fromhex("ff000101")) == (CallerHangUp(),)
    assert wire.read(bytes.fromhex("420000")) == ()


def test_messages_are_written_as_the_protocol_says() -> None:
    wire = AudioSocketSerializer(16000)
    assert wire.audio(bytes(640)) == bytes.fromhex("120280") + bytes(640)
    assert list(wire.hang_up("completed")) == [bytes.fromhex("000000")]
    assert list(wire.clear()) == []


@pytest.mark.parametrize("bad", ["10000301ff02", "03000141ff", "0300023132", "1200020000", "0100020102"])
def test_what_cannot_be_is_refused_and_the_call_goes_on(bad: str) -> None:
    with pytest.raises(BadMessage):
        AudioSocketSerializer(8000).read(bytes.fromhex(bad))


@given(kind=st.integers(0, 255), payload=st.binary(max_size=400))
def test_no_message_is_more_than_refused(kind: int, payload: bytes) -> None:
    wire = AudioSocketSerializer(8000)
    with suppress(BadMessage):
        wire.read(messages.frame(kind, payload))


async def test_agent_audio_comes_in_pieces_of_20_ms_and_none_is_sent_ahead() -> None:
    desk = RecordingDesk()
    async with channel(desk) as port:
        caller = await AudioSocketCaller.dial(port)
        line = await desk.next_line()
        for _ in range(10):
            line.wire.send_audio(tone(0.02))
        await line.wire.drain(2)
        await until(lambda: len(caller.received) >= 10)
        assert {len(payload) for kind, payload in caller.received} == {320}
        await caller.close()


async def test_a_call_may_begin_without_audio() -> None:
    desk = RecordingDesk()
    async with channel(desk) as port:
        caller = await AudioSocketCaller.dial(port, silence=False)
        line = await desk.next_line()
        await caller.speak(tone(0.2))
        await until(lambda: len(line.inputs.heard) >= len(tone(0.15)))
        await caller.close()


async def test_the_identity_names_the_conversation() -> None:
    desk, identity = RecordingDesk(), uuid.uuid4()
    async with channel(desk) as port:
        caller = await AudioSocketCaller.dial(port, identity)
        assert (await desk.next_line()).request.conversation_id == identity.hex
        await caller.close()


async def test_an_announced_call_brings_what_is_known_of_its_caller() -> None:
    desk = RecordingDesk()
    _, grant = desk.tokens.issue("the-conversation", {"plan": "gold"}, 60)
    async with channel(desk, registered_only=True) as port:
        caller = await AudioSocketCaller.dial(port, grant.identity)
        request = (await desk.next_line()).request
        assert request.grant is grant
        assert request.conversation_id == "the-conversation"
        await caller.close()


@pytest.mark.parametrize(
    "said", [b"\x10\x00\x02\x00\x00", b"\x01\x00\x02ab", b"\x01\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x01"]
)
async def test_who_does_not_begin_with_an_identity_is_hung_up_on(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audiosocket, "HANDSHAKE_S", 0.2)
    desk = RecordingDesk()
    async with channel(desk) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        async with asyncio.timeout(3):
            assert (await reader.read()) in (messages.frame(messages.HANG_UP), b"")
        writer.close()
        assert desk.lines == []


async def test_a_frame_of_impossible_length_ends_this_call_and_no_other() -> None:
    desk = RecordingDesk()
    async with channel(desk) as port:
        bad, good = await AudioSocketCaller.dial(port), await AudioSocketCaller.dial(port)
        lines = [await desk.next_line(), await desk.next_line()]
        bad.writer.write(b"\x10\xff\xff" + bytes(100))
        await until(lambda: any(line.ended.done() for line in lines))
        other = next(line for line in lines if not line.ended.done())
        await good.speak(tone(0.1))
        await until(lambda: other.inputs.heard)
        await bad.close()
        await good.close()


async def test_the_service_opens_the_port_and_closes_it() -> None:
    options = Channels(audiosocket=AudioSocketOptions(enabled=True, port=0))
    service = RecordingService()
    ports = open_ports(options, service.calls, service.tokens)
    assert [port.name for port in ports] == ["AudioSocket"]
    task = asyncio.create_task(ports[0].run())
    caller = await AudioSocketCaller.dial(ports[0].number)
    await service.calls.next_line()
    task.cancel()
    await asyncio.wait({task}, timeout=10)
    assert task.done()
    await until(lambda: caller.over)
    await caller.close()


async def test_the_port_closes_while_calls_are_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def until_all_have_gone(server: asyncio.base_events.Server) -> None:
        """What Python 3.12 made of it."""
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(asyncio.base_events.Server, "wait_closed", until_all_have_gone)
    desk = RecordingDesk()
    async with channel(desk) as port:
        caller = await AudioSocketCaller.dial(port)
        await desk.next_line()
    await until(lambda: caller.over)
    await caller.close()


async def test_beyond_loopback_only_announced_calls_are_taken() -> None:
    service = RecordingService()
    loose = Channels(audiosocket=AudioSocketOptions(enabled=True, host="0.0.0.0", port=0, registered_only=False))
    with pytest.raises(RemediableError, match="from anyone"):
        open_ports(loose, service.calls, service.tokens)
    wide = Channels(audiosocket=AudioSocketOptions(enabled=True, host="0.0.0.0", port=0))
    ports = open_ports(wide, service.calls, service.tokens)
    task = asyncio.create_task(ports[0].run())
    stranger = await AudioSocketCaller.dial(ports[0].number)
    await until(lambda: stranger.over)
    assert service.calls.lines == []
    task.cancel()
    await asyncio.wait({task}, timeout=2)
    await stranger.close()


async def test_a_service_that_is_full_hangs_up() -> None:
    from voice_agent.channels.desk import CallRefused

    desk = RecordingDesk()
    desk.refuse = CallRefused("at_capacity", "All lines are busy.")
    async with channel(desk) as port:
        caller = await AudioSocketCaller.dial(port)
        await until(lambda: caller.over)
        assert caller.received[-1] == (messages.HANG_UP, b"")
        await caller.close()


async def test_http_and_the_port_are_served_together() -> None:
    service = RecordingService()
    async with serving(service, channels=Channels(audiosocket=AudioSocketOptions(enabled=True, port=0))):
        assert service.done[:1] in ([], ["started"])


async def test_a_fault_of_the_service_ends_one_call_and_the_port_goes_on() -> None:
    class FaultyDesk(RecordingDesk):
        async def take(self, request: CallRequest, wire: Wire) -> None:
            if not self.lines:
                self.lines.append(Line(request, wire, RecordedInputs()))
                raise RuntimeError("nobody expected this")
            await super().take(request, wire)

    desk = FaultyDesk()
    async with channel(desk) as port:
        first = await AudioSocketCaller.dial(port)
        await until(lambda: first.over)
        second = await AudioSocketCaller.dial(port)
        await desk.next_line()
        assert not second.over
        await second.close()
        await first.close()


async def test_connections_that_say_nothing_make_room_for_one_that_speaks_at_once() -> None:
    desk = RecordingDesk()
    turned_away = CONNECTIONS_REFUSED.labels(channel="audiosocket", code="too_many_connections")
    before = turned_away._value.get()
    async with channel(desk) as port, AsyncExitStack() as stack:
        for _ in range(MAX_HANDSHAKES):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
        caller = await AudioSocketCaller.dial(port)
        await desk.next_line()
        assert not caller.over
        assert turned_away._value.get() == before + 1
        await caller.close()
