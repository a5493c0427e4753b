"""Frames in, onset, pause and resumption out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.call.segmenter import Segmenter, Signal


def _push(segmenter: Segmenter, pattern: str) -> list[Signal]:
    """``v`` voiced, ``.`` not; a digit is voiced and says how many frames before it were voice as well."""
    return [segmenter.push(c != ".", int(c) if c.isdigit() else 0) for c in pattern]


def test_one_voiced_frame_is_a_click_and_opens_nothing() -> None:
    segmenter = Segmenter(160)
    assert set(_push(segmenter, "..v..v.v...")) == {Signal.NONE}
    assert not segmenter.open


def test_two_adjacent_voiced_frames_open_an_utterance() -> None:
    segmenter = Segmenter(160)
    assert _push(segmenter, "..vv")[-1] is Signal.ONSET
    assert segmenter.voice_ms == 40


def test_the_frames_the_detector_needed_to_be_sure_count_as_voice() -> None:
    segmenter = Segmenter(160)
    _push(segmenter, "........3v")
    assert segmenter.voice_ms == 100


def test_the_frames_before_a_click_do_not_count_as_voice() -> None:
    segmenter = Segmenter(160)
    _push(segmenter, "...3..vv")
    assert segmenter.voice_ms == 40


def test_a_pause_is_told_once_and_a_resumption_after_it() -> None:
    segmenter = Segmenter(160)
    _push(segmenter, "vvvv")
    signals = _push(segmenter, "." * 12)
    assert signals.index(Signal.PAUSE) == 7
    assert signals.count(Signal.PAUSE) == 1
    assert _push(segmenter, "vv") == [Signal.NONE, Signal.RESUME]
    assert segmenter.silence_ms == 0


def test_a_click_in_the_pause_does_not_restart_its_silence() -> None:
    segmenter = Segmenter(160)
    _push(segmenter, "vvvv....v....")
    assert segmenter.silence_ms == 180


def test_short_dips_inside_speech_are_no_pause() -> None:
    segmenter = Segmenter(160)
    assert Signal.PAUSE not in _push(segmenter, "vvvv....vvvv....vvvv")
    assert segmenter.voice_ms == 12 * 20


def test_after_a_close_the_next_voice_opens_a_new_utterance() -> None:
    segmenter = Segmenter(160)
    _push(segmenter, "vvvvv")
    segmenter.close()
    assert (segmenter.open, segmenter.voice_ms, segmenter.silence_ms) == (False, 0, 0)
    assert _push(segmenter, "vv")[-1] is Signal.ONSET


@given(st.text("v.", max_size=300))
def test_signals_alternate_and_times_never_exceed_what_was_pushed(pattern: str) -> None:
    segmenter = Segmenter(160)
    signals = [s for s in _push(segmenter, pattern) if s is not Signal.NONE]
    assert segmenter.voice_ms + segmenter.silence_ms <= len(pattern) * 20
    expected = Signal.ONSET
    for signal in signals:
        assert signal is expected
        expected = Signal.RESUME if signal is Signal.PAUSE else Signal.PAUSE
