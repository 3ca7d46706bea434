"""Scoring as an ONNX graph, for runtimes without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull._version import __version__
from kernull.errors import need
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.kernels import FittedKernel

#: Kernels that have a graph.
SUPPORTED = ("linear", "polynomial", "rbf")
#: Operator set of the graphs; every onnxruntime since 2022 runs it.
OPSET = 17


def to_onnx(model: Any, *, dtype: str = "float64") -> Any:
    r"""A fitted model's scoring, threshold included, as an ONNX model.

    .. math:: y(x) = \sum_j b_j k_j(x)'a

    Parameters
    ----------
    model : MultiKernelFisherNull
        Fitted on a table with ``decision="sum"``, ``rbf``, ``linear`` or ``polynomial`` kernels,
        and any scaling but ``"quantile"`` (which ``"auto"`` includes).
    dtype : {"float64", "float32"}, default="float64"
        Floating type of the graph. In float64 scores equal ``score_samples`` to rounding; float32
        runs on more devices and is as exact as float32 is.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (m, d); outputs ``score`` (m,) and ``label`` (m,), +1 or -1. Save it
        by ``onnx.save`` or pass ``model.SerializeToString()`` to onnxruntime.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernull import MultiKernelFisherNull, to_onnx
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MultiKernelFisherNull(decision="sum", scaling="standard").fit(X[y == 0])
    >>> graph = to_onnx(model)  # doctest: +SKIP
    >>> import onnxruntime  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())  # doctest: +SKIP
    >>> score, label = session.run(None, {"X": X})  # doctest: +SKIP
    """
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype: got {dtype!r}; expected 'float64' or 'float32'.")
    _check(model)
    graph = Graph(dtype)
    fitted = model.model_
    factors, a = fitted.rule.weights * fitted.kernels.scale, fitted.rule.coef
    total: str | None = None
    j = 0
    for view in fitted.kernels.set.views:
        columns = graph.op("Gather", "X", graph.integers(view.columns), axis=1)
        rows = _scaled(graph, columns, view.scaler)
        shared: dict[str, str] = {}
        for kernel in view.kernels:
            if factors[j] > 0:
                values = _kernel(graph, kernel, rows, view.train, shared)
                # A low-rank model has coefficients by kernel, of its landmarks.
                coef = graph.number((a if a.ndim == 1 else a[j]) * factors[j])
                part = graph.op("MatMul", values, coef)
                total = part if total is None else graph.op("Add", total, part)
            j += 1
    assert total is not None  # a ball's weights are not all zero
    if model.score_type == "distance":
        total = graph.op("Neg", graph.op("Abs", graph.op("Sub", graph.number(1.0), total)))
    graph.op("Identity", total, name="score")
    normal = graph.op("GreaterOrEqual", "score", graph.number(model.threshold_))
    graph.op("Where", normal, graph.integers(1), graph.integers(-1), name="label")
    about = f"{type(model).__name__} of kernull {__version__}; label -1 where score < threshold"
    return graph.model(type(model).__name__, model.n_features_in_, about)


def _check(model: Any) -> None:
    if not isinstance(model, MultiKernelFisherNull):
        raise TypeError(
            f"model: {type(model).__name__} has no ONNX graph; expected MultiKernelFisherNull."
        )
    check_is_fitted(model)
    if model.model_.decides_by_evidence:
        raise ValueError(
            "model: decision='evidence' has no ONNX graph; fit with decision='sum' to export one."
        )
    if model.kernel_set_ is None:
        raise ValueError(
            "model: kernels='precomputed' has no ONNX graph, for the kernels are computed "
            "elsewhere; fit on a table."
        )
    if any(view.scaler.kind == "quantile" for view in model.kernel_set_.views):
        raise ValueError(
            "model: scaling='quantile', which 'auto' includes, has no ONNX graph; fit with "
            "scaling=('standard', 'whiten') to export one."
        )
    names = {kernel.label for view in model.kernel_set_.views for kernel in view.kernels}
    unsupported = sorted(names - set(SUPPORTED))
    if unsupported:
        raise ValueError(
            f"model: the kernel {unsupported[0]!r} has no ONNX graph; supported are {SUPPORTED}."
        )


class Graph:
    """Nodes and constants of a graph under construction; values go by their names."""

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

    def _constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        values = np.ascontiguousarray(values).reshape(np.shape(values))
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Append an operator; ``name`` is that of an output."""
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def model(self, name: str, n_features: int, about: str) -> Any:
        """A checked model with one input ``X`` of shape (m, d), and outputs score and label."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        floating = types.DOUBLE if self.dtype == np.float64 else types.FLOAT
        value = helper.make_tensor_value_info
        given = [value("X", floating, ["m", n_features])]
        made = [value("score", floating, ["m"]), value("label", types.INT64, ["m"])]
        graph = helper.make_graph(self.nodes, name, given, made, self.constants)
        version = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=version, ir_version=8, producer_name="kernull", doc_string=about
        )
        self.onnx.checker.check_model(model)
        return model


def _scaled(graph: Graph, rows: str, scaler: Any) -> str:
    """(x - mean) / scale, and whitened rows, base z + (z D * gains) D'."""
    if scaler.kind == "none":
        return rows
    # Factors are folded into matrices: onnxruntime fuses a product and the scalar after it into
    # one operator that keeps the scalar in float32, and takes one column's scale for a scalar.
    rows = graph.op("Sub", rows, graph.number(scaler.mean))
    if len(scaler.scale) == 1:
        rows = graph.op("MatMul", rows, graph.number(1.0 / scaler.scale[:, None]))
    else:
        rows = graph.op("Div", rows, graph.number(scaler.scale))
    if scaler.kind == "standard":
        return rows
    along = graph.op("MatMul", rows, graph.number(scaler.directions))
    back = graph.op("MatMul", along, graph.number(scaler.gains[:, None] * scaler.directions.T))
    return graph.op("Add", graph.op("Mul", rows, graph.number(scaler.base_gain)), back)


def _kernel(
    graph: Graph, kernel: FittedKernel, rows: str, train: Array, shared: dict[str, str]
) -> str:
    """Kernel values between rows and training rows; kernels of one view share what they can."""
    if kernel.kind == "rbf":  # exp(-d / (2 s^2))
        assert kernel.width is not None
        if "distances" not in shared:
            shared["distances"] = _squared_distances(graph, rows, train, kernel.centre)
        scaled = graph.op("Mul", shared["distances"], graph.number(-0.5 / kernel.width**2))
        return graph.op("Exp", scaled)
    if kernel.kind == "linear":
        return graph.op("MatMul", rows, graph.number(train.T))
    gamma, coef0, degree = (kernel.params[name] for name in ("gamma", "coef0", "degree"))
    products = graph.op("MatMul", rows, graph.number(gamma * train.T))
    return graph.op("Pow", graph.op("Add", products, graph.number(coef0)), graph.number(degree))


def _squared_distances(graph: Graph, rows: str, train: Array, centre: Any) -> str:
    """|x - y|^2 for all pairs, by the expansion that scikit-learn uses."""
    rows, train = graph.op("Sub", rows, graph.number(centre)), train - centre
    squares = graph.op("Mul", rows, rows)
    norms = graph.op("ReduceSum", squares, graph.integers([1]), keepdims=1)
    products = graph.op("MatMul", rows, graph.number(train.T))
    cross = graph.op("Mul", products, graph.number(-2.0))
    norms_of_train = graph.number((train**2).sum(axis=1))
    total = graph.op("Add", graph.op("Add", cross, norms), norms_of_train)
    return graph.op("Max", total, graph.number(0.0))
