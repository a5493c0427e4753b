"""Fixtures of the language model tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.llama_server import LlamaServer
from tests.support.llama_server import llama_server as start_llama_server


@pytest.fixture(scope="session")
def llama_server() -> Iterator[LlamaServer]:
    with start_llama_server() as server:
        yield server
