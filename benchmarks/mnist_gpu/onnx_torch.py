"""Networks in ONNX files run by torch, for machines whose GPU onnxruntime does not reach.

The operations that image networks of the common families consist of, each a line or two of torch.
What depends on constants alone is computed once, when the network is built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.mnist_gpu.onnx_file import TENSOR_TYPES, Graph, Node, read_onnx
from kernull.errors import MissingCapabilityError

__all__ = ["TorchNetwork"]

Attributes = dict[str, Any]


class TorchNetwork:
    """A network of an ONNX file on a torch device.

    Parameters
    ----------
    graph : path-like or Graph
        The file, or what `read_onnx` gave.
    device : str or torch.device, default="cpu"
        Where it runs.
    dtype : torch.dtype, default=torch.float32
        Of weights and activations.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Their names.
    """

    def __init__(
        self,
        graph: str | os.PathLike[str] | Graph,
        *,
        device: Any = "cpu",
        dtype: Any = torch.float32,
    ) -> None:
        self.graph = graph if isinstance(graph, Graph) else read_onnx(graph)
        self.device, self.dtype = torch.device(device), dtype
        self.inputs, self.outputs = self.graph.inputs, self.graph.outputs
        unknown = sorted({node.op for node in self.graph.nodes} - set(OPERATIONS))
        if unknown:
            raise MissingCapabilityError(
                f"the network has operations that the torch backend does not know: "
                f"{', '.join(unknown)}. Install onnxruntime, which runs them."
            )
        self._constants: dict[str, Any] = {
            name: _as_tensor(array) for name, array in self.graph.constants.items()
        }
        self._nodes = self._fold()
        self._constants = {name: self._place(t) for name, t in self._constants.items()}
        self._last_use = {
            name: i for i, node in enumerate(self._nodes) for name in node.inputs if name
        }

    def __repr__(self) -> str:
        return f"TorchNetwork({len(self._nodes)} operations, device={self.device})"

    def _fold(self) -> list[Node]:
        """Run, once, every node whose inputs are constants; returns the others."""
        left = []
        for node in self.graph.nodes:
            if all(name in self._constants for name in node.inputs if name):
                results = self._apply(node, self._constants)
                self._constants.update(zip(node.outputs, results, strict=False))
            else:
                left.append(node)
        used = {name for node in left for name in node.inputs} | set(self.outputs)
        self._constants = {n: t for n, t in self._constants.items() if n in used}
        return left

    def _place(self, tensor: Any) -> Any:
        # Shapes, axes and bounds stay on the host: operations read them as numbers.
        if not tensor.is_floating_point() or tensor.ndim == 0:
            return tensor
        return tensor.to(self.device, self.dtype)

    def __call__(self, images: Any, outputs: Sequence[str] | None = None) -> tuple[Any, ...]:
        """Outputs of the network for a batch, as tensors on its device.

        Parameters
        ----------
        images : tensor or array of shape (n, channels, height, width)
            Preprocessed images.
        outputs : sequence of str, optional
            Names of the outputs wanted; the first one by default.
        """
        wanted = tuple(outputs) if outputs is not None else self.outputs[:1]
        for name in wanted:
            if name not in self.outputs:
                raise ValueError(
                    f"outputs: got {name!r}; the network has {', '.join(map(repr, self.outputs))}."
                )
        with torch.inference_mode():
            return self._run(images, wanted)

    def _run(self, images: Any, wanted: tuple[str, ...]) -> tuple[Any, ...]:
        values = dict(self._constants)
        values[self.inputs[0]] = torch.as_tensor(images).to(self.device, self.dtype)
        for i, node in enumerate(self._nodes):
            values.update(zip(node.outputs, self._apply(node, values), strict=False))
            for name in node.inputs:  # activations are large: let go of those not used again
                if self._last_use.get(name) == i and name not in wanted:
                    values.pop(name, None)
            if all(name in values for name in wanted):
                break
        return tuple(values[name] for name in wanted)

    def _apply(self, node: Node, values: dict[str, Any]) -> tuple[Any, ...]:
        # A trailing or empty name is an optional input that was left out.
        inputs = [values[name] if name else None for name in node.inputs]
        result = OPERATIONS[node.op](inputs, node.attributes)
        return result if isinstance(result, tuple) else (result,)


def _as_tensor(array: Any) -> Any:
    return torch.from_numpy(np.array(array))  # a copy: what was read is not writable


def _numbers(tensor: Any) -> list[Any]:
    return list(tensor.reshape(-1).tolist())


def _input(inputs: list[Any], i: int) -> Any:
    return inputs[i] if i < len(inputs) else None


def _padded(x: Any, attributes: Attributes, value: float = 0.0) -> tuple[Any, list[int]]:
    """Input and symmetric padding of a sliding window; what is not symmetric is padded here."""
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise MissingCapabilityError(
            f"auto_pad={attributes['auto_pad']!r} is not known to the torch backend; install "
            "onnxruntime, which runs it."
        )
    spatial = x.ndim - 2
    pads = list(attributes.get("pads", [0] * 2 * spatial))
    begin, end = pads[:spatial], pads[spatial:]
    if begin == end:
        return x, begin
    # torch counts from the last axis backwards.
    both = [n for pair in zip(begin[::-1], end[::-1], strict=True) for n in pair]
    return functional.pad(x, both, value=value), [0] * spatial


def _conv(inputs: list[Any], a: Attributes) -> Any:
    x, weight = inputs[0], inputs[1]
    x, padding = _padded(x, a)
    spatial = x.ndim - 2
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[spatial - 1]
    return convolve(
        x,
        weight,
        _input(inputs, 2),
        stride=a.get("strides", [1] * spatial),
        padding=padding,
        dilation=a.get("dilations", [1] * spatial),
        groups=a.get("group", 1),
    )


def _max_pool(inputs: list[Any], a: Attributes) -> Any:
    x, padding = _padded(inputs[0], a, float("-inf"))
    return functional.max_pool2d(
        x,
        a["kernel_shape"],
        stride=a.get("strides", [1, 1]),
        padding=padding,
        dilation=a.get("dilations", [1, 1]),
        ceil_mode=bool(a.get("ceil_mode", 0)),
    )


def _average_pool(inputs: list[Any], a: Attributes) -> Any:
    x, padding = _padded(inputs[0], a)
    return functional.avg_pool2d(
        x,
        a["kernel_shape"],
        stride=a.get("strides", [1, 1]),
        padding=padding,
        ceil_mode=bool(a.get("ceil_mode", 0)),
        count_include_pad=bool(a.get("count_include_pad", 0)),
    )


def _batch_norm(inputs: list[Any], a: Attributes) -> Any:
    x, scale, bias, mean, variance = inputs[:5]
    return functional.batch_norm(
        x, mean, variance, weight=scale, bias=bias, eps=a.get("epsilon", 1e-5)
    )


def _gemm(inputs: list[Any], a: Attributes) -> Any:
    x = inputs[0].T if a.get("transA", 0) else inputs[0]
    y = inputs[1].T if a.get("transB", 0) else inputs[1]
    out = a.get("alpha", 1.0) * (x @ y)
    bias = _input(inputs, 2)
    return out if bias is None else out + a.get("beta", 1.0) * bias


def _clip(inputs: list[Any], a: Attributes) -> Any:
    low, high = _input(inputs, 1), _input(inputs, 2)
    low = a.get("min") if low is None else float(low)
    high = a.get("max") if high is None else float(high)
    return inputs[0].clamp(min=low, max=high)


def _pad(inputs: list[Any], a: Attributes) -> Any:
    x = inputs[0]
    pads = a["pads"] if "pads" in a else _numbers(inputs[1])
    value = _input(inputs, 2)
    both = [n for i in reversed(range(x.ndim)) for n in (int(pads[i]), int(pads[i + x.ndim]))]
    mode = a.get("mode", "constant")
    if mode == "constant":
        return functional.pad(x, both, value=0.0 if value is None else float(value))
    while both and both[-2:] == [0, 0]:  # torch wants the padded axes only
        both = both[:-2]
    return functional.pad(x, both, mode="replicate" if mode == "edge" else str(mode))


def _reduce_mean(inputs: list[Any], a: Attributes) -> Any:
    axes = a.get("axes") or (_numbers(inputs[1]) if _input(inputs, 1) is not None else None)
    axes = list(range(inputs[0].ndim)) if axes is None else axes
    return inputs[0].mean(dim=axes, keepdim=bool(a.get("keepdims", 1)))


def _reshape(inputs: list[Any], a: Attributes) -> Any:
    x, shape = inputs[0], [int(n) for n in _numbers(inputs[1])]
    if not a.get("allowzero", 0):  # zero: as it was
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


def _flatten(inputs: list[Any], a: Attributes) -> Any:
    x, axis = inputs[0], a.get("axis", 1)
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(rows, -1)


def _slice(inputs: list[Any], a: Attributes) -> Any:
    x, starts, ends = inputs[0], _numbers(inputs[1]), _numbers(inputs[2])
    axes, steps = _input(inputs, 3), _input(inputs, 4)
    axes = range(len(starts)) if axes is None else _numbers(axes)
    steps = [1] * len(starts) if steps is None else _numbers(steps)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index = np.arange(x.shape[axis])[slice(start, _end(end, x.shape[axis], step), step)]
        x = x.index_select(int(axis), torch.as_tensor(index.copy(), device=x.device))
    return x


def _end(end: int, size: int, step: int) -> int | None:
    """ONNX's end of a slice; beyond the first entry, backwards, is None in Python."""
    return None if step < 0 and end < -size else end


