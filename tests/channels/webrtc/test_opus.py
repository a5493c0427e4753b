from __future__ import annotations

import numpy as np

from tests.channels.contract import level, tone
from voice_agent.audio.frames import FRAME_BYTES, SILENCE
from voice_agent.audio.resample import resample
from voice_agent.channels.webrtc.opus import LEAD_IN, PacketCache, SpeechDecoder, SpeechEncoder

VOICE = tone(1.0)
FRAMES = [VOICE[at : at + FRAME_BYTES] for at in range(0, len(VOICE), FRAME_BYTES)]


def decoded(packets: list[bytes]) -> bytes:
    decoder = SpeechDecoder()
    return resample(b"".join(map(decoder.decode, packets)), 48000, 16000)


def test_each_frame_gives_one_small_packet_that_sounds_like_it() -> None:
    encoder = SpeechEncoder(PacketCache())
    packets = [encoder.encode(frame) for frame in FRAMES]
    assert all(10 < len(packet) < 200 for packet in packets)
    sound = decoded(packets)
    assert len(sound) == len(VOICE)
    assert abs(level(sound[6400:]) / level(VOICE[6400:]) - 1) < 0.05


def test_what_was_said_before_costs_no_encoder_and_is_the_same() -> None:
    cache = PacketCache()
    first, again = SpeechEncoder(cache), SpeechEncoder(cache)
    assert [first.encode(f) for f in FRAMES] == [again.encode(f) for f in FRAMES]
    assert (first.encoded, again.encoded) == (len(FRAMES), 0)


def test_speech_that_departs_from_what_was_said_before_goes_on_without_a_break() -> None:
    cache = PacketCache()
    SpeechEncoder(cache).encode(FRAMES[0])
    warm = SpeechEncoder(cache)
    for frame in FRAMES[:20]:
        warm.encode(frame)
    other = SpeechEncoder(cache)
    louder = [(np.frombuffer(f, "<i2") // 2).astype("<i2").tobytes() for f in FRAMES[20:]]
    packets = [other.encode(frame) for frame in [*FRAMES[:20], *louder]]
    assert other.encoded == len(louder)
    sound = np.frombuffer(decoded(packets), "<i2").astype(float)
    whole = np.frombuffer(b"".join([*FRAMES[:20], *louder]), "<i2").astype(float)
    # No click where the cache ended: nothing in the 40 ms around it is louder than the tone itself.
    seam = 20 * 320
    assert np.abs(sound[seam - 320 : seam + 320]).max() < np.abs(whole).max() * 1.1
    assert len(other._before) == LEAD_IN


def test_speech_after_a_pause_is_found_again_whatever_was_said_before_it() -> None:
    cache = PacketCache()
    one, two = SpeechEncoder(cache), SpeechEncoder(cache)
    for frame in FRAMES[:10]:
        one.encode(frame)
    two.encode(SILENCE)
    two.restart()
    before = two.encoded
    for frame in FRAMES[:10]:
        two.encode(frame)
    assert two.encoded == before


def test_the_cache_keeps_what_is_used() -> None:
    cache = PacketCache(max_packets=3)
    for key in (1, 2, 3):
        cache.put(key, b"x")
    cache.get(1)
    cache.put(4, b"x")
    assert [key for key in (1, 2, 3, 4) if cache.get(key)] == [1, 3, 4]


def test_packets_that_are_no_opus_give_nothing() -> None:
    decoder = SpeechDecoder()
    assert decoder.decode(b"\xff\xff\xff") == b""
    assert decoder.decode(b"") == b""
