"""What the service asks of recall: in time, and in one transaction or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hashed_words import HashedWords
from voice_agent.config import RecallOptions
from voice_agent.recall.documents import Document
from voice_agent.recall.embedding import EmbeddingFailed
from voice_agent.recall.entries import Episode, Kind, Passage, Who
from voice_agent.recall.index import Forget
from voice_agent.recall.memories import Memories
from voice_agent.recall.sqlite_index import SqliteIndex

ON = {"episodic": {"enabled": True}}


def document(name: str, *texts: str, digest: str = "1") -> Document:
    return Document(name, digest, tuple(Passage("", text, name) for text in texts))


def make(path: Path | None = None, embedder: Any = None, **options: Any) -> Memories:
    embedder = embedder or HashedWords()
    return Memories(
        RecallOptions.model_validate(options),
        SqliteIndex(path),
        lambda: embedder,
        exists=lambda: path is not None and path.exists(),
    )


async def test_off_costs_nothing(tmp_path: Path) -> None:
    def never() -> Any:
        raise AssertionError("the model was loaded")

    index = SqliteIndex(tmp_path / "r")
    off = Memories(RecallOptions(), index, never, exists=lambda: False)
    await off.open()
    assert not (off.is_open or off.fills_prompts or off.knows_documents or off.procedures_above)
    assert (await off.recall("x", Who("a", "c")), await off.search("x", (), 3)) == ((), None)
    assert not (tmp_path / "r").exists()
    await off.aclose()


async def test_what_was_learnt_once_is_there_when_the_service_starts_again(tmp_path: Path) -> None:
    first = make(tmp_path / "r")
    await first.open(wanted=True)
    await first.library.learn(document("a.md", "router words"))
    await first.aclose()
    again = make(tmp_path / "r")
    await again.open()
    assert again.knows_documents
    assert again.fills_prompts
    assert [one.text for one in await again.recall("router", Who("", "c"))] == ["router words"]
    await again.aclose()


async def test_declarative_recall_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    first = make(tmp_path / "r")
    await first.open(wanted=True)
    await first.library.learn(document("a.md", "router words"))
    await first.aclose()
    off = make(tmp_path / "r", declarative={"enabled": False})
    await off.open()
    assert not off.is_open


async def test_a_word_alone_puts_nothing_into_a_prompt_but_is_found_when_searched() -> None:
    memories = make(threshold=0.6)
    await memories.open(wanted=True)
    text = "router " + " ".join(f"filler{n}" for n in range(60))
    await memories.library.learn(document("a.md", text))
    assert await memories.recall("router", Who("", "c")) == []
    assert [one.text for one in await memories.search("router", (), 3) or ()] == [text]
    await memories.aclose()


async def test_a_failing_model_recalls_nothing_and_searches_by_words() -> None:
    embedder = HashedWords()
    memories = make(None, embedder, **ON)
    await memories.open()
    await memories.library.learn(document("a.md", "router words"))
    embedder.fails = True
    assert await memories.recall("router", Who("", "c")) == ()
    assert [one.text for one in await memories.search("router", (), 3) or ()] == ["router words"]
    with pytest.raises(EmbeddingFailed):
        await memories.library.learn(document("a.md", "new words", digest="2"))
    assert [source.digest for source in await memories.library.sources()] == ["1"]
    await memories.aclose()


async def test_tools_are_ranked_by_their_nearest_line(memories: Memories) -> None:
    lines = {"pay": ("pay a bill", "send money"), "visit": ("book a technician",), "mute": ()}
    ranked = await memories.fitting("please send money", lines)
    assert ranked is not None
    assert ranked[0] == "pay"
    assert await memories.fitting("", lines) is None


async def test_many_questions_at_once_while_something_is_learnt(memories: Memories) -> None:
    await memories.library.learn(document("a.md", "router words"))

    async def ask(number: int) -> list[str]:
        await memories.keep([Episode(Who(f"u{number}", f"c{number}"), "t", 1.0, f"router of {number}", "")])
        return [one.text for one in await memories.recall(f"router of {number}", Who(f"u{number}", f"c{number}"))]

    async with asyncio.TaskGroup() as group:
        learning = group.create_task(memories.library.learn(document("b.md", *[f"bill {n}" for n in range(200)])))
        asked = [group.create_task(ask(number)) for number in range(40)]
    assert learning.result().passages == 200
    for number, task in enumerate(asked):
        said = [text for text in task.result() if text.startswith("Caller")]
        assert said == [f"Caller: router of {number}"]


words = st.sampled_from(["router", "bill", "light", "phone", "tax"])
people = st.sampled_from(["", "ann", "bob", "eve", "c1", "c2"])
places = st.sampled_from(["c1", "c2", "c3"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(people, places, st.lists(words, min_size=1, max_size=4)), max_size=25),
    people,
    places,
    st.lists(words, min_size=1, max_size=3),
)
def test_no_caller_is_ever_told_what_another_one_said(
    said: list[tuple[str, str, list[str]]], caller: str, place: str, asked: list[str]
) -> None:
    async def run() -> None:
        memories = make(None, threshold=0.0, k=50, **ON)
        await memories.open()
        owner: dict[str, tuple[str, str]] = {}
        for number, (who, where, what) in enumerate(said):
            text = f"{' '.join(what)} mark{number}"
            owner[f"Caller: {text}"] = who, where
            await memories.keep([Episode(Who(who, where), f"t{number}", 1.0, text, "")])
        for one in await memories.recall(" ".join(asked), Who(caller, place)):
            who, where = owner[one.text]
            assert who == caller != "" or (who == "" and where == place)
        await memories.forget(Forget(caller="ann"))
        assert not [o for o in await memories.recall(" ".join(asked), Who("ann", "none")) if owner[o.text][0] == "ann"]
        await memories.aclose()

    asyncio.run(run())


# --- killed in mid-write -----------------------------------------------------------------------

KILLED = """
import asyncio, sys
from pathlib import Path
from tests.recall.test_memories import document, make
from voice_agent.recall.entries import Episode, Who
from voice_agent.recall.index import Forget

