"""A small ONNX network that tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 8
DESCRIPTION = {"size": SIZE, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]}


def kernel_of(seed: int, features: int) -> Any:
    """The weights of a network, of shape (features, 3, 3, 3)."""
    return np.random.default_rng(seed).normal(size=(features, 3, 3, 3)).astype(np.float32)


def write_network(
    folder: Path, name: str, *, seed: int = 0, features: int = 5, maps: bool = False
) -> Path:
    """A convolution, a rectifier and a mean (or none); the description beside it."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["maps"]),
        helper.make_node("Relu", ["maps"], ["y" if maps else "positive"]),
    ]
    if not maps:
        nodes.append(helper.make_node("ReduceMean", ["positive"], ["y"], axes=[2, 3], keepdims=0))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(kernel_of(seed, features), "kernel")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    path.with_name(f"{name}.onnx.json").write_text(json.dumps(DESCRIPTION))
    return path
