"""Static pages come with the headers that keep them harmless, and nothing else of the package is served."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.support.lines import serving, until
from tests.support.small_service import small_service
from voice_agent.server.inspection import pages
from voice_agent.server.pages import ROOT, TYPES


async def test_pages_have_a_strict_policy_their_type_and_a_tag(tmp_path: Path) -> None:
    service = small_service(tmp_path)
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await until(lambda: not service.missing)
        for path, kind in (("/inspect", "html"), ("/inspect/inspect.css", "css"), ("/inspect/main.js", "js")):
            got = await client.get(path)
            assert (got.status_code, got.headers["content-type"]) == (200, TYPES[f".{kind}"])
            policy = got.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
            assert got.headers["x-content-type-options"] == "nosniff"
            again = await client.get(path, headers={"if-none-match": got.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            assert (await client.get(path, headers={"if-none-match": '"other"'})).status_code == 200


@pytest.mark.parametrize("name", ["nothing.js", "..%2f..%2fsecurity.py", "../../agent.yml", "%2e%2e/main.js", "", "."])
async def test_nothing_but_pages_is_served(tmp_path: Path, name: str) -> None:
    service = small_service(tmp_path)
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await until(lambda: not service.missing)
        got = await client.get(f"/inspect/{name}")
        assert "def " not in got.text
        assert got.status_code in (307, 404) or got.headers["content-type"] == TYPES[".html"]


def test_pages_name_no_other_host_and_no_script_of_their_own_inline() -> None:
    assert {"/inspect", "/inspect/main.js", "/inspect/inspect.css"} <= pages().paths
    for path in sorted((ROOT / "inspect").iterdir()):
        text = path.read_text()
        foreign = [url for url in re.findall(r"https?://[^\s\"')]+", text) if "www.w3.org/2000/svg" not in url]
        assert not foreign, path
        assert "innerHTML" not in text and "<script>" not in text and " style=" not in text
