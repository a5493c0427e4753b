"""What was learnt: documents, and the references of a project."""

from __future__ import annotations

import pytest

from tests.recall.test_memories import ON, document, make
from voice_agent.recall.entries import Kind
from voice_agent.recall.index import IndexUnavailable
from voice_agent.recall.memories import Memories


async def test_references_follow_the_project(memories: Memories) -> None:
    references = {"": [document("r.md", "old words")], "desk": [document("d.md", "x")]}
    assert await memories.library.learn_references(references) == 2
    assert memories.has_references("desk")
    assert await memories.library.learn_references({"": [document("r.md", "old words")]}) == 0
    assert not memories.has_references("desk")
    assert [s.name for s in await memories.library.sources(Kind.REFERENCE)] == ["r.md"]


async def test_a_closed_library_holds_nothing_and_learns_nothing() -> None:
    closed = make(**ON)
    with pytest.raises(IndexUnavailable):
        await closed.library.learn(document("a.md", "router words"))
    assert await closed.library.sources() == ()
    assert not await closed.library.unlearn("a.md")
    assert await closed.library.fill() == 0
    await closed.aclose()
    await closed.aclose()
