import json
import os

import pytest

from voice_agent.audio.wav import WavWriter
from voice_agent.caller.recording import Recording
from voice_agent.diagnostics import RemediableError

FRAME = b"\1\0" * 320


def test_files_of_an_earlier_call_do_not_survive_beside_the_new_one(tmp_path):
    for name in ("timeline.png", "call.json"):
        (tmp_path / name).write_text("old")
    Recording(tmp_path, 16000).close()
    assert [path.name for path in tmp_path.iterdir()] == ["call.wav"]


def test_a_directory_that_cannot_be_made_is_refused_before_the_call(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RemediableError, match="Cannot record into"):
        Recording(tmp_path / "file" / "below", 16000)


def test_a_full_disk_ends_the_recording_and_not_the_call(tmp_path, monkeypatch):
    recording = Recording(tmp_path, 16000)
    recording.add(FRAME, FRAME)

    def full(self, pcm):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(WavWriter, "write", full)
    recording.add(FRAME, FRAME)
    recording.add(FRAME, FRAME)
    recording.close()
    assert "cut short" in recording.problem and os.strerror(28) in recording.problem


def test_the_account_is_written_as_json_and_keeps_every_letter(tmp_path):
    recording = Recording(tmp_path, 16000)
    recording.write_account({"missing": ["“ä”"]})
    assert json.loads(recording.account.read_text(encoding="utf-8")) == {"missing": ["“ä”"]}
    recording.close()
    recording.close()
