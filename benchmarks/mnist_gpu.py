"""E8 on one GPU: MNIST with every training image and every network there is a file of.

    python -m benchmarks.mnist_gpu --data FOLDER --weights FOLDER [--networks alexnet,vgg16,...]

``--data`` holds ``mnist/*.gz``, ``--weights`` the ONNX files (they run on torch here, so no
onnxruntime is needed). Needs torch, NumPy, SciPy and scikit-learn. Tables go to the folder named
by the variable OUT, or by ``--out``: ``results.csv`` (rewritten after every digit), ``weights.npz``
(the lp MK-FN weights) and ``log.txt`` (averages). Features are kept in ``--scratch``, so that a
second call with one more network extracts that one only::

    python -m benchmarks.mnist_gpu --data data --weights four --scratch /dev/shm/mnist
    python -m benchmarks.mnist_gpu --data data --weights two --scratch /dev/shm/mnist \\
        --networks alexnet,squeezenet1_1,mobilenet_v2,efficientnet_lite0,vgg16,inception_v3

What is finished after ``--limit`` seconds (540 by default) is written and the rest is left.

Protocol, that of `kernull.experiments.e8`, fixed before the run. The training images of each digit
are shuffled by a seed of its own; the first 90 % of the target digit train, the last 10 % and a
hundred of each other digit validate; the whole test set tests. Features are signed square roots
of unit length. Everything is chosen by validation AUC and nothing is refitted. ``--regions`` adds
kernels of four overlapping quarters of each image for the small networks, as methods of their own;
lines "(networks chosen)" fuse the best k networks by their validation AUC alone, k chosen likewise.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import itertools
import os
import queue
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
    from scipy.stats import rankdata
    from torch.nn import functional

    from kernull.datasets import load_mnist
    from kernull.methods import get_method
    from kernull.methods.registry import DELTAS, PS, WIDTHS
    from kernull.paths import shared_path
    from kernull.stacks import DenseStack
    from kernull.stacks.torch_tiled import TorchDenseStack
    from kernull.views._onnx_torch import TorchNetwork
except ImportError as error:  # a machine without one of the dependencies
    sys.exit(f"benchmarks.mnist_gpu cannot run here: {error}")

IM = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
#: Side of the input, mean and scale of each channel (of 0..255), in the network's order.
NETWORKS: dict[str, tuple[int, Any, Any]] = {
    "alexnet": (224, *IM),
    "squeezenet1_1": (227, [103.939, 116.779, 123.68], 1.0),
    "mobilenet_v2": (224, *IM),
    "efficientnet_lite0": (224, 127.0, 128.0),
    "vgg16": (224, *IM),
    "inception_v3": (299, 127.5, 127.5),
}
SCALINGS = ("whiten-raw", "standard", "whiten")
#: Quarters of the 28 x 28 image, 14 pixels a side: rows and columns of their corners.
QUARTERS = {"nw": (2, 2), "ne": (2, 12), "sw": (12, 2), "se": (12, 12)}
SMALL = ("alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0")
NOISES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SHARES = (0.5, 0.7, 0.9, 0.95, 0.99)
NEIGHBOURS = (1, 5, 10)
OUTLIERS = 100
KPCA_ROWS = 2000
SVM_ROWS = 1000
SVM_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "OneClassSVM": {"nu": (0.01, 0.05, 0.2)},
    "MK-SVDD": {"nu": (0.05, 0.2)},
    "Slim-MK-SVDD": {"nu": (0.05, 0.2), "slim_lambda": (0.3, 1.0)},
    "MK-OCSVM": {"nu": (0.05, 0.2)},
    "Slim-MK-OCSVM": {"nu": (0.05, 0.2), "slim_lambda": (0.3, 1.0)},
}
#: Kinds of tasks, besides all methods on the networks' kernels.
REGIONS, MACHINES = " (networks x regions)", " machines"
START = time.perf_counter()


def generator(*key: str | int) -> np.random.Generator:
    """The generator of `kernull.experiments` (whose package needs more than this machine has)."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype="<u4").astype(np.uint64).tolist())


