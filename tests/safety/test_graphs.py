"""ONNX files that read other files, never end, or take all memory are refused."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from kernull.safety import check_graph, graphs
from kernull.views.images import BackboneFeatures

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto as T  # noqa: E402
from onnx import helper as h  # noqa: E402
from onnx import numpy_helper as nh  # noqa: E402

IMAGES = np.zeros((2, 8, 8, 3), np.uint8)


def graph(nodes, outputs=("y",), weights=(), functions=()):
    made = h.make_graph(
        list(nodes),
        "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["n", 3, 8, 8])],
        [h.make_tensor_value_info(name, T.FLOAT, None) for name in outputs],
        [nh.from_array(np.asarray(value), name) for name, value in dict(weights).items()],
    )
    opsets = [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
    return h.make_model(made, opset_imports=opsets, ir_version=8, functions=list(functions))


def loop(turns, weights):
    """A loop of so many turns (the name of a value) that keeps its image."""
    values = [
        h.make_tensor_value_info("i", T.INT64, []),
        h.make_tensor_value_info("go", T.BOOL, []),
        h.make_tensor_value_info("v", T.FLOAT, None),
    ]
    out = [
        h.make_tensor_value_info("go2", T.BOOL, []),
        h.make_tensor_value_info("v2", T.FLOAT, None),
    ]
    inner = [h.make_node("Identity", ["go"], ["go2"]), h.make_node("Relu", ["v"], ["v2"])]
    body = h.make_graph(inner, "body", values, out)
    node = h.make_node("Loop", [turns, "go", "x"], ["y"], body=body)
    return graph([node], weights={"go": np.array(True), **weights})


def write(folder, model, name="net"):
    path = folder / f"{name}.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    (folder / f"{name}.onnx.json").write_text(json.dumps({"size": 8}))
    return path


RELU = h.make_node("Relu", ["x"], ["y"])
CALL = [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
CIRCLE = [
    h.make_function("own", a, ["u"], ["w"], [h.make_node(b, ["u"], ["w"], domain="own")], CALL)
    for a, b in (("A", "B"), ("B", "A"))
]
BAD = {
    "no output": (graph([RELU], outputs=()), "no output"),
    "cycle": (
        graph([h.make_node("Add", ["x", "z"], ["y"]), h.make_node("Relu", ["y"], ["z"])]),
        "a cycle",
    ),
    "endless loop": (loop("", {}), "may not end"),
    "long loop": (loop("m", {"m": np.array(10**12)}), "may not end"),
    "loop as long as data say": (loop("x", {}), "may not end"),
    "functions in a circle": (
        graph([h.make_node("A", ["x"], ["y"], domain="own")], functions=CIRCLE),
        "circle",
    ),
    "array of 8 GB": (
        graph([h.make_node("ConstantOfShape", ["s"], ["y"])], weights={"s": np.array([2**31])}),
        "makes an array",
    ),
    "a name that is no text": (
        graph([h.make_node("Relu", ["x"], ["unread"])], outputs=["unread"])
        .SerializeToString()
        .replace(b"unread", b"\x89nread"),
        "a name that is no text",
    ),
    "junk": (b"\xff" * 40, "no ONNX file"),
    "empty": (b"", "no input"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_graphs_are_refused_with_a_reason(tmp_path, name):
    model, said = BAD[name]
    path = write(tmp_path, model)
    with pytest.raises(ValueError, match=f"net.onnx' .*{said}"):
        BackboneFeatures(path).transform(IMAGES)


def test_good_graphs_pass():
    check_graph(graph([RELU]).SerializeToString(), (8, 8))
    check_graph(loop("m", {"m": np.array(5)}).SerializeToString(), (8, 8))


def test_weights_in_other_files_are_refused(tmp_path, monkeypatch):
    """They were read from the current folder, and the cache served one for the other."""
    model = graph([h.make_node("Add", ["x", "w"], ["y"])], weights={"w": np.ones(8, np.float32)})
    (tmp_path / "w.bin").write_bytes(np.full(8, 7, np.float32).tobytes())
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "w.bin", 0, 32)
    model.graph.initializer[0].ClearField("raw_data")
    path = write(tmp_path, model)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="external data"):
        BackboneFeatures(path).transform(IMAGES)
    # As the message says: one file, and then it is a matter of its bytes alone.
    onnx.save(onnx.load(path), tmp_path / "one.onnx")
    (tmp_path / "one.onnx.json").write_text(json.dumps({"size": 8}))
    assert BackboneFeatures(tmp_path / "one.onnx").transform(IMAGES)[0, 0] == 7


def test_weights_hidden_in_an_attribute_or_a_branch_are_found():
    tensor = nh.from_array(np.ones(4, np.float32), "t")
    onnx.external_data_helper.set_external_data(tensor, "../secret", 0, 16)
    constant = h.make_node("Constant", [], ["k"], value=tensor)
    inner = h.make_graph([constant], "b", [], [h.make_tensor_value_info("k", T.FLOAT, [4])])
    branch = h.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    for nodes in ([constant, RELU], [branch]):
        made = graph(nodes, weights={"c": np.array(True)})
        with pytest.raises(ValueError, match="external data"):
            check_graph(made.SerializeToString())


def test_a_network_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "MAX_TURNS", 10**9)
    path = write(tmp_path, loop("m", {"m": np.array(10**9)}))
    monkeypatch.setattr(graphs, "MAX_SECONDS", 0.2)
    with pytest.raises(ValueError, match=r"took more than 0\.2 s for 1 image"):
        BackboneFeatures(path).transform(IMAGES)
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]


def test_arrays_that_follow_from_data_meet_the_limit_of_memory(tmp_path):
    nodes = [
        h.make_node("ReduceSum", ["x"], ["r"], keepdims=0),
        h.make_node("Exp", ["r"], ["e"]),
        h.make_node("Mul", ["e", "c"], ["m"]),
        h.make_node("Cast", ["m"], ["i"], to=T.INT64),
        h.make_node("Unsqueeze", ["i", "axis"], ["s"]),
        h.make_node("ConstantOfShape", ["s"], ["y"]),
    ]
    weights = {"c": np.array(4e9, np.float32), "axis": np.array([0])}
    path = write(tmp_path, graph(nodes, weights=weights))
    with pytest.raises(ValueError, match="cannot be run"):
        BackboneFeatures(path).transform(IMAGES)
