"""Nothing that the package brings with it reports to its makers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

USE_ONNX_RUNTIME = """
import voice_agent
import numpy, onnx, onnxruntime
from onnx import TensorProto, helper

value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
graph = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "g", [value("a")], [value("b")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print(session.run(None, {"a": numpy.ones(1, "float32")})[0][0])
"""


def test_onnx_runtime_neither_counts_this_machine_nor_queues_reports(tmp_path: Path) -> None:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    }
    ended = subprocess.run(
        [sys.executable, "-c", USE_ONNX_RUNTIME],
        env={**kept, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.strip() == "1.0", ended.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
