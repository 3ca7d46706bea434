"""Between Python values and what JSON and safetensors can hold.

A tree is made of None, booleans, numbers, strings, lists, tuples, dictionaries, slices, NumPy
scalars, arrays of numbers or strings, and `Node`: a name with a dictionary, which is how the layer
above writes its objects. Arrays of numbers go to a side list and are referred to by number.
Everything that JSON does not have is a dictionary with the key ``"$"``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull.errors import ModelFileError

#: What a tensor of a model file may hold.
DTYPES = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
#: A value may be nested this deep.
MAX_DEPTH = 40
#: Values in a file, arrays of numbers as one each: some 35,000 views with one column each.
MAX_VALUES = 2_000_000
#: Characters of text in a file, arrays of text as they are padded.
MAX_TEXT = 2**25
#: Characters in the name of an object or of a field.
MAX_NAME = 100


@dataclass(frozen=True)
class Node:
    """An object as its name and its fields."""

    name: str
    fields: dict[str, Any]


def encode(value: Any, tensors: list[np.ndarray[Any, Any]], path: str = "") -> Any:
    """Turn a tree into JSON values; its arrays of numbers are appended to ``tensors``.

    For values of any other kind there is a TypeError, which says where the value sits.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return {"$": "scalar", "value": encode(np.asarray(value), tensors, path)}
    if isinstance(value, int):
        return value if abs(value) < 2**63 else {"$": "int", "value": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, tensors, path)
    if isinstance(value, list):
        return [encode(item, tensors, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$": "tuple", "items": encode(list(value), tensors, path)}
    if isinstance(value, slice):
        ends = [value.start, value.stop, value.step]
        return {"$": "slice", "items": encode(ends, tensors, path)}
    if isinstance(value, dict):
        pairs = [
            [encode(key, tensors, path), encode(item, tensors, f"{path}.{key}".lstrip("."))]
            for key, item in value.items()
        ]
        return {"$": "dict", "items": pairs}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"$": "dtype", "value": np.dtype(value).name}
    if isinstance(value, Node):
        fields = {key: encode(item, tensors, f"{path}.{key}") for key, item in value.fields.items()}
        return {"$": "node", "name": value.name, "fields": fields}
    what = f"a value of type {type(value).__module__}.{type(value).__qualname__}"
    if callable(value):
        what = f"the callable {getattr(value, '__name__', type(value).__name__)!r}"
    raise TypeError(
        f"{path or 'value'}: cannot be written to a model file: {what}. Files hold numbers, "
        "strings, arrays and containers of these, never code. Keep such a model with pickle "
        "or skops."
    )


def _encode_array(value: np.ndarray[Any, Any], tensors: list[Any], path: str) -> Any:
    if value.dtype.name in DTYPES:
        # The memory layout is kept: BLAS may round differently on another one.
        columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        tensors.append(np.array(value.T if columns else value, order="C", copy=True))
        node = {"$": "array", "tensor": len(tensors) - 1}
        return {**node, "order": "F"} if columns else node
    flat = value.ravel().tolist()
    if value.dtype.kind in "OU" and all(isinstance(item, str) for item in flat):
        kind = "object" if value.dtype.kind == "O" else "str"
        return {"$": "strings", "dtype": kind, "shape": list(value.shape), "values": flat}
    raise TypeError(
        f"{path}: cannot be written to a model file: an array of dtype {value.dtype}; expected "
        "numbers or strings."
    )


class Decoder:
    """Turns JSON values of untrusted files back into a tree, and counts what that takes.

    Whatever `encode` would not have written, or is more than a model can need, is a
    `ModelFileError`. ``tensors`` are the arrays that the values refer to by number. A method
    ``_KIND`` reads what has that kind under ``"$"``.
    """

    def __init__(self, tensors: list[np.ndarray[Any, Any]]) -> None:
        self.tensors = tensors
        self.values = 0
        self.text = 0

    def decode(self, value: Any, depth: int = 0) -> Any:
        """One value: the inverse of `encode`."""
        self.count(1)
        if depth > MAX_DEPTH:
            raise ModelFileError(f"values are nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, str):
            self.take(len(value))
            return value
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        kind = value.get("$") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in KINDS:
            raise ModelFileError(f"unknown kind of value {str(kind)[:40]!r}")
        return getattr(self, f"_{kind}")(value, depth + 1)

    def count(self, values: int) -> None:
        """Account for so many values."""
        self.values += values
        if self.values > MAX_VALUES:
            raise ModelFileError(f"it holds more than {MAX_VALUES:,} values")

    def take(self, characters: int) -> None:
        """Account for text of this length."""
        self.text += characters
        if self.text > MAX_TEXT:
            raise ModelFileError(f"it holds more than {MAX_TEXT:,} characters of text")

    def _int(self, value: dict[str, Any], depth: int) -> int:
        text = _part(value, "value", str)
        if len(text) > 1000 or not text.removeprefix("-").isdecimal():
            raise ModelFileError("an integer that is none")
        return int(text)

    def _float(self, value: dict[str, Any], depth: int) -> float:
        text = _part(value, "value", str)
        if text not in ("inf", "-inf", "nan"):
            raise ModelFileError("a number that is none")
        return float(text)

    def _tuple(self, value: dict[str, Any], depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(item, depth) for item in _part(value, "items", list))

    def _slice(self, value: dict[str, Any], depth: int) -> slice:
        ends = self._tuple(value, depth)
        if len(ends) != 3 or not all(end is None or isinstance(end, int | str) for end in ends):
            raise ModelFileError("a slice that is none")
        return slice(*ends)

    def _dict(self, value: dict[str, Any], depth: int) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for pair in _part(value, "items", list):
            if not isinstance(pair, list) or len(pair) != 2:
                raise ModelFileError("a dictionary whose items are not pairs")
            key = self.decode(pair[0], depth)
            parts = key if isinstance(key, tuple) else (key,)
            if not all(p is None or isinstance(p, str | int | float | np.generic) for p in parts):
                raise ModelFileError("a dictionary key that is neither text nor a number")
            if key in out:
                raise ModelFileError(f"a dictionary with two entries {str(key)[:40]!r}")
            out[key] = self.decode(pair[1], depth)
        return out

    def _dtype(self, value: dict[str, Any], depth: int) -> Any:
        name = _part(value, "value", str)
        if name not in DTYPES:
            raise ModelFileError(f"unknown dtype {name[:40]!r}")
        return np.dtype(name)

    def _array(self, value: dict[str, Any], depth: int) -> Any:
        at = value.get("tensor")
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(self.tensors):
            raise ModelFileError("an array that is not in the file")
        return self.tensors[at].T if value.get("order") == "F" else self.tensors[at]

    def _scalar(self, value: dict[str, Any], depth: int) -> Any:
        inner = value.get("value")
        is_array = isinstance(inner, dict) and inner.get("$") in ("array", "strings")
        array = self.decode(inner, depth) if is_array else None
        if array is None or array.shape != ():
            raise ModelFileError("a scalar that is none")
        return array[()]

    def _strings(self, value: dict[str, Any], depth: int) -> Any:
        shape, values = _part(value, "shape", list), _part(value, "values", list)
        sizes_ok = all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in shape)
        fits = sizes_ok and len(shape) <= 8 and math.prod(shape) == len(values)
        if not fits or not all(isinstance(item, str) for item in values):
            raise ModelFileError("an array of text that is none")
        self.count(entries(shape))
        if value.get("dtype") == "object":
            self.take(sum(map(len, values)))
            out = np.empty(len(values), dtype=object)
            out[:] = values
            return out.reshape(shape)
        # One long string pads all the others.
        self.take(len(values) * max(map(len, values), default=0))
        return np.array(values, dtype=str).reshape(shape)

    def _node(self, value: dict[str, Any], depth: int) -> Node:
        name, fields = _part(value, "name", str), value.get("fields")
        if not isinstance(fields, dict):
            raise ModelFileError("an object without its fields")
        if max(map(len, (name, *fields))) > MAX_NAME:
            raise ModelFileError(
                f"an object or a field whose name has more than {MAX_NAME} characters"
            )
        return Node(name, {key: self.decode(item, depth) for key, item in fields.items()})


#: What stands under ``"$"``.
KINDS = ("int", "float", "tuple", "slice", "dict", "dtype", "array", "scalar", "strings", "node")


def _part(value: dict[str, Any], key: str, kind: type) -> Any:
    """A text, or a list, that an entry of the file must have."""
    found = value.get(key)
    if not isinstance(found, kind):
        whose = f"whose {key} is not text" if kind is str else f"without its {key}"
        raise ModelFileError(f"a {value['$']} {whose}")
    return found


def entries(shape: Sequence[int]) -> int:
    """Entries of an array, were no side of it empty: a list of 10^9 empty rows is long, too."""
    return math.prod(max(size, 1) for size in shape)


def check_size(value: Any, tensors: list[np.ndarray[Any, Any]]) -> None:
    """Refuse, by a ValueError, to write what `Decoder` would refuse to read."""
    try:
        Decoder(tensors).decode(value)
    except ModelFileError as error:
        said = f"the model cannot be written to a file that can be read: {error}."
        raise ValueError(said) from error
