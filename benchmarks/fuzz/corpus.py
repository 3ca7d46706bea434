"""Past failures, made anew each time: some are too large to keep as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[[list[bytes]], bytes]


def _changed(change: Callable[[Any, dict[str, Any]], None], which: int = 0) -> Maker:
    """A file whose tree was changed, with a checksum that fits."""

    def make(originals: list[bytes]) -> bytes:
        from benchmarks.fuzz.models import pack, unpack

        _, tree, tensors = unpack(originals[which])
        change(tree, tensors)
        return pack(json.dumps(tree), tensors)

    return make


def _text(text: Callable[[], str]) -> Maker:
    def make(_: list[bytes]) -> bytes:
        from benchmarks.fuzz.models import pack

        return pack(text(), {})

    return make


def find(tree: Any, name: str) -> list[dict[str, Any]]:
    """Every object of this class in a tree."""
    if isinstance(tree, list):
        return [hit for item in tree for hit in find(item, name)]
    if not isinstance(tree, dict):
        return []
    own = [tree] if tree.get("$") == name else []
    return [*own, *(hit for item in tree.values() for hit in find(item, name))]


def found(tree: Any, name: str) -> list[dict[str, Any]]:
    """The same; an error where there is none."""
    hits = find(tree, name)
    if not hits:
        raise LookupError(f"no object {name!r} in the file: the corpus is out of date")
    return hits


def _set(name: str, which: int = 0, **values: Any) -> Maker:
    return _changed(lambda tree, _: [node.update(values) for node in found(tree, name)], which)


def _without(name: str, field: str, which: int = 0) -> Maker:
    return _changed(lambda tree, _: [node.pop(field) for node in found(tree, name)], which)


def _drop(name: str, field: str) -> Maker:
    """Without the last item of a tuple."""
    return _changed(lambda tree, _: [node[field]["items"].pop() for node in found(tree, name)])


def _parameter(name: str, value: Any) -> Maker:
    def change(tree: Any, _: dict[str, Any]) -> None:
        found(tree, "MultiKernelFisherNull")[0]["parameters"]["items"][name] = value

    return _changed(change)


def _storage(**values: Any) -> dict[str, Any]:
    """A `kernull.Storage` as a file has it."""
    return {"$": "Storage", "name": "auto"} | values


def _array(
    name: str, field: str, change: Callable[[Any], Any], which: int = 0, *, first: bool = False
) -> Maker:
    """Other values in an array of every object of this class that has it, or of the first."""

    def apply(tree: Any, tensors: dict[str, Any]) -> None:
        names = sorted({n[field]["tensor"] for n in found(tree, name) if field in n})
        if not names:
            raise LookupError(f"no array {field!r} of {name!r} in the file: see the corpus")
        for tensor in names[:1] if first else names:
            new = np.ascontiguousarray(change(tensors[tensor].astype(float)))
            kept = tensors[tensor].dtype.kind in "iu" and (new >= 0).all()
            tensors[tensor] = new.astype(np.uint32) if kept else new

    return _changed(apply, which)


def _one_large(values: Any) -> Any:
    return np.append(values[:-1], 1e308)


def _many_tasks(originals: list[bytes]) -> bytes:
    """A joint model of 100,000 tasks."""
    from benchmarks.fuzz.models import pack, unpack

    _, tree, tensors = next(p for p in map(unpack, originals) if find(p[1], "JointModel"))
    found(tree, "JointModel")[0]["tasks"]["items"] += [[i, 0] for i in range(100_000)]
    return pack(json.dumps(tree), tensors)


def _colliding(_: list[bytes]) -> bytes:
    """Whole numbers of one hash: a dictionary of them takes time by the square of their number."""
    from benchmarks.fuzz.models import pack

    pairs = [[i * (2**61 - 1), 0] for i in range(50_000)]
    return pack(json.dumps({"estimator": {"$": "pairs", "items": pairs}}), {})


def _weights_of_fewer_rows(tree: Any, tensors: dict[str, Any]) -> None:
    """Of a weighted model, what explanations compute with is of more rows than its weights."""
    model, calibration = found(tree, "KernelModel")[0], found(tree, "Calibration")[0]
    del model["left_out"]
    for held in (model["calibration_weight"], calibration["scores"], calibration["counts"]):
        held["tensor"] = _shorter(held["tensor"], tensors)


def _shorter(name: str, tensors: dict[str, Any]) -> str:
    tensors[f"{name}.shorter"] = tensors[name][:-1]
    return f"{name}.shorter"


#: Of these files what is left works; all others are refused.
WORKING = ("contributions of held-out rows lost",)
#: Files that once took gigabytes or minutes, or loaded without making sense.
MODELS: dict[str, Maker] = {
    "many empty lists": _text(lambda: "[" + "[]," * 10**7 + "[]]"),
    "deeply nested": _text(lambda: "[" * 100_000 + "]" * 100_000),
    "two entries of one name": _text(
        lambda: json.dumps({"estimator": {"$": "pairs", "items": [[1, 0]] * 4_000}})
    ),
    "names that collide": _colliding,
    "many empty rows": lambda _: _empty_rows(),
    "many tasks": _many_tasks,
    "contributions of held-out rows lost": _changed(
        lambda tree, _: [model.pop("left_out", None) for model in find(tree, "KernelModel")], 3
    ),
    "a view dropped": _drop("KernelSet", "views"),
    "a kernel dropped": _drop("ScaledView", "kernels"),
    "a view without kernels": _set("ScaledView", kernels={"$": "tuple", "items": []}),
    "an unknown kernel": _changed(
        lambda tree, _: [k.update({"$": "quantum"}) for k in found(tree, "Rbf")]
    ),
    "an unknown score": _set("FisherRule", score_type="astrology"),
    "more names than features": _set(
        "MultiKernelFisherNull",
        feature_names_in_={"$": "strings", "items": [f"n{i}" for i in range(20)]},
    ),
    "two billion features": _set("MultiKernelFisherNull", n_features_in_=2 * 10**9),
    "a million features": _set("MultiKernelFisherNull", n_features_in_=10**6),
    "a threshold in the file": _set("KernelModel", threshold=1e300),
    "a decoy": _set("MultiKernelFisherNull", best_estimator_=1, best=1),
    "another method's rule": _changed(
        lambda tree, _: tree["estimator"].update(
            {"$": "MultiKernelFisherNull", "parameters": {"$": "dict", "items": {}}}
        ),
        7,
    ),
    "a rate above one": _set("KernelModel", false_alarm_rate=1.5),
    "a rate that is no number": _set(
        "KernelModel", false_alarm_rate={"$": "float", "value": "nan"}
    ),
    "scores out of order": _array("Calibration", "scores", lambda a: a[::-1]),
    "counts that fall": _array("Calibration", "counts", lambda a: a[::-1]),
    "scales too large": _array("Whiten", "scale_", lambda a: np.full_like(a, 1e308)),
    "scales below zero": _array("Whiten", "scale_", lambda a: -a),
    "scales of zero": _array("Whiten", "scale_", lambda a: 0.0 * a),
    "rows too large": _array("KernelSet", "rows", lambda a: a * 1e200),
    "rows that are no numbers": _array("KernelSet", "rows", lambda a: a * np.nan),
    "rows left out": _array("KernelSet", "rows", lambda a: a[:-1]),
    "columns that are not there": _array("ScaledView", "columns", lambda a: a + 100),
    "one column twice": _array("ScaledView", "columns", lambda a: 0 * a),
    "an order of other rows": _array("TableScores", "order", lambda a: a + 1),
    "directions turned round": _array("Whiten", "gains_", lambda a: a - 1e9, which=1),
    "a gain without end": _array("Whiten", "gains_", _one_large, which=5, first=True),
    "weights that are all zero": _array(
        "KernelModel", "calibration_weight", lambda a: 0 * a, which=12
    ),
    "weights of other rows": _changed(_weights_of_fewer_rows, 12),
    "weights below zero": _array("FisherRule", "weights", lambda a: -a),
    "weights of other kernels": _array("FisherRule", "weights", lambda a: a[:-1]),
    "coefficients of other rows": _array("FisherRule", "coef", lambda a: a[:-1]),
    "one fold": _array("EvidenceRule", "fold", lambda a: 0 * a),
    "left-out scores of other rows": _array("EvidenceRule", "left_out", lambda a: a[:-1]),
    "left-out scores that are no numbers": _array("EvidenceRule", "left_out", lambda a: a * np.nan),
    "a width of zero": _set("Rbf", width=0.0),
    "a width without end": _set("Rbf", width={"$": "float", "value": "inf"}),
    "no width": _without("Rbf", "width"),
    "no centre": _without("Rbf", "centre"),
    "no calibration": _without("KernelModel", "calibration"),
    "no rule": _without("KernelModel", "rule"),
    "no rows": _without("KernelSet", "rows"),
    "an object from outside": _parameter(
        "kernels", {"$": "outside", "path": "os:system", "parameters": {}}
    ),
    "a type of numbers that is none": _parameter("storage", _storage(dtype="int8")),
    "a limit of memory that is none": _parameter("storage", _storage(memory_limit="much")),
    "version 0": lambda originals: _of_version(originals, 0),
    "version 3": lambda originals: _of_version(originals, 3),
    "version 5": lambda originals: _of_version(originals, 5),
    "a complex array": lambda _: _complex(),
}


def _of_version(originals: list[bytes], version: int) -> bytes:
    from benchmarks.fuzz.models import pack, unpack

    _, tree, tensors = unpack(originals[0])
    return pack(json.dumps(tree), tensors, version)


def _empty_rows() -> bytes:
    from benchmarks.fuzz.models import pack

    return pack("{}", {"a": np.ones((10**9, 0))})


def _complex() -> bytes:
    from benchmarks.fuzz.models import pack

    node = {"$": "array", "tensor": "a", "dtype": "float32"}
    data = pack(json.dumps({"estimator": node}), {"a": np.ones(4, np.float32)})
    # safetensors before 0.7 does not write complex numbers
    return data.replace(b'"dtype":"F32","shape":[4]', b'"dtype":"C64","shape":[2]')
