"""The tones of keys are those that receivers know, at every rate and through a telephone line's codec."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.dtmf import keys_in
from voice_agent.audio.dtmf import tones
from voice_agent.audio.frames import FRAME_BYTES
from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.digits import KEYS, MAX_DIGITS, BadDigits, read_digits, seconds_of


def test_every_key_is_heard_as_itself() -> None:
    assert keys_in(b"".join(tones(KEYS))) == KEYS
    assert keys_in(b"".join(tones("1111##"))) == "1111##"


def test_they_pass_a_telephone_line() -> None:
    line = resample(b"".join(tones(KEYS)), 16000, 8000)
    assert keys_in(ulaw_decode(ulaw_encode(line)), 8000) == KEYS
    assert keys_in(alaw_decode(alaw_encode(line)), 8000) == KEYS


def test_they_are_whole_frames_no_louder_than_speech_and_take_as_long_as_is_said() -> None:
    frames = list(tones("1w2"))
    assert {len(frame) for frame in frames} == {FRAME_BYTES}
    assert len(frames) * 0.02 == pytest.approx(seconds_of("1w2"))
    samples = np.frombuffer(b"".join(frames), "<i2").astype(int)
    assert 10_000 < np.abs(samples).max() < 16_384
    pause = samples[int(0.2 * 16000) : int(0.7 * 16000)]
    assert not pause.any()


LONGEST = "5" * MAX_DIGITS


@pytest.mark.parametrize(
    ("given", "read"),
    [("12#", "12#"), ("1 2-3", "123"), ("abCd", "ABCD"), ("1W2w", "1w2w"), (LONGEST, LONGEST)],
)
def test_what_groups_digits_is_no_digit(given: str, read: str) -> None:
    assert read_digits(given) == read


@pytest.mark.parametrize("given", ["", "  ", "w", "12e", "５", "1,2", "+15550100", "1\n2", LONGEST + "5"])
def test_anything_else_is_refused_without_being_repeated(given: str) -> None:
    with pytest.raises(BadDigits) as fault:
        read_digits(given)
    assert "0-9" in str(fault.value)
    assert not given.strip() or given not in str(fault.value) or given == "w"
