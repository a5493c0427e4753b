"""A WAV header, a JSON error or an odd number of bytes from a speech service was played as loud static.

Right: what is not bare PCM never reaches the wire; the caller hears the fallback, the text still comes.
"""

from __future__ import annotations

import pytest

from tests.fakes.synthesizer import FakeSynthesizer
from tests.support.virtual_time import virtual_time
from voice_agent.config import CacheOptions
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.voice import CachedVoice, fallback_audio

BODIES = {
    "wav": b"RIFF\x24\x08\x00\x00WAVEfmt " + bytes(1000),
    "json": b'{"error": {"code": 429, "message": "rate limit reached for this key"}}',
    "html": b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>",
    "odd": bytes(641),
    "empty": b"",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
@pytest.mark.parametrize("canned", [True, False])
def test_a_body_that_is_not_pcm_never_reaches_the_caller(body: bytes, canned: bool) -> None:
    @virtual_time
    async def call() -> None:
        engine = FakeSynthesizer(script=[body, body])
        voice = CachedVoice(engine, ResponseCache(CacheOptions(disk_mb=0)))
        (speech,) = [speech async for speech in voice.speak("Your order is on its way.", canned=canned)]
        assert speech.failed
        assert speech.pcm == fallback_audio()
        assert speech.text == "Your order is on its way."
        # Nor is it kept: the next attempt asks the engine again.
        (again,) = [speech async for speech in voice.speak("Your order is on its way.", canned=canned)]
        assert not again.failed

    call()
