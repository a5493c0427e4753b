"""What servers return becomes data for a model: bounded, and never bytes in base64."""

from __future__ import annotations

import json
from typing import Any

import pytest

mcp_types = pytest.importorskip("mcp_types")

from voice_agent.mcp.results import MAX_PARTS, MAX_RESULT_CHARS, in_words, to_data  # noqa: E402


def text(content: str) -> Any:
    return mcp_types.TextContent(type="text", text=content)


def image(data: str = "AAAA" * 1000) -> Any:
    return mcp_types.ImageContent(type="image", data=data, mime_type="image/png")


def test_text_is_text_and_json_text_is_data() -> None:
    assert to_data([text("Hello."), text("World.")]) == {"text": "Hello.\nWorld."}
    assert to_data([text('{"ok": false, "error": "closed"}')]) == {"ok": False, "error": "closed"}
    assert to_data([text("{not json}")]) == {"text": "{not json}"}
    assert to_data([text("[1]")]) == {"text": "[1]"}
    assert to_data([]) == {"text": ""}


def test_structured_content_stands_for_the_text_beside_it() -> None:
    assert to_data([text('{"a": 1}')], {"a": 1}) == {"a": 1}
    assert to_data([], [1, 2]) == {"result": [1, 2]}


def test_what_is_no_text_is_described_and_its_bytes_stay_out() -> None:
    found = to_data([text("Here."), image()], None)
    assert found == {"text": "Here.\n[image, image/png, 3 kB; not shown]"}
    assert to_data([image()], {"a": 1}) == {"a": 1, "attachments": ["[image, image/png, 3 kB; not shown]"]}


def test_embedded_text_is_read_and_embedded_bytes_are_named() -> None:
    held = mcp_types.TextResourceContents(uri="file:///a.txt", text="Terms apply.")
    blob = mcp_types.BlobResourceContents(uri="file:///a.pdf", mime_type="application/pdf", blob="AAAA")
    blocks = [mcp_types.EmbeddedResource(type="resource", resource=each) for each in (held, blob)]
    assert to_data(blocks)["text"] == "Terms apply.\n[file file:///a.pdf, application/pdf, 3 bytes; not shown]"


@pytest.mark.parametrize("size", [MAX_RESULT_CHARS, MAX_RESULT_CHARS + 1, 3_000_000])
def test_results_are_bounded(size: int) -> None:
    assert len(to_data([text("x" * size)])["text"]) <= MAX_RESULT_CHARS + 60
    assert len(json.dumps(to_data([], {"a": "x" * size}))) <= MAX_RESULT_CHARS + 60
    assert len(in_words([text("x" * size)])) <= MAX_RESULT_CHARS + 60
    assert len(to_data([text("a")] * size)["text"]) < MAX_PARTS * 3 + 60
