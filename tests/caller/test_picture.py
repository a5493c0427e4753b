import itertools
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from voice_agent.audio.wav import write_wav
from voice_agent.caller.picture import WIDTH_PX, draw_timeline
from voice_agent.caller.picture_layout import (
    MAX_CAPTION_LINES,
    MAX_ROWS,
    ROW_S,
    Side,
    axis_step,
    break_rows,
    lay_out,
    wrap,
)
from voice_agent.diagnostics import RemediableError

TURN = {
    "line": None,
    "barge_in_at": None,
    "speech_start": None,
    "speech_end": None,
    "reply_start": None,
    "reply_end": None,
    "response_s": None,
    "stop_s": None,
    "heard_stop_s": None,
    "silenced": None,
    "said": [],
    "agent_instants": {},
}


def account(repeat: int = 1) -> dict:
    turns = [TURN | {"reply_start": 0.1, "response_s": 0.04, "said": [{"text": "Hello.", "heard": "Hello."}]}]
    for k in range(repeat):
        at = 2 + k * 9.0
        turns.append(
            TURN
            | {
                "line": "What is my balance?",
                "speech_start": at,
                "speech_end": at + 1,
                "reply_start": at + 1.6,
                "response_s": 0.58,
                "said": [{"text": "Your balance is ten dollars and five cents.", "heard": "Your balance is"}],
                "agent_instants": {"speech_end": at + 1, "endpoint": at + 1.3, "first_audio": at + 1.55}
                | {"barge_in_onset": at + 3, "pause": at + 3.1, "decision": at + 3.5},
            }
        )
        turns.append(
            TURN
            | {
                "line": "Stop.",
                "barge_in_at": 1.4,
                "speech_start": at + 3,
                "speech_end": at + 3.5,
                "reply_start": at + 4.1,
                "response_s": 0.6,
                "stop_s": 0.1,
                "heard_stop_s": 0.12,
                "said": [{"text": "All right.", "heard": None}],
            }
        )
    return {"ok": True, "url": "ws://127.0.0.1:8080/ws", "agent_clock_offset_s": 0.02, "turns": turns}


def call_file(path, seconds: float, rate: int = 16000):
    times = np.arange(int(seconds * rate)) / rate
    left = np.where(times % 9 < 3, np.sin(times * 2000) * 8000, 10)
    right = np.where(times % 9 > 4, np.sin(times * 1500) * 8000, 0)
    write_wav(path, np.stack([left, right], axis=1).astype("<i2").tobytes(), rate, channels=2)
    return path


