"""Model files: damaged ones, and trees of other values with a checksum that fits.

What loads must score, explain, save, and load again to the same bits, and its flags must agree with
its p-values. What does not is refused with `ModelFileError`.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

import kernull
from benchmarks.fuzz.cases import Action, WrongError
from kernull import estimators, paper
from kernull.detector import TableKernels
from kernull.errors import MissingCapabilityError, ModelFileError
from kernull.files.container import FORMAT_VERSION, to_bytes

HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 10**6, 10**12, 2**62, -(2**62), 10**40, 0.0, -0.0, 0.5, 1e-308,
    1e308, "", "os", "__class__", "precomputed", "rbf", "whiten", "x" * 1000, [], [0], {}, [[[]]],
    {"$": "float", "value": "nan"}, {"$": "float", "value": "inf"}, 10**900,
    {"$": "array", "tensor": "model.model_.false", "dtype": "float64"},
    {"$": "array", "tensor": "model.model_.kernels.set.rows", "dtype": "float64", "order": "F"},
    {"$": "array", "tensor": "model.model_.kernels.set.rows", "dtype": "int8"},
    {"$": "array", "tensor": "model.model_.rule.left_out", "dtype": "float64"},
    {"$": "dtype", "value": "float32"},
    {"$": "tuple", "items": []}, {"$": "dict", "items": {}}, {"$": "slice", "items": [0, 1, 2]},
    {"$": "pairs", "items": [[1, 2], [1, 3]]},
    {"$": "outside", "path": "os:system", "parameters": {}},
    {"$": "Standard"}, {"$": "Quantile", "parameters": {}}, {"$": "Rbf"}, {"$": "Projection"},
    {"$": "MultiKernelFisherNull", "parameters": {}},
    {"$": "strings", "items": []}, {"$": "strings", "items": ["a", "b" * 10**5]},
]  # fmt: skip


EXTREMES = [np.nan, np.inf, -np.inf, -1e308, 1e308, 1e200, 5e-324, -1.0, 0.0]


def samples() -> list[bytes]:
    """Valid files of different models, to start from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows, which are enough here
        return [_file_of(model) for model in _models()]


def _models() -> Iterator[Any]:
    X, y = load_wine(return_X_y=True)
    X = X[y == 0]
    views = {"taste": slice(0, 6), "phenols": [6, 7, 8], "look": slice(9, 13)}
    named = kernull.KernelStack(np.stack([X @ X.T / 1e6, np.eye(len(X))]), names=["x", "y"])
    yield from [
        kernull.MultiKernelFisherNull(views=views, widths=[0.25, 1.0]).fit(X),
        kernull.MultiKernelFisherNull(["rbf", "polynomial", "cosine"], scaling="whiten").fit(X),
        kernull.MultiKernelFisherNull("precomputed").fit(np.stack([X @ X.T / 1e6, np.eye(len(X))])),
        kernull.MultiKernelFisherNull(
            decision=kernull.Sum("distance"), calibration=kernull.Split(20)
        ).fit(X),
        kernull.MultiKernelFisherNull(decision="sum", views=views).fit(X),
        paper.FisherNull(views=views).fit(X),
        paper.GaussianProcessOneClass(views=views).fit(X),
        paper.KernelPCANovelty(views=views).fit(X),
        paper.MultiKernelOneClassSVM(views=views).fit(X),
        paper.MultiKernelSVDD(views=views).fit(X),
        estimators.JointMultiKernelFisherNull(views=views).fit(X, groups=np.arange(len(X)) % 2),
        estimators.JointMultiKernelFisherNull("precomputed").fit({"a": named, "b": named}),
        # Files are numbered by the corpus: new ones come last.
        *_special_models(X, views),
    ]


def _special_models(X: np.ndarray, views: dict[str, Any]) -> Iterator[Any]:
    """What few models have: weights and landmarks."""
    weight = np.linspace(0.5, 1.5, len(X))
    constant = np.hstack([X[:, :6], np.ones((len(X), 1))])
    sums = {"decision": "sum", "views": views}
    yield kernull.MultiKernelFisherNull(**sums).fit(X, sample_weight=weight)
    yield kernull.MultiKernelFisherNull(views=views).fit(X, sample_weight=weight)
    storage = kernull.Storage("nystroem", landmarks=30)
    yield kernull.MultiKernelFisherNull(storage=storage).fit(constant)


