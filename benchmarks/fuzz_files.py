"""Feed damaged and hostile model files to the loader.

    python -m benchmarks.fuzz_files            # 10,000 files
    python -m benchmarks.fuzz_files --files 500 --seed 3

Three kinds: bytes changed, removed, inserted or cut off; headers that claim too much; and files
whose values were changed with a hash that fits (what a hostile writer would do). Every file must
either load into a model that scores a row, or raise ModelFileError; within 1 s and 1 GB.
"""

from __future__ import annotations

import argparse
import collections
import json
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

import kernull
from kernull import estimators
from kernull.errors import ModelFileError
from kernull.persistence import format as file_format

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 10**6, 10**12, 2**62, -(2**62), 10**40, 0.0, -0.0, 0.5, 1e-308,
    1e308, "", "os", "__class__", "precomputed", "rbf", "whiten", "x" * 1000, [], [0], {}, [[[]]],
    {"$": "float", "value": "nan"}, {"$": "float", "value": "inf"},
    {"$": "int", "value": "9" * 900},
    {"$": "array", "tensor": 0}, {"$": "array", "tensor": 1, "order": "F"},
    {"$": "array", "tensor": -1}, {"$": "array", "tensor": 10**9},
    {"$": "dtype", "value": "float32"},
    {"$": "tuple", "items": []}, {"$": "dict", "items": []}, {"$": "slice", "items": [0, 1, 2]},
    {"$": "node", "name": "os.system", "fields": {}},
    {"$": "node", "name": "ViewScaler", "fields": {}},
    {"$": "node", "name": "MultiKernelFisherNull", "fields": {}},
    {"$": "strings", "dtype": "object", "shape": [10**9, 0], "values": []},
    {"$": "strings", "dtype": "str", "shape": [2], "values": ["a", "b" * 10**5]},
]  # fmt: skip


def samples() -> list[bytes]:
    """Valid files of different models, to start from."""
    X, y = load_wine(return_X_y=True)
    X = X[y == 0]
    views = {"taste": slice(0, 6), "phenols": [6, 7, 8], "look": slice(9, 13)}
    named = kernull.KernelStack(np.stack([X @ X.T / 1e6, np.eye(len(X))]), names=["x", "y"])
    models = [
        kernull.MultiKernelFisherNull(views=views, widths=[0.25, 1.0]).fit(X),
        kernull.MultiKernelFisherNull(["rbf", "polynomial", "cosine"], scaling="whiten").fit(X),
        kernull.MultiKernelFisherNull("precomputed").fit(np.stack([X @ X.T / 1e6, np.eye(len(X))])),
        kernull.MultiKernelFisherNull(
            calibration="split", calibration_fraction=20, score_type="distance"
        ).fit(X),
        estimators.FisherNull(views=views).fit(X),
        estimators.GaussianProcessOneClass(views=views).fit(X),
        estimators.KernelPCANovelty(views=views).fit(X),
        estimators.MultiKernelOneClassSVM(views=views).fit(X),
        estimators.MultiKernelSVDD(views=views).fit(X),
        estimators.JointMultiKernelFisherNull(views=views).fit(X, groups=np.arange(len(X)) % 2),
        estimators.JointMultiKernelFisherNull("precomputed").fit({"a": named, "b": named}),
    ]
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            path = Path(folder) / "model.kernull"
            kernull.save(model, path)
            out.append(path.read_bytes())
    return out


