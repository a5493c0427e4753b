from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from voice_agent.audio.wav import write_wav
from voice_agent.caller.lines import Line
from voice_agent.caller.preparation import PiperCaller, prepare
from voice_agent.diagnostics import RemediableError

QUIET = Console(quiet=True)


def tone_file(path: Path, rate: int, seconds: float = 1.0) -> Path:
    wave = np.zeros(int(rate * seconds), np.int16)
    third = len(wave) // 4
    wave[third : 3 * third] = (np.sin(np.arange(2 * third) * 2 * np.pi * 440 / rate) * 9000).astype(np.int16)
    write_wav(path, wave.tobytes(), rate)
    return path


@pytest.mark.parametrize("file_rate", [8000, 22050, 44100, 48000])
@pytest.mark.parametrize("rate", [8000, 16000, 48000])
def test_files_of_any_rate_become_lines_of_the_wires_rate_and_keep_pitch_and_length(tmp_path, file_rate, rate):
    (line,) = prepare([Line(wav=tone_file(tmp_path / "tone.wav", file_rate))], rate, None, QUIET)
    assert line.seconds == pytest.approx(1.0, abs=0.001) and len(line.pcm) == round(line.seconds * rate)
    assert (line.voice_start, line.voice_end) == (pytest.approx(0.25, abs=0.011), pytest.approx(0.75, abs=0.011))
    spectrum = np.abs(np.fft.rfft(line.pcm))
    assert np.argmax(spectrum) / line.seconds == pytest.approx(440, abs=2)


def test_a_file_that_is_no_wav_or_holds_no_sound_is_named(tmp_path):
    (tmp_path / "text.wav").write_text("hello")
    write_wav(tmp_path / "still.wav", bytes(32000), 16000)
    for name in ("text.wav", "still.wav"):
        with pytest.raises(RemediableError, match=name):
            prepare([Line(wav=tmp_path / name)], 16000, None, QUIET)


def test_an_unknown_voice_is_refused_with_those_that_exist():
    with pytest.raises(RemediableError, match="en_US-joe-medium"):
        prepare([Line(text="hello")], 16000, "en_US-jo-medium", QUIET)


@pytest.mark.models
def test_text_is_spoken_by_the_bundled_voice_at_the_pace_of_speech_and_trimmed_to_it():
    speaker = PiperCaller()
    line, two = prepare(
        [Line(text="What is the balance of my account, please?"), Line(text="Stop. Are you open on Sunday?")],
        16000,
        None,
        QUIET,
        speaker,
    )
    assert 1.5 < line.seconds < 4.5 and len(line.pcm) == round(line.seconds * 16000)
    assert line.voice_start == 0.0 and line.voice_end == pytest.approx(line.seconds, abs=0.02)
    assert np.abs(line.pcm.astype(int)).max() > 3000
    # Between the sentences of a line the caller draws breath, and does not stop.
    silence = longest_run(np.abs(two.pcm.astype(int)) < 30) / 16000
    assert 0.1 < silence < 0.4
    figure, words = prepare(
        [Line(text="I paid $42."), Line(text="I paid forty two dollars.")], 16000, None, QUIET, speaker
    )
    assert figure.seconds == pytest.approx(words.seconds, abs=0.4)
    with pytest.raises(RemediableError, match="nothing that can be spoken"):
        speaker.speak("…")


def longest_run(flags: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))
