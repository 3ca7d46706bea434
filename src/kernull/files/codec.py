"""Between Python values and what JSON and safetensors can hold.

A value is what JSON has, an array, or an object with the key ``"$"``: of a class of
`kernull._fields.STORED` with its fields, or from outside, with its import path and the parameters
of its constructor. An array is stored once, in the narrowest type that holds its values.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kernull._fields import STORED, declared
from kernull.errors import ModelFileError
from kernull.files.container import DTYPES, MAX_DEPTH, Tensors

#: Entries that a mapping may have whose keys are not text: their hashes may collide.
MAX_PAIRS = 5_000
#: Arrays may take so many times the bytes of the tensors once they are read, beyond `SPARE`: a
#: tensor may be narrower than its array, and stand for several that are equal.
MAX_GROWTH, SPARE = 32, 2**24
#: Uses of one tensor before it is written once more.
MOST_USES = 4


class Packer:
    """Turns values into what JSON can hold; ``tensors`` collects their arrays by name."""

    def __init__(self) -> None:
        self.tensors: Tensors = {}
        self._names: dict[Any, tuple[str, int]] = {}
        #: Classes and functions from outside that were met.
        self.outside: list[Any] = []

    def encode(self, value: Any, path: str = "model") -> Any:
        """A value at a place; a TypeError that names the place where it cannot be stored."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if type(value) is list:
            return [self.encode(item, f"{path}.{i}") for i, item in enumerate(value)]
        if type(value) is tuple:
            return {"$": "tuple", "items": self.encode(list(value), path)}
        if isinstance(value, slice):
            return {"$": "slice", "items": [value.start, value.stop, value.step]}
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            return {"$": "dtype", "value": np.dtype(value).name}
        if STORED.get(type(value).__name__) is type(value):
            return self._object(value, path)
        return self._from_outside(value, path)

    def _object(self, value: Any, path: str) -> dict[str, Any]:
        cls: Any = type(value)
        node: dict[str, Any] = {"$": cls.__name__}
        if isinstance(value, BaseEstimator):
            node["parameters"] = self.encode(value.get_params(deep=False), f"{path}.parameters")
        for name, field in declared(cls).items():
            item = getattr(value, name, None)
            if field.derived or field.is_default(item):
                continue
            if item is not None or name in vars(value):
                node[name] = self.encode(item, f"{path}.{name}")
        return node

    def _mapping(self, value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        if all(isinstance(key, str) for key in value):
            items = {key: self.encode(x, f"{path}.{i}") for i, (key, x) in enumerate(value.items())}
            return {"$": "dict", "items": items}
        if len(value) > MAX_PAIRS:
            raise TypeError(
                f"{path}: got {len(value):,} entries; files hold at most {MAX_PAIRS:,} whose names "
                "are not text."
            )
        pairs = [[key, item] for key, item in value.items()]
        return {"$": "pairs", "items": self.encode(pairs, path)}

    def _array(self, value: np.ndarray[Any, Any], path: str) -> dict[str, Any]:
        if value.dtype.kind in "OU":
            texts = value.ravel().tolist()
            if value.ndim != 1 or not all(isinstance(text, str) for text in texts):
                raise TypeError(
                    f"{path}: got an array of {value.dtype} and shape {value.shape}; expected "
                    "numbers, or a list of texts."
                )
            return {"$": "strings", "items": texts}
        if value.dtype.str not in DTYPES:
            raise TypeError(f"{path}: got an array of {value.dtype}; expected numbers.")
        # The memory layout is kept: BLAS may round differently on another one.
        columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        tensor = np.ascontiguousarray(_narrow(value.T if columns else value))
        tensor = tensor.reshape(value.T.shape if columns else value.shape)
        key = tensor.dtype.str, tensor.shape, hashlib.sha256(tensor.data).digest()
        name, uses = self._names.get(key, (path, MOST_USES))
        if uses == MOST_USES:
            name, uses = path, 0
            self.tensors[name] = tensor
        self._names[key] = name, uses + 1
        node = {"$": "array", "tensor": name, "dtype": value.dtype.name}
        return {**node, "order": "F"} if columns else node

    def _from_outside(self, value: Any, path: str) -> dict[str, Any]:
        """A class or function by its import path; an object by its class and parameters."""
        named = isinstance(value, type) or inspect.isfunction(value)
        what = value if named else type(value)
        where = _path_of(what)
        if where is None:
            raise TypeError(
                f"{path}: cannot be stored: {value!r:.80}. Files hold numbers, text, arrays, and "
                "objects whose class can be imported. Define it at the top level of a module."
            )
        if named:
            self.outside.append(what)
            return {"$": "outside", "path": where}
        try:
            accepted = inspect.signature(what).parameters
        except ValueError:  # compiled, without a signature
            raise TypeError(
                f"{path}: cannot be stored: {where} has no signature that lists its parameters."
            ) from None
        parameters = {}
        for name, one in accepted.items():
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                continue
            if not hasattr(value, name):
                raise TypeError(
                    f"{path}: cannot be stored: {value!r:.80} of {where} does not keep the "
                    f"parameter {name!r} of its constructor as an attribute. Files hold objects by "
                    "these. Keep others with pickle or skops."
                )
            item = getattr(value, name)
            if item is not one.default:
                parameters[name] = self.encode(item, f"{path}.{name}")
        self.outside.append(what)
        return {"$": "outside", "path": where, "parameters": parameters}


def _path_of(what: Any) -> str | None:
    """The import path of a class or function, ``module:name``; None of one that has none."""
    name = getattr(what, "__qualname__", "<")
    module = getattr(what, "__module__", None)
    if "<" in name or module is None or module == "builtins":
        return None
    return f"{module}:{name}"


def _narrow(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers in the narrowest type that holds them exactly."""
    if not value.size or value.dtype.kind == "b":
        return value
    kinds: list[Any] = [np.float32] if value.dtype.kind == "f" else []
    low, high = value.min(), value.max()
    if low >= 0 and high < 2**32 and not (value.dtype.kind == "f" and np.signbit(value).any()):
        kinds = [np.uint8, np.uint16, np.uint32, *kinds]
    for kind in kinds:
        with np.errstate(all="ignore"):
            small = value.astype(kind) if value.dtype.itemsize > np.dtype(kind).itemsize else value
        if small is not value and np.array_equal(small, value):
            return small
    return value


class Unpacker:
    """Turns what `Packer` wrote back into values, from files that anybody may have written.

    Whatever `Packer` would not have written is a `ModelFileError`. What fields hold is for
    `kernull._fields.check`.

    Parameters
    ----------
    tensors : dict of str to array
    trusted : iterable of classes and functions
        Those from outside that a file may name.
    """

    def __init__(self, tensors: Tensors, trusted: Iterable[Any] = ()) -> None:
        self.tensors = tensors
        self.left = MAX_GROWTH * sum(t.nbytes for t in tensors.values()) + SPARE
        self.trusted = {_path_of(what): what for what in trusted}
        #: Whether anything from outside was met.
        self.outside = False
        self._readers: dict[str, Callable[[dict[str, Any], int], Any]] = {
            "float": self._float,
            "tuple": lambda node, depth: tuple(self._items(node, depth)),
            "slice": self._slice,
            "dict": self._dict,
            "pairs": self._pairs,
            "dtype": self._dtype,
            "array": self._array,
            "strings": self._strings,
            "outside": self._from_outside,
        }

    def decode(self, value: Any, depth: int = 0) -> Any:
        """One value: the inverse of `Packer.encode`."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"values are nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            if isinstance(value, int) and abs(value) >= 2**63:
                raise ModelFileError("a whole number of more than 64 bits")
            return value
        kind = value.get("$")
        if isinstance(kind, str) and kind in self._readers:
            return self._readers[kind](value, depth + 1)
        if isinstance(kind, str) and kind in STORED:
            return self._object(STORED[kind], value, depth + 1)
        raise ModelFileError(f"unknown kind of value {str(kind)[:40]!r}")

    def _object(self, cls: Any, node: dict[str, Any], depth: int) -> Any:
        is_estimator = issubclass(cls, BaseEstimator)
        content: dict[str, Any] = {}
        left = set(node) - {"$", "parameters" if is_estimator else "$"}
        unfitted = is_estimator and not left
        for name, field in () if unfitted else declared(cls).items():
            if name in left and not field.derived:
                content[name] = self.decode(node[name], depth)
                left.remove(name)
            elif field.derived and not is_estimator:
                content[name] = None
            elif not field.optional and field.default is inspect.Parameter.empty:
                raise ModelFileError(f"{cls.__name__} lacks {name}")
        if left:
            raise ModelFileError(f"{cls.__name__} has no field {min(left)[:40]!r}")
        if not is_estimator:
            return cls(**content)
        parameters = self.decode(node.get("parameters"), depth)
        if not isinstance(parameters, dict) or not set(parameters) <= set(cls._get_param_names()):
            raise ModelFileError(f"parameters that {cls.__name__} does not have")
        made = cls(**parameters)
        vars(made).update(content)
        return made

    def _items(self, node: dict[str, Any], depth: int) -> list[Any]:
        items = node.get("items")
        if not isinstance(items, list):
            raise ModelFileError(f"a {node['$']} without its items")
        return [self.decode(item, depth) for item in items]

    def _float(self, node: dict[str, Any], depth: int) -> float:
        if node.get("value") not in ("inf", "-inf", "nan"):
            raise ModelFileError("a number that is none")
        return float(node["value"])

    def _slice(self, node: dict[str, Any], depth: int) -> slice:
        ends = self._items(node, depth)
        if len(ends) != 3 or not all(end is None or isinstance(end, int | str) for end in ends):
            raise ModelFileError("a slice that is none")
        return slice(*ends)

    def _dict(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        items = node.get("items")
        if not isinstance(items, dict):
            raise ModelFileError("a mapping without its items")
        return {key: self.decode(item, depth) for key, item in items.items()}

    def _pairs(self, node: dict[str, Any], depth: int) -> dict[Any, Any]:
        items, out = node.get("items"), dict[Any, Any]()
        if not isinstance(items, list) or len(items) > MAX_PAIRS:
            raise ModelFileError(f"a mapping that has no items, or more than {MAX_PAIRS:,}")
        for pair in items:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ModelFileError("a mapping whose items are not pairs")
            key = self.decode(pair[0], depth)
            parts = key if isinstance(key, tuple) else (key,)
            if not all(part is None or isinstance(part, str | int | float) for part in parts):
                raise ModelFileError("a mapping with a key that is neither text nor a number")
            if key in out:
                raise ModelFileError(f"a mapping with two entries {str(key)[:40]!r}")
            out[key] = self.decode(pair[1], depth)
        return out

    def _dtype(self, node: dict[str, Any], depth: int) -> Any:
        if node.get("value") not in DTYPES.values():
            raise ModelFileError(f"unknown type of numbers {str(node.get('value'))[:40]!r}")
        return np.dtype(node["value"])

    def _array(self, node: dict[str, Any], depth: int) -> Any:
        name, wanted = node.get("tensor"), self._dtype({"value": node.get("dtype")}, depth)
        tensor = self.tensors.get(name) if isinstance(name, str) else None
        if tensor is None:
            raise ModelFileError("an array that is not in the file")
        if not np.can_cast(tensor.dtype, wanted):
            raise ModelFileError(f"an array of {wanted} that was written as {tensor.dtype}")
        self.left -= tensor.size * wanted.itemsize
        if self.left < 0:
            raise ModelFileError("arrays that take far more memory than the file")
        array = tensor.astype(wanted, copy=False)
        return array.T if node.get("order") == "F" else array

    def _strings(self, node: dict[str, Any], depth: int) -> Any:
        items = node.get("items")
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ModelFileError("an array of text that is none")
        return np.array([*items, None], dtype=object)[:-1]

    def _from_outside(self, node: dict[str, Any], depth: int) -> Any:
        path = node.get("path")
        if not isinstance(path, str) or path not in self.trusted:
            name = str(path)[:200].rpartition(":")[2]
            raise ModelFileError(
                f"it needs {str(path)[:200]!r}, which may run any code and is not trusted. If you "
                f"know it, import it and name it: load(path, trusted=[{name}])"
            )
        self.outside = True
        what = self.trusted[path]
        if "parameters" not in node:
            return what
        return what(**self._dict({"items": node["parameters"]}, depth))
