"""The cache is bounded at both levels, survives restarts, and never fails a call."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.voice import fake_speech
from voice_agent.config import CacheOptions
from voice_agent.speech.cache import ResponseCache, decode, encode
from voice_agent.speech.protocols import Speech, TextSpan


def cache_in(directory: Path, *, memory_mb: int = 8, disk_mb: int = 8) -> ResponseCache:
    return ResponseCache(CacheOptions(memory_mb=memory_mb, disk_mb=disk_mb, directory=directory))


def speech_of(megabytes: float, text: str = "x") -> Speech:
    return Speech(text, bytes(round(megabytes * (1 << 19)) * 2), ())


def stems(directory: Path) -> list[str]:
    return sorted(path.stem for path in directory.iterdir())


def bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


KEY = ResponseCache.key("Hello.", "voice/1", "en")


@given(st.text(), st.binary(max_size=100), st.lists(st.tuples(*[st.integers(0, 1 << 40)] * 4)))
def test_what_is_written_is_read_back_exactly(text: str, pcm: bytes, spans: list[tuple[int, int, int, int]]) -> None:
    speech = Speech(text, pcm, tuple(TextSpan(*span) for span in spans))
    assert decode(encode(speech)) == speech


@given(st.integers(0, 500), st.integers(1, 255))
def test_a_changed_byte_is_noticed(at: int, change: int) -> None:
    content = bytearray(encode(fake_speech("Hi.", seconds_per_character=0.002)))
    content[at % len(content)] ^= change
    with pytest.raises(ValueError, match=r"checksum|no speech file"):
        decode(bytes(content))


def test_keys_differ_by_text_voice_and_language() -> None:
    keys = [
        *(
            ResponseCache.key("a", "v/1", "en"),
            ResponseCache.key("a", "v/2", "en"),
            ResponseCache.key("a", "v/1", "de"),
        ),
        *(ResponseCache.key("b", "v/1", "en"), ResponseCache.key("av", "/1", "en")),
    ]
    assert len(set(keys)) == 5


async def test_speech_survives_a_restart(tmp_path: Path) -> None:
    speech = fake_speech("Hello there.")
    await cache_in(tmp_path).store(KEY, speech)
    restarted = cache_in(tmp_path)
    assert restarted.get(KEY) is None
    assert await restarted.load(KEY) == speech
    assert restarted.get(KEY) == speech


async def test_memory_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, memory_mb=3, disk_mb=0)
    for key in ("a", "b"):
        await cache.store(key, speech_of(1))
    cache.get("a")
    await cache.store("c", speech_of(1.5))
    assert [key for key in "abc" if cache.get(key)] == ["a", "c"]
    assert cache.memory_bytes <= 3 << 20


async def test_storing_again_does_not_count_twice(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, memory_mb=3, disk_mb=0)
    for _ in range(5):
        await cache.store("a", speech_of(1))
    assert cache.memory_bytes < 1.1 * (1 << 20)


async def test_speech_larger_than_the_memory_is_not_kept_there(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, memory_mb=1)
    await cache.store("small", speech_of(0.5))
    await cache.store("large", speech_of(2))
    assert cache.get("large") is None
    assert cache.get("small") is not None
    assert await cache.load("large") is not None


async def test_the_disk_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, disk_mb=3)
    for age, key in enumerate(("a", "b")):
        await cache.store(key, speech_of(1))
        os.utime(tmp_path / f"{key}.speech", (1000 + age, 1000 + age))
    # Reading makes "a" the younger.
    await cache_in(tmp_path, disk_mb=3).load("a")
    await cache.store("c", speech_of(1.5))
    assert stems(tmp_path) == ["a", "c"]
    assert bytes_in(tmp_path) <= 3 << 20


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
async def test_a_damaged_entry_is_discarded_with_a_warning(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    cache = cache_in(tmp_path)
    await cache.store(KEY, fake_speech("Hello."))
    path = tmp_path / f"{KEY}.speech"
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    assert await cache_in(tmp_path).load(KEY) is None
    assert not path.exists()
    assert "damaged" in caplog.text


async def test_a_directory_that_cannot_be_written_costs_one_warning_and_memory_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = cache_in(tmp_path / "file" / "below")
    for key in ("a", "b", "c"):
        await cache.store(key, speech_of(0.1))
    assert all(cache.get(key) for key in "abc")
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


async def test_a_full_disk_leaves_no_half_written_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    cache = cache_in(tmp_path)
    monkeypatch.setattr(Path, "replace", full)
    await cache.store("a", speech_of(0.1))
    assert cache.get("a") is not None
    assert stems(tmp_path) == []
    assert "No space left" in caplog.text


async def test_failed_speech_is_never_kept(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    await cache.store("a", Speech("x", bytes(100), (), failed=True))
    assert await cache.load("a") is None


async def test_without_a_disk_nothing_is_written(tmp_path: Path) -> None:
    await cache_in(tmp_path, disk_mb=0).store("a", speech_of(0.1))
    assert stems(tmp_path) == []
