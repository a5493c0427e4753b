"""axe-core finds nothing to complain about in any state of the call page, by day and by night."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from tests.support.axe import axe_script
from tests.support.browser import DESKTOP, PHONE, CallPage, call_page, chromium
from tests.support.lines import RecordingService, serving
from voice_agent.call.wire import HeardMessage, StateMessage, TranscriptMessage
from voice_agent.channels.desk import CallRefused

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPLY = "Our shops are open Monday to Friday, from nine to six."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


async def violations(opened: CallPage) -> list[str]:
    """What axe-core has to say, in both colour schemes."""
    found = []
    for scheme in ("light", "dark"):
        await opened.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        result = await opened.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert result["passes"], "nothing was checked"
        for rule in result["violations"]:
            found += [f"{scheme}: {rule['id']}: {node['html'][:120]}" for node in rule["nodes"]]
    return found


async def with_axe(context: BrowserContext) -> None:
    # By the browser and not by the page, whose policy would not let it in.
    await context.add_init_script(path=axe_script())


async def test_nothing_is_out_of_reach_in_any_state(browser: Browser) -> None:
    service = RecordingService()
    found: dict[str, list[str]] = {}
    async with (
        serving(service) as address,
        call_page(browser, address, viewport=PHONE, prepare=with_axe) as opened,
    ):
        page = opened.page
        found["idle"] = await violations(opened)
        await page.click("#settings-open")
        found["sound"] = await violations(opened)
        await page.keyboard.press("Escape")
        service.calls.refuse = CallRefused("at_capacity", "All lines are busy.")
        await page.click("#call")
        await opened.trouble()
        found["busy"] = await violations(opened)
        service.calls.refuse = None
        await page.click("#call")
        line = await service.calls.next_line()
        line.wire.send(TranscriptMessage("user", "When are you open?", final=True))
        line.wire.send(TranscriptMessage("agent", REPLY, final=True))
        line.wire.send(HeardMessage(REPLY[:20]))
        line.wire.send(StateMessage("speaking"))
        await page.wait_for_selector("#log .heard")
        await opened.becomes("speaking")
        found["speaking"] = await violations(opened)
        await page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
        found["speaking, captions beside the stage"] = await violations(opened)
        await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        line.wire.send(TranscriptMessage("agent", REPLY, final=True, heard=REPLY[:20]))
        line.wire.send(TranscriptMessage("user", "And on", final=False))
        line.wire.send(StateMessage("hearing"))
        await opened.becomes("hearing")
        await page.click("#keypad-toggle")
        await page.click("#mute")
        found["hearing, muted, keypad open"] = await violations(opened)
        await page.click("#hang-up")
        await opened.becomes("ended")
        found["ended"] = await violations(opened)
    assert {state: faults for state, faults in found.items() if faults} == {}


async def test_everything_is_reached_with_the_keyboard_in_reading_order(browser: Browser) -> None:
    service = RecordingService()
    async with serving(service) as address, call_page(browser, address) as opened:
        page = opened.page

        async def tabbed(count: int) -> list[str]:
            ids = []
            for _ in range(count):
                await page.keyboard.press("Tab")
                ids.append(await page.evaluate("document.activeElement.id"))
            return ids

        assert await tabbed(2) == ["settings-open", "call"]
        await page.keyboard.press("Enter")
        line = await service.calls.next_line()
        line.wire.send(StateMessage("listening"))
        await opened.becomes("listening")
        await page.wait_for_function("() => document.activeElement.id === 'hang-up'")
        await page.evaluate("document.activeElement.blur(); document.querySelector('#settings-open').focus()")
        assert await tabbed(6) == ["log", "words", "send", "mute", "keypad-toggle", "hang-up"]
        outline = await page.eval_on_selector("#hang-up", "e => getComputedStyle(e).outlineStyle")
        assert outline == "solid", "the focus is visible"
        await page.keyboard.press("Space")
        await opened.becomes("ended")


async def test_who_wants_less_motion_gets_none(browser: Browser) -> None:
    service = RecordingService()
    async with serving(service) as address, call_page(browser, address, motion="reduce") as opened:
        await opened.page.evaluate("document.body.dataset.state = 'thinking'")
        running = "document.getAnimations().filter(a => a.playState === 'running').length"
        assert await opened.page.evaluate(running) == 0
