"""The call page in a real browser, against the real server; its calls only record, and say what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from tests.support.browser import CallPage, call_page, chromium, write_microphone
from tests.support.lines import Line, RecordingService, serving, until
from voice_agent.audio.level import dbfs
from voice_agent.call.wire import HeardMessage, StateMessage, TranscriptMessage
from voice_agent.channels.desk import CallRefused

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "the-only-key-that-fits"
RATE = 16_000
TONE = (8000 * np.sin(2 * np.pi * 440 * np.arange(60 * RATE) / RATE)).astype(np.int16)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    microphone = tmp_path_factory.mktemp("microphone") / "tone.wav"
    write_microphone(microphone, 60, (0, TONE, RATE))
    async with chromium(microphone, "--host-resolver-rules=MAP voice.test 127.0.0.1") as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def service() -> RecordingService:
    return RecordingService()


@pytest_asyncio.fixture(loop_scope="module")
async def address(service: RecordingService) -> AsyncIterator[str]:
    async with serving(service) as address:
        yield address


async def dial(opened: CallPage, service: RecordingService) -> Line:
    await opened.page.click("#call")
    line = await service.calls.next_line()
    line.wire.send(StateMessage("listening"))
    await opened.becomes("listening")
    return line


def loudness(line: Line, last_s: float) -> float:
    """Level of what the near side heard last, in dBFS."""
    return dbfs(bytes(line.inputs.heard[-round(last_s * RATE) * 2 :]))


async def test_a_call_is_placed_and_hung_up_with_two_clicks(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address) as opened:
        assert await opened.page.inner_text("h1") == "Nora"
        assert await opened.words() == "Ready"
        line = await dial(opened, service)
        assert line.request.channel == "webrtc"
        await until(lambda: len(line.inputs.heard) > RATE)
        assert loudness(line, 0.3) > -40, "the microphone reaches the agent"
        await opened.page.click("#hang-up")
        assert await asyncio.wait_for(line.ended, 3) == "hang_up"
        assert await opened.words() == "Call ended"
        assert await opened.page.evaluate("document.activeElement.id") == "call"
        again = await dial(opened, service)
        await again.wire.hang_up("completed")
        await opened.becomes("ended")
        assert opened.faults == []
        assert opened.hosts == {address}


async def test_captions_tell_heard_words_from_those_to_come_and_those_never_heard(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address) as opened:
        line = await dial(opened, service)
        reply = "Our shops are open Monday to Friday."
        line.wire.send(StateMessage("speaking"))
        line.wire.send(TranscriptMessage("agent", "Our shops are open ", final=False))
        line.wire.send(TranscriptMessage("agent", reply, final=True))
        await opened.caption("agent", "Friday")
        assert await opened.shown("due") == reply
        line.wire.send(HeardMessage("Our shops are"))
        await opened.page.wait_for_selector("#log .heard")
        assert (await opened.shown("heard"), await opened.shown("due")) == ("Our shops are", "open Monday to Friday.")
        line.wire.send(TranscriptMessage("user", "wait", final=False))
        line.wire.send(TranscriptMessage("agent", reply, final=True, heard="Our shops are open "))
        line.wire.send(TranscriptMessage("user", "Wait, on Sunday?", final=True))
        await opened.caption("user", "Sunday")
        assert await opened.captions() == [("agent", reply), ("user", "Wait, on Sunday?")]
        assert await opened.shown("lost") == "Monday to Friday."
        assert "line-through" in await opened.page.eval_on_selector(
            "#log .lost", "e => getComputedStyle(e).textDecoration"
        )
        line.wire.send(TranscriptMessage("agent", "One.", final=True))
        line.wire.send(TranscriptMessage("agent", "Two.", final=True))
        line.wire.send(TranscriptMessage("agent", "One. Two.", final=True, heard="One. Two."))
        await opened.caption("agent", "One. Two.")
        assert (await opened.shown("heard"), await opened.shown("lost")) == ("One. Two.", "")
        line.wire.send(TranscriptMessage("agent", "<img src=x onerror=alert(1)>", final=True))
        await opened.caption("agent", "<img")
        assert await opened.page.query_selector("#log img") is None
        line.wire.send(HeardMessage("<img src=x"))
        await opened.page.wait_for_function("() => document.querySelectorAll('#log p:last-child .heard').length === 2")
        await opened.page.click("#hang-up")
        await opened.becomes("ended")
        assert await opened.shown("lost") == "onerror=alert(1)>", "what was to come never will"
        assert opened.faults == []


async def test_every_state_of_the_call_is_shown_in_words(
    browser: Browser, service: RecordingService, address: str
) -> None:
    expected = {"hearing": "Hearing you", "thinking": "Thinking", "speaking": "Speaking", "paused": "Paused for you"}
    async with call_page(browser, address) as opened:
        line = await dial(opened, service)
        for state, words in expected.items():
            line.wire.send(StateMessage(state))  # type: ignore[arg-type]
            await opened.becomes(state)
            assert await opened.words() == words
        assert await opened.page.get_attribute("#state", "role") == "status"


async def test_keys_come_from_the_page_and_from_the_keyboard_but_not_out_of_a_text(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address) as opened:
        line = await dial(opened, service)
        await opened.page.click("#keypad-toggle")
        await opened.page.click("#keys [data-key='5']")
        await opened.page.keyboard.press("1")
        await opened.page.keyboard.press("#")
        await until(lambda: len(line.inputs.keys) == 3)
        assert await opened.page.inner_text("#digits") == "51#"
        await opened.page.keyboard.press("Escape")
        assert await opened.page.is_hidden("#keypad")
        assert await opened.page.evaluate("document.activeElement.id") == "keypad-toggle"
        await opened.page.fill("#words", "")
        await opened.page.type("#words", "unit 42")
        await opened.page.keyboard.press("Enter")
        await until(lambda: line.inputs.texts)
        assert (line.inputs.keys, line.inputs.texts) == (["5", "1", "#"], ["unit 42"])
        assert await opened.page.input_value("#words") == ""


async def test_a_muted_microphone_sends_silence_until_it_is_unmuted(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async def prepare(context: BrowserContext) -> None:
        await context.add_init_script(
            "const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
            "navigator.mediaDevices.getUserMedia = (wanted) => { window.wanted = wanted; return ask(wanted); };"
        )

    async with call_page(browser, address, prepare=prepare) as opened:
        line = await dial(opened, service)
        wanted = (await opened.page.evaluate("wanted"))["audio"]
        assert wanted["echoCancellation"] and wanted["noiseSuppression"] and wanted["autoGainControl"]
        await until(lambda: len(line.inputs.heard) > RATE and loudness(line, 0.2) > -40)
        await opened.page.click("#mute")
        await until(lambda: loudness(line, 0.3) < -70)
        assert line.inputs.mutes == [True], "the service is told, and does not ask whether somebody is there"
        assert await opened.words() == "Your microphone is muted"
        assert await opened.page.get_attribute("#mute", "aria-pressed") == "true"
        await opened.page.click("#mute")
        await until(lambda: loudness(line, 0.2) > -40)
        assert await opened.words() == "Listening"


async def test_closing_the_tab_ends_the_call_and_leaves_nothing(
    browser: Browser, service: RecordingService, address: str
) -> None:
    before = asyncio.all_tasks()
    async with call_page(browser, address) as opened:
        line = await dial(opened, service)
        await opened.page.close(run_before_unload=False)
        assert await asyncio.wait_for(line.ended, 3) == "hang_up"
    await until(lambda: not [task for task in asyncio.all_tasks() - before if "webrtc" in task.get_name()])


async def test_another_network_takes_the_conversation_up_again(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address) as opened:
        first = await dial(opened, service)
        first.wire.send(TranscriptMessage("user", "before", final=True))
        await opened.caption("user", "before")
        await opened.context.set_offline(True)
        await opened.context.set_offline(False)
        second = await service.calls.next_line()
        assert second.request.conversation_id == first.request.conversation_id
        assert await asyncio.wait_for(first.ended, 3) == "disconnected"
        second.wire.send(StateMessage("listening"))
        await opened.becomes("listening")
        second.wire.send(TranscriptMessage("user", "after", final=True))
        await opened.caption("user", "after")
        assert [text for _, text in await opened.captions()] == ["before", "after"]
        await opened.page.click("#hang-up")
        assert await asyncio.wait_for(second.ended, 3) == "hang_up"


async def test_a_line_that_stays_away_is_told_with_what_to_do(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address) as opened:
        line = await dial(opened, service)
        service.calls.refuse = CallRefused("token_used", "This token's call is over.", retry=False)
        await opened.context.set_offline(True)
        await opened.context.set_offline(False)
        await asyncio.wait_for(line.ended, 3)
        code, _ = await opened.trouble()
        assert code == "token_used"
        assert await opened.page.is_visible("#call")


async def test_a_blocked_microphone_is_told_and_the_caller_may_type(
    browser: Browser, service: RecordingService, address: str
) -> None:
    async with call_page(browser, address, microphone=False) as opened:
        await opened.page.click("#call")
        code, told = await opened.trouble()
        assert code == "blocked"
        assert "microphone is blocked" in told
        assert "address bar" in told
        assert service.calls.lines == []
        await opened.page.click("#trouble-typing")
        line = await service.calls.next_line()
        line.wire.send(StateMessage("listening"))
        await opened.becomes("listening")
        assert await opened.page.evaluate("document.activeElement.id") == "words"
        await opened.page.keyboard.type("hello")
        await opened.page.keyboard.press("Enter")
        await until(lambda: line.inputs.texts == ["hello"])
        assert await opened.page.is_hidden("#mute")


async def test_a_microphone_that_cannot_be_had_is_told_apart(browser: Browser, address: str) -> None:
    faults = {
        "NotFoundError": ("missing", "No microphone was found"),
        "NotReadableError": ("in_use", "in use by another program"),
        "TypeError": ("microphone", "could not be opened"),
    }

    async def prepare(context: BrowserContext) -> None:
        fault = "navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('no', window.fault) }"
        await context.add_init_script(fault)

    async with call_page(browser, address, prepare=prepare) as opened:
        for name, (code, tells) in faults.items():
            await opened.page.evaluate("name => { window.fault = name }", name)
            await opened.page.click("#call")
            await opened.page.wait_for_selector(f"#trouble[data-code='{code}']")
            assert tells in (await opened.trouble())[1]


async def test_a_page_that_is_not_secure_says_why_there_is_no_microphone(
    browser: Browser, service: RecordingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    async with serving(service) as address:
        port = address.rpartition(":")[2]
        async with call_page(browser, f"voice.test:{port}") as opened:
            code, told = await opened.trouble()
            assert code == "insecure"
            assert "https://" in told
            assert f"http://localhost:{port}" in told


async def test_a_line_that_is_busy_says_so(browser: Browser, service: RecordingService, address: str) -> None:
    refusals = {
        "All lines are busy.": CallRefused("at_capacity", "All lines are busy."),
        "still getting ready": CallRefused("not_ready", "The service is still starting."),
        "open in another call": CallRefused("conversation_busy", "Busy.", retry=False),
        "Something else.": CallRefused("brand_new", "Something else.", retry=False),
    }
    async with call_page(browser, address) as opened:
        for tells, refusal in refusals.items():
            service.calls.refuse = refusal
            await opened.page.click("#call")
            await opened.page.wait_for_selector(f"#trouble[data-code='{refusal.code}']")
            assert tells in (await opened.trouble())[1]
        service.calls.refuse = None
        await dial(opened, service)
        assert await opened.page.is_hidden("#trouble")


async def test_a_service_that_is_gone_is_told(browser: Browser, service: RecordingService) -> None:
    async with serving(service) as address:
        opening = call_page(browser, address)
        opened = await opening.__aenter__()
    try:
        await opened.page.click("#call")
        assert (await opened.trouble())[0] == "unreachable"
    finally:
        await opening.__aexit__(None, None, None)


async def test_a_caller_comes_in_by_invitation_only_where_a_key_is_set(
    browser: Browser, service: RecordingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    async with serving(service) as address:
        async with call_page(browser, address) as opened:
            assert (await opened.trouble())[0] == "unauthorized"
        token, grant = service.tokens.issue("their-own", {}, 60)
        async with call_page(browser, f"{address}/#token={token}") as opened:
            assert token not in await opened.page.evaluate("location.href")
            line = await dial(opened, service)
            assert (line.request.conversation_id, line.request.grant) == ("their-own", grant)
            await opened.page.click("#hang-up")
            assert await asyncio.wait_for(line.ended, 3) == "hang_up"
            grant.end()
            await opened.page.click("#call")
            assert (await opened.trouble())[0] == "token_used"


async def test_the_page_works_at_every_size_without_scrolling_sideways(
    browser: Browser, service: RecordingService, address: str
) -> None:
    sizes: list[dict[str, Any]] = [{"width": 320, "height": 568}, {"width": 844, "height": 390}]
    for size in sizes:
        async with call_page(browser, address, viewport=size) as opened:
            await dial(opened, service)
            await opened.page.click("#keypad-toggle")
            assert await opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            for control in ("#hang-up", "#mute", "#keypad-toggle", "#keys [data-key='0']"):
                await opened.page.click(control, trial=True, timeout=2000)