def aucs(labels: Any, scores: Any) -> Any:
    """AUC of many score vectors at once: (..., m) -> (...)."""
    positive = np.asarray(labels) == 1
    P, N = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores, axis=-1)
    return (ranks[..., positive].sum(axis=-1) - P * (P + 1) / 2) / (P * N)


def say(*words: Any) -> None:
    """Progress with the time since the start."""
    print(f"[{time.perf_counter() - START:6.1f}]", *words, flush=True)


# ---------------------------------------------------------------- features


@torch.inference_mode()
def features(network: str, path: Path, images: Any, device: str, batch: int) -> Any:
    """Signed roots of pooled features (n, d) of grey images, of unit length, float32."""
    side, mean, scale = NETWORKS[network]
    net = TorchNetwork(path, device=device)
    shift = torch.tensor(mean, device=device).reshape(1, -1, 1, 1)
    unit = torch.tensor(scale, device=device).reshape(1, -1, 1, 1)
    out = []
    for first in range(0, len(images), batch):
        x = torch.as_tensor(images[first : first + batch], device=device)[:, None].float()
        # Axis by axis with rounding to whole grey levels, as Pillow resizes.
        for size in ((x.shape[2], side), (side, side)):
            x = functional.interpolate(x, size, mode="bilinear", align_corners=False)
            x = (x + 0.5).floor_()
        # Grey, so that the order of the channels concerns the mean alone (given in that order).
        x = (x.expand(-1, 3, -1, -1) - shift) / unit
        found = net(x)[0].float()
        out.append(functional.normalize(found.sign() * found.abs().sqrt()).cpu())
    return torch.cat(out).numpy()


# ---------------------------------------------------------------- one digit


class Digit:
    """Rows of one digit: training, validation and test, as indices into all 70,000 images."""

    def __init__(self, digit: int, labels: Any, n_train: int, per_digit: int | None) -> None:
        train, test = labels[:n_train], np.arange(n_train, len(labels))
        pools = [
            generator("E8", "train", d).permutation(np.flatnonzero(train == d))[:per_digit]
            for d in range(10)
        ]
        own = pools[digit]
        cut = round(0.9 * len(own))
        others = [pools[d][-OUTLIERS:] for d in range(10) if d != digit]
        self.train = own[:cut]
        self.validation = np.concatenate([own[cut:], *others])
        self.test = test
        self.validation_labels = np.where(train[self.validation] == digit, 1, -1)
        self.test_labels = np.where(labels[n_train:] == digit, 1, -1)

    @property
    def rest(self) -> Any:
        """Rows that are scored: validation, then test."""
        return np.concatenate([self.validation, self.test])


def shrunk_covariance(Z: Any) -> Any:
    """Ledoit-Wolf covariance of centred rows."""
    n, d = Z.shape
    S = Z.T @ Z / n
    level = S.trace() / d
    distance = (S * S).sum() / d - level**2
    noise = (Z.square().sum(1).square().sum() / n - (S * S).sum()) / (d * n)
    shrinkage = float((torch.minimum(noise, distance) / distance).clamp(0.0, 1.0))
    S.mul_(1 - shrinkage).diagonal().add_(shrinkage * level)
    return S


def scale_view(X: Any, train: Any, rest: Any, scaling: str) -> tuple[Any, Any]:
    """Scaled rows of one view, training and others, in float64 on X's device."""
    A, B = X[train].double(), X[rest].double()
    mean, std = A.mean(0), A.std(0, correction=0)
    std[std <= 1e-12] = 1.0
    if scaling == "whiten-raw":
        std = torch.ones_like(std)
    A, B = (A - mean) / std, (B - mean) / std
    if scaling != "standard":
        values, vectors = torch.linalg.eigh(shrunk_covariance(A))
        # Distances do not see the last rotation back, so it is left out.
        turn = vectors / values.sqrt()
        A, B = A @ turn, B @ turn
    return A, B


def squared_distances(A: Any, B: Any) -> Any:
    """|a - b|^2 between rows."""
    return (A.square().sum(1)[:, None] + B.square().sum(1) - 2 * A @ B.T).clamp_(min=0.0)


