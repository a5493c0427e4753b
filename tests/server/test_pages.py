"""The call page as a browser asks for it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.lines import RecordingService, serving
from voice_agent.server.pages import ROOT, Pages

KEY = "the-only-key-that-fits"


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    async with serving(RecordingService()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        yield client


def sources() -> list[Path]:
    return [file for file in sorted(ROOT.rglob("*")) if file.suffix in (".html", ".js", ".css", ".svg")]


async def test_the_page_comes_without_a_key_and_only_the_page(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for path in sorted(Pages().paths):
        assert (await client.get(path)).status_code == 200
        assert (await client.head(path)).status_code == 200
    for path in ("/web/", "/web/index.html", "/web/..%2fsecurity.py", "/web/../security.py", "/web/main.js/", "/agent"):
        assert (await client.get(path)).status_code == 401
    assert (await client.get("/agent", headers={"Authorization": f"Bearer {KEY}"})).json()["name"] == "Nora"


async def test_every_file_forbids_what_the_page_does_not_need(client: httpx.AsyncClient) -> None:
    for path in sorted(Pages().paths):
        headers = (await client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"https?:|\*|data:|blob:", policy)
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "microphone=(self)" in headers["permissions-policy"]


async def test_a_page_of_another_host_may_not_read_it(client: httpx.AsyncClient) -> None:
    assert (await client.get("/", headers={"Origin": "https://evil.com"})).status_code == 403


async def test_a_browser_that_has_a_file_already_is_told_so(client: httpx.AsyncClient) -> None:
    first = await client.get("/web/call.css")
    again = await client.get("/web/call.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"]


@pytest.mark.parametrize("file", sources(), ids=lambda file: file.name)
def test_no_file_names_another_host_or_holds_inline_code(file: Path) -> None:
    text = file.read_text()
    names = set(re.findall(r"(?:https?|wss?)://\w[^\s\"'`)$]+", text)) - {
        "http://www.w3.org/2000/svg",
        "http://localhost",
    }
    assert not names
    assert not re.search(
        r"\son\w+=|style=|javascript:|innerHTML|outerHTML|insertAdjacentHTML|eval\(|document\.write", text
    )
    if file.suffix == ".html":
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
        assert "<style" not in text


def test_every_module_is_asked_for_at_once() -> None:
    page = (ROOT / "index.html").read_text()
    asked = set(re.findall(r'"(/web/[\w.]+\.js)"', page))
    assert asked == {f"/web/{file.name}" for file in ROOT.glob("*.js")}
    for file in ROOT.glob("*.js"):
        imported = re.findall(r'from "([^"]+)"', file.read_text())
        assert set(imported) <= asked
        assert len(file.read_text().splitlines()) < 300
