"""Event streams lose their unreadable events and nothing else."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.sse_guard import MAX_EVENT_BYTES, EventFilter

GOOD = [b'data: {"a": 1}\n\n', b": keep-alive\n\n", b'event: x\r\ndata: {"b":\r\ndata: 2}\r\n\r\n', b"data: [DONE]\n\n"]
BAD = [b"data: {not json\n\n", b"data: slot update\n\n", b"event: y\ndata: {\n\n"]


@given(st.lists(st.sampled_from(GOOD + BAD), max_size=8), st.lists(st.integers(1, 40), max_size=8))
def test_however_the_bytes_are_cut_the_good_events_come_out_untouched(events: list[bytes], cuts: list[int]) -> None:
    stream, filtered, out = b"".join(events), EventFilter(), b""
    for cut in cuts:
        out += filtered.feed(stream[:cut])
        stream = stream[cut:]
    out += filtered.feed(stream) + filtered.end()
    assert out == b"".join(event for event in events if event in GOOD)
    assert filtered.dropped == sum(event in BAD for event in events)


def test_an_event_passes_as_soon_as_it_is_complete() -> None:
    events = EventFilter()
    assert events.feed(b'data: {"a": 1}\n') == b""
    assert events.feed(b"\nda") == b'data: {"a": 1}\n\n'


def test_a_last_event_without_its_blank_line_counts() -> None:
    events = EventFilter()
    assert events.feed(b'data: {"a": 1}') == b""
    assert events.end() == b'data: {"a": 1}'


def test_an_endless_event_is_refused() -> None:
    with pytest.raises(httpx.DecodingError, match="more than"):
        EventFilter().feed(b"x" * (MAX_EVENT_BYTES + 1))