def pixels(path) -> np.ndarray:
    """Read an 8-bit RGBA PNG without a library: an independent witness that it is one."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + size)[0]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            assert (depth, colour) == (8, 6)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width * 4 + 1)
    filters, rows = raw[:, 0], raw[:, 1:].astype(np.uint8)
    image = np.zeros_like(rows)
    for y in range(height):
        image[y] = unfilter(filters[y], rows[y], image[y - 1] if y else np.zeros(width * 4, np.uint8))
    return image.reshape(height, width, 4)


def unfilter(kind: int, row: np.ndarray, above: np.ndarray) -> np.ndarray:
    if kind == 0:
        return row
    if kind == 2:
        return row + above
    out, up = bytearray(len(row)), above.tobytes()
    for i, value in enumerate(row.tobytes()):
        left, corner = (out[i - 4], up[i - 4]) if i >= 4 else (0, 0)
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up[i]) // 2
        else:
            near = left + up[i] - corner
            guess = min((left, up[i], corner), key=lambda v: abs(near - v))
        out[i] = (value + guess) & 255
    return np.frombuffer(bytes(out), np.uint8)


def share(image: np.ndarray, colour: tuple[int, int, int]) -> float:
    return float(np.mean(np.all(np.abs(image[:, :, :3].astype(int) - colour) < 12, axis=2)))


def test_a_short_call_fills_one_row_with_both_voices_words_and_marks(tmp_path):
    draw_timeline(account(), call_file(tmp_path / "call.wav", 12.0), tmp_path / "timeline.png")
    image = pixels(tmp_path / "timeline.png")
    height, width = image.shape[:2]
    assert width == WIDTH_PX and 350 < height < 700
    assert share(image, (255, 255, 255)) > 0.6
    for colour in ((0x2F, 0x6F, 0xDE), (0x12, 0x87, 0x6B), (0xFB, 0xE3, 0xAE)):  # caller, agent, waiting
        assert share(image, colour) > 0.005
    assert share(image, (0xD0, 0x31, 0x2D)) > 0.0001  # barge-in


def test_a_long_call_continues_in_rows_of_the_same_width(tmp_path):
    draw_timeline(account(18), call_file(tmp_path / "call.wav", 170.0, 8000), tmp_path / "timeline.png")
    header = (tmp_path / "timeline.png").read_bytes()[16:24]
    width, height = struct.unpack(">II", header)
    assert width == WIDTH_PX and 2000 < height < 4500


def test_a_call_without_a_word_is_drawn_too(tmp_path):
    write_wav(tmp_path / "call.wav", bytes(4 * 1600), 16000, channels=2)
    draw_timeline({"ok": False, "turns": [TURN]}, tmp_path / "call.wav", tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").stat().st_size > 1000


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(RemediableError, match=r"voice-agent\[picture\]"):
        draw_timeline(account(), tmp_path / "call.wav", tmp_path / "timeline.png")


def test_a_recording_that_is_none_and_a_picture_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "call.wav").write_bytes(b"RIFF")
    with pytest.raises(RemediableError, match="cannot be read"):
        draw_timeline(account(), tmp_path / "call.wav", tmp_path / "timeline.png")
    call_file(tmp_path / "call.wav", 1.0)
    with pytest.raises(RemediableError, match="Cannot write"):
        draw_timeline(account(), tmp_path / "call.wav", tmp_path / "missing" / "timeline.png")


def test_importing_the_picture_does_not_load_matplotlib():
    code = "import sys, voice_agent.caller.command, voice_agent.caller.picture; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.parametrize("seconds", [0.5, 10.0, 24.0, 25.0, 180.0, 3600.0])
def test_rows_cover_the_whole_call_without_gap_or_overlap(seconds):
    rows = break_rows(seconds, [k * 7.0 for k in range(600)])
    assert rows[0][0] == 0 and rows[-1][1] >= seconds and len(rows) <= MAX_ROWS
    assert all(before[1] == after[0] for before, after in itertools.pairwise(rows))


def test_rows_break_where_the_caller_begins_a_line_and_by_length_where_nobody_does():
    assert break_rows(40.0, [10.0, 20.0, 23.0]) == [(0.0, 23.0), (23.0, 40.0)]
    assert break_rows(40.0, []) == [(0.0, ROW_S), (ROW_S, 40.0)]


@pytest.mark.parametrize("seconds", [24.6, 26.0, 49.0, 73.0])
def test_no_last_row_holds_next_to_nothing(seconds):
    start, end = break_rows(seconds, [])[-1]
    assert end - start >= ROW_S / 4


def test_captions_are_wrapped_by_width_and_cut_after_the_last_line():
    assert wrap([10, 10, 10], 5, 25) == [[0, 1], [2]]
    assert wrap([100, 10], 5, 25) == [[0], [1]]
    assert sum(map(len, wrap([20] * 50, 5, 25))) == MAX_CAPTION_LINES
    assert wrap([], 5, 25) == []


def test_words_that_were_not_heard_are_told_apart():
    layout = lay_out(account(), 12.0)
    (cut,) = [c for c in layout.captions if c.side is Side.AGENT and len(c.words) == 8]
    assert [word.heard for word in cut.words] == [True] * 3 + [False] * 5


def test_the_agents_instants_lie_on_the_callers_clock():
    layout = lay_out(account(), 12.0)
    assert [(m.kind, round(m.at, 2)) for m in layout.marks] == [
        ("endpoint", 3.32),
        ("first audio", 3.57),
        ("pause", 5.12),
        ("decision", 5.52),
    ]


@pytest.mark.parametrize(("seconds", "step"), [(8, 1), (24, 1), (40, 2), (100, 5), (10_000, 30)])
def test_the_axis_is_labelled_at_round_distances(seconds, step):
    assert axis_step(seconds) == step