class Judge:
    """Keeps, for every method, the choice with the best validation AUC."""

    def __init__(self, digit: Digit) -> None:
        self.digit = digit
        self.best: dict[str, dict[str, Any]] = {}

    def offer(self, method: str, scores: Any, width: Any, choices: list[str], **more: Any) -> None:
        """Scores (models, rows) of validation and test rows, one row a choice."""
        found = scores.double().cpu().numpy() if torch.is_tensor(scores) else np.asarray(scores)
        m = len(self.digit.validation)
        reached = aucs(self.digit.validation_labels, found[:, :m])
        i = int(np.argmax(reached))
        if method not in self.best or reached[i] > self.best[method]["validation_auc"]:
            self.best[method] = {
                "method": method,
                "auc": float(aucs(self.digit.test_labels, found[i, m:])),
                "validation_auc": float(reached[i]),
                "width": width,
                "choice": choices[i],
                **{k: v[i] for k, v in more.items()},
            }


def ridge_scores(K: Any, C: Any, ridges: Any) -> Any:
    """C (K + ridge I)^-1 1 for every ridge: (ridges, rows)."""
    eye, one = torch.eye(len(K), dtype=K.dtype, device=K.device), torch.ones(len(K), 1).to(K)
    coefs = [
        torch.cholesky_solve(one, torch.linalg.cholesky(K + ridge * eye))[:, 0] for ridge in ridges
    ]
    return torch.stack(coefs).to(C.dtype) @ C.T


def kpca_scores(K: Any, C: Any) -> Any:
    """Minus the reconstruction error for each share of the variance: (shares, rows)."""
    means, level = K.mean(0), C.mean(1)
    grand = means.mean()
    centred = K - means[:, None] - means + grand
    values, vectors = torch.linalg.eigh(centred)
    values, vectors = values.flip(0), vectors.flip(1)
    kept = values > len(K) * 2.2e-16 * values[0]
    values, vectors = values[kept], vectors[:, kept]
    share = (values.cumsum(0) / values.sum()).cpu().numpy()
    own = 1.0 - 2 * level + grand  # rbf kernels: k(x, x) = 1
    parts = ((C - level[:, None] - means + grand) @ (vectors / values.sqrt())).square().cumsum(1)
    counts = [min(int(np.searchsorted(share, s - 1e-12)) + 1, len(values)) for s in SHARES]
    return torch.stack([parts[:, m - 1] - own for m in counts])


def run_scaling(
    digit: Digit, views: dict[str, Any], scaling: str, device: str, skip: set[str], tag: str = ""
) -> tuple[list[dict[str, Any]], Any]:
    """All methods on one digit with one scaling; rows of the table, and the lp weights.

    With a ``tag``, only the methods that fuse, under names that carry it, or only the machines.
    """
    judge, names = Judge(digit), list(views)
    train, rest = (torch.as_tensor(rows, device=device) for rows in (digit.train, digit.rest))
    between, across, norms = [], [], []
    for name in names:
        A, B = scale_view(views[name], train, rest, scaling)
        between.append(squared_distances(A, A).float())
        across.append(squared_distances(B, A).float())
        norms.append(B.square().sum(1))
    n = len(train)
    mean_distance = [float(d.sqrt().double().sum()) / (n * (n - 1)) for d in between]
    if tag == MACHINES:
        for width in (1.0, 0.5):
            factors = [-0.5 / (width * D) ** 2 for D in mean_distance]
            _machines(judge, between, across, factors, width)
        return [{"scaling": scaling, "n": SVM_ROWS, **row} for row in judge.best.values()], {}
    if not tag:
        _peers(judge, views, scaling, train, rest, across, norms, skip)
    weights = {}
    for width in sorted(WIDTHS, reverse=True):
        factors = [-0.5 / (width * D) ** 2 for D in mean_distance]
        K = torch.empty(len(names), n, n, dtype=torch.float64, device=device)
        C = torch.empty(len(names), len(rest), n, device=device)
        for j, f in enumerate(factors):
            torch.exp(f * between[j].double(), out=K[j])
            torch.exp(f * across[j], out=C[j])
            K[j].fill_diagonal_(1.0)  # the rounding of single precision must not show there
        models = shared_path(TorchDenseStack(K), PS, DELTAS, tol=1e-4)
        scores = models.scores(TorchDenseStack(C)).reshape(len(models), -1)
        grid = [f"p={p:.5g}, delta={d:g}" for p, d in itertools.product(PS, DELTAS)]
        used = [" ".join(f"{w:.3f}" for w in b) for b in models.weights.reshape(len(models), -1)]
        gaps = [float(g) for g in models.gaps.ravel()]
        judge.offer(f"lp MK-FN{tag}", scores, width, grid, weights=used, gap=gaps)
        weights[width] = models.weights
        for name in ("Average", "Product"):
            if name == "Average":
                k, c = K.mean(0), C.mean(0)
            else:
                k = sum(f / len(names) * d for f, d in zip(factors, between, strict=True)).double()
                c = sum(f / len(names) * d for f, d in zip(factors, across, strict=True))
                k, c = k.exp_().fill_diagonal_(1.0), c.exp_()
            _fixed_rules(
                judge, f"{name}{tag}", k, c, width, skip | ({"gp", "kpca"} if tag else set())
            )
        for j, name in enumerate(names) if not tag else ():
            found = ridge_scores(K[j], C[j], [d * n for d in DELTAS])
            judge.offer(f"FN {name}", found, width, [f"delta={d:g}" for d in DELTAS])
        if not tag:
            _best_networks(judge, names, K, C, width)
        elif tag == REGIONS:
            for network in sorted({name.split("@")[0] for name in names if "@" in name}):
                own = [j for j, name in enumerate(names) if name.split("@")[0] == network]
                found = ridge_scores(K[own].mean(0), C[own].mean(0), [d * n for d in DELTAS])
                grid = [f"delta={d:g}" for d in DELTAS]
                judge.offer(f"FN {network}, with its regions", found, width, grid)
        del K, C, k, c
    return [{"scaling": scaling, "n": n, **row} for row in judge.best.values()], weights


