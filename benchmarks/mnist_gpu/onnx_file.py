"""Reading ONNX files without the ``onnx`` package: a few fields of a few protobuf messages.

A protobuf message is a sequence of (field number, wire type, value); messages nest as byte strings.
Only what a network's weights and graph need is read; field numbers are those of ``onnx.proto``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Graph", "Node", "read_onnx"]

Value: TypeAlias = int | bytes

#: NumPy types by ONNX's numbers (TensorProto.DataType).
TENSOR_TYPES: dict[int, str] = {
    1: "<f4",
    2: "u1",
    3: "i1",
    4: "<u2",
    5: "<i2",
    6: "<i4",
    7: "<i8",
    9: "?",
    10: "<f2",
    11: "<f8",
    12: "<u4",
    13: "<u8",
}


@dataclass(frozen=True)
class Node:
    """One operation: its type, the names of its inputs and outputs, its attributes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Graph:
    """A network: nodes in an order in which they can run, and its constant tensors."""

    nodes: tuple[Node, ...]
    constants: dict[str, Any]
    inputs: tuple[str, ...]
    """Inputs that are not constants."""
    outputs: tuple[str, ...]
    opset: int
    shapes: dict[str, tuple[int | str, ...]]
    """Shapes of inputs and outputs; a name where a length is free."""
    types: dict[str, int]
    """ONNX's numbers of their types."""


def read_onnx(path: str | os.PathLike[str]) -> Graph:
    """Read the graph and the weights of an ONNX file.

    Parameters
    ----------
    path : path-like
        The file. Weights must lie in the file itself.

    Returns
    -------
    Graph
    """
    content = Path(path).read_bytes()
    try:
        return _model(content)
    except (IndexError, struct.error, UnicodeDecodeError, KeyError, _NotProtobufError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is not an ONNX model, or is damaged ({error!r}); expected a file "
            "written by an ONNX exporter, all weights inside."
        ) from error


class _NotProtobufError(Exception):
    pass


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Fields of a message: integers, or bytes (of fixed or given length)."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(message, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _NotProtobufError(f"wire type {wire} at byte {at}")
        if at + length > end:
            raise _NotProtobufError(f"a field of {length} bytes ends beyond its message")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _NotProtobufError(f"an integer of more than 64 bits at byte {at}")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _integers(value: Value) -> list[int]:
    """One integer, or a packed sequence of them."""
    if isinstance(value, int):
        return [_signed(value)]
    out, at = [], 0
    while at < len(value):
        item, at = _varint(value, at)
        out.append(_signed(item))
    return out


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise _NotProtobufError(f"an integer where a message is expected: {value}")
    return value


def _text(value: Value) -> str:
    return _bytes(value).decode("utf-8")


def _model(content: bytes) -> Graph:
    graph: bytes | None = None
    opset = 0
    for number, value in _fields(content):
        if number == 7:
            graph = _bytes(value)
        elif number == 8:
            entry = dict(_fields(_bytes(value)))
            if not entry.get(1):  # the default domain has no name
                opset = int(entry.get(2, 0))
    if graph is None:
        raise _NotProtobufError("no graph in it")
    nodes, constants = [], {}
    inputs: list[str] = []
    outputs: list[str] = []
    shapes: dict[str, tuple[int | str, ...]] = {}
    types: dict[str, int] = {}
    for number, value in _fields(graph):
        if number == 1:
            nodes.append(_node(_bytes(value)))
        elif number == 5:
            name, array = _tensor(_bytes(value))
            constants[name] = array
        elif number in (11, 12):
            named = dict(_fields(_bytes(value)))
            name = _text(named[1])
            (inputs if number == 11 else outputs).append(name)
            types[name], shapes[name] = _type(_bytes(named.get(2, b"")))
    free = tuple(name for name in inputs if name not in constants)
    return Graph(tuple(nodes), constants, free, tuple(outputs), opset, shapes, types)


def _type(message: bytes) -> tuple[int, tuple[int | str, ...]]:
    """Element type and shape of a tensor."""
    tensor = dict(_fields(_bytes(dict(_fields(message)).get(1, b""))))
    shape: list[int | str] = []
    for number, value in _fields(_bytes(tensor.get(2, b""))):
        if number == 1:
            length = dict(_fields(_bytes(value)))
            shape.append(_integers(length[1])[0] if 1 in length else _text(length.get(2, b"")))
    return int(tensor.get(1, 0)), tuple(shape)


def _node(message: bytes) -> Node:
    inputs, outputs, op, attributes = [], [], "", {}
    for number, value in _fields(message):
        if number == 1:
            inputs.append(_text(value))
        elif number == 2:
            outputs.append(_text(value))
        elif number == 4:
            op = _text(value)
        elif number == 5:
            name, content = _attribute(_bytes(value))
            attributes[name] = content
    return Node(op, tuple(inputs), tuple(outputs), attributes)


def _attribute(message: bytes) -> tuple[str, Any]:
    name, content = "", None
    several: list[Any] = []
    for number, value in _fields(message):
        if number == 1:
            name = _text(value)
        elif number == 2:
            content = struct.unpack("<f", _bytes(value))[0]
        elif number == 3:
            content = _integers(value)[0]
        elif number == 4:
            content = _text(value)
        elif number == 5:
            content = _tensor(_bytes(value))[1]
        elif number == 7:
            several += np.frombuffer(_bytes(value), "<f4").tolist()
        elif number == 8:
            several += _integers(value)
    return name, several if content is None else content


def _tensor(message: bytes) -> tuple[str, Any]:
    dims: list[int] = []
    name, kind, raw = "", 1, None
    loose: list[Any] = []
    for number, value in _fields(message):
        if number == 1:
            dims += _integers(value)
        elif number == 2:
            kind = _integers(value)[0]
        elif number == 4:
            loose += np.frombuffer(_bytes(value), "<f4").tolist()
        elif number in (5, 7, 11):
            loose += _integers(value)
        elif number == 8:
            name = _text(value)
        elif number == 9:
            raw = _bytes(value)
        elif number == 10:
            loose += np.frombuffer(_bytes(value), "<f8").tolist()
        elif number == 13:
            raise _NotProtobufError(f"the weights of {name!r} lie in another file")
    if kind not in TENSOR_TYPES:
        raise _NotProtobufError(f"tensor {name!r} has the unknown type {kind}")
    dtype = np.dtype(TENSOR_TYPES[kind])
    if raw is not None:
        array = np.frombuffer(raw, dtype)
    elif kind == 10:  # half floats travel as the integers of their bits
        array = np.array(loose, dtype="<u2").view("<f2")
    else:
        array = np.array(loose, dtype=dtype)
    if array.size != int(np.prod(dims, dtype=np.int64)):
        raise _NotProtobufError(f"tensor {name!r} has {array.size} entries for shape {dims}")
    return name, array.reshape(dims)
