"""Whatever a carrier sends, no more than a complaint comes of it, and no other call notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from tests.channels.carriers.golden_messages import golden
from tests.channels.carriers.test_golden import values
from tests.channels.contract import tone
from tests.support.carrier_calls import CarrierCall
from tests.support.carrier_kinds import CARRIERS, SERIALIZERS
from tests.support.lines import RecordingService, until
from voice_agent.channels.messages import BadMessage

EACH = pytest.mark.parametrize("carried", CARRIERS)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["-1", "1e9"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8
)


def messages_of(carried: type[CarrierCall]) -> list[Any]:
    return [line.send for line in golden(carried.channel, **values(carried)) if line.send is not None]


def spoilt(message: Any, chosen: random.Random, with_what: Any) -> Any:
    """A message with one of its fields, however deep, replaced or left out."""
    if not isinstance(message, dict) or not message:
        return with_what
    key = chosen.choice(sorted(message))
    copy = dict(message)
    if isinstance(copy[key], dict) and copy[key] and chosen.random() < 0.7:
        copy[key] = spoilt(copy[key], chosen, with_what)
    elif chosen.random() < 0.3:
        del copy[key]
    else:
        copy[key] = with_what
    return copy


@EACH
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_message_breaks_a_serializer(carried: type[CarrierCall], data: st.DataObject) -> None:
    serializer, known = SERIALIZERS[carried.channel](), messages_of(carried)
    for _ in range(data.draw(st.integers(1, 6))):
        message = data.draw(st.sampled_from(known))
        kind = data.draw(st.integers(0, 4))
        if kind == 0:
            sent: str | bytes = data.draw(st.text(max_size=60) | st.binary(max_size=60))
        elif isinstance(message, bytes):
            sent = message
        elif kind == 1:
            sent = json.dumps(data.draw(JSON))
        else:
            sent = json.dumps(spoilt(message, data.draw(st.randoms(use_true_random=False)), data.draw(JSON)))
        with contextlib.suppress(BadMessage):
            serializer.read(sent)
    assert serializer.audio(bytes(serializer.rate // 25))


@pytest.mark.asyncio(loop_scope="module")
@EACH
async def test_a_call_that_sends_rubbish_disturbs_no_other(
    carried: type[CarrierCall], served: tuple[str, RecordingService], caplog: pytest.LogCaptureFixture
) -> None:
    address, service = served
    good = await carried.ring(address)
    near = await service.calls.next_line()
    chosen, known = random.Random(7), messages_of(carried)
    for _ in range(5):
        _, token = await carried.announce(address)
        socket = await carried.open_socket(address, token)
        with contextlib.suppress(ConnectionClosed):
            for _ in range(60):
                message = spoilt(chosen.choice(known), chosen, chosen.choice([None, "", "x" * 300, -1, [], {}, 1e308]))
                await socket.send(message if isinstance(message, bytes) else json.dumps(message))
            await socket.send("\x00" * 5000)
        await socket.close()
    await good.speak(tone(0.4))
    await good.press("7")
    await until(lambda: near.inputs.keys == ["7"] and len(near.inputs.heard) > 11000)
    near.wire.send_audio(b"\x10\x10" * 320)
    assert await near.wire.drain(2)
    assert [r for r in caplog.records if r.levelname in ("ERROR", "CRITICAL")] == []
    await good.close()

    def left() -> list[str]:
        return [t.get_name() for t in asyncio.all_tasks() if t.get_name().startswith(f"{carried.channel}.")]

    await until(lambda: not left())
