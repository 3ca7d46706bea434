"""Scoring as an ONNX graph, for runtimes without Python."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull._version import __version__
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.kernels import FittedKernel
from kernull.persistence.onnx_graph import GraphBuilder

#: Kernels that have a graph.
SUPPORTED = ("linear", "polynomial", "rbf")


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
    graph = GraphBuilder(dtype)
    fitted = model.model_
    factors, a = fitted.rule.weights * fitted.kernels.scale, fitted.rule.coef
    total: str | None = None
    j = 0
    for view in fitted.kernels.set.views:
        rows = _scaled(graph, graph.columns("X", view.columns), view.scaler)
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
    graph.name(total, "score")
    normal = graph.op("GreaterOrEqual", "score", graph.number(model.threshold_))
    label = graph.op("Where", normal, graph.integers(1), graph.integers(-1))
    graph.name(label, "label")
    outputs = {"score": "float", "label": "int"}
    about = f"{type(model).__name__} of kernull {__version__}; label -1 where score < threshold"
    return graph.model(type(model).__name__, model.n_features_in_, outputs, about)


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
    names = {
        k.kind if k.function is None else _name(k)
        for v in model.kernel_set_.views
        for k in v.kernels
    }
    unsupported = sorted(names - set(SUPPORTED))
    if unsupported:
        raise ValueError(
            f"model: the kernel {unsupported[0]!r} has no ONNX graph; supported are {SUPPORTED}."
        )


def _name(kernel: FittedKernel) -> str:
    return str(getattr(kernel.function, "__name__", type(kernel.function).__name__))


def _scaled(graph: GraphBuilder, rows: str, scaler: Any) -> str:
    if scaler.kind == "none":
        return rows
    rows = graph.standardise(rows, scaler.mean, scaler.scale)
    if scaler.kind == "standard":
        return rows
    return graph.whiten(rows, scaler.directions, scaler.gains, scaler.base_gain)


def _kernel(
    graph: GraphBuilder, kernel: FittedKernel, rows: str, train: Array, shared: dict[str, str]
) -> str:
    """Kernel values between rows and training rows; kernels of one view share what they can."""
    if kernel.kind == "rbf":
        assert kernel.centre is not None
        assert kernel.width is not None
        if "distances" not in shared:
            shared["distances"] = graph.squared_distances(rows, train, kernel.centre)
        return graph.rbf(shared["distances"], kernel.width)
    if kernel.kind == "linear":
        return graph.products(rows, train)
    params = kernel.params
    return graph.polynomial(rows, train, params["gamma"], params["coef0"], params["degree"])