async def main():
    memories = make(Path(sys.argv[1]), episodic={"enabled": True})
    await memories.open(wanted=True)
    n = 0
    while True:
        n += 1
        await memories.library.learn(document("a.md", *[f"edition{n} line{m}" for m in range(30)], digest=str(n)))
        await memories.keep([Episode(Who("ann", "c"), f"{n}-{m}", float(n), f"edition{n}", "") for m in range(10)])
        if n > 2:
            await memories.forget(Forget(older_than=float(n - 1)))
        print(n, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [3, 6, 11])
async def test_a_process_killed_while_it_writes_leaves_whole_texts_only(tmp_path: Path, after: int) -> None:
    path = tmp_path / "recall"
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])},
    )  # fmt: skip
    assert process.stdout is not None
    done = 0
    while done < after:
        done = int(process.stdout.readline())
    await asyncio.sleep(0.001 * after)
    process.send_signal(signal.SIGKILL)
    done = max([done, *map(int, process.stdout.read().split())])
    process.wait()
    memories = make(path, threshold=0.0, k=50, **ON)
    await memories.open()
    (source,) = await memories.library.sources()
    edition = int(source.digest)
    assert source.passages == 30
    assert edition in (done, done + 1)
    found = await memories.search(f"edition{edition} line", (), 50) or ()
    assert {one.text.split()[0] for one in found} == {f"edition{edition}"}
    assert len(found) == 30
    said = [one.moment for one in await memories.recall("edition", Who("ann", "later")) if one.kind is Kind.EPISODE]
    assert all(said.count(moment) == 10 for moment in said)
    assert {done} <= set(said) <= {done - 2, done - 1, done, done + 1}
    await memories.aclose()


# --- quality and size, with the real model -----------------------------------------------------


@pytest.fixture
def report(record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Tell a figure: to whoever runs the tests with ``-s``, and to reports made of them."""

    def tell(line: str) -> None:
        record_property("figure", line)
        with capsys.disabled():
            sys.stderr.write(f"{line}\n")

    return tell


@pytest.mark.models
async def test_the_right_passage_is_found_more_often_than_by_words_alone(report: Callable[[str], None]) -> None:
    from tests.recall.corpus import QUESTIONS, handbook
    from voice_agent.recall.embedding import MiniLmEmbedder
    from voice_agent.recall.words import WordIndex

    passages = handbook()
    assert len(passages) >= 60
    assert len(QUESTIONS) >= 40
    memories = make(None, MiniLmEmbedder())
    await memories.open(wanted=True)
    await memories.library.learn(Document("handbook.md", "1", tuple(passages)))
    keywords = WordIndex(passages)
    ours = by_words = in_prompt = 0
    for question, title in QUESTIONS:
        assert any(one.title.endswith(title) for one in passages)
        found = await memories.search(question, (), 5) or ()
        ours += any(one.title.endswith(title) for one in found)
        in_prompt += any(one.title.endswith(title) for one in await memories.recall(question, Who("", "c")))
        by_words += any(hit.passage.title.endswith(title) for hit in await keywords.search(question, limit=5))
    of = len(QUESTIONS)
    report(f"hit rate at 5: {ours / of:.3f} searched, {in_prompt / of:.3f} in prompts, {by_words / of:.3f} by words")
    assert ours / of >= 0.9
    assert in_prompt / of >= 0.8
    assert ours >= by_words + 0.2 * of
    for small_talk in ("What a nice day", "Tell me a joke", "yes please", "thank you very much"):
        assert await memories.recall(small_talk, Who("", "c")) == []
    await memories.aclose()


@pytest.mark.models
async def test_a_thousand_passages_are_learnt_and_found(tmp_path: Path, report: Callable[[str], None]) -> None:
    from voice_agent.recall.embedding import MiniLmEmbedder

    memories = make(tmp_path / "r", MiniLmEmbedder(threads=2))
    await memories.open(wanted=True)
    texts = [f"Article {n} of the price list costs {n % 97} dollars and weighs {n % 31} pounds." for n in range(1000)]
    began = time.process_time()
    for at in range(0, 1000, 100):
        await memories.library.learn(document(f"{at}.md", *texts[at : at + 100]))
    report(f"learnt {1000 / (time.process_time() - began):.0f} passages of some 20 tokens a second of one core")
    assert sum(source.passages for source in await memories.library.sources()) == 1000
    for number in (7, 512, 999):
        found = await memories.search(f"What does article {number} cost?", (), 5) or ()
        assert any(one.text.startswith(f"Article {number} ") for one in found)
    await memories.aclose()