def _best_networks(judge: Judge, names: list[str], K: Any, C: Any, width: float) -> None:
    """Fusion of the best k networks, ranked by their validation AUC alone; k by validation too."""
    ranks = sorted(range(len(names)), key=lambda j: -judge.best[f"FN {names[j]}"]["validation_auc"])
    n = K.shape[1]
    for k in range(1, len(names)):
        pick = sorted(ranks[:k])
        shown = "+".join(names[j] for j in pick)
        part, seen = K[pick], C[pick]
        models = shared_path(TorchDenseStack(part), PS, DELTAS, tol=1e-4)
        scores = models.scores(TorchDenseStack(seen)).reshape(len(models), -1)
        grid = [f"{shown}, p={p:.5g}, delta={d:g}" for p, d in itertools.product(PS, DELTAS)]
        judge.offer("lp MK-FN (networks chosen)", scores, width, grid)
        found = ridge_scores(part.mean(0), seen.mean(0), [d * n for d in DELTAS])
        grid = [f"{shown}, delta={d:g}" for d in DELTAS]
        judge.offer("FN-Average (networks chosen)", found, width, grid)


def _fixed_rules(judge: Judge, name: str, k: Any, c: Any, width: float, skip: set[str]) -> None:
    """FN, GP and KPCA on one fused kernel."""
    n = len(k)
    found = ridge_scores(k, c, [d * n for d in DELTAS])
    judge.offer(f"FN-{name}", found, width, [f"delta={d:g}" for d in DELTAS])
    if "gp" not in skip:
        found = ridge_scores(k, c, NOISES)
        judge.offer(f"GP-{name}", found, width, [f"noise={s:g}" for s in NOISES])
    if "kpca" not in skip:
        r = min(n, KPCA_ROWS)
        found = kpca_scores(k[:r, :r], c[:, :r].double())
        judge.offer(f"KPCA-{name}", found, width, [f"components={s:g}" for s in SHARES])


def _machines(
    judge: Judge, between: list[Any], across: list[Any], factors: list[float], width: float
) -> None:
    """The methods built on SVMs, on the first training images and a small grid."""
    r = min(len(between[0]), SVM_ROWS)
    kernels = [
        torch.stack([(f * d[rows, :r].double()).exp_() for f, d in zip(factors, part, strict=True)])
        for part, rows in ((between, slice(r)), (across, slice(None)))
    ]
    for k in kernels[0]:
        k.fill_diagonal_(1.0)
    stack, cross = (DenseStack(k.cpu().numpy()) for k in kernels)
    for name, grid in SVM_GRIDS.items():
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            model = get_method(name).make(kernels="precomputed", calibration_folds=2, **point)
            choice = ", ".join(f"{k}={v:g}" for k, v in point.items())
            judge.offer(name, model.fit(stack).score_samples(cross)[None], width, [choice])


