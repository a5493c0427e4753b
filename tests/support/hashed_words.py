"""An embedder without weights: a vector counts the words of a text. Texts that share words lie near each other."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.recall.embedding import EmbeddingFailed
from voice_agent.recall.words import words

DIMENSIONS = 1024


class HashedWords:
    """Implements `Embedder`.

    Args:
        delay_s: How long each request takes.
        spread: Makes the vectors of one model differ from those of another.
    """

    def __init__(self, identity: str = "test/words", *, delay_s: float = 0.0, spread: int = 0) -> None:
        self.identity, self.delay_s, self.spread = identity, delay_s, spread
        self.asked: list[str] = []
        self.running = 0
        self.fails = False
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.running += 1
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.running -= 1
        if self.fails:
            raise EmbeddingFailed("out of order")
        self.asked += texts
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> Any:
        found = np.zeros(DIMENSIONS, np.float32)
        for word in words(text):
            found[(zlib.crc32(word.encode()) + self.spread) % DIMENSIONS] += 1
        return found / max(float(np.linalg.norm(found)), 1e-9)

    async def aclose(self) -> None:
        self.closed = True
