"""What every index must do; run for each of them by `test_indexes`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.hashed_words import HashedWords
from voice_agent.recall.entries import Episode, Kind, Passage, Source, Who
from voice_agent.recall.index import Forget, Index

WORDS = HashedWords()
ANN, BOB = Who("ann", "c-ann"), Who("bob", "c-bob")


def vectors(*texts: str):  # type: ignore[no-untyped-def]
    return np.stack([WORDS.vector(text) for text in texts])


def learn(index: Index, name: str, *texts: str, kind: Kind = Kind.DOCUMENT, owner: str = "", digest: str = "1") -> None:
    index.replace(
        Source(kind, owner, name, digest, 5.0, len(texts)), [Passage("", t, name) for t in texts], vectors(*texts)
    )


def say(index: Index, who: Who, *texts: str, moment: float = 100.0) -> None:
    episodes = [Episode(who, f"t{n}-{text}", moment + n, text, "") for n, text in enumerate(texts)]
    index.keep(episodes, vectors(*(episode.text for episode in episodes)))


def found(index: Index, question: str, *, owners: tuple[str, ...] = (), documents: bool = True) -> list[str]:
    hits = index.search(WORDS.vector(question), question, documents=documents, owners=owners, limit=5, threshold=0.2)
    return [hit.text for hit in hits]


def recalled(index: Index, question: str, who: Who) -> list[str]:
    return [hit.text for hit in index.episodes(WORDS.vector(question), who, limit=5, threshold=0.2)]


class IndexContract:
    @pytest.fixture
    def index(self) -> Index:
        raise NotImplementedError

    def test_a_learnt_passage_is_found_with_its_source(self, index: Index) -> None:
        learn(index, "router.md", "The router blinks green", "Bills are due monthly")
        (hit, *_) = index.search(
            WORDS.vector("green router"), "green router", documents=True, owners=(), limit=1, threshold=0.2
        )
        assert (hit.text, hit.source, hit.kind) == ("The router blinks green", "router.md", Kind.DOCUMENT)
        assert 0.5 < hit.score <= 1.001

    def test_an_empty_index_finds_nothing(self, index: Index) -> None:
        assert found(index, "router") == recalled(index, "router", ANN) == []
        assert index.sources(Kind.DOCUMENT) == index.conversations() == []
        assert not index.remove(Kind.DOCUMENT, "", "nothing")
        assert index.forget(Forget(caller="ann")) == 0

    def test_learning_again_replaces_what_was_there(self, index: Index) -> None:
        learn(index, "a.md", "old router words", "more old words")
        learn(index, "a.md", "new router words", digest="2")
        assert found(index, "old new router words") == ["new router words"]
        (source,) = index.sources(Kind.DOCUMENT)
        assert (source.digest, source.passages) == ("2", 1)

    def test_a_removed_text_is_not_found(self, index: Index) -> None:
        learn(index, "a.md", "router words")
        assert index.remove(Kind.DOCUMENT, "", "a.md")
        assert found(index, "router words") == []

    def test_references_are_found_for_their_owner_only(self, index: Index) -> None:
        learn(index, "r.md", "secret router words", kind=Kind.REFERENCE, owner="billing")
        learn(index, "r.md", "shared router words", kind=Kind.REFERENCE)
        assert found(index, "router words") == []
        assert found(index, "router words", owners=("",)) == ["shared router words"]
        assert set(found(index, "router words", owners=("billing", ""))) == {
            "secret router words",
            "shared router words",
        }

    def test_an_episode_is_recalled_by_its_caller_only(self, index: Index) -> None:
        say(index, ANN, "my router is broken")
        say(index, BOB, "my router works")
        assert recalled(index, "router", Who("ann", "later")) == ["Caller: my router is broken"]
        assert recalled(index, "router", Who("", "later")) == recalled(index, "router", Who("eve", "later")) == []

    def test_a_conversation_of_nobody_known_is_recalled_in_itself_only(self, index: Index) -> None:
        say(index, Who("", "web-1"), "my router is broken")
        assert recalled(index, "router", Who("", "web-1")) == ["Caller: my router is broken"]
        assert recalled(index, "router", Who("", "web-2")) == recalled(index, "router", Who("web-1", "web-3")) == []

    def test_what_another_caller_said_in_the_same_conversation_stays_theirs(self, index: Index) -> None:
        say(index, Who("ann", "shared"), "my router is broken")
        assert recalled(index, "router", Who("bob", "shared")) == recalled(index, "router", Who("", "shared")) == []

    def test_a_turn_is_kept_once(self, index: Index) -> None:
        say(index, ANN, "my router is broken")
        say(index, ANN, "my router is broken")
        assert len(recalled(index, "router", ANN)) == 1

    @pytest.mark.parametrize(
        ("what", "left"),
        [
            (Forget(conversation="c-ann"), {"bob"}),
            (Forget(caller="bob"), {"ann"}),
            (Forget(older_than=1000.0), set()),
            (Forget(older_than=50.0), {"ann", "bob"}),
            (Forget(caller="ann", older_than=100.5), {"bob"}),
        ],
    )
    def test_what_is_forgotten_is_gone(self, index: Index, what: Forget, left: set[str]) -> None:
        say(index, ANN, "router ann")
        say(index, BOB, "router bob")
        learn(index, "a.md", "router document")
        assert index.forget(what) == 2 - len(left)
        assert {who.caller for who in (ANN, BOB) if recalled(index, "router", who)} == left
        assert found(index, "router document") == ["router document"]

    def test_odd_texts_do_no_harm(self, index: Index) -> None:
        odd = ["{braces} %s ${x}", "quotes \" and ' NEAR(a b) OR *", "emoji \U0001f600", "half \ud83d", "NUL \x00 end"]
        for n, text in enumerate(odd):
            safe = text.encode("utf-8", "replace").decode()
            learn(index, f"{n}.md", safe)
            found(index, text.encode("utf-8", "replace").decode())
        assert len(index.sources(Kind.DOCUMENT)) == len(odd)

    def test_vectors_of_another_model_are_taken_away_and_made_anew(
        self, index: Index, reopened: Callable[[str], tuple[Index, int]]
    ) -> None:
        learn(index, "a.md", "router words", "bill words")
        say(index, ANN, "my router is broken")
        other, waiting = reopened("test/other")
        assert waiting == 3
        assert [
            hit.score
            for hit in other.search(WORDS.vector("router"), "zebra", documents=True, owners=(), limit=5, threshold=0.0)
        ] == []
        assert recalled(other, "router", ANN) == []
        while pending := other.pending(2):
            other.fill(pending, vectors(*(one.text for one in pending)))
        assert found(other, "router words")[0] == "router words"
        assert recalled(other, "router", ANN) == ["Caller: my router is broken"]
        assert [source.name for source in other.sources(Kind.DOCUMENT)] == ["a.md"]
