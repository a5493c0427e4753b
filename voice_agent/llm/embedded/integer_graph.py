"""Rewrites the graph of MiniLM so that its products are made of integers, which takes three quarters of the CPU.

::

    as it comes   weight (int8) ─ Cast ─ Mul scale ─┐            the engine folds this to float32 when it loads
                                               x ─ MatMul
    rewritten     x ─ DynamicQuantizeLinear ─┐
                          weight (uint8) ─ MatMulInteger ─ Cast ─ Mul (scale of x · scale of weight)

The weights keep all of their bits: they move from int8 to uint8, since sums of uint8 times int8 overflow on
processors that have AVX2 and no VNNI. Only activations are rounded, each text by scales of its own, so a text has the
same vector whatever stands beside it. The last layer stays in float: nothing after it evens out what is rounded there
(measured on the labelled questions of the tests). Vectors differ from those of the graph as it comes (cosine 0.99), so
the two must never be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from voice_agent.diagnostics import missing_package

REVISION = "integers-1"
"""Stands in the identity of vectors: a change of the graph makes new ones."""
PRODUCTS_OF_A_LAYER = 6
"""Query, key, value, output of the attention, and two of the feed-forward part."""
_MIDDLE = 128
"""What is added to an int8 to make it an uint8."""


def with_integer_products(model: bytes) -> bytes:
    """Return the graph rewritten; products of which no side is a constant stay as they are.

    Args:
        model: An ONNX model whose constant weights are int8 matrices with a scale for each column, and whose tables of
            embeddings have one for each row.

    Raises:
        RemediableError: The package ``onnx`` is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise missing_package("onnx", "embedded") from error
    loaded = onnx.load_from_string(model)
    graph = _Graph(onnx, loaded.graph)
    graph.rewrite()
    return bytes(loaded.SerializeToString())


class _Graph:
    def __init__(self, onnx: Any, graph: Any) -> None:
        self._node, self._tensor, self._float = (
            onnx.helper.make_node,
            onnx.numpy_helper.from_array,
            onnx.TensorProto.FLOAT,
        )
        self._graph = graph
        self._constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        self._added: list[Any] = []
        self._rounded: set[str] = set()

    def rewrite(self) -> None:
        weights = self._weights()
        products = [n.output[0] for n in self._graph.node if n.op_type == "MatMul" and n.input[1] in weights]
        integer = set(products[:-PRODUCTS_OF_A_LAYER])
        nodes: list[Any] = []
        for node in self._graph.node:
            if node.output[0] in integer:
                nodes += self._product(node, *weights[node.input[1]])
            elif node.op_type == "Gather" and node.input[0] in weights:
                nodes += self._looked_up(node, *weights[node.input[0]])
            else:
                nodes.append(node)
        self._replace(nodes)

    def _weights(self) -> dict[str, tuple[str, str]]:
        """Return the int8 constant and the scale behind each weight that ``Cast`` and ``Mul`` make of constants."""
        casts: dict[str, str] = {}
        found: dict[str, tuple[str, str]] = {}
        for node in self._graph.node:
            if node.op_type == "Cast" and node.input[0] in self._constants:
                casts[node.output[0]] = node.input[0]
            elif node.op_type == "Mul" and node.input[0] in casts and node.input[1] in self._constants:
                found[node.output[0]] = casts[node.input[0]], node.input[1]
        return found

    def _product(self, node: Any, weight: str, scale: str) -> list[Any]:
        x, out, made = node.input[0], node.output[0], []
        if x not in self._rounded:  # query, key and value of a layer share it
            self._rounded.add(x)
            made.append(self._node("DynamicQuantizeLinear", [x], [f"{x}_u8", f"{x}_scale", f"{x}_zero"]))
        moved = (self._constants[weight].astype(np.int16) + _MIDDLE).astype(np.uint8)
        self._added += [
            self._tensor(moved, f"{weight}_u8"),
            self._tensor(np.full(moved.shape[1], _MIDDLE, np.uint8), f"{weight}_zero"),
            self._tensor(self._constants[scale].reshape(-1), f"{weight}_scale"),
        ]
        return [
            *made,
            self._node("MatMulInteger", [f"{x}_u8", f"{weight}_u8", f"{x}_zero", f"{weight}_zero"], [f"{out}_sum"]),
            self._node("Cast", [f"{out}_sum"], [f"{out}_float"], to=self._float),
            self._node("Mul", [f"{x}_scale", f"{weight}_scale"], [f"{out}_scale"]),
            self._node("Mul", [f"{out}_float", f"{out}_scale"], [out]),
        ]

    def _looked_up(self, node: Any, weight: str, scale: str) -> list[Any]:
        """A table of embeddings: the rows of a text become float, not the whole table (47 MB)."""
        rows, out = node.input[1], node.output[0]
        return [
            self._node("Gather", [weight, rows], [f"{out}_int8"], axis=0),
            self._node("Cast", [f"{out}_int8"], [f"{out}_float"], to=self._float),
            self._node("Gather", [scale, rows], [f"{out}_scale"], axis=0),
            self._node("Mul", [f"{out}_float", f"{out}_scale"], [out]),
        ]

    def _replace(self, nodes: list[Any]) -> None:
        """Put ``nodes`` in, and leave out nodes and constants that nothing reads any more."""
        outputs = {one.name for one in self._graph.output}
        while True:
            read = outputs.union(*(node.input for node in nodes))
            kept = [node for node in nodes if read.intersection(node.output)]
            if len(kept) == len(nodes):
                break
            nodes = kept
        constants = [one for one in (*self._graph.initializer, *self._added) if one.name in read]
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend(constants)
