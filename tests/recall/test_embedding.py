"""Vectors from a provider: over real HTTP, from a scripted server and from a real model on a llama.cpp server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recall.test_memories import document
from tests.support.dialogue_projects import caller, skill
from tests.support.embedding_server import HANG, Entry, embedding_server, rows
from tests.support.llama_server import LlamaServer
from voice_agent.config import EmbeddingOptions, RecallOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.embedding import REMOTE_BATCH, EmbeddingFailed, build_embedder
from voice_agent.recall.entries import Who
from voice_agent.recall.memories import Memories
from voice_agent.recall.sqlite_index import SqliteIndex
from voice_agent.telemetry.metrics import RECALL_FAILURES, RECALL_LATE

ANYBODY = Who("", "c")


def options(base_url: str, **more: Any) -> EmbeddingOptions:
    return EmbeddingOptions(provider="openai", model="small", base_url=base_url, **{"timeout_s": 10, **more})


def vector(text: str, size: int = 4) -> list[float]:
    """Texts with the same first letter have the same direction; lengths differ."""
    found = [0.0] * size
    found[ord(text[0]) % size] = 1.0 + len(text)
    return found


def right(texts: Sequence[str]) -> list[dict[str, Any]]:
    return rows([vector(text) for text in texts])


def of_size(size: int) -> Entry:
    return lambda texts: rows([vector(text, size) for text in texts])


async def opened(base_url: str, path: Path | None = None, budget_ms: int = 150, **more: Any) -> Memories:
    recall = RecallOptions(embeddings=options(base_url, **more), budget_ms=budget_ms)
    memories = Memories(recall, SqliteIndex(path), lambda: build_embedder(recall.embeddings), exists=lambda: True)
    await memories.open(wanted=True)
    return memories


async def test_rows_are_put_in_the_order_of_the_texts_and_made_unit_length() -> None:
    async with embedding_server(lambda texts: rows([vector(text) for text in texts], order=(2, 0, 1))) as server:
        found = await build_embedder(options(server.base_url)).embed(["aa", "b", "ccc"])
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert [int(row.argmax()) for row in found] == [ord(letter) % 4 for letter in "abc"]


async def test_many_texts_go_in_batches_and_come_back_in_order() -> None:
    texts = [chr(ord("a") + n % 4) * (1 + n) for n in range(2 * REMOTE_BATCH + 3)]
    async with embedding_server(right) as server:
        found = await build_embedder(options(server.base_url)).embed(texts)
    assert [len(batch) for batch in server.asked] == [REMOTE_BATCH, REMOTE_BATCH, 3]
    assert [int(row.argmax()) for row in found] == [ord(text[0]) % 4 for text in texts]


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: right(texts)[:-1],
        lambda texts: [*right(texts), *right(texts[:1])],
        lambda texts: [{**row, "index": 0} for row in right(texts)],
        lambda texts: rows([vector(text, 4 + n) for n, text in enumerate(texts)]),
        lambda texts: rows([[] for _ in texts]),
        lambda texts: rows([["x"] for _ in texts]),
        lambda texts: [],
    ],
    ids=["one too few", "one too many", "one index twice", "sizes differ", "empty", "no numbers", "nothing"],
)
async def test_an_answer_that_does_not_fit_the_texts_is_no_answer(answer: Entry) -> None:
    async with embedding_server(answer) as server:
        with pytest.raises(EmbeddingFailed, match="openai/small"):
            await build_embedder(options(server.base_url)).embed(["a", "b"])


async def test_a_model_that_changes_its_size_behind_its_name_is_noticed_at_once_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async with embedding_server(right, right, of_size(5)) as server:
        memories = await opened(server.base_url, tmp_path / "r")
        await memories.library.learn(document("a.md", "aaa words"))
        assert [one.text for one in await memories.recall("a question", ANYBODY)] == ["aaa words"]
        before = RECALL_FAILURES._value.get()
        assert await memories.recall("a question", ANYBODY) == ()
        assert RECALL_FAILURES._value.get() == before + 1
        await memories.aclose()
        again = await opened(server.base_url, tmp_path / "r")
        assert await again.recall("a question", ANYBODY) == ()
        assert [one.text for one in await again.search("words", (), 3) or ()] == ["aaa words"]
        with pytest.raises(Exception, match="vectors of 5 numbers, and those in the index have 4"):
            await again.library.learn(document("b.md", "bbb words"))
        assert [source.name for source in await again.library.sources()] == ["a.md"]
        await again.aclose()


@pytest.mark.parametrize("status", [401, 400])
async def test_a_refusal_is_no_recall_and_no_answer_to_learning(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async with embedding_server(right, right, status) as server:
        memories = await opened(server.base_url)
        await memories.library.learn(document("a.md", "aaa words"))
        await memories.recall("a question", ANYBODY)
        before = RECALL_FAILURES._value.get()
        assert await memories.recall("a secret question", ANYBODY) == ()
        assert RECALL_FAILURES._value.get() == before + 1
        with pytest.raises(EmbeddingFailed, match="openai/small"):
            await memories.library.learn(document("b.md", "bbb words"))
        assert [one.text for one in await memories.search("words", (), 3) or ()] == ["aaa words"]
        await memories.aclose()
    assert "secret question" not in caplog.text


async def test_the_providers_own_key_is_not_sent_to_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai")
    monkeypatch.setenv("OUR_KEY", "for-this-server")
    async with embedding_server(right) as server:
        await build_embedder(options(server.base_url)).embed(["a"])
        await build_embedder(options(server.base_url, api_key_env="OUR_KEY")).embed(["a"])
    assert "sk-for-openai" not in server.keys[0]
    assert server.keys[1] == "bearer for-this-server"
    monkeypatch.delenv("OUR_KEY")
    with pytest.raises(RemediableError, match="OUR_KEY"):
        build_embedder(options("http://127.0.0.1:1/v1", api_key_env="OUR_KEY"))


async def test_a_turn_does_not_wait_for_a_server_that_hangs_and_it_is_counted(tmp_path: Path) -> None:
    async with embedding_server(right, right, HANG) as server:
        memories = await opened(server.base_url, budget_ms=50)
        await memories.library.learn(document("a.md", "aaa words"))
        await memories.recall("a question", ANYBODY)
        before = RECALL_LATE._value.get()
        bench = caller(tmp_path, {"skills/a/skill.md": skill("Help.")}, ["I do not know."], recalls=memories)
        assert (await bench.says("a question about words")).messages == ["I do not know."]
        assert RECALL_LATE._value.get() == before + 1
        assert "aaa words" not in bench.model.requests[-1].messages[0].content
        await memories.aclose()


async def test_a_request_ends_at_its_time_limit() -> None:
    async with embedding_server(HANG) as server:
        with pytest.raises(EmbeddingFailed, match="Timeout"):
            await build_embedder(options(server.base_url, timeout_s=0.2)).embed(["a"])


@pytest.mark.models
async def test_a_real_model_learns_and_finds(llama_server: LlamaServer, tmp_path: Path) -> None:
    memories = await opened(llama_server.embeddings_url, tmp_path / "r", timeout_s=60)
    texts = ("The router blinks red when there is no signal.", "Bananas are yellow and sweet.", "We open at nine.")
    await memories.library.learn(document("a.md", *texts))
    for text in texts:
        (best, *_) = await memories.recall(text, ANYBODY)
        assert best.text == text
        assert best.score > 0.99
    await memories.aclose()
