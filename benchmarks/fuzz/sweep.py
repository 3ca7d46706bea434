"""Every single change of every field of every model file, one after the other.

``python -m benchmarks.fuzz.sweep [--part I --of N]``: what random cases meet only by luck.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.__main__ import show
from benchmarks.fuzz.cases import Report, Watch, run_one
from benchmarks.fuzz.models import EXTREMES, HOSTILE, Models, pack, try_file, unpack

#: New names of a field.
RENAMED = ("score_samples", "$")


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value; of lists of more than three items the first, second and last."""
    keys: Any = tree if isinstance(tree, dict) else range(len(tree))
    if isinstance(tree, list) and len(tree) > 3 and not _pairs(tree):
        keys = [0, 1, len(tree) - 1]
    for key in keys:
        yield (*path, key)
        if isinstance(tree[key], dict | list):
            yield from places(tree[key], (*path, key))


def _pairs(items: list[Any]) -> bool:
    """Whether a list is the items of a dictionary."""
    return all(isinstance(item, list) and len(item) == 2 for item in items)


def kind_of(tree: Any, path: tuple[Any, ...]) -> str:
    """What a place is called, alike in all views, kernels and tasks of a file."""
    words, here = [], tree
    for key in path:
        if isinstance(here, dict) and str(here.get("$", "x"))[0].isupper():
            words = [str(here["$"]), str(key)]
        elif not isinstance(here, list):
            words.append(str(key))
        elif key < len(here) and isinstance(here[key], list) and len(here[key]) == 2:
            words.append(str(here[key][0])[:40])  # of a dictionary
        elif len(here) == 2 and key == 1 and not isinstance(here[0], dict | list):
            words.append("value")
        else:
            words.append(str(min(key, 1)))
        here = here[key]
    return "/".join(words)


def changed_trees(data: bytes, whole: bool = False) -> Iterator[tuple[str, Any]]:
    """Files with one value replaced, taken away or renamed; the second is a function."""
    header, tree, tensors = unpack(data)
    text, version = json.dumps(tree), header["__metadata__"]["kernull-format"]
    seen = set()
    for path in list(places(tree)):
        kind = kind_of(tree, path)
        # How trees are written is looked at once.
        if kind in seen or (path[-1] in ("$", 0) and not whole):
            continue
        seen.add(kind)
        for i in range(len(HOSTILE) + 1 + len(RENAMED)):

            def make(path: Any = path, i: int = i) -> bytes:
                own = json.loads(text)
                holder = own
                for key in path[:-1]:
                    holder = holder[key]
                _change(holder, path[-1], i)
                return pack(json.dumps(own), tensors, version)

            yield f"{kind} #{i}", make


def _change(holder: Any, key: Any, i: int) -> None:
    if i < len(HOSTILE):
        holder[key] = json.loads(json.dumps(HOSTILE[i]))
    elif i == len(HOSTILE):
        del holder[key]
    elif isinstance(holder, dict):
        holder[RENAMED[i - len(HOSTILE) - 1]] = holder.pop(key)


def changed_arrays(data: bytes) -> Iterator[tuple[str, Any]]:
    """Files with one array changed."""
    header, tree, tensors = unpack(data)
    text, version = json.dumps(tree), header["__metadata__"]["kernull-format"]
    names = {}
    for path in places(tree):
        here = tree
        for key in path:
            here = here[key]
        if isinstance(here, dict) and here.get("$") == "array":
            names.setdefault(here["tensor"], kind_of(tree, path))
    seen = set()
    for t, kind in names.items():
        if kind in seen:
            continue
        seen.add(kind)
        for label, change in array_changes().items():

            def make(t: str = t, change: Any = change) -> bytes:
                own = dict(tensors)
                with np.errstate(all="ignore"):
                    own[t] = np.ascontiguousarray(change(tensors[t].copy()))
                return pack(text, own, version)

            yield f"{kind} {label}", make


def array_changes() -> dict[str, Any]:
    """Other arrays, by what was done."""
    out: dict[str, Any] = {
        "empty": lambda a: np.atleast_1d(a)[..., :0],
        "no rows": lambda a: np.atleast_1d(a)[:0],
        "flat": lambda a: a.reshape(-1),
        "twice": lambda a: np.concatenate([np.atleast_1d(a)] * 2),
        "reversed": lambda a: np.atleast_1d(a)[::-1],
        "shuffled": lambda a: np.random.default_rng(0).permutation(np.atleast_1d(a)),
        "without the last": lambda a: np.atleast_1d(a)[:-1],
        "all the first": lambda a: np.full(a.shape, a.flat[0]) if a.size else a,
    }
    for kind in ("float32", "int8", "bool", "uint64", "float16"):
        out[kind] = lambda a, kind=kind: a.astype(kind)
    for value in EXTREMES:
        out[f"all {value:g}"] = lambda a, v=value: np.full(a.shape, v)
        for at in ("first", "last", "middle"):
            out[f"{at} {value:g}"] = lambda a, v=value, at=at: _one(a, v, at)
    for factor in (-1.0, 1e-300, 1e-12, 0.5, 2.0, 1e12, 1e150, 1e300):
        out[f"times {factor:g}"] = lambda a, f=factor: a * f if a.dtype.kind == "f" else a
    for step in (1, -1, 10, 10**6, 2**40):
        out[f"plus {step}"] = lambda a, s=step: a + s if a.dtype.kind in "iuf" else a
    return out


def _one(array: np.ndarray, value: float, at: str) -> np.ndarray:
    out = array.astype(float) if array.dtype.kind != "f" else array
    if out.size:
        out.flat[{"first": 0, "last": -1, "middle": out.size // 2}[at]] = value
    return out if array.dtype.kind == "f" else out.astype(array.dtype)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--files", type=int, nargs="*", help="of these files alone")
    parser.add_argument("--only", help="cases whose label has this in it")
    options = parser.parse_args()
    report, watch, number = Report("sweep"), Watch(), 0
    with tempfile.TemporaryDirectory() as holder:
        folder = Path(holder)
        for which, data in enumerate(Models().originals):
            if options.files is not None and which not in options.files:
                continue
            for changes in (changed_trees(data, which == 0), changed_arrays(data)):
                for label, make in changes:
                    number += 1
                    name = f"file {which}: {label}"
                    mine = (number * 7919) % options.of == options.part
                    if not mine or options.count or (options.only and options.only not in name):
                        continue
                    before = len(report.findings)
                    run_one(report, watch, name, lambda make=make: try_file(make(), folder))
                    for line in report.findings[before:]:
                        print(f"FINDING {' '.join(line.split())[:400]}", flush=True)
    print(f"{number:,} changes")
    show(report.as_dict())
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
