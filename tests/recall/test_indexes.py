"""The embedded index and Qdrant keep the same contract."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recall.index_contract import ANN, WORDS, IndexContract, found, learn, recalled, say
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.entries import Kind, Passage, Source
from voice_agent.recall.index import Forget, Index, IndexUnavailable, OtherModel
from voice_agent.recall.qdrant_index import QdrantIndex
from voice_agent.recall.sqlite_index import SqliteIndex


class TestFile(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[Index]:
        index = SqliteIndex(tmp_path / "deep" / "recall.sqlite3")
        index.open(WORDS.identity)
        yield index
        index.close()

    @pytest.fixture
    def reopened(self, index: SqliteIndex) -> Callable[[str], tuple[Index, int]]:
        def reopen(identity: str) -> tuple[Index, int]:
            index.close()
            other = SqliteIndex(index.path)
            return other, other.open(identity)

        return reopen


class TestMemory(IndexContract):
    @pytest.fixture
    def index(self) -> Iterator[Index]:
        index = SqliteIndex(None)
        index.open(WORDS.identity)
        yield index
        index.close()

    @pytest.fixture
    def reopened(self, index: Index) -> Callable[[str], tuple[Index, int]]:
        """With all that is known told again: what is in memory is gone when it is closed."""

        def reopen(identity: str) -> tuple[Index, int]:
            index.close()
            other = SqliteIndex(None)
            assert (other.open(identity), other.sources(Kind.DOCUMENT)) == (0, [])
            return other, 0

        return reopen

    def test_vectors_of_another_model_are_taken_away_and_made_anew(
        self, index: Index, reopened: Callable[[str], tuple[Index, int]]
    ) -> None:
        learn(index, "a.md", "router words")
        other, waiting = reopened("test/other")
        assert (waiting, found(other, "router words"), other.pending(2)) == (0, [], [])


class TestQdrant(IndexContract):
    """On the client's own in-memory mode: the same calls that a server is asked."""

    @pytest.fixture
    def client(self) -> Iterator[Any]:
        from qdrant_client import QdrantClient

        client = QdrantClient(":memory:")
        yield client
        client.close()

    @pytest.fixture
    def index(self, client: Any) -> Index:
        index = QdrantIndex(lambda: client, "voice-agent-test")
        index.open(WORDS.identity)
        return index

    @pytest.fixture
    def reopened(self, client: Any) -> Callable[[str], tuple[Index, int]]:
        def reopen(identity: str) -> tuple[Index, int]:
            other = QdrantIndex(lambda: client, "voice-agent-test")
            return other, other.open(identity)

        return reopen

    def test_another_agent_on_the_same_server_is_left_alone(self, client: Any, index: Index) -> None:
        learn(index, "a.md", "router words")
        other = QdrantIndex(lambda: client, "voice-agent-other")
        assert other.open("test/elsewhere") == 0
        assert found(other, "router words") == []
        assert found(index, "router words") == ["router words"]


def test_a_server_that_is_not_there_is_named_with_a_remedy() -> None:
    from voice_agent.recall.qdrant_requests import connect

    index = QdrantIndex(lambda: connect("http://127.0.0.1:9", None), "x", "the Qdrant server at http://127.0.0.1:9")
    with pytest.raises(RemediableError, match=r"http://127.0.0.1:9 cannot be used for recall.*embedded"):
        index.open("m")
    with pytest.raises(IndexUnavailable):
        index.sources(Kind.DOCUMENT)


def test_the_file_is_for_its_owner_and_keeps_no_forgotten_word(tmp_path: Path) -> None:
    path = tmp_path / "recall.sqlite3"
    index = SqliteIndex(path)
    index.open("m")
    say(index, ANN, "the word is xylophonist")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert index.forget(Forget(caller="ann")) == 1
    everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xylophonist" not in everything
    index.close()


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_foreign_or_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recall.sqlite3"
    path.write_bytes(content)
    with pytest.raises(RemediableError, match=r"recall\.sqlite3.*recall\.index\.path"):
        SqliteIndex(path).open("m")
    assert path.read_bytes() == content


def test_a_database_of_conversations_is_not_taken_for_an_index(tmp_path: Path) -> None:
    from voice_agent.store.database import prepare

    prepare(tmp_path / "calls.sqlite3")
    with pytest.raises(RemediableError, match="another program"):
        SqliteIndex(tmp_path / "calls.sqlite3").open("m")


def test_two_processes_on_one_file_see_what_the_other_learns(tmp_path: Path) -> None:
    one, two = SqliteIndex(tmp_path / "r"), SqliteIndex(tmp_path / "r")
    one.open("m"), two.open("m")
    learn(one, "a.md", "router words")
    assert found(two, "router words") == ["router words"]
    learn(two, "a.md", "other words", digest="2")
    assert found(one, "router other words") == ["other words"]
    say(two, ANN, "my router")
    assert recalled(one, "router", ANN) == ["Caller: my router"]
    one.close(), two.close()


def test_a_process_with_another_model_is_told_instead_of_mixing_vectors(tmp_path: Path) -> None:
    one, two = SqliteIndex(tmp_path / "r"), SqliteIndex(tmp_path / "r")
    one.open("model one")
    learn(one, "a.md", "router words")
    two.open("model two")
    for work in (lambda: found(one, "router"), lambda: recalled(one, "x", ANN), lambda: learn(one, "b.md", "x")):
        with pytest.raises(OtherModel, match=r"model two.*model one.*recall\.embeddings"):
            work()
    one.close(), two.close()


def test_words_of_a_query_are_never_operators() -> None:
    index = SqliteIndex(None)
    index.open("m")
    learn(index, "a.md", "router words")
    for question in ('router" OR "', "NOT router", "router AND", "title:router", "(((", "router*", "-router", ""):
        index.search_words(question, documents=True, owners=(), limit=5)
    assert [hit.text for hit in index.search_words("NOT router", documents=True, owners=(), limit=5)] == [
        "router words"
    ]
    index.close()


@pytest.mark.parametrize(
    "damage",
    ["UPDATE passages SET vector = x'0011'", "UPDATE passages SET vector = x''", "DELETE FROM facts"],
)
def test_a_damaged_content_is_no_recall_and_no_crash(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "index"
    index = SqliteIndex(path)
    index.open("m")
    index.replace(Source(Kind.DOCUMENT, "", "a", "d"), [Passage("t", "words", "a")], np.ones((1, 4), np.float32))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    vector = np.ones(4, np.float32)
    with pytest.raises(IndexUnavailable, match="learn anew"):
        index.search(vector, "words", documents=True, owners=(), limit=3, threshold=0.0)
    with pytest.raises(IndexUnavailable, match="learn anew"):
        index.replace(Source(Kind.DOCUMENT, "", "b", "d"), [Passage("t", "more", "b")], vector.reshape(1, 4))
    assert index.search_words("words", documents=True, owners=(), limit=3)
    index.close()
