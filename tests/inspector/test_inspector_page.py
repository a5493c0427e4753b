"""The inspector in a real browser: what it shows is what the store holds, live and afterwards, for everyone."""

from __future__ import annotations

import asyncio
import os
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tests.fakes.model import tool_call
from tests.support.axe import axe_script
from tests.support.browser import chromium
from tests.support.inspected_service import NUMBER, hold_call, inspected_service, interrupt
from tests.support.lines import serving, until
from voice_agent.channels.desk import TextItem
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig
from voice_agent.service.service import Service
from voice_agent.store.protocol import StoreUnavailable

pytestmark = pytest.mark.timeout(120)
PICTURES = os.environ.get("VOICE_AGENT_TEST_PICTURES")
SETTINGS = "inspector: {personal_data: true}\n"
DESCRIBED = (
    "e => e.getAttribute('aria-describedby').split(' ').map(id => document.getElementById(id))"
    ".filter(p => p && !p.hidden && p.textContent).map(p => p.textContent).join(' ')"
)
"""What a screen reader says of a field after its name."""


async def picture(page: Any, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def faults_of(page: Any, axe: str) -> list[str]:
    """Return what the accessibility checker finds, one line each."""
    # By the tools of the browser, past the page's own policy.
    await page.evaluate(axe)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{v['id']}: {n['html'][:120]}: {n['failureSummary']}" for v in found["violations"] for n in v["nodes"]]


async def test_what_the_page_shows_is_what_the_store_holds(tmp_path: Path) -> None:
    service = inspected_service(tmp_path, settings=SETTINGS)
    async with serving(service) as address, chromium() as started:
        await until(lambda: not service.missing)
        context = await started.new_context(viewport={"width": 1360, "height": 900}, color_scheme="light")
        page = await context.new_page()
        complaints: list[str] = []
        hosts: set[str] = set()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda fault: complaints.append(str(fault)))
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None)
        await page.goto(f"http://{address}/inspect")
        await page.get_by_text("Nobody is on the line.").wait_for()

        # Live: the call appears by itself, and its turns as they end.
        caller = await hold_call(address)
        await page.locator("#live a", has_text="user-42").click()
        await page.locator(".talk .caller", has_text="i want to know my balance").wait_for()
        await page.locator(".head .chip", has_text="live").wait_for()
        await interrupt(caller)
        await page.locator(".head .chip", has_text="disconnected").wait_for()
        await page.locator(".talk .agent", has_text="I see.").wait_for()
        await page.locator("audio[src]").wait_for()
        await picture(page, "desktop-light")

        # The transcript.
        stored = await service.store.load("user-42")
        assert stored is not None
        records = [payload_of(event) for event in stored.events]
        heard = [(p["text"], p.get("unheard", "")) for kind, p in records if kind == "bot"]
        told = [
            await line.evaluate(
                "e => [[...e.querySelector('p').childNodes].filter(n => n.nodeType === 3)"
                ".map(n => n.data).join('').trim(), e.querySelector('s')?.lastChild.data ?? '']"
            )
            for line in await page.locator(".talk .agent").all()
        ]
        assert [tuple(pair) for pair in told] == heard
        said = [p["text"] for kind, p in records if kind == "user" and p["kind"] == "speech"]
        assert await page.locator(".talk .caller p").all_inner_texts() == [
            said[0], "it is [redacted]", *said[2:],
        ]  # fmt: skip

        # The flow chart, memory, turns, records.
        chart = page.locator(".skill", has_text="Account balance").locator("svg")
        assert await chart.locator("g.done").count() == 4
        assert "overdrawn, action utter_overdrawn, not reached" in (await chart.get_attribute("aria-label") or "")
        await page.get_by_role("tab", name="Memory").click()
        assert await page.locator("[data-field='balance.amount'] .value").inner_text() == "42.5"
        assert "redacted" in await page.locator("[data-field='balance.account_number'] .value").inner_text()
        await page.get_by_role("tab", name="Turns").click()
        times = [p for kind, p in records if kind == "turn_timeline"]
        assert await page.locator(".turn").count() == len(times)
        third = times[2]["first_audio"] - times[2]["speech_end"]
        assert f"{round(third * 1000)} ms to first audio" in await page.locator(".turn").nth(2).inner_text()
        await page.get_by_role("tab", name="Events").click()
        await page.locator("[data-sequence='0']").wait_for()
        assert await page.locator("[data-sequence]").count() == len(records)
        await page.get_by_role("tab", name="Events").press("ArrowLeft")
        await page.locator("[data-prompt]").first.click()
        assert "You are Agent" in await page.locator("[data-prompt] pre").first.inner_text()

        # Playback goes to a line's place, and the line that is heard is marked.
        await page.locator(".talk .agent button").nth(1).click()
        await page.locator(".talk .agent.now").wait_for()
        at = await page.evaluate("document.querySelector('audio').currentTime")
        assert times[1]["first_audio"] - 0.1 <= at <= times[1]["last_audio"]
        assert await page.locator(".wave .onset").count() == 1
        assert await page.locator(".wave .peaks").count() == 2

        # Personal data only when it is asked for.
        assert NUMBER not in await page.content()
        await page.get_by_label("Show personal data").check()
        await page.locator(".talk .caller", has_text="four seven double one eight two").wait_for()

        # For everyone, at any size, in both colour schemes.
        axe = (await asyncio.to_thread(axe_script)).read_text()
        sizes = (("light", 1360, 900), ("dark", 390, 844))
        for scheme, width, height in sizes:
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": height})
            for name in ("Memory", "Turns", "Flow"):
                await page.get_by_role("tab", name=name).click()
                await page.locator(f"[aria-labelledby='tab-{name}']").wait_for()
                assert await faults_of(page, axe) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await picture(page, f"{width}-{scheme}")

        # By keyboard: back to the list, search, and away with it.
        await page.get_by_role("link", name="← All").press("Enter")
        await page.get_by_label("Id or caller").fill("nobody")
        await page.get_by_text("No conversation fits.").wait_for()
        assert await faults_of(page, axe) == []
        await page.get_by_label("Id or caller").fill("USER")
        await page.locator("#past a").press("Enter")
        await page.get_by_role("button", name="Delete").press("Enter")
        await page.locator("#delete-dialog").get_by_role("button", name="Delete").press("Enter")
        await page.get_by_text("No conversation fits.").wait_for()
        assert await service.store.load("user-42") is None
        assert complaints == []
        assert hosts == {address}


