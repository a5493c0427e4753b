"""What a telephone line costs: words lost with packets, and the time until a call is answered.

    python scripts/bench/sip.py words [--loss 0.03] [--clips 20]
    python scripts/bench/sip.py setup [--calls 50]

``words``: studio prompts as G.711 packets through the receiver of a call, a share of them lost (seed 7), then Whisper.
``setup``: INVITE to 200 OK over loopback, with a desk that admits at once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from ipaddress import ip_network
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.clips import studio_prompts
from tests.support.lines import RecordingDesk
from tests.support.sip_caller import SipCaller
from tests.support.word_errors import normalized, word_errors
from voice_agent.audio.g711 import ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.channels.sip import rtp, sdp
from voice_agent.channels.sip.channel import SipChannel
from voice_agent.channels.sip.media import MediaReceiver
from voice_agent.channels.sip.ports import bound
from voice_agent.channels.sip.setup import SipSetup
from voice_agent.config import SttOptions
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.whisper import WhisperRecognizer

FAR = ("192.0.2.1", 4000)


def through_line(
    pcm: NDArray[np.int16], loss: float, dice: random.Random, *, conceal: bool = True
) -> NDArray[np.int16]:
    """Return 16 kHz samples as a call hears them after G.711 and the loss of a share of the packets."""
    codes = ulaw_encode(resample(pcm.tobytes(), 16000, 8000))
    agreed = sdp.Agreed(sdp.CODECS["pcmu"], 0, None, *FAR)
    receiver, heard = MediaReceiver(agreed, frozenset({FAR[0]}), 0.0), b""
    for number, at in enumerate(range(0, len(codes), 160)):
        if number and dice.random() < loss:
            if not conceal:
                silence = bytes(rtp.Packet(0, number, at, 1, b"\xff" * 160))
                if received := receiver.take(silence, FAR, number * 0.02):
                    heard += received.pcm
            continue
        packet = bytes(rtp.Packet(0, number, at, 1, codes[at : at + 160]))
        if received := receiver.take(packet, FAR, number * 0.02):
            heard += received.pcm
        heard += receiver.release(number * 0.02)
    heard += receiver.release(1e6)
    return np.frombuffer(resample(heard, 8000, 16000), np.int16)


async def words(loss: float, count: int) -> None:
    pool = SpeechPool(1)
    recognizer = WhisperRecognizer(SttOptions(), pool, threads=2)
    await asyncio.to_thread(recognizer.load)
    pool.start()
    clips = studio_prompts(count)
    total = sum(len(normalized(clip.text)) for clip in clips)
    for name, share, conceal in (
        ("clean", 0.0, True),
        ("lost", loss, True),
        ("lost, silence in its place", loss, False),
    ):
        dice, errors = random.Random(7), 0
        for clip in clips:
            heard = await recognizer.transcribe(through_line(clip.pcm, share, dice, conceal=conceal))
            errors += word_errors(normalized(clip.text), normalized(heard.text))
        print(f"{name:28} {share:5.1%} lost   word error rate {errors / total:6.2%}  ({errors} of {total} words)")
    await pool.aclose(10)


async def setup(calls: int) -> None:
    desk = RecordingDesk()
    channel = SipChannel(desk, SipSetup(rtp_ports=(22900, 22999), networks=(ip_network("127.0.0.0/8"),)))
    sock = bound("127.0.0.1", 0)
    times = []
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(channel.run(sock))
        await asyncio.sleep(0.1)
        for _ in range(calls):
            phone = await SipCaller.open(sock.getsockname()[1])
            began = time.perf_counter()
            await phone.invite()
            times.append(time.perf_counter() - began)
            await phone.hang_up()
            await phone.close()
        serving.cancel()
    ordered = sorted(times)
    print(
        f"INVITE to 200 OK: median {statistics.median(times) * 1e3:.1f} ms, worst {ordered[-1] * 1e3:.1f} ms of {calls}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("words", "setup"))
    parser.add_argument("--loss", type=float, default=0.03)
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--calls", type=int, default=50)
    asked = parser.parse_args()
    asyncio.run(words(asked.loss, asked.clips) if asked.what == "words" else setup(asked.calls))


if __name__ == "__main__":
    main()
