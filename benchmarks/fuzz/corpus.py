"""Past failures, made anew each time: some are too large to keep as files."""

from __future__ import annotations

import json
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


def find(tree: Any, key: str) -> list[dict[str, Any]]:
    """Every dictionary of a tree that has this key."""
    found = [tree] if isinstance(tree, dict) and key in tree else []
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [*found, *(hit for item in inner for hit in find(item, key))]


def _set(key: str, value: Any) -> Callable[[dict[str, Any], list[Any]], None]:
    def change(tree: dict[str, Any], _: list[Any]) -> None:
        for holder in find(tree, key):
            holder[key] = value

    return change


def _without_last(key: str) -> Callable[[dict[str, Any], list[Any]], None]:
    """Drop the last item of a tuple: a view of the model, a kernel of each view."""

    def change(tree: dict[str, Any], _: list[Any]) -> None:
        for holder in find(tree, key):
            if isinstance(holder[key], dict) and holder[key].get("$") == "tuple":
                holder[key]["items"] = holder[key]["items"][:-1]

    return change


def _scalar(value: float) -> Callable[[dict[str, Any], list[Any]], None]:
    return _set("threshold_", value)


_PADDED = {"$": "strings", "dtype": "str", "shape": [3000], "values": ["a" * 3000] + [""] * 2999}

#: Files that once took gigabytes or minutes, or loaded without making sense.
MODELS: dict[str, Maker] = {
    "padded text": _text(lambda: json.dumps([_PADDED] * 60)),
    "many empty lists": _text(lambda: "[" + "[]," * 10**7 + "[]]"),
    "deeply nested": _text(lambda: "[" * 100_000 + "]" * 100_000),
    "two entries of one name": _text(
        lambda: json.dumps({"$": "dict", "items": [["task", 0]] * 100_000})
    ),
    "a view dropped": _changed(_without_last("views")),
    "a view without kernels": _changed(_set("kernels", {"$": "tuple", "items": []})),
    "an unknown kernel": _changed(_set("kind", "quantum")),
    "an unknown score": _changed(_set("score_type", "astrology")),
    "more names than features": _changed(
        _set(
            "feature_names_in_",
            {
                "$": "strings",
                "dtype": "object",
                "shape": [20],
                "values": [f"n{i}" for i in range(20)],
            },
        )
    ),
    "two billion features": _changed(_set("n_features_in_", 2 * 10**9)),
    "a threshold that contradicts its calibration": _changed(_scalar(1e300)),
    "version 0": lambda originals: originals[0].replace(
        b'kernull-format":"1"', b'kernull-format":"0"'
    ),
    "a complex array": lambda _: _complex(),
}

#: Of these, what still loads.
OPEN = {
    "a view dropped",
    "an unknown kernel",
    "an unknown score",
    "more names than features",
    "a threshold that contradicts its calibration",
}


def _complex() -> bytes:
    from benchmarks.fuzz.models import pack

    return pack(json.dumps({"$": "array", "tensor": 0}), [np.ones(3, np.complex64)])