class Mood(Enum):
    CALM = "calm"
    BRISK = "brisk"


class Odd(AgenticWorkflowConfig):
    """What a plugin may declare."""

    title: str = Field(max_length=40)
    mood: Mood = Mood.CALM
    limit: int | None = Field(None, ge=2)
    share: float = Field(0.5, gt=0, le=1)
    is_loud: bool = False
    towns: tuple[str, ...] = ("Bath",)


FIELDS = """async ([scheme, kept, typed]) => {
  const { Field } = await import('/inspect/form.js');
  return Object.entries(scheme.properties).map(([name, property]) => {
    const isRequired = scheme.required.includes(name);
    const field = new Field('odd-' + name, name, property, { root: scheme, isRequired, onChange: () => {} });
    field.keep(kept[name]);
    const before = [field.isChanged, field.read()];
    field.input.value = typed[name];
    field.input.dispatchEvent(new Event('input'));
    const limits = field.element.querySelector('[id$=-limits]').textContent;
    return [name, field.input.type, limits, ...before, field.isChanged, field.unreadable || field.read()];
  });
}"""


async def fields_of_plugins_are_read_and_written(page: Any) -> None:
    """Every kind of field, as pydantic describes it: what is kept is read back, what is typed has its type."""
    kept = {"title": "Us", "mood": "calm", "limit": None, "share": 0.5, "is_loud": False, "towns": ["Bath"]}
    typed = {"title": "We", "mood": '"brisk"', "limit": "7", "share": "0.25", "is_loud": "true", "towns": "[1"}
    assert await page.evaluate(FIELDS, [Odd.model_json_schema(), kept, typed]) == [
        ["title", "textarea", "At most 40 characters.", False, "Us", True, "We"],
        ["mood", "select-one", "Default: “calm”", False, "calm", True, "brisk"],
        ["limit", "number", "A whole number, at least 2. Default: nothing", False, None, True, 7],
        ["share", "number", "A number, at most 1, more than 0. Default: 0.5", False, 0.5, True, 0.25],
        ["is_loud", "select-one", "Default: false", False, False, True, True],
        ["towns", "textarea", 'Written as JSON. Default: ["Bath"]', False, ["Bath"], True, "This is not valid JSON."],
    ]


async def ignored(item: TextItem) -> None:
    """Take what a text turn says."""