def _cast(inputs: list[Any], a: Attributes) -> Any:
    name = np.dtype(TENSOR_TYPES[a["to"]]).name
    return inputs[0].to(getattr(torch, name))


def _constant_of_shape(inputs: list[Any], a: Attributes) -> Any:
    value = _as_tensor(a["value"]) if "value" in a else torch.zeros(1)
    return value.expand([int(n) for n in _numbers(inputs[0])] or [1]).clone()


def _squeezed(inputs: list[Any], a: Attributes) -> list[int]:
    axes = a.get("axes") or (_numbers(inputs[1]) if _input(inputs, 1) is not None else [])
    return [int(axis) for axis in axes]


def _squeeze(inputs: list[Any], a: Attributes) -> Any:
    axes = _squeezed(inputs, a)
    return inputs[0].squeeze(dim=axes) if axes else inputs[0].squeeze()


def _unsqueeze(inputs: list[Any], a: Attributes) -> Any:
    out = inputs[0]
    for axis in sorted(_squeezed(inputs, a)):
        out = out.unsqueeze(axis)
    return out


def _lrn(inputs: list[Any], a: Attributes) -> Any:
    return functional.local_response_norm(
        inputs[0], a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0)
    )


#: Operations by ONNX's names: functions of the inputs and the attributes.
OPERATIONS: dict[str, Callable[[list[Any], Attributes], Any]] = {
    "Add": lambda x, a: x[0] + x[1],
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda x, a: torch.cat(x, dim=a["axis"]),
    "Constant": lambda x, a: _as_tensor(a["value"]),
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "Div": lambda x, a: x[0] / x[1],
    "Dropout": lambda x, a: x[0],
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x, a: x[0].mean(dim=list(range(2, x[0].ndim)), keepdim=True),
    "GlobalMaxPool": lambda x, a: x[0].amax(dim=list(range(2, x[0].ndim)), keepdim=True),
    "HardSigmoid": lambda x, a: (a.get("alpha", 0.2) * x[0] + a.get("beta", 0.5)).clamp(0.0, 1.0),
    "HardSwish": lambda x, a: functional.hardswish(x[0]),
    "Identity": lambda x, a: x[0],
    "LRN": _lrn,
    "LeakyRelu": lambda x, a: functional.leaky_relu(x[0], a.get("alpha", 0.01)),
    "MatMul": lambda x, a: x[0] @ x[1],
    "MaxPool": _max_pool,
    "Mul": lambda x, a: x[0] * x[1],
    "Pad": _pad,
    "ReduceMean": _reduce_mean,
    "Relu": lambda x, a: functional.relu(x[0]),
    "Reshape": _reshape,
    "Shape": lambda x, a: torch.tensor(x[0].shape),
    "Sigmoid": lambda x, a: torch.sigmoid(x[0]),
    "Slice": _slice,
    "Softmax": lambda x, a: torch.softmax(x[0], dim=a.get("axis", -1)),
    "Squeeze": _squeeze,
    "Sub": lambda x, a: x[0] - x[1],
    "Transpose": lambda x, a: x[0].permute(a.get("perm", list(range(x[0].ndim))[::-1])),
    "Unsqueeze": _unsqueeze,
}
