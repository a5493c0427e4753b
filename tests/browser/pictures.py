"""Draws the pictures of the call page in ``docs/images``: ``python -m tests.browser.pictures [DIRECTORY]``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser

from tests.support.browser import DESKTOP, PHONE, CallPage, call_page, chromium
from tests.support.lines import Line, RecordingService, serving
from voice_agent.call.wire import HeardMessage, StateMessage, TranscriptMessage

IMAGES = Path(__file__).parents[2] / "docs" / "images"
HOURS = "Our shops are open Monday to Friday from nine in the morning to six in the evening, and on Saturday to four."
BILL = "Your balance is 42 dollars and 50 cents, due on the fifth. Would you like to pay it now?"
GREETING = "Thanks for calling Northline Telecom. How can I help?"


def converse(line: Line) -> None:
    """A conversation in the middle of a reply."""

    def agent(text: str, heard: str) -> None:
        line.wire.send(TranscriptMessage("agent", text, final=True))
        line.wire.send(TranscriptMessage("agent", text, final=True, heard=heard))

    def caller(text: str) -> None:
        line.wire.send(TranscriptMessage("user", text, final=True))

    agent(GREETING, GREETING)
    caller("When are you open?")
    agent(HOURS, HOURS[: HOURS.index(" to six")])
    caller("Wait, what is my balance? Account 482913.")
    line.wire.send(StateMessage("speaking"))
    line.wire.send(TranscriptMessage("agent", BILL, final=True))
    line.wire.send(HeardMessage(BILL[: BILL.index(" and 50")]))


async def draw(browser: Browser, directory: Path, size: str, scheme: str) -> None:
    """Draw one picture of every state that people look at."""
    service = RecordingService()
    viewport = {"phone": PHONE, "desktop": DESKTOP}[size]

    async def shoot(opened: CallPage, what: str) -> None:
        await opened.page.wait_for_timeout(500)
        await opened.page.screenshot(path=directory / f"call-page{what}-{size}-{scheme}.png")

    async with serving(service) as address:
        async with call_page(browser, address, viewport=viewport, scheme=scheme) as opened:
            if directory != IMAGES:
                await shoot(opened, "-idle")
            await opened.page.click("#call")
            line = await service.calls.next_line()
            converse(line)
            await opened.becomes("speaking")
            await opened.page.evaluate("document.activeElement.blur()")
            await shoot(opened, "")
            if directory != IMAGES:
                line.wire.send(StateMessage("listening"))
                await opened.page.click("#keypad-toggle")
                await opened.page.keyboard.press("4")
                await shoot(opened, "-keypad")
                await opened.page.click("#settings-open")
                await shoot(opened, "-sound")
                await opened.page.keyboard.press("Escape")
                await opened.page.click("#hang-up")
                await shoot(opened, "-ended")
        if directory != IMAGES:
            async with call_page(browser, address, viewport=viewport, scheme=scheme, microphone=False) as opened:
                await opened.page.click("#call")
                await opened.trouble()
                await shoot(opened, "-blocked")


async def main(directory: Path) -> None:
    async with chromium() as browser:
        for size in ("phone", "desktop"):
            for scheme in ("light", "dark"):
                await draw(browser, directory, size, scheme)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(target))
