"""Recordings are found by conversation and call, kept for their days, and go with their conversation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from voice_agent.call.recordings import DAY_S, Recordings

NOW = 1_800_000_000.0


def _recorded(root: Path, conversation: str, call: str, days_ago: float) -> Path:
    path = Recordings(root).recorder(conversation, call, "wav").path
    path.parent.mkdir(parents=True, exist_ok=True)
    for file in (path, path.with_suffix(".peaks")):
        file.write_bytes(b"\x01\x02")
    for file in (path, path.with_suffix(".peaks"), path.parent):
        os.utime(file, (NOW - days_ago * DAY_S,) * 2)
    return path


def _kept(root: Path, retention_days: float) -> Recordings:
    return Recordings(root, retention_days, clock=lambda: NOW)


async def test_a_recording_is_found_by_its_conversation_and_call(tmp_path: Path) -> None:
    path = _recorded(tmp_path, "user:42@home+1", "c1", 0)
    found = _kept(tmp_path, 30)
    assert found.find("user:42@home+1", "c1") == path
    assert await found.peaks("user:42@home+1", "c1") == b"\x01\x02"
    assert found.find("user:42@home+1", "c2") is None
    assert await found.peaks("user:42@home+1", "c2") == b""


@pytest.mark.parametrize("call", ["../other/c1", "..", "c1/../c1", "", "c1.wav", "*", "c1\x00"])
def test_a_call_id_is_never_a_path(tmp_path: Path, call: str) -> None:
    _recorded(tmp_path, "other", "c1", 0)
    assert _kept(tmp_path, 30).find("mine", call) is None


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ".hidden", "ü"])
def test_a_conversation_id_never_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    path = Recordings(tmp_path / "calls").recorder(name, "c1", "wav").path
    assert path.resolve().parent.parent == (tmp_path / "calls").resolve()


async def test_recordings_go_after_their_days_and_younger_ones_stay(tmp_path: Path) -> None:
    old, young = _recorded(tmp_path, "a", "old", 31), _recorded(tmp_path, "a", "young", 29)
    alone = _recorded(tmp_path, "b", "old", 31)

    async def known(conversation: str) -> bool:
        return True

    assert await _kept(tmp_path, 30).sweep(known) == 4
    assert not old.exists() and young.exists() and young.with_suffix(".peaks").exists()
    assert not alone.parent.exists()
    assert await _kept(tmp_path, 0).sweep(known) == 0


async def test_recordings_go_when_their_conversation_has_gone(tmp_path: Path) -> None:
    gone, kept = _recorded(tmp_path, "gone:1", "c", 2), _recorded(tmp_path, "kept", "c", 2)
    fresh = _recorded(tmp_path, "not yet written", "c", 0.5)
    asked: list[str] = []

    async def known(conversation: str) -> bool:
        asked.append(conversation)
        return conversation == "kept"

    assert await _kept(tmp_path, 0).sweep(known) == 2
    assert sorted(asked) == ["gone:1", "kept"]
    assert not gone.parent.exists() and kept.exists() and fresh.exists()


async def test_nothing_goes_while_the_store_cannot_be_asked(tmp_path: Path) -> None:
    path = _recorded(tmp_path, "a", "c", 40)

    async def broken(conversation: str) -> bool:
        raise OSError("no store")

    with pytest.raises(OSError):
        await _kept(tmp_path, 30).sweep(broken)
    assert path.exists()


async def test_deleting_a_conversation_deletes_its_recordings_alone(tmp_path: Path) -> None:
    mine, other = _recorded(tmp_path, "a", "c", 0), _recorded(tmp_path, "ab", "c", 0)
    await _kept(tmp_path, 30).delete("a")
    await _kept(tmp_path, 30).delete("a")
    assert not mine.parent.exists() and other.exists()


async def test_a_directory_that_is_not_there_is_no_fault(tmp_path: Path) -> None:
    assert await _kept(tmp_path / "none", 1).sweep(None) == 0
