"""Past failures, made anew each time: some are too large to keep as files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[[list[bytes]], bytes]


def _changed(change: Callable[[dict[str, Any], list[Any]], None], which: int = 0) -> Maker:
    """A file whose tree was changed, with a checksum that fits."""

    def make(originals: list[bytes]) -> bytes:
        from benchmarks.fuzz.models import pack, unpack

        header, tree, tensors = unpack(originals[which])
        change(tree, tensors)
        return pack(json.dumps(tree), tensors, header["__metadata__"]["kernull-format"])

    return make


def _text(text: Callable[[], str]) -> Maker:
    def make(_: list[bytes]) -> bytes:
        from benchmarks.fuzz.models import pack

        return pack(text(), [])

    return make


def find(tree: Any, name: str) -> list[dict[str, Any]]:
    """The fields of every object of this name in a tree."""
    if isinstance(tree, list):
        return [hit for item in tree for hit in find(item, name)]
    if not isinstance(tree, dict):
        return []
    own = [tree["fields"]] if tree.get("name") == name else []
    return [*own, *(hit for item in tree.values() for hit in find(item, name))]


def _set(name: str, **values: Any) -> Maker:
    def change(tree: dict[str, Any], _: list[Any]) -> None:
        found = find(tree, name)
        if not found:
            raise LookupError(f"no object {name!r} in the file: the corpus is out of date")
        for fields in found:
            fields.update(values)

    return _changed(change)


def _renamed(name: str, other: str) -> Maker:
    """Objects of one name by another."""

    def rename(tree: Any) -> Any:
        if isinstance(tree, list):
            return [rename(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        named = {"name": other} if tree.get("name") == name else {}
        return {key: rename(item) for key, item in tree.items()} | named

    def change(tree: dict[str, Any], _: list[Any]) -> None:
        if not find(tree, name):
            raise LookupError(f"no object {name!r} in the file: the corpus is out of date")
        tree.update(rename(tree))

    return _changed(change)


def _drop(name: str, field: str) -> Maker:
    """Without the last item of a list."""

    def change(tree: dict[str, Any], _: list[Any]) -> None:
        for fields in find(tree, name):
            fields[field].pop()

    return _changed(change)


def _parameter(name: str, value: Any) -> Maker:
    def change(tree: dict[str, Any], _: list[Any]) -> None:
        pairs = find(tree, "MultiKernelFisherNull")[0]["parameters"]["items"]
        pairs[[key for key, _ in pairs].index(name)][1] = value

    return _changed(change)


def _array(
    name: str, field: str, change: Callable[[Any], Any], which: int = 0, *, first: bool = False
) -> Maker:
    """Other values in an array of every object of this name that has it, or of the first."""

    def apply(tree: dict[str, Any], tensors: list[Any]) -> None:
        found = [fields[field]["tensor"] for fields in find(tree, name) if field in fields]
        if not found:
            raise LookupError(f"no array {field!r} of {name!r} in the file: see the corpus")
        for tensor in found[:1] if first else found:
            tensors[tensor] = change(tensors[tensor]).astype(tensors[tensor].dtype)

    return _changed(apply, which)


def _one_large(values: Any) -> Any:
    return np.append(values[:-1], 1e308)


def _names(count: int) -> dict[str, Any]:
    return {"$": "tuple", "items": [f"n{i}" for i in range(count)]}


def _many_tasks(originals: list[bytes]) -> bytes:
    """A joint model of 100,000 tasks, all of one name."""
    from benchmarks.fuzz.models import pack, unpack

    header, tree, tensors = next(
        parts for parts in map(unpack, originals) if find(parts[1], "joint")
    )
    fields = find(tree, "joint")[0]
    fields["tasks"] += [["task", 0]] * 100_000
    return pack(json.dumps(tree), tensors, header["__metadata__"]["kernull-format"])


def _without_reasons(tree: dict[str, Any], tensors: list[Any]) -> None:
    """What explanations need is not there, and cannot be computed."""
    del find(tree, "model")[0]["left_out"]
    for kernel in find(tree, "rbf"):
        tensors[kernel["centre"]["tensor"]] = np.full_like(
            tensors[kernel["centre"]["tensor"]], 1e200
        )


def _weights_of_fewer_rows(tree: dict[str, Any], tensors: list[Any]) -> None:
    """Of a weighted model, what explanations compute with is of more rows than its weights."""
    model, calibration = find(tree, "model")[0], find(tree, "calibration")[0]
    del model["left_out"]
    for held in (model["calibration_weight"], calibration["scores"], calibration["counts"]):
        tensors[held["tensor"]] = tensors[held["tensor"]][:-1]


_PADDED = {"$": "strings", "dtype": "str", "shape": [3000], "values": ["a" * 3000] + [""] * 2999}

#: Files that once took gigabytes or minutes, or loaded without making sense.
#: Of these files what is left works; all others are refused.
WORKING = ("contributions of held-out rows lost",)
MODELS: dict[str, Maker] = {
    "padded text": _text(lambda: json.dumps([_PADDED] * 60)),
    "many empty lists": _text(lambda: "[" + "[]," * 10**7 + "[]]"),
    "deeply nested": _text(lambda: "[" * 100_000 + "]" * 100_000),
    "two entries of one name": _text(
        lambda: json.dumps({"$": "dict", "items": [["task", 0]] * 100_000})
    ),
    "many empty rows": lambda _: _empty_rows(),
    "many empty rows of text": lambda _: _history(
        {"$": "strings", "dtype": "object", "shape": [10**9, 0], "values": []}
    ),
    "many tasks of one name": _many_tasks,
    "contributions of held-out rows lost": _changed(
        lambda tree, _: [model.pop("left_out", None) for model in find(tree, "model")], 3
    ),
    "a view dropped": _drop("kernel-set", "views"),
    "a kernel dropped": _drop("view", "kernels"),
    "a view without kernels": _set("view", kernels=[]),
    "an unknown kernel": _renamed("rbf", "quantum"),
    "an unknown score": _set("fisher", score_type="astrology"),
    "more names than features": _set("MultiKernelFisherNull", feature_names=_names(20)),
    "two billion features": _set("MultiKernelFisherNull", n_features=2 * 10**9),
    "a million features": _set("MultiKernelFisherNull", n_features=10**6),
    "a threshold that contradicts its calibration": _set("model", threshold=1e300),
    "a decoy": _set("MultiKernelFisherNull", best_estimator_=1, best=1),
    "scales too large": _array("whiten", "scale_", lambda a: np.full_like(a, 1e308)),
    "scales below zero": _array("whiten", "scale_", lambda a: -a),
    "scales of zero": _array("whiten", "scale_", lambda a: 0.0 * a),
    "means too large": _array("whiten", "mean_", lambda a: a + 1e200),
    "rows too large": _array("view", "train", lambda a: a * 1e200),
    "directions turned round": _array("whiten", "gains_", lambda a: a - 1e9, which=1),
    "a gain without end": _array("whiten", "gains_", _one_large, which=5, first=True),
    "weights that are all zero": _array("model", "calibration_weight", lambda a: 0 * a, which=12),
    "reasons that cannot be computed": _changed(_without_reasons, 4),
    "weights of other rows": _changed(_weights_of_fewer_rows, 12),
    "knots that fall": _array("knots", "values", lambda a: a[::-1]),
    "weights below zero": _array("fisher", "weights", lambda a: -a),
    "a width of zero": _set("rbf", width=0.0),
    "a width without end": _set("rbf", width={"$": "float", "value": "inf"}),
    "a type of numbers that is none": _parameter("dtype", 1e-308),
    "a limit of memory that is none": _parameter("memory_limit", "much"),
    "version 0": lambda originals: re.sub(rb'(kernull-format":")\d', rb"\g<1>0", originals[0]),
    "version 1": lambda originals: re.sub(rb'(kernull-format":")\d', rb"\g<1>1", originals[0]),
    "a complex array": lambda _: _complex(),
}


def _empty_rows() -> bytes:
    from benchmarks.fuzz.models import pack

    return pack(json.dumps({"$": "array", "tensor": 0}), [np.ones((10**9, 0))])


def _history(values: dict[str, Any]) -> bytes:
    """Rows of text without columns: a reader that made a list of them would take the memory."""
    from benchmarks.fuzz.models import pack

    node = {"$": "node", "name": "history", "fields": {"values": values}}
    model = {"$": "node", "name": "MultiKernelFisherNull", "fields": {"history_": node}}
    return pack(json.dumps({"$": "dict", "items": [["estimator", model]]}), [])


def _complex() -> bytes:
    from benchmarks.fuzz.models import pack

    data = pack(json.dumps({"$": "array", "tensor": 0}), [np.ones(4, np.float32)])
    # safetensors before 0.7 does not write complex numbers
    return data.replace(b'"dtype":"F32","shape":[4]', b'"dtype":"C64","shape":[2]')
