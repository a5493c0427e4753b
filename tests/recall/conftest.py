from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.recall.test_memories import ON, make
from voice_agent.recall.memories import Memories


@pytest.fixture
async def memories() -> AsyncIterator[Memories]:
    """Everything switched on, in memory, and open."""
    made = make(**ON)
    await made.open()
    yield made
    await made.aclose()