def mutate_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes anywhere, mostly in the header, or cut, or insert."""
    out = bytearray(data)
    header = 8 + int.from_bytes(data[:8], "little")
    kind = rng.integers(6)
    if kind == 0:
        return bytes(out[: rng.integers(len(out))])
    if kind == 1:
        at = rng.integers(len(out))
        return bytes(out[:at] + rng.bytes(int(rng.integers(1, 200))) + out[at:])
    if kind == 2:
        at = rng.integers(len(out))
        return bytes(out[:at] + out[at + int(rng.integers(1, 200)) :])
    if kind == 3:  # a digit of the header: offsets, shapes, values
        digits = [i for i in range(8, header) if 48 <= out[i] <= 57]
        for i in rng.choice(digits, 3):
            out[i] = 48 + rng.integers(10)
        return bytes(out)
    end = header if kind == 4 else len(out)
    for _ in range(int(rng.integers(1, 10))):
        out[rng.integers(end)] = rng.integers(256)
    return bytes(out)


def oversize(data: bytes, rng: np.random.Generator) -> bytes:
    """A header that claims more than there is, or is absurd."""
    kind = rng.integers(5)
    if kind == 0:
        size = int(rng.choice([2**63, 2**40, 2**32, len(data), len(data) - 8, 100_000_001, 0, 1]))
        return size.to_bytes(8, "little") + data[8:]
    if kind == 1:  # deeply nested
        text = b"[" * int(rng.integers(10, 200_000))
        return len(text).to_bytes(8, "little") + text
    if kind == 2:  # a tensor that is larger than the file
        sizes = [int(s) for s in rng.choice([2**20, 2**31, 2**40, 2**62], 2)]
        entry = {"dtype": "F64", "shape": sizes, "data_offsets": [0, 8 * sizes[0]]}
        text = json.dumps({"__metadata__": {"kernull-format": "1"}, "0": entry}).encode()
        return len(text).to_bytes(8, "little") + text + b"\0" * 64
    if kind == 3:  # spaces
        text = b" " * int(rng.integers(10, 10**6)) + b"{}"
        return len(text).to_bytes(8, "little") + text
    _, tree, tensors = unpack(data)
    text = json.dumps(tree) + " " * int(rng.integers(10**6))
    return pack(text, tensors, version=str(rng.choice(["1", "2", "0", "-1", "1.0", "9" * 50, ""])))


def unpack(data: bytes) -> tuple[dict, Any, list[np.ndarray]]:
    from safetensors.numpy import load

    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    named = load(data)
    tensors = [named[str(i)] for i in range(len(named))]
    return header, json.loads(header["__metadata__"]["kernull"]), tensors


def pack(text: str, tensors: list[np.ndarray], version: str = "1") -> bytes:
    """A file with a hash that fits, as a hostile writer would make it."""
    from safetensors.numpy import save

    metadata = {
        "kernull-format": version,
        "kernull": text,
        "sha256": file_format._hash(text, tensors),
    }
    return save({str(i): t for i, t in enumerate(tensors)}, metadata=metadata)


def mutate_values(data: bytes, rng: np.random.Generator) -> bytes:
    """Change values or arrays and make the hash fit."""
    _, tree, tensors = unpack(data)
    tensors = [t.copy() for t in tensors]
    for _ in range(int(rng.integers(1, 4))):
        if tensors and rng.random() < 0.4:
            i = int(rng.integers(len(tensors)))
            tensors[i] = _other_array(tensors[i], rng)
        else:
            places = list(_places(tree))
            holder, key = places[int(rng.integers(len(places)))]
            _replace(holder, key, rng)
    return pack(json.dumps(tree), tensors)


def _places(tree: Any):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, item in items:
        yield tree, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _replace(holder: Any, key: Any, rng: np.random.Generator) -> None:
    kind = rng.integers(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[str(rng.choice(["score_samples", "__dict__", "__class__", "x_", "$"]))] = holder[key]
    else:
        value = HOSTILE[int(rng.integers(len(HOSTILE)))]
        holder[key] = json.loads(json.dumps(value))


def _other_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(6)
    if kind == 0:
        return np.atleast_1d(array)[..., :0].copy()
    if kind == 1:
        return array.astype(str(rng.choice(["float32", "int8", "bool", "uint64", "float16"])))
    if kind == 2:
        return array.reshape(-1).copy()
    if kind == 3:
        return np.concatenate([np.atleast_1d(array)] * 2)
    if kind == 4:
        return np.full(array.shape, rng.choice([np.nan, np.inf, -1e308, 1e308, 0.0]))
    return rng.permutation(np.atleast_1d(array))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    originals = samples()
    warnings.simplefilter("ignore")  # of making the files
    # Address space, so that a single huge allocation fails here rather than swap.
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
    makers = [mutate_bytes, mutate_bytes, oversize, mutate_values, mutate_values]
    outcome: collections.Counter[str] = collections.Counter()
    slowest, bad = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed.kernull"
        for number in range(options.files):
            maker = makers[number % len(makers)]
            data = maker(originals[int(rng.integers(len(originals)))], rng)
            path.write_bytes(data)
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # a warning would be a finding too
                    kernull.load(path)
                result = "loads"
            except ModelFileError:
                result = "ModelFileError"
            except BaseException as error:
                result = f"FINDING {type(error).__name__}"
                bad += 1
                print(f"file {number} ({maker.__name__}): {type(error).__name__}: {error}")
                if isinstance(error, KeyboardInterrupt):
                    raise
            slowest = max(slowest, time.perf_counter() - start)
            outcome[f"{maker.__name__}: {result}"] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for line, count in sorted(outcome.items()):
        print(f"{count:6d}  {line}")
    print(
        f"{options.files} files; slowest {slowest:.3f} s; peak memory {peak:.0f} MB; {bad} findings"
    )
    return 0 if bad == 0 and slowest < 1.0 and peak < 1024 else 1


if __name__ == "__main__":
    sys.exit(main())