def _peers(
    judge: Judge,
    views: dict[str, Any],
    scaling: str,
    train: Any,
    rest: Any,
    across: list[Any],
    norms: list[Any],
    skip: set[str],
) -> None:
    """Neighbours and the Mahalanobis distance on all features side by side."""
    # Squared distances add up over the views.
    far = sum(across).topk(min(max(NEIGHBOURS), len(train)), largest=False).values.sqrt()
    kinds = [-far[:, k - 1] for k in NEIGHBOURS] + [-far[:, :k].mean(1) for k in NEIGHBOURS[1:]]
    named = [f"k={k}" for k in NEIGHBOURS] + [f"mean of {k}" for k in NEIGHBOURS[1:]]
    judge.offer("kNN", torch.stack(kinds), "", named)
    if scaling != "standard":  # whitened: the plain distance from the mean
        judge.offer("Mahalanobis", -sum(norms)[None], "", ["each view whitened"])
    elif "mahalanobis" not in skip:
        pairs = [scale_view(X, train, rest, scaling) for X in views.values()]
        A, B = (torch.cat([pair[i] for pair in pairs], dim=1) for i in (0, 1))
        S = shrunk_covariance(A)
        half = torch.linalg.solve_triangular(torch.linalg.cholesky(S), B.T, upper=False)
        judge.offer("Mahalanobis", -half.square().sum(0)[None], "", ["all features together"])


# ---------------------------------------------------------------- the whole


def work(job: dict[str, Any], tasks: Any, done: Any) -> None:
    """A worker process: digits from a queue, rows back."""
    torch.set_num_threads(job["threads"])
    os.environ["OMP_NUM_THREADS"] = str(job["threads"])
    # Entered and never left: this process does nothing else.
    with contextlib.ExitStack() as stack:
        from threadpoolctl import threadpool_limits

        stack.enter_context(threadpool_limits(job["threads"]))
        views = {
            name: torch.as_tensor(np.load(job["folder"] / f"{name}.npy"), device=job["device"])
            for name in job["networks"]
        }
        while (task := tasks.get()) is not None:
            digit, scaling, tag = task
            start = time.perf_counter()
            try:
                part = Digit(digit, job["labels"], job["n_train"], job["per_digit"])
                used = {k: v for k, v in views.items() if tag == REGIONS or "@" not in k}
                rows, weights = run_scaling(part, used, scaling, job["device"], job["skip"], tag)
                found = [{"target": digit, **row} for row in rows]
                done.put((digit, scaling + tag, found, weights, time.perf_counter() - start, ""))
            except Exception as error:
                done.put((digit, scaling, [], {}, time.perf_counter() - start, repr(error)))
            torch.cuda.empty_cache()


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """All rows so far, under one header."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def averages(rows: list[dict[str, Any]]) -> list[str]:
    """Lines: method, scaling, digits done, mean test AUC."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["scaling"]), []).append(100 * row["auc"])
    ordered = sorted(found.items(), key=lambda item: -float(np.mean(item[1])))
    return [f"{m:24s} {s:9s} {len(v):3d} {np.mean(v):7.3f}" for (m, s), v in ordered]


