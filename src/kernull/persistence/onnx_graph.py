"""Pieces of ONNX graphs: a small builder, and kernels as nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.errors import need

#: Operator set of the graphs; every onnxruntime since 2022 runs it.
OPSET = 17


class GraphBuilder:
    """Nodes and constants of a graph under construction; every method returns a value's name."""

    def __init__(self, dtype: str) -> None:
        self.onnx = need("onnx", "exporting needs the package onnx: pip install kernull[onnx].")
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def number(self, values: Any) -> str:
        """A constant of the graph's floating type."""
        return self._constant(np.asarray(values, dtype=self.dtype))

    def integers(self, values: Any) -> str:
        """A constant of integers."""
        return self._constant(np.asarray(values, dtype=np.int64))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def name(self, value: str, name: str) -> str:
        """Give a value the name of an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        return name

    # -- pieces ------------------------------------------------------------------------------

    def columns(self, rows: str, columns: Any) -> str:
        """Some columns of a table."""
        return self.op("Gather", rows, self.integers(columns), axis=1)

    def standardise(self, rows: str, mean: Array, scale: Array) -> str:
        """(x - mean) / scale."""
        centred = self.op("Sub", rows, self.number(mean))
        if len(scale) == 1:  # see `whiten`: the fusion takes one column's scale for a scalar
            return self.op("MatMul", centred, self.number(1.0 / scale[:, None]))
        return self.op("Div", centred, self.number(scale))

    def whiten(self, rows: str, directions: Array, gains: Array, base: float) -> str:
        """Whitened rows, base z + (z D * gains) D'."""
        # Factors are folded into matrices: onnxruntime fuses a product and the scalar after it
        # into one operator that keeps the scalar in float32.
        along = self.op("MatMul", rows, self.number(directions))
        back = self.op("MatMul", along, self.number(gains[:, None] * directions.T))
        return self.op("Add", self.op("Mul", rows, self.number(base)), back)

    def products(self, rows: str, train: Array) -> str:
        """Products x'y for all pairs."""
        return self.op("MatMul", rows, self.number(train.T))

    def squared_distances(self, rows: str, train: Array, centre: Array) -> str:
        """|x - y|^2 for all pairs, by the expansion that scikit-learn uses."""
        shifted = self.op("Sub", rows, self.number(centre))
        other = train - centre
        norms = self.op(
            "ReduceSum", self.op("Mul", shifted, shifted), self.integers([1]), keepdims=1
        )
        cross = self.op("Mul", self.products(shifted, other), self.number(-2.0))
        total = self.op("Add", self.op("Add", cross, norms), self.number((other**2).sum(axis=1)))
        return self.op("Max", total, self.number(0.0))

    def rbf(self, distances: str, width: float) -> str:
        """exp(-d / (2 s^2))."""
        return self.op("Exp", self.op("Mul", distances, self.number(-0.5 / width**2)))

    def polynomial(self, rows: str, train: Array, gamma: float, coef0: float, degree: float) -> str:
        """(gamma x'y + coef0)^degree."""
        inner = self.op("Add", self.products(rows, gamma * train), self.number(coef0))
        return self.op("Pow", inner, self.number(degree))

    # -- the whole ---------------------------------------------------------------------------

    def model(self, name: str, n_features: int, outputs: dict[str, str], about: str) -> Any:
        """A checked model with one input ``X`` of shape (m, d); outputs by name and type."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        floating = types.DOUBLE if self.dtype == np.float64 else types.FLOAT
        kinds = {"float": floating, "int": types.INT64}
        value = helper.make_tensor_value_info
        given = [value("X", floating, ["m", n_features])]
        made = [value(output, kinds[kind], ["m"]) for output, kind in outputs.items()]
        graph = helper.make_graph(self.nodes, name, given, made, self.constants)
        version = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=version, ir_version=8, producer_name="kernull", doc_string=about
        )
        self.onnx.checker.check_model(model)
        return model

    def _constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        values = np.ascontiguousarray(values).reshape(np.shape(values))
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name
