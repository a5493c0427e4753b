"""The example agent called from a real browser, by voice: greeting, question, answer, interruption.

The caller's words are in the file that the browser has for a microphone, so their times are fixed; what is played
in the browser is recorded there, and transcribed here.
"""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import subprocess
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from tests.support.browser import CallPage, call_page, chromium, write_microphone
from tests.support.debian import program
from tests.support.lines import serving, until
from voice_agent.service.service import Service, build_service

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.alone, pytest.mark.models, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

EXAMPLE = Path(__file__).parents[2]
QUESTION_S, INTERRUPTION_S, END_S = 5.0, 11.5, 60.0

CUT_MS = 400
"""What the browser may still play of the words that were cut off: its own buffer, and a fade."""
AUDIBLE = 0.2

RECORD = """() => {
  const recorder = new MediaRecorder(document.getElementById("voice").srcObject);
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.start();
  window.recorded = () => new Promise((resolve) => {
    recorder.onstop = async () => {
      const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      resolve(btoa(text));
    };
    recorder.stop();
  });
}"""
WATCH = """() => {
  window.states = [];
  const note = () => {
    const state = document.body.dataset.state;
    if (states.at(-1)?.[0] !== state) states.push([state, performance.now()]);
  };
  note();
  new MutationObserver(note).observe(document.body, { attributes: true, attributeFilter: ["data-state"] });
  window.levels = [];
  setInterval(() => levels.push([performance.now(), Number(orb.style.getPropertyValue("--agent"))]), 20);
}"""


def spoken(text: str, directory: Path) -> tuple[NDArray[np.int16], int]:
    """Return ``text`` in a voice that is not the agent's, as samples and their rate."""
    path = directory / "line.wav"
    subprocess.run([str(program("flite", "flite")), "-voice", "slt", "-t", text, "-o", str(path)], check=True)
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16), file.getframerate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[tuple[Service, str]]:
    service = build_service(EXAMPLE)
    async with serving(service) as address:
        await until(lambda: not service.missing, within_s=60)
        yield service, address


def decoded(webm: str) -> bytes:
    """Return a browser's recording as canonical PCM."""
    import av

    resampler, pcm = av.AudioResampler("s16", "mono", 16_000), b""
    with av.open(io.BytesIO(base64.b64decode(webm))) as container:
        for frame in container.decode(audio=0):
            pcm += b"".join(part.to_ndarray().tobytes() for part in resampler.resample(frame))
    return pcm


async def heard_in(opened: CallPage, service: Service) -> str:
    """Transcribe what the browser has played since `RECORD`."""
    pcm = decoded(await opened.page.evaluate("recorded()"))
    transcript = await service.calls.engines.recognizer.transcribe(np.frombuffer(pcm, np.int16)[: 16_000 * 8])
    return transcript.text.lower()


async def sounds_after_the_cut(opened: CallPage, moments: list[tuple[str, float]]) -> list[float]:
    """Return what was audible between the interruption, once playout had time to stop, and the next reply."""
    names = [name for name, _ in moments]
    answer = names.index("speaking", names.index("thinking", names.index("hearing")))
    cut = next(at for at in range(answer, len(names)) if names[at] == "hearing")
    after = next(at for at in range(cut, len(names)) if names[at] == "speaking")
    start, end = moments[cut][1] + CUT_MS, moments[after][1]
    levels = await opened.page.evaluate("levels")
    measured = [level for at, level in levels if start < at < end]
    assert measured
    return [level for level in measured if level > AUDIBLE]


async def test_a_caller_is_greeted_understood_answered_and_may_interrupt(
    service: tuple[Service, str], tmp_path: Path
) -> None:
    live, address = service
    microphone = tmp_path / "caller.wav"
    question, interruption = (
        spoken("When are you open?", tmp_path),
        spoken("Wait. Stop. My internet is down.", tmp_path),
    )
    write_microphone(microphone, END_S, (QUESTION_S, *question), (INTERRUPTION_S, *interruption))
    tasks = asyncio.all_tasks()
    async with chromium(microphone) as browser, call_page(browser, address) as opened:
        page = opened.page
        await page.evaluate(WATCH)
        await page.click("#call")
        await page.wait_for_function("() => document.getElementById('voice').srcObject?.active")
        await page.evaluate(RECORD)
        await opened.becomes("speaking", within_s=15)
        await opened.becomes("listening", within_s=15)
        greeting = await heard_in(opened, live)
        assert "calling" in greeting or "help" in greeting, greeting
        assert await opened.shown("due") == "", "all of the greeting was heard"
        assert "How can I help?" in await opened.shown("heard")

        await opened.caption("user", "open", within_s=25)
        await opened.caption("agent", "Monday to Friday", within_s=20)
        await opened.caption("user", "internet", within_s=40)
        await page.wait_for_function("() => [...document.querySelectorAll('#log p.agent')].length >= 3", timeout=30_000)
        lost = await page.eval_on_selector_all("#log .lost", "all => all.length")
        assert lost > 3, "the words that the interruption cut off are struck through"

        moments = await page.evaluate("states")
        assert await sounds_after_the_cut(opened, moments) == []
        states = [name for name, _ in moments]
        assert states[:3] == ["idle", "asking", "connecting"]
        for state in ("listening", "hearing", "thinking", "speaking"):
            assert state in states
        assert opened.faults == []
        assert opened.hosts == {address}
        marks = {m["name"]: m["at"] for m in await page.evaluate(
            "performance.getEntriesByType('mark').map(m => ({name: m.name, at: m.startTime}))"
        )}  # fmt: skip
        connected_s = (marks["call-connected"] - marks["call-start"]) / 1000
        audible_s = (marks["call-audible"] - marks["call-connected"]) / 1000
        log.info("call pressed to connected %.2f s, connected to greeting audible %.2f s", connected_s, audible_s)
        assert connected_s < 5
        assert audible_s < 3
        await page.close()
        await until(lambda: not live.calls.registry.active, within_s=5)
    await until(lambda: not [t for t in asyncio.all_tasks() - tasks if t.get_name().startswith(("call.", "webrtc."))])
