"""Whatever comes by an exchange's wire, nothing worse than a refusal comes of it."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.channels.contract import tone
from tests.channels.pbx.test_messages import asterisk, genesys, genesys_text, jambonz
from tests.channels.pbx.test_pbx_contract import ALL
from tests.support.exchanges import Asterisk, Exchange, FreeSwitch, Genesys, Jambonz
from tests.support.lines import RecordingService, serving, until
from voice_agent.channels.messages import BadMessage
from voice_agent.channels.pbx.asterisk import AsteriskSerializer
from voice_agent.channels.pbx.freeswitch import FreeSwitchSerializer
from voice_agent.channels.pbx.genesys import GenesysSerializer
from voice_agent.channels.pbx.jambonz import JambonzSerializer
from voice_agent.channels.streaming.serializer import Media, Serializer

MAKERS: list[Callable[[], Serializer]] = [
    AsteriskSerializer,
    asterisk,
    FreeSwitchSerializer,
    JambonzSerializer,
    jambonz,
    GenesysSerializer,
    genesys,
]
WORDS = [
    *("event", "type", "command", "version", "seq", "serverseq", "id", "parameters", "data", "name", "digit", "dtmf"),
    *("format", "optimal_frame_size", "ptime", "channel_variables", "sampleRate", "mixType", "callSid", "media"),
    *("MEDIA_START", "DTMF_END", "MEDIA_MARK_PROCESSED", "QUEUE_DRAINED", "mark", "open", "ping", "close", "paused"),
    *("correlation_id", "ulaw", "slin16", "2", "s1", "external", "channels", "PCMU", "rate", "participant", "playout"),
]
names = st.sampled_from(WORDS) | st.text(max_size=8)
leaves = names | st.integers(-(10**12), 10**12) | st.floats() | st.booleans() | st.none() | st.just("\ud800")
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6))
texts = st.dictionaries(names, values, max_size=8).map(json.dumps) | st.text(max_size=200)
lines = st.lists(st.tuples(names, names).map(":".join) | names, max_size=8).map(" ".join)
messages = texts | lines | st.binary(max_size=400)


@settings(max_examples=150, deadline=None)
@given(maker=st.sampled_from(MAKERS), said=st.lists(messages, max_size=8))
def test_no_message_is_more_than_refused_and_audio_stays_whole_samples(
    maker: Callable[[], Serializer], said: list[str | bytes]
) -> None:
    serializer = maker()
    for message in said:
        try:
            items = serializer.read(message)
        except BadMessage:
            continue
        assert all(len(item.pcm) % 2 == 0 and item.pcm for item in items if isinstance(item, Media))
    assert serializer.rate in (8000, 12000, 16000, 24000, 32000, 44100, 48000)


@settings(max_examples=60, deadline=None)
@given(parameters=st.dictionaries(names, values, max_size=6), kind=names)
def test_genesys_messages_with_a_right_head_and_anything_within(parameters: dict[str, Any], kind: str) -> None:
    serializer = genesys()
    head = json.loads(genesys_text(kind, 2)) | {"parameters": parameters}
    try:
        serializer.read(json.dumps(head))
    except BadMessage as fault:
        assert fault.code == "bad_key"


def garbage() -> Iterator[str | bytes]:
    """A flood of what no exchange sends: broken texts, texts of wrong forms, halves of samples, long and empty ones."""
    yield from ("{", "[]", '{"event": 5}', '{"event": "DTMF_END", "digit": "££"}', "MEDIA_START", "\x00" * 50, "")
    yield from (b"", b"\x01", bytes(3), bytes(40_001), '{"type": "dtmf", "digit": {}}', '{"seq": 1e999}')
    yield json.dumps({"type": "mark", "data": {"name": ["x"], "event": "playout"}})
    yield '{"a":' * 5000
    yield '{"channel_variables": ' + json.dumps({str(n): "x" * 10 for n in range(2000)}) + "}"


@pytest.mark.parametrize("kind", [Asterisk, FreeSwitch, Jambonz, Genesys])
async def test_a_caller_who_sends_garbage_disturbs_no_other_and_leaves_nothing(kind: type[Exchange]) -> None:
    service = RecordingService(channels=ALL)
    async with serving(service, channels=ALL) as address:
        before = len(asyncio.all_tasks())
        good = await Jambonz.dial(address)
        line = await service.calls.next_line()
        bad = await kind.dial(address)
        other = await service.calls.next_line()
        for _ in range(3):
            for message in garbage():
                await bad.send(message)
        await good.speak(tone(0.2))
        await until(lambda: len(line.inputs.heard) >= len(tone(0.15)))
        await bad.vanish()
        await until(other.ended.done)
        assert not line.ended.done()
        await good.close()
        await until(line.ended.done)
        await until(lambda: len(asyncio.all_tasks()) <= before + 1)


@pytest.mark.parametrize("path", [Asterisk.path, FreeSwitch.path, Jambonz.path, Genesys.path])
async def test_whoever_never_says_which_call_it_is_is_turned_away(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from websockets.asyncio.client import connect

    from voice_agent.channels.streaming import channel

    monkeypatch.setattr(channel, "HANDSHAKE_S", 0.1)
    service = RecordingService(channels=ALL)
    async with serving(service, channels=ALL) as address:
        async with connect(f"ws://{address}{path}?conversation={uuid.uuid4().hex}", proxy=None) as socket:
            async with asyncio.timeout(3):
                await socket.wait_closed()
            assert socket.close_code == 1008
        assert service.calls.lines == []
