"""A real browser on the call page: headless Chromium, one at a time, its microphone a WAV file."""

from __future__ import annotations

import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.support.debian import program

MICROPHONE_RATE = 48_000
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 800}
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--use-fake-device-for-media-stream"),
)


@asynccontextmanager
async def chromium(microphone: Path | None = None, *flags: str) -> AsyncIterator[Browser]:
    """Start a browser. ``microphone``: a WAV file as of `write_microphone`, begun anew whenever the page opens it."""
    heard = [f"--use-file-for-fake-audio-capture={microphone}%noloop"] if microphone else []
    async with async_playwright() as playwright:
        path = str(program("chromium", "chromium"))
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS, *heard, *flags])
        try:
            yield browser
        finally:
            await browser.close()


def write_microphone(path: Path, seconds: float, *spoken: tuple[float, NDArray[np.int16], int]) -> None:
    """Write what the microphone hears: silence with each ``(at_s, samples, rate)`` in it."""
    track = np.zeros(round(seconds * MICROPHONE_RATE), np.float32)
    for at_s, samples, rate in spoken:
        sound = soxr.resample(samples.astype(np.float32), rate, MICROPHONE_RATE)
        start = round(at_s * MICROPHONE_RATE)
        track[start : start + len(sound)] += sound[: len(track) - start]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(MICROPHONE_RATE)
        file.writeframes(np.clip(track, -32768, 32767).astype("<i2").tobytes())


@dataclass
class CallPage:
    """The call page as a person has it before them, and all that went wrong in it.

    Attributes:
        faults: Errors of scripts and of the page's policy.
        hosts: Where the page sent requests to.
    """

    page: Page
    context: BrowserContext
    faults: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    async def state(self) -> str:
        return str(await self.page.evaluate("document.body.dataset.state"))

    async def words(self) -> str:
        """The line that tells the state."""
        return await self.page.inner_text("#state")

    async def becomes(self, *states: str, within_s: float = 8.0) -> None:
        """Wait until the page shows one of these states."""
        await self.page.wait_for_function(
            "states => states.includes(document.body.dataset.state)", arg=states, timeout=within_s * 1000
        )

    async def captions(self) -> list[tuple[str, str]]:
        """Who said what, as it stands there."""
        lines = await self.page.eval_on_selector_all(
            "#log p", "all => all.map(p => [p.className.split(' ')[0], p.querySelector('.words').textContent])"
        )
        return [(who, text) for who, text in lines]

    async def shown(self, kind: str) -> str:
        """The agent's words in the last caption that are ``heard``, ``due`` or ``lost``."""
        words = await self.page.eval_on_selector_all(
            "#log p.agent", f"all => [...all.at(-1).querySelectorAll('.{kind}')].map(w => w.textContent)"
        )
        return " ".join(words)

    async def caption(self, role: str, part: str, within_s: float = 8.0) -> None:
        """Wait until a caption of ``role`` has ``part`` in it."""
        await self.page.wait_for_function(
            "([role, part]) => [...document.querySelectorAll(`#log p.${role}`)]"
            ".some(p => p.textContent.toLowerCase().includes(part.toLowerCase()))",
            arg=[role, part],
            timeout=within_s * 1000,
        )

    async def trouble(self) -> tuple[str, str]:
        """Wait until something is told to be wrong; returns its code and its words."""
        await self.page.wait_for_selector("#trouble:not([hidden])", timeout=20_000)
        code = await self.page.get_attribute("#trouble", "data-code")
        return code or "", await self.page.inner_text("#trouble")


@asynccontextmanager
async def call_page(
    browser: Browser,
    address: str,
    *,
    viewport: dict[str, int] = PHONE,
    scheme: str = "light",
    microphone: bool = True,
    prepare: Callable[[BrowserContext], Awaitable[Any]] | None = None,
    motion: str = "no-preference",
) -> AsyncIterator[CallPage]:
    """Open the page at ``address``, such as ``127.0.0.1:8080/#token=…``, in a profile of its own."""
    context = await browser.new_context(
        viewport=viewport,  # type: ignore[arg-type]
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion=motion,  # type: ignore[arg-type]
        permissions=["microphone"] if microphone else [],
    )
    try:
        if prepare:
            await prepare(context)
        page = await context.new_page()
        opened = CallPage(page, context)
        page.on("request", lambda request: opened.hosts.add(request.url.split("/")[2]))
        page.on("pageerror", lambda error: opened.faults.append(str(error)))
        page.on("console", lambda said: opened.faults.append(said.text) if said.type == "error" else None)
        await page.goto(f"http://{address}")
        yield opened
    finally:
        await context.close()
