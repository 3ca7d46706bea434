"""Small ONNX networks that the tests write, and the real ones where they are."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

#: All tests of this folder need these; a skip here would end the whole session.
MISSING = [name for name in ("onnx", "onnxruntime", "PIL") if find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if MISSING else []

SIZE = 8
DESCRIPTION = {"size": SIZE, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]}


def write_network(folder, name, *, seed=0, features=5, batch="n", half=False, maps=False):
    """A convolution, a rectifier and a mean; the description beside it."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    values = np.random.default_rng(seed).normal(size=(features, 3, 3, 3))
    kernel = numpy_helper.from_array(values.astype(np.float16 if half else np.float32), "kernel")
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["maps"]),
        helper.make_node("Relu", ["maps"], ["features" if maps else "positive"]),
    ]
    shape = [batch, features, SIZE - 2, SIZE - 2] if maps else [batch, features]
    if not maps:
        nodes.append(helper.make_node("ReduceMean", ["positive"], ["features"], axes=[2, 3],
                                      keepdims=0))  # fmt: skip
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", kind, [batch, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("features", kind, shape)],
        [kernel],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = Path(folder) / f"{name}.onnx"
    onnx.save(model, path)
    path.with_name(path.name + ".json").write_text(json.dumps(DESCRIPTION))
    return path


@pytest.fixture
def networks(tmp_path):
    """A folder of two small networks, "tiny" and "other"."""
    folder = tmp_path / "weights"
    folder.mkdir()
    write_network(folder, "tiny")
    write_network(folder, "other", seed=1, features=3)
    return folder


@pytest.fixture
def pictures():
    return np.random.default_rng(3).integers(0, 256, (12, 10, 14, 3), dtype=np.uint8)


@pytest.fixture
def counted(monkeypatch):
    """The number of images in each batch that a network computed."""
    from kernull.views.images.backbones import OnnxBackbone

    batches: list[int] = []
    run = OnnxBackbone.run

    def spy(self, batch):
        batches.append(len(batch))
        return run(self, batch)

    monkeypatch.setattr(OnnxBackbone, "run", spy)
    return batches


@pytest.fixture(scope="session")
def real_weights():
    """The folder of real networks; tests that ask for it are marked ``weights``."""
    return Path(os.environ["KERNULL_WEIGHTS"])
