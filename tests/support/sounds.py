"""Sounds to test ears with: noises nobody should answer, and speech laid into noise. 16 kHz, int16."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.debian import HOLD_MUSIC, LIBRIVOX, package_file, prompt_files
from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.audio.wav import read_wav_16k

Wave = NDArray[np.float64]
Pcm = NDArray[np.int16]

_DTMF_ROWS, _DTMF_COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477, 1633)


def amplitude(dbfs: float) -> float:
    """Return the int16 amplitude of a level."""
    return float(32768 * 10 ** (dbfs / 20))


def to_pcm(wave: Wave) -> Pcm:
    return np.clip(np.rint(wave), -32768, 32767).astype(np.int16)


def frames(pcm: Pcm) -> Iterator[bytes]:
    """Yield the whole 20 ms frames."""
    for at in range(0, len(pcm) - FRAME_SAMPLES + 1, FRAME_SAMPLES):
        yield pcm[at : at + FRAME_SAMPLES].tobytes()


def white_noise(seconds: float, dbfs: float, seed: int = 0) -> Wave:
    return np.random.default_rng(seed).normal(0, amplitude(dbfs), round(seconds * SAMPLE_RATE))


def _shaped_noise(seconds: float, dbfs: float, shape: Callable[[Wave], Wave]) -> Wave:
    spectrum = np.fft.rfft(white_noise(seconds, 0, seed=1))
    count = round(seconds * SAMPLE_RATE)
    hz: Wave = np.asarray(np.fft.rfftfreq(count, 1 / SAMPLE_RATE), np.float64)
    wave: Wave = np.fft.irfft(spectrum * shape(hz), count)
    return wave / float(wave.std()) * amplitude(dbfs)


def pink_noise(seconds: float, dbfs: float) -> Wave:
    return _shaped_noise(seconds, dbfs, lambda hz: 1 / np.sqrt(np.maximum(hz, 1)))


def hum(seconds: float, dbfs: float) -> Wave:
    """50 Hz and its harmonics, as a bad power supply has them."""
    at = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    partials = ((1, 1.0), (2, 0.5), (3, 0.4), (5, 0.2))
    wave: Wave = sum((level * np.sin(2 * np.pi * 50 * n * at) for n, level in partials), np.zeros(len(at)))
    return wave / float(wave.std()) * amplitude(dbfs) + white_noise(seconds, -60)


def key_clicks(seconds: float) -> Wave:
    """Four loud bursts a second of 4 to 25 ms, as of a keyboard beside the microphone."""
    random = np.random.default_rng(5)
    wave = white_noise(seconds, -60)
    for at in random.integers(0, len(wave) - 400, round(4 * seconds)):
        length = int(random.integers(60, 400))
        wave[at : at + length] += random.normal(0, 6000, length) * np.exp(-np.arange(length) / (length / 4))
    return wave


def dtmf(seconds: float) -> Wave:
    """A key every 300 ms, each held 60 to 200 ms."""
    random = np.random.default_rng(6)
    wave = white_noise(seconds, -60)
    for start in range(0, len(wave) - 4000, 4800):
        at = np.arange(int(random.integers(960, 3200))) / SAMPLE_RATE
        for hz in (random.choice(_DTMF_ROWS), random.choice(_DTMF_COLUMNS)):
            wave[start : start + len(at)] += 5000 * np.sin(2 * np.pi * hz * at)
    return wave


def breath(seconds: float) -> Wave:
    """A second of noise around 900 Hz that swells and fades, every three seconds."""
    noise = _shaped_noise(seconds, -30, lambda hz: np.exp(-(np.log(np.maximum(hz, 1) / 900) ** 2) / 1.2))
    phase = np.arange(len(noise)) / SAMPLE_RATE % 3
    return noise * np.where(phase < 1, np.sin(np.pi * phase) ** 2, 0) + white_noise(seconds, -65)


def no_speech(seconds: float) -> dict[str, Pcm]:
    """Return the synthetic sounds that nobody should answer, by name."""
    sounds = {
        "white noise": white_noise(seconds, -30),
        "pink noise": pink_noise(seconds, -30),
        "hum": hum(seconds, -25),
        "key clicks": key_clicks(seconds),
        "DTMF": dtmf(seconds),
        "breath": breath(seconds),
    }
    return {name: to_pcm(wave) for name, wave in sounds.items()}


def hold_music(seconds: float | None = None) -> dict[str, Pcm]:
    """Return the hold music pieces from their beginnings, by name."""
    count = None if seconds is None else round(seconds * SAMPLE_RATE)
    return {path.stem: _read(path)[:count].copy() for path in package_file(HOLD_MUSIC, "**/*.wav")}


@dataclass(frozen=True, slots=True)
class Utterance:
    """Human speech in noise.

    Attributes:
        pcm: The sound.
        clip_start: First sample of the clip, before any speech.
        start: First sample of audible speech: within 30 dB of the clip's loudest 10 ms.
        end: Sample after the last.
    """

    name: str
    pcm: Pcm
    clip_start: int
    start: int
    end: int


def in_noise(
    name: str, speech: Pcm, noise_dbfs: float, *, lead_s: float = 1.5, tail_s: float = 1.5, peak_dbfs: float = -6
) -> Utterance:
    """Lay a clip, brought to a peak level, into white noise."""
    clip = speech.astype(float) * amplitude(peak_dbfs) / np.abs(speech.astype(float)).max()
    lead = round(lead_s * SAMPLE_RATE)
    wave = white_noise(lead_s + len(clip) / SAMPLE_RATE + tail_s, noise_dbfs, seed=len(clip))
    wave[lead : lead + len(clip)] += clip
    tens = clip[: len(clip) // 160 * 160].reshape(-1, 160)
    power = (tens**2).mean(axis=1)
    audible = np.flatnonzero(power > power.max() / 1000)
    start, end = lead + int(audible[0]) * 160, lead + (int(audible[-1]) + 1) * 160
    return Utterance(name, to_pcm(wave), lead, start, end)


def prompts(count: int, seed: int = 7) -> dict[str, Pcm]:
    """Return so many studio prompts, chosen at random but always the same."""
    files = sorted(prompt_files().items())
    chosen = np.random.default_rng(seed).permutation(len(files))[:count]
    return {files[at][0]: _read(files[at][1]) for at in chosen}


def prompt(name: str) -> Pcm:
    return _read(prompt_files()[name])


def field_recordings() -> dict[str, Pcm]:
    """Return speech that was not made in a studio: LibriVox readers, and phrases by other speakers."""
    read = {path.stem: _read(path) for path in package_file(LIBRIVOX, "**/*.wav") if "tidigits" not in path.parts}
    raw = (path for path in package_file(LIBRIVOX, "**/*.raw") if "tidigits" not in path.parts)
    return read | {path.stem: np.fromfile(path, np.int16) for path in raw}


def _read(path: Path) -> Pcm:
    return np.frombuffer(read_wav_16k(path), np.int16)
