"""ONNX files run by torch give what onnxruntime gives."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.mnist_gpu.onnx_file import read_onnx
from kernull.errors import MissingCapabilityError
from tests.needs import NO_TORCH
from tests.networks import write_network

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch", reason=NO_TORCH)

from benchmarks.mnist_gpu.onnx_torch import OPERATIONS, TorchNetwork  # noqa: E402

pytestmark = pytest.mark.torch

NETWORKS = {
    "alexnet": 224,
    "squeezenet1_1": 227,
    "mobilenet_v2": 224,
    "efficientnet_lite0": 224,
    "vgg16": 224,
    "inception_v3": 299,
}


@pytest.mark.weights
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_present_equals_onnxruntime(name):
    path = Path(os.environ["KERNULL_WEIGHTS"]) / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{name}.onnx is not in KERNULL_WEIGHTS")
    side = NETWORKS[name]
    x = np.random.default_rng(0).standard_normal((1, 3, side, side)).astype(np.float32)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    network = TorchNetwork(path)
    assert network.outputs == tuple(out.name for out in session.get_outputs())
    expected = session.run(None, {"x": x})
    for want, have in zip(expected, network(x, network.outputs), strict=True):
        assert np.abs(have.numpy() - want).max() <= 1e-3 * np.abs(want).max()


def check(nodes, shape, constants=None, opset=17):
    """Run a small graph by both and compare."""
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    content = model.SerializeToString()
    x = np.random.default_rng(1).standard_normal((2, *shape)).astype(np.float32)
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    want = session.run(["y"], {"x": x})[0]
    return content, x, want


NODE = pytest.importorskip("onnx").helper.make_node
RNG = np.random.default_rng(2)
POSITIVE = {k: RNG.uniform(0.5, 2, 4).astype(np.float32) for k in ("a", "b", "c", "d")}
KERNEL = RNG.standard_normal((6, 2, 3, 3)).astype(np.float32)
GRAPHS = {
    "uneven pads, groups": (
        [NODE("Conv", ["x", "k"], ["y"], pads=[0, 1, 2, 1], strides=[2, 1], group=2)],
        (4, 9, 9),
        {"k": KERNEL},
    ),
    "max pool, uneven pads": (
        [NODE("MaxPool", ["x"], ["y"], kernel_shape=[3, 2], pads=[1, 0, 0, 1], strides=[2, 2])],
        (4, 8, 8),
        {},
    ),
    "average pool, pads counted": (
        [NODE("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
              count_include_pad=1)],
        (4, 7, 7),
        {},
    ),
    "average pool, pads not counted": (
        [NODE("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        (4, 7, 7),
        {},
    ),
    "batch norm": (
        [NODE("BatchNormalization", ["x", "a", "b", "c", "d"], ["y"], epsilon=1e-2)],
        (4, 5, 5),
        POSITIVE,
    ),
    "pooled and classified": (
        [
            NODE("GlobalAveragePool", ["x"], ["p"]),
            NODE("Flatten", ["p"], ["f"]),
            NODE("Gemm", ["f", "w", "b"], ["g"], alpha=0.5, beta=2.0, transB=1),
            NODE("Softmax", ["g"], ["y"], axis=1),
        ],
        (4, 5, 5),
        {"w": RNG.standard_normal((3, 4)).astype(np.float32), "b": np.ones(3, np.float32)},
    ),
    "squeeze, excite": (
        [
            NODE("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=1),
            NODE("HardSigmoid", ["m"], ["s"]),
            NODE("Mul", ["x", "s"], ["t"]),
            NODE("HardSwish", ["t"], ["y"]),
        ],
        (4, 5, 5),
        {},
    ),
    "local response": ([NODE("LRN", ["x"], ["y"], size=3, alpha=0.1)], (6, 4, 4), {}),
    "shapes": (
        [
            NODE("Reshape", ["x", "shape"], ["r"]),
            NODE("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
            NODE("Slice", ["t", "from", "to", "axes", "steps"], ["s"]),
            NODE("Unsqueeze", ["s", "one"], ["u"]),
            NODE("Squeeze", ["u", "one"], ["q"]),
            NODE("Pad", ["q", "pads"], ["y"]),
        ],
        (4, 5, 5),
        {
            "shape": np.array([0, 4, -1]),
            "from": np.array([-1]),
            "to": np.array([-1000]),
            "axes": np.array([1]),
            "steps": np.array([-2]),
            "one": np.array([1]),
            "pads": np.array([0, 1, 0, 0, 0, 2]),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_operations_equal_onnxruntime(name, tmp_path):
    content, x, want = check(*GRAPHS[name])
    (tmp_path / "small.onnx").write_bytes(content)
    have = TorchNetwork(tmp_path / "small.onnx")(x)[0].numpy()
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_file_reads_like_the_onnx_package(tmp_path):
    path = write_network(tmp_path, "tiny")
    graph, model = read_onnx(path), onnx.load(path).graph
    assert [n.op for n in graph.nodes] == [n.op_type for n in model.node]
    for tensor in model.initializer:
        np.testing.assert_array_equal(
            graph.constants[tensor.name], onnx.numpy_helper.to_array(tensor)
        )
    assert graph.shapes["x"] == ("n", 3, 8, 8)


def test_unknown_operations_are_named(tmp_path):
    content, _, _ = check([NODE("Erf", ["x"], ["y"])], (4, 3, 3))
    (tmp_path / "erf.onnx").write_bytes(content)
    assert "Erf" not in OPERATIONS
    with pytest.raises(MissingCapabilityError, match="Erf"):
        TorchNetwork(tmp_path / "erf.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\x3a\xff\xff\xff\xff\x0f"])
def test_damaged_files_are_named(content, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.onnx"):
        read_onnx(path)


def test_truncated_file_is_named(tmp_path):
    path = tmp_path / "cut.onnx"
    path.write_bytes(write_network(tmp_path, "tiny").read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"cut\.onnx"):
        read_onnx(path)