def main() -> None:
    """Features, then digits by a few processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("KERNULL_DATA"))
    parser.add_argument("--weights", default=os.environ.get("KERNULL_WEIGHTS"))
    parser.add_argument("--networks", default="", help="comma-separated; all present by default")
    parser.add_argument("--out", default=os.environ.get("OUT", "out/mnist_gpu"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--digits", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--per-digit", type=int, help="training images a digit (default: all)")
    parser.add_argument("--test", type=int, help="first test images only (default: all)")
    parser.add_argument("--regions", action="store_true", help="also quarters of each image")
    parser.add_argument("--limit", type=float, default=540, help="seconds after which to stop")
    parser.add_argument("--features-only", action="store_true", help="extract, then stop")
    parser.add_argument("--scalings", default=",".join(SCALINGS))
    parser.add_argument("--skip", default="", help="of kpca, gp, mahalanobis, svm: left out")
    parser.add_argument("--scratch", default="/dev/shm/kernull-mnist", help="for the features")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    out, scratch = Path(options.out), Path(options.scratch)
    for folder in (out, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    mnist = load_mnist(home=options.data)
    weights = Path(options.weights)
    names = [n for n in options.networks.split(",") if n] or [
        name for name in NETWORKS if (weights / f"{name}.onnx").is_file()
    ]
    n_train = len(mnist.train_labels)
    images = np.concatenate([mnist.train_images, mnist.test_images[: options.test]])
    labels = np.concatenate([mnist.train_labels, mnist.test_labels[: options.test]])
    wanted = np.arange(len(images))
    if options.per_digit is not None:  # only what some digit's pool holds
        pools = [
            generator("E8", "train", d).permutation(np.flatnonzero(mnist.train_labels == d))
            for d in range(10)
        ]
        pools = [pool[: options.per_digit] for pool in pools]
        wanted = np.concatenate([*pools, np.arange(n_train, len(images))])
    say(f"device {options.device}; networks {', '.join(names)}; {len(wanted)} images")
    views = list(names)
    if options.regions:
        views += [f"{name}@{q}" for name in names if name in SMALL for q in QUARTERS]
    for view in views:
        name, _, quarter = view.partition("@")
        file = scratch / f"{view}.npy"
        if not file.is_file():
            top, left = QUARTERS.get(quarter, (0, 0))
            size = 14 if quarter else 28
            found = features(
                name,
                weights / f"{name}.onnx",
                images[wanted, top : top + size, left : left + size],
                options.device,
                options.batch,
            )
            table = np.zeros((len(images), found.shape[1]), dtype=np.float32)
            table[wanted] = found
            np.save(scratch / f"{view}.tmp.npy", table)
            os.replace(scratch / f"{view}.tmp.npy", file)
        say(f"features of {view}")
    if options.features_only:
        return
    if options.device == "cuda":
        torch.cuda.empty_cache()
    context = torch.multiprocessing.get_context("spawn")
    tasks, done = context.Queue(), context.Queue()
    digits = [int(d) for d in options.digits.split(",")]
    scalings = options.scalings.split(",")
    # What is finished when time runs out should say most.
    todo = [(d, scalings[0], "") for d in digits]
    todo += [(d, scalings[0], REGIONS) for d in digits if options.regions]
    todo += [(d, s, "") for s in scalings[1:] for d in digits]
    todo += [(d, scalings[0], MACHINES) for d in digits if "svm" not in options.skip.split(",")]
    workers = min(options.workers, len(todo))
    for task in [*todo, *[None] * workers]:
        tasks.put(task)
    job = {
        "threads": max(1, (os.cpu_count() or 1) // workers),
        "folder": scratch,
        "networks": views,
        "labels": labels,
        "n_train": n_train,
        "per_digit": options.per_digit,
        "device": options.device,
        "skip": set(options.skip.split(",")),
    }
    crew = [context.Process(target=work, args=(job, tasks, done)) for _ in range(workers)]
    for member in crew:
        member.start()
    rows: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    for _ in todo:
        left = options.limit - (time.perf_counter() - START)
        try:
            digit, scaling, found, learned, seconds, problem = done.get(timeout=max(left, 0.1))
        except queue.Empty:
            say(f"stopped after {options.limit:g} s; what is finished is written")
            for member in crew:
                member.terminate()
            break
        rows += found
        kept |= {f"{digit}, {scaling}, {width:g}": w for width, w in learned.items()}
        write_csv(out / "results.csv", rows)
        np.savez_compressed(out / "weights.npz", networks=np.array(views), **kept)
        (out / "log.txt").write_text("\n".join(averages(rows)) + "\n")
        say(f"digit {digit}, {scaling}: {seconds:.1f} s {problem}")
    for member in crew:
        member.join()
    print("\n".join(averages(rows)), flush=True)


if __name__ == "__main__":
    main()