def _file_of(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kernull"
        kernull.save(model, path)
        return path.read_bytes()


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
        text = json.dumps({"__metadata__": {"kernull-format": "4"}, "0": entry}).encode()
        return len(text).to_bytes(8, "little") + text + b"\0" * 64
    if kind == 3:  # spaces
        text = b" " * int(rng.integers(10, 10**6)) + b"{}"
        return len(text).to_bytes(8, "little") + text
    _, tree, tensors = unpack(data)
    text = json.dumps(tree) + " " * int(rng.integers(10**6))
    return pack(text, tensors, version=str(rng.choice(["1", "2", "0", "-1", "1.0", "9" * 50, ""])))


def unpack(data: bytes) -> tuple[dict, Any, dict[str, np.ndarray]]:
    from safetensors.numpy import load

    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return header, json.loads(header["__metadata__"]["kernull"]), load(data)


def pack(text: str, tensors: dict[str, np.ndarray], version: str | int = FORMAT_VERSION) -> bytes:
    """A file with a hash that fits, as a hostile writer would make it."""
    return to_bytes(text, tensors, version=version)


def mutate_values(data: bytes, rng: np.random.Generator) -> bytes:
    """Change values or arrays and make the hash fit."""
    header, tree, tensors = unpack(data)
    tensors = {name: t.copy() for name, t in tensors.items()}
    for _ in range(int(rng.integers(1, 4))):
        if tensors and rng.random() < 0.4:
            name = sorted(tensors)[int(rng.integers(len(tensors)))]
            tensors[name] = _other_array(tensors[name], rng)
        elif places := list(_places(tree)):  # none where the last was taken away
            holder, key = places[int(rng.integers(len(places)))]
            _replace(holder, key, rng)
    return pack(json.dumps(tree), tensors, header["__metadata__"]["kernull-format"])


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
    kind = rng.integers(8)
    if kind == 0:
        return np.atleast_1d(array)[..., :0].copy()
    if kind == 1:
        return array.astype(str(rng.choice(["float32", "int8", "bool", "uint64", "float16"])))
    if kind == 2:
        return array.reshape(-1).copy()
    if kind == 3:
        return np.concatenate([np.atleast_1d(array)] * 2)
    if kind == 4:
        return np.full(array.shape, rng.choice(EXTREMES))
    if kind == 5 and array.size and array.dtype.kind == "f":  # one value alone
        out = array.copy()
        out.flat[int(rng.integers(array.size))] = rng.choice(EXTREMES)
        return out
    if kind == 6 and array.dtype.kind == "f":
        return array * rng.choice([-1.0, 1e-300, 1e-12, 1e12, 1e150, 1e300])
    return rng.permutation(np.atleast_1d(array))


class Models:
    """The loader of model files."""

    def __init__(self) -> None:
        self.originals = samples()

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        maker = MAKERS[int(rng.integers(len(MAKERS)))]
        with np.errstate(all="ignore"):
            data = maker(self.originals[int(rng.integers(len(self.originals)))], rng)
        return maker.__name__, lambda: try_file(data, folder)

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        from benchmarks.fuzz.corpus import MODELS

        for name, make in MODELS.items():
            data = make(self.originals)
            yield name, lambda data=data: try_file(data, folder)  # type: ignore[misc]


MAKERS = (mutate_bytes, oversize, mutate_values, mutate_values, mutate_values)


def try_file(data: bytes, folder: Path) -> str:
    """Load a file; what loads is used."""
    path = folder / "fuzzed.kernull"
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            model = kernull.load(path)
    except ModelFileError:
        return "refused"
    exercise(model, folder / "again.kernull")
    return "works"


def exercise(model: Any, path: Path) -> None:
    """Score, explain, save and load again; everything must agree."""
    inner = model.task(model.tasks_[0]) if hasattr(model, "tasks_") else model
    X = rows_for(inner)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # columns without names, numbers that overflow
        scores, p_values, flags = (inner.score_samples(X), inner.p_values(X), inner.predict(X))
        if scores.shape != (ROWS,) or flags.shape != (ROWS,) or p_values.shape != (ROWS,):
            raise WrongError(f"shapes {scores.shape}, {p_values.shape}, {flags.shape}")
        check_flags(inner, scores, p_values, flags)
        explain = getattr(inner, "explain", None)
        if explain is not None:
            with contextlib.suppress(MissingCapabilityError):
                why = explain(X)
                np.testing.assert_allclose(why.scores, scores, rtol=1e-9, atol=1e-12)
                [why.words(i) for i in range(ROWS)]
        kernull.save(model, path)
        again = kernull.load(path)
        again = again.task(again.tasks_[0]) if hasattr(again, "tasks_") else again
        np.testing.assert_array_equal(again.score_samples(X), scores)
        np.testing.assert_array_equal(again.p_values(X), p_values)


def check_flags(model: Any, scores: Any, p_values: Any, flags: Any) -> None:
    """A row is flagged exactly where its p-value is at most the rate."""
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise WrongError(f"p-values from {p_values.min()} to {p_values.max()}")
    rate = model.false_alarm_rate_
    clear = np.isfinite(scores) & (np.abs(p_values - rate) > 1e-9)  # not a tie
    wrong = (flags == -1) != (p_values <= rate)
    if (wrong & clear).any():
        i = int(np.flatnonzero(wrong & clear)[0])
        raise WrongError(f"flag {flags[i]} at p = {p_values[i]:.4g} and rate {rate:.4g}")


ROWS = 12


def rows_for(model: Any) -> Any:
    """Rows near and far from the training rows, or their kernels where these are given."""
    kernels = model.model_.kernels
    if not isinstance(kernels, TableKernels):
        values = np.random.default_rng(0).uniform(size=(len(kernels.names), ROWS, kernels.n))
        return kernull.KernelStack(values, diagonal=np.ones(values.shape[:2]))
    d = int(model.n_features_in_)
    if not 0 < d < 200_000:  # a file may say that there are columns that no view has
        raise WrongError(f"{d} features")
    rng = np.random.default_rng(0)
    if d == WINE.shape[1]:
        return np.vstack([WINE[: ROWS // 2], WINE[-(ROWS - ROWS // 2) :]])
    return rng.normal(size=(ROWS, d))


WINE = load_wine().data
