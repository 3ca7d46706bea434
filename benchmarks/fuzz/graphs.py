"""ONNX files: graphs with other nodes, numbers, shapes and weights, and spoiled bytes.

A network gives features of the right shape, or is refused with a `ValueError` that names its file.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.cases import Action, WrongError, spoil

OPS = [
    "Relu", "Exp", "Add", "Mul", "MatMul", "Conv", "Reshape", "Tile", "Expand", "Resize", "Pad",
    "Concat", "Shape", "Loop", "Scan", "If", "ConstantOfShape", "Range", "NonZero", "TopK",
    "Gather", "Identity", "ReduceMean", "GlobalAveragePool", "Flatten", "Softmax", "Cast",
    "Unsqueeze", "Squeeze", "Nope",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 10**4, 2**31 - 1, 2**40, -(2**62)]
IMAGES = np.random.default_rng(1).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)


def network(**weights: Any) -> Any:
    """A convolution and a mean, with four features."""
    from onnx import TensorProto, helper, numpy_helper

    values = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "kernel"], ["maps"]),
            helper.make_node("Relu", ["maps"], ["positive"]),
            helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
            helper.make_node("Reshape", ["pooled", "shape"], ["y"]),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [
            numpy_helper.from_array(values, "kernel"),
            numpy_helper.from_array(np.array([-1, 4]), "shape"),
            *(numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def looped(turns: int) -> Any:
    """The network with a loop of so many turns in front."""
    from onnx import TensorProto, helper

    infos = [("i", TensorProto.INT64), ("go", TensorProto.BOOL), ("v", TensorProto.FLOAT)]
    outs = [("go2", TensorProto.BOOL), ("v2", TensorProto.FLOAT)]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go2"]), helper.make_node("Abs", ["v"], ["v2"])],
        "body",
        [helper.make_tensor_value_info(n, t, None if n == "v" else []) for n, t in infos],
        [helper.make_tensor_value_info(n, t, None if n == "v2" else []) for n, t in outs],
    )
    model = network(turns=np.array(turns), go=np.array(True))
    model.graph.node.insert(0, helper.make_node("Loop", ["turns", "go", "x"], ["x2"], body=body))
    model.graph.node[1].input[0] = "x2"
    return model


class Graphs:
    """Opening and running of ONNX networks."""

    def __init__(self) -> None:
        from kernull.safety import graphs

        graphs.MAX_MEMORY = 2**28  # a quarter of what the process may take here
        graphs.MAX_SECONDS = 0.25
        self.originals = [network(), looped(3)]
        with tempfile.TemporaryDirectory() as folder:  # what is imported on first use is no case
            for model in self.originals:
                try_network(model.SerializeToString(), Path(folder))

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        model = type(self.originals[0])()
        model.CopyFrom(self.originals[int(rng.integers(2))])
        kind = str(rng.choice(["graph", "graph", "bytes"]))
        if kind == "graph":
            for _ in range(int(rng.integers(1, 4))):
                change(model, rng)
        data = model.SerializeToString()
        return kind, lambda: try_network(spoil(data, rng) if kind == "bytes" else data, folder)

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        from onnx import external_data_helper

        outside = network()
        external_data_helper.set_external_data(outside.graph.initializer[0], "/etc/passwd", 0, 432)
        outside.graph.initializer[0].ClearField("raw_data")
        silent = network()
        del silent.graph.output[:]
        unreadable = looped(3)
        for tensor in unreadable.graph.initializer:
            tensor.data_type = 92
        circle = network()
        circle.graph.node[0].input[0] = "y"
        for name, model in {
            "weights in another file": outside,
            "no output": silent,
            "a cycle": circle,
            "a loop without end": looped(2**40),
            "a long loop": looped(9_999),
            "turns of no known kind": unreadable,
        }.items():
            data = model.SerializeToString()
            yield name, lambda data=data: try_network(data, folder)  # type: ignore[misc]
        named = network()
        named.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "unread"
        data = named.SerializeToString().replace(b"unread", b"\x89nread")
        yield "a size whose name is no text", lambda: try_network(data, folder)


def change(model: Any, rng: np.random.Generator) -> None:
    """Change one thing of a graph."""
    from onnx import external_data_helper, numpy_helper

    graph = model.graph
    if not graph.node or not graph.initializer:
        return
    node = graph.node[int(rng.integers(len(graph.node)))]
    tensor = graph.initializer[int(rng.integers(len(graph.initializer)))]
    names = [n for each in graph.node for n in (*each.input, *each.output)] + ["", "x", "nowhere"]
    kind = rng.integers(9)
    if kind == 0:
        node.op_type = str(rng.choice(OPS))
    elif kind == 1 and node.input:
        node.input[int(rng.integers(len(node.input)))] = str(rng.choice(names))
    elif kind == 2 and node.output:
        node.output[0] = str(rng.choice(names))
    elif kind == 3:
        values = rng.choice(NUMBERS, int(rng.integers(1, 4))).astype(np.int64)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    elif kind == 4:
        tensor.dims.append(int(rng.choice(NUMBERS)))
    elif kind == 5:
        external_data_helper.set_external_data(tensor, str(rng.choice(["w.bin", "/etc/passwd"])))
    elif kind == 6:
        graph.node.append(node)
    elif kind == 7:
        graph.node.remove(node)
    else:
        dims = graph.input[0].type.tensor_type.shape.dim
        dims[int(rng.integers(len(dims)))].dim_value = int(rng.choice(NUMBERS))


def try_network(data: bytes, folder: Path) -> str:
    """Features of two images."""
    from kernull.views.images import BackboneFeatures

    path = folder / "fuzzed.onnx"
    path.write_bytes(data)
    path.with_name("fuzzed.onnx.json").write_text(json.dumps({"size": 8}))
    try:
        features = BackboneFeatures(path, n_jobs=1).transform(IMAGES)
    except ValueError as error:
        if "fuzzed.onnx" not in str(error):
            raise
        return "refused"
    if features.ndim != 2 or len(features) != 2:
        raise WrongError(f"features of shape {features.shape}")
    return "works"
