"""The real sentence encoder, loaded once."""

from __future__ import annotations

import pytest

from voice_agent.llm.embedded.minilm import MiniLm


@pytest.fixture(scope="session")
def encoder() -> MiniLm:
    encoder = MiniLm()
    encoder.load()
    return encoder
