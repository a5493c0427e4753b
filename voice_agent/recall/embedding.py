"""Sentences to vectors, off the event loop: the bundled MiniLM, or any embedding model that litellm knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from voice_agent.config import EmbeddingOptions
from voice_agent.diagnostics import RemediableError, missing_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from voice_agent.llm.embedded.minilm import MiniLm

MAX_WAITING = 64
"""Requests that may wait for the encoder; a turn that comes beyond goes on without."""
REMOTE_BATCH = 64
"""Texts in one request to a provider."""
CACHED = 512


class EmbeddingFailed(Exception):
    """No vectors, now: too many wait, or the provider failed."""


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def identity(self) -> str:
        """What made a vector; vectors of different identities must never be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors, shape (texts, dimensions), each of unit length.

        Raises:
            EmbeddingFailed: Not now.
            RemediableError: Not at all: a package, file or key is missing.
        """
        ...

    async def aclose(self) -> None: ...


def build_embedder(options: EmbeddingOptions, threads: int = 1) -> Embedder:
    """Build the configured embedder; loads nothing yet.

    Args:
        threads: Of the bundled model.

    Raises:
        RemediableError: An unknown model, a missing package or key.
    """
    if options.provider != "embedded":
        return LiteLlmEmbedder(options)
    if options.model != "minilm":
        raise RemediableError(
            f"There is no embedded embedding model {options.model!r}.",
            "Set recall.embeddings.model to 'minilm', or choose a provider that litellm knows.",
        )
    return MiniLmEmbedder(threads=threads)


class MiniLmEmbedder:
    """MiniLM on threads of its own, with products of integers (`voice_agent.llm.embedded.integer_graph`).

    Each thread is given one text at a time, so that a caller's question waits for one passage of a document that is
    being learnt and not for a whole batch. Batches, sorted by length or not, were measured to save next to nothing, and
    in one a text's vector would depend on those beside it.

    Args:
        threads: How many texts are computed at once: one beside calls, more where nobody is on the line.
    """

    def __init__(self, encoder: MiniLm | None = None, *, threads: int = 1) -> None:
        from voice_agent.llm.embedded.integer_graph import REVISION
        from voice_agent.llm.embedded.minilm import DIMENSIONS, MODEL_SHA256, MiniLm

        self._encoder = encoder or MiniLm(cached=CACHED, integers=True)
        self._threads = threads
        self._thread = ThreadPoolExecutor(threads, "recall-embedding")
        self._waiting = 0
        self.identity = f"embedded/minilm@{MODEL_SHA256[:12]}/{DIMENSIONS}/{REVISION}"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if self._waiting >= MAX_WAITING:
            raise EmbeddingFailed(f"{self._waiting} requests wait for the sentence encoder")
        self._waiting += 1
        try:
            found = await self._encoded(texts)
        except RuntimeError as fault:  # the thread was shut down before
            raise EmbeddingFailed(str(fault)) from fault
        finally:
            self._waiting -= 1
        return np.stack(found) if found else np.zeros((0, 0), np.float32)

    async def _encoded(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """As many texts as there are threads are under way; the next one begins as soon as one is done."""
        loop = asyncio.get_running_loop()
        found: dict[int, NDArray[np.float32]] = {}
        left = iter(enumerate(texts))

        async def work() -> None:
            for number, text in left:
                found[number] = await loop.run_in_executor(self._thread, self._encoder.encode, text)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._threads, len(texts))):
                    group.create_task(work())
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        return [found[number] for number in range(len(texts))]

    async def aclose(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class LiteLlmEmbedder:
    """A provider's embedding model. Its texts leave this machine."""

    def __init__(self, options: EmbeddingOptions) -> None:
        import importlib.util

        if importlib.util.find_spec("litellm") is None:
            raise missing_package("litellm", "litellm")
        self._options = options
        self._key = _key(options)
        place = f"@{options.base_url}" if options.base_url else ""
        self.identity = f"{options.provider}/{options.model}{place}"
        self._slots = asyncio.Semaphore(4)
        self._waiting = 0
        self._size: int | None = None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if self._waiting >= MAX_WAITING:
            raise EmbeddingFailed(f"{self._waiting} requests wait for {self.identity}")
        self._waiting += 1
        try:
            parts = [await self._request(texts[at : at + REMOTE_BATCH]) for at in range(0, len(texts), REMOTE_BATCH)]
        finally:
            self._waiting -= 1
        if not parts:
            return np.zeros((0, 0), np.float32)
        vectors = np.concatenate(parts)
        unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return unit

    async def _request(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from voice_agent.llm.litellm_model import NO_KEY, import_litellm

        litellm = await asyncio.to_thread(import_litellm)
        options = self._options
        given: dict[str, Any] = {"api_key": self._key} if self._key else {}
        if options.base_url:
            # A key in the provider's own variable is meant for the provider, not for whoever answers there.
            given = {"api_key": self._key or NO_KEY, "api_base": options.base_url}
        async with self._slots:
            try:
                # litellm's client tries again by itself; the limit is on all of it.
                async with asyncio.timeout(options.timeout_s):
                    answer = await litellm.aembedding(
                        model=f"{options.provider}/{options.model}",
                        input=list(texts),
                        timeout=options.timeout_s,
                        encoding_format="float",
                        **given,
                    )
                found = self._vectors(answer.data, len(texts))
            except EmbeddingFailed:
                raise
            except Exception as fault:
                raise EmbeddingFailed(f"{self.identity} failed: {type(fault).__name__}") from fault
        self._size = found.shape[1]
        return found

    def _vectors(self, rows: Sequence[Any], count: int) -> NDArray[np.float32]:
        """Return the vectors in the order of the texts, which is that of ``index`` and need not be that of the rows."""
        import numpy as np

        by_index = {row["index"]: row["embedding"] for row in rows}
        sizes = {len(vector) for vector in by_index.values()}
        if len(rows) != count or by_index.keys() != set(range(count)) or len(sizes) != 1 or sizes == {0}:
            raise EmbeddingFailed(f"{self.identity} returned no vector for each text")
        vectors = np.asarray([by_index[index] for index in range(count)], np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise EmbeddingFailed(f"{self.identity} returned what is no vector")
        if self._size not in (None, vectors.shape[1]):
            raise EmbeddingFailed(
                f"{self.identity} returned {vectors.shape[1]} numbers a text, and {self._size} before: another model "
                "answers under its name"
            )
        return vectors

    async def aclose(self) -> None:
        pass


def _key(options: EmbeddingOptions) -> str | None:
    import os

    if options.api_key_env is None:
        return None  # litellm reads the provider's own variable
    key = os.environ.get(options.api_key_env)
    if not key:
        raise RemediableError(
            f"Embeddings of {options.provider}/{options.model} need a key, and {options.api_key_env} is not set.",
            f"Set the environment variable {options.api_key_env}, or set recall.embeddings.provider to 'embedded'.",
        )
    return key