async def settings_are_changed(page: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the list to saved settings and back, by keyboard where it matters."""
    settings = service.settings
    await page.get_by_role("link", name="Settings").press("Enter")
    react = page.get_by_role("form", name="ReActAgentConfig")
    await react.get_by_text("not in use").wait_for()
    assert await react.get_by_label("Max iterations").input_value() == "5"
    told = "Model calls within one turn. A whole number, from 1 to 100. Default: 5"
    assert await react.get_by_label("Max iterations").evaluate(DESCRIBED) == told
    assert await react.get_by_label("At limit").locator("option").all_inner_texts() == [
        "default", "finalize", "last_text", "fixed_message",
    ]  # fmt: skip
    assert await page.locator("#unsaved").is_hidden()

    # What does not fit stands at its field, and what was written stays.
    await react.get_by_label("Max iterations").fill("0")
    await react.get_by_label("At limit").select_option("last_text")
    assert await react.locator("[data-field='max_iterations'] .chip", has_text="unsaved").is_visible()
    assert await page.locator("#unsaved").is_visible()
    await react.get_by_role("button", name="Save and use").press("Enter")
    await react.get_by_text("Look at: Max iterations.").wait_for()
    field = react.get_by_label("Max iterations")
    assert await field.evaluate("e => [e === document.activeElement, e.getAttribute('aria-invalid')]") == [True, "true"]
    assert "greater than or equal to 1" in await field.evaluate(DESCRIBED)
    await picture(page, "settings-desktop-light")
    assert settings.all()["selected_configuration"] == "CoreAgenticWorkflowConfig"

    # Neither a store that cannot be written nor a key that is no longer accepted loses it.
    await field.fill("4")

    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "write_setting", away)
        await field.press("Enter")
        await react.get_by_text("Nothing has changed: the disk is full").wait_for()
    key = await page.evaluate("sessionStorage.getItem('voice-agent-key')")
    await page.evaluate("sessionStorage.setItem('voice-agent-key', 'an older key that is gone')")

    saved = asyncio.Event()

    async def late(route: Any) -> None:
        # What is read again with the key arrives when the next save is over, and is older than that.
        answer = await route.fetch()
        async with asyncio.timeout(20):
            await saved.wait()
        await route.fulfill(response=answer)

    await page.route("**/agentic_workflow/settings", late)
    await field.press("Enter")
    await page.get_by_label("Key", exact=True).fill(key)
    await page.get_by_label("Key", exact=True).press("Enter")
    await page.locator("#key-dialog").wait_for(state="hidden")
    assert await field.input_value() == "4"
    await field.press("Enter")
    await react.get_by_text("Saved. The next turns use it.").wait_for()
    assert settings.all()["selected_configuration"] == "ReActAgentConfig"
    value = settings.one("ReActAgentConfig")["value"]
    assert (value["max_iterations"], value["at_limit"], value["max_procedures_calls"]) == (4, "last_text", 10)
    assert await page.locator("#unsaved").is_hidden()

    async with page.expect_response("**/agentic_workflow/settings"):
        saved.set()
    await page.unroute("**/agentic_workflow/settings")
    assert await field.input_value() == "4"

    # Again, to see what it was; a change that is not saved is still there after a look at the list.
    await field.fill("7")
    await react.get_by_role("button", name="Save", exact=True).press("Enter")
    await page.locator(".changes > li").nth(1).wait_for()
    newest = await page.locator(".changes > li").first.text_content()
    assert "ReActAgentConfig.max_iterations: from 4 → to 7" in newest
    assert "key:" in newest
    await react.get_by_label("System prompt").fill("You look twice.")
    await page.go_back()
    await page.get_by_role("link", name="Settings (unsaved)").press("Enter")
    assert await react.get_by_label("System prompt").input_value() == "You look twice."
    axe = (await asyncio.to_thread(axe_script)).read_text()
    for scheme, width, height in (("light", 1360, 900), ("dark", 390, 844)):
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": width, "height": height})
        assert await faults_of(page, axe) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await picture(page, f"settings-{width}-{scheme}")
    await react.get_by_role("button", name="Discard changes").press("Enter")
    await react.get_by_text("The changes were discarded.").wait_for()
    assert await page.locator("#unsaved").is_hidden()


async def test_a_service_with_a_key_is_opened_with_it_and_its_settings_are_changed_by_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a-key-of-more-than-16-characters"
    monkeypatch.setenv("VOICE_AGENT_API_KEY", key)
    model = (tool_call("start_skill", skill="balance"), tool_call("set_fields", account_number=NUMBER))
    service = inspected_service(tmp_path, model=model)
    async with serving(service) as address, chromium() as started:
        await until(lambda: not service.missing)
        await service.texts.turn("by-text", "hello", ignored)
        page = await started.new_page()
        await page.goto(f"http://{address}/inspect")
        field = page.get_by_label("Key", exact=True)
        await field.fill("not the right one at all")
        await field.press("Enter")
        await page.get_by_text("That key is not accepted.").wait_for()
        await field.fill(key)
        await field.press("Enter")
        await page.locator("#link", has_text="live").wait_for()
        await page.locator("#past a", has_text="by-text").click()
        await page.get_by_role("tab", name="Turns").click()
        fall = page.locator(".turn", has_text="hello")
        await fall.get_by_text("to first text").wait_for()
        assert "get_balance answered after" in (await fall.locator("svg").get_attribute("aria-label") or "")
        await picture(page, "text-turns")
        await page.go_back()
        await fields_of_plugins_are_read_and_written(page)
        await settings_are_changed(page, service, monkeypatch)
        assert key not in page.url
