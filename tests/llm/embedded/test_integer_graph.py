"""The graph whose products are integers: nearly the same vectors, of a graph that holds no table in float."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from voice_agent.diagnostics import RemediableError
from voice_agent.llm.embedded import minilm
from voice_agent.llm.embedded.integer_graph import with_integer_products
from voice_agent.llm.embedded.minilm import MiniLm

pytestmark = pytest.mark.models
LINES = ("When are you open on Sunday?", "The router blinks red.", "x", "", "A visit takes an hour. " * 40, "😀 ümlaut")


@pytest.fixture(scope="module")
def integers() -> MiniLm:
    return MiniLm(cached=0, integers=True)


@pytest.mark.parametrize("text", LINES)
def test_a_vector_lies_next_to_the_exact_one(encoder: MiniLm, integers: MiniLm, text: str) -> None:
    vector = integers.encode(text)
    assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-4)
    assert float(vector @ encoder.encode(text)) > 0.98


def test_a_text_has_the_same_vector_every_time(integers: MiniLm) -> None:
    first = integers.encode(LINES[0])
    integers.encode(LINES[4])
    assert np.array_equal(first, integers.encode(LINES[0]))


def test_weights_stay_as_they_were_and_the_last_layer_is_left_alone() -> None:
    import onnx

    before = onnx.load_from_string(minilm._checked(*minilm.MODEL, minilm.MODEL_SHA256))
    after = onnx.load_from_string(with_integer_products(before.SerializeToString()))
    kinds = [node.op_type for node in after.graph.node]
    assert (kinds.count("MatMulInteger"), kinds.count("DynamicQuantizeLinear")) == (30, 20)
    old = {one.name: onnx.numpy_helper.to_array(one) for one in before.graph.initializer}
    new = {one.name: onnx.numpy_helper.to_array(one) for one in after.graph.initializer}
    moved = [name for name in new if name.endswith("_u8")]
    assert len(moved) == 30
    for name in moved:
        assert np.array_equal(new[name].astype(np.int16) - 128, old[name.removesuffix("_u8")])
    assert sum(one.nbytes for one in new.values()) < 24e6


def test_the_package_that_it_takes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(RemediableError, match="onnx") as caught:
        MiniLm(integers=True).load()
    assert "voice-agent[embedded]" in caught.value.remedy
