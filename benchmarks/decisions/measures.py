"""What is measured of one table and one seed."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.alarms.experiment import attainable
from benchmarks.decisions import protocol
from benchmarks.decisions.tables import NOISE, SYNTHETIC, halves, split, with_noise
from experiments._cells import generator
from kernull import MultiKernelFisherNull


def fitted(X, views=None, **more):
    """The default model, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultiKernelFisherNull(views=views, **more).fit(X)


def flagged(model, X):
    """Which rows a model flags."""
    return np.asarray(model.predict(X)) == -1


def auc(normal, outliers):
    """In percent, of scores where higher is more normal."""
    labels = np.r_[np.ones(len(normal)), np.zeros(len(outliers))]
    return 100 * float(roc_auc_score(labels, np.r_[normal, outliers]))


def neighbours(train, *new, k=5):
    """Minus the mean distance to five standardised training rows, of several tables."""
    scaler = StandardScaler().fit(train)
    index = NearestNeighbors(n_neighbors=min(k, len(train))).fit(scaler.transform(train))
    return [-index.kneighbors(scaler.transform(X))[0].mean(axis=1) for X in new]


def of_table(name, seed):
    """All rows of the report that one table and one seed give."""
    rows = split(name, seed)
    views = halves(rows.train.shape[1])
    model = fitted(rows.train, views)
    plain, out = _quality(model, rows), []
    out.append(_line("alarms", name, seed, "none", plain["alarms"], at=plain["attainable"]))
    out += _broken(model, rows, views, name, seed, "none")
    out.append(_ranks(model, rows, views, name, seed))
    out.append(_units(model, rows, views, name, seed))
    for kind in NOISE:
        noisy, columns = with_noise(kind, rows, name, seed)
        more = {**views, "noise": columns}
        other = fitted(noisy.train, more)
        found = _quality(other, noisy)
        lost = plain["auc"] - found["auc"]
        peer = plain["neighbours"] - found["neighbours"]
        share = _share_of(other, "noise")
        out.append(_line("lost", name, seed, kind, lost, neighbours=peer, weight=share))
        out.append(_line("alarms", name, seed, kind, found["alarms"], at=found["attainable"]))
        out += _broken(other, noisy, more, name, seed, kind)
    if name in SYNTHETIC:
        by_column = fitted(rows.train, "features")
        names = dict.fromkeys(by_column.model_.kernels.views)
        single = {view: [column] for column, view in enumerate(names)}
        out += _broken(by_column, rows, single, name, seed, "one view per column")
    return out


def _line(what, table, seed, kind, value, **more):
    return {"what": what, "table": table, "seed": seed, "kind": kind, "value": value, **more}


def _quality(model, rows):
    normal = np.asarray(model.score_samples(rows.normal))
    outliers = np.asarray(model.score_samples(rows.outliers))
    return {
        "auc": auc(normal, outliers),
        "neighbours": auc(*neighbours(rows.train, rows.normal, rows.outliers)),
        "alarms": float((normal < model.threshold_).mean()),
        "attainable": float(attainable(protocol.RATE, model.calibration_)),
    }


def _share_of(model, view):
    """Share of the learned weight that a view takes; 0 where it was dropped."""
    own = np.array([str(kernel).startswith(view) for kernel in model.kernel_names_])
    weights = np.asarray(model.weights_)
    return float(weights[own].sum() / weights.sum())


def _broken(model, rows, views, name, seed, kind):
    out = []
    kept = set(model.model_.kernels.views)  # views without any spread are dropped
    for view, columns in views.items():
        if view not in kept:
            continue
        shares = []
        for sign in (1.0, -1.0):
            broken = rows.normal.copy()
            broken[:, columns] = sign * protocol.BROKEN
            shares.append(float(flagged(model, broken).mean()))
        out.append(_line("broken", name, seed, kind, min(shares), view=view))
    return out


def _ranks(model, rows, views, name, seed):
    """Different flagged rows less different scores among them."""
    new = [rows.normal, rows.outliers]
    for columns in views.values():
        for size in (1e2, 1e4, protocol.BROKEN):
            broken = rows.normal.copy()
            broken[:, columns] *= -size
            new.append(broken)
    X = np.vstack(new)
    scores = np.asarray(model.score_samples(X))
    alarm = flagged(model, X)
    different = len(np.unique(X[alarm], axis=0))
    same = different - len(np.unique(scores[alarm]))
    return _line("ranks", name, seed, "none", float(same), flagged=different)


def _units(model, rows, views, name, seed):
    """Largest relative change of a score when columns are measured in other units."""
    rng = generator("decisions", "units", name, seed)
    unit = 10.0 ** rng.uniform(-3, 3, size=rows.train.shape[1])
    other = fitted(rows.train * unit, views)
    X = np.vstack([rows.normal, rows.outliers])
    a, b = np.asarray(model.score_samples(X)), np.asarray(other.score_samples(X * unit))
    change = np.abs(a - b) / np.maximum(np.abs(a), np.finfo(float).tiny)  # both may be zero
    return _line("units", name, seed, "none", float(change.max()))


# -- far rows -----------------------------------------------------------------------------------


def histogram_intersection(X, Y):
    """A kernel that somebody wrote: unbounded for rows of the same sign."""
    return np.array([[np.minimum(np.abs(x), np.abs(y)) @ (x * y > 0) for y in Y] for x in X])


KERNELS = {
    "rbf": "rbf",
    "laplacian": "laplacian",
    "linear": "linear",
    "polynomial": "polynomial",
    "a function": histogram_intersection,
    "cosine": "cosine",
    "rbf, linear": ["rbf", "linear"],
    "rbf, polynomial": ["rbf", "polynomial"],
    "rbf, cosine": ["rbf", "cosine"],
    "laplacian, linear": ["laplacian", "linear"],
    "linear, polynomial": ["linear", "polynomial"],
    "linear, cosine": ["linear", "cosine"],
    "rbf, laplacian, linear, polynomial, cosine": [
        "rbf", "laplacian", "linear", "polynomial", "cosine",
    ],
}  # fmt: skip
#: Cannot see size.
EXEMPT = ("cosine",)


def far_rows(rng):
    """Rows far away in every direction."""
    d = protocol.FAR_COLUMNS
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    axes = np.vstack([np.eye(d), -np.eye(d)])
    random = rng.normal(size=(protocol.FAR_DIRECTIONS, d))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    return protocol.FAR * np.vstack([signs, axes, random])


def of_kernels(seed, kernels=KERNELS):
    """Share of far rows that each kernel and list of kernels flags."""
    rng = generator("decisions", "far", seed)
    X, far = rng.normal(size=(protocol.FAR_ROWS, protocol.FAR_COLUMNS)), far_rows(rng)
    out = []
    for name, kernel in kernels.items():
        try:
            share = float(flagged(fitted(X, kernels=kernel), far).mean())
        except ValueError as error:
            share, name = 0.0, f"{name}: {error}"
        out.append(_line("far", "Gaussian", seed, name, share))
    return out
