#!/usr/bin/env python
"""Make the apology that is played when no speech engine works, with Piper's CC0 voice en_US-joe-medium.

Run from the project's root: python scripts/make_fallback_audio.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.wav import write_wav
from voice_agent.config import TtsOptions
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool

TEXT = "I'm sorry, I'm having trouble speaking right now. One moment, please."
TARGET = Path("voice_agent/speech/assets/fallback.wav")


async def main() -> None:
    pool = SpeechPool(workers=1)
    pool.start()
    synthesizer = PiperSynthesizer(TtsOptions(), pool, threads=2)
    synthesizer.load()
    speech = await synthesizer.synthesize(TEXT)
    write_wav(TARGET, speech.pcm, SAMPLE_RATE)
    print(f"{TARGET}: {speech.seconds:.1f} s")
    await pool.aclose(timeout_s=1)


if __name__ == "__main__":
    asyncio.run(main())
