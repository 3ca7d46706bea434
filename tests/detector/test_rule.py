"""The whole rule, from rows to p-values, is that of plain loops."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri

from kernull import Cross, Evidence, JointMultiKernelFisherNull, MultiKernelFisherNull, Split
from kernull.detector import Nearest
from tests.oracles import evidence as oracle

#: Few rows are warned of, and so are rates that they cannot honour.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ALL = ("standard", "whiten", "quantile")
ONE = ("standard", "quantile")
TOLERANCE = 1e-10


class Table(NamedTuple):
    """Rows to learn from, new ones, and how they are judged."""

    X: np.ndarray
    new: np.ndarray
    views: list | None = None
    scaling: tuple = ALL
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    widths: tuple = ("auto",)


def rows(draw, n, seed=0, m=8):
    """Rows, and new ones of which a half is moved away or holds values never seen."""
    rng = np.random.default_rng(seed)
    X = draw(rng, n + m)
    new = X[n:].copy()
    new[m // 2 :] += rng.normal(scale=3.0, size=new[m // 2 :].shape)
    new[-1] *= 1000.0
    return X[:n], new


def normal(d):
    return lambda rng, n: rng.normal(size=(n, d))


def factors(d):
    loads = np.random.default_rng(7).normal(size=(2, d))
    return lambda rng, n: rng.normal(size=(n, 2)) @ loads + 0.3 * rng.normal(size=(n, d))


def one_hot(rng, n):
    return np.hstack([np.eye(4)[rng.integers(4, size=n)], np.eye(3)[rng.integers(3, size=n)]])


def copies(rng, n):
    return np.repeat(rng.normal(size=(n // 3 + 1, 3)), 3, axis=0)[rng.permutation(n)]


def with_constant(rng, n):
    X = rng.normal(size=(n, 4))
    X[:, 1] = 5.0
    return X


def half_noise(rng, n):
    hidden = rng.normal(size=n)
    related = hidden[:, None] + 0.2 * rng.normal(size=(n, 3))
    return np.hstack([related, rng.normal(size=(n, 2))])


WEIGHT = np.random.default_rng(3).uniform(0.02, 2.0, 40)
TABLES = {
    "continuous": Table(*rows(normal(3), 40)),
    "ties": Table(*rows(lambda rng, n: rng.integers(0, 4, (n, 3)) * 1.0, 40)),
    "copies": Table(*rows(copies, 39)),
    "one-hot": Table(*rows(one_hot, 40)),
    "factors": Table(*rows(factors(6), 40)),
    "heavy tails": Table(*rows(lambda rng, n: rng.standard_t(1.5, (n, 3)), 40)),
    "weights": Table(*rows(normal(3), 40), weight=WEIGHT),
    "weights and ties": Table(
        *rows(lambda rng, n: rng.integers(0, 4, (n, 2)) * 1.0, 40), weight=WEIGHT
    ),
    "a weight of zero": Table(*rows(normal(3), 40), weight=(np.arange(40) % 7 > 0) * 1.0),
    "groups": Table(*rows(copies, 40), groups=np.arange(40) // 3),
    "groups and weights": Table(*rows(normal(2), 40), weight=WEIGHT, groups=np.arange(40) % 13),
    "more columns than rows": Table(*rows(normal(30), 20)),
    "one-column views": Table(*rows(factors(3), 40), views=[[0], [1], [2]], scaling=ONE),
    "two views": Table(*rows(half_noise, 40), views=[[0, 1, 2], [3, 4]]),
    "three views": Table(*rows(factors(5), 40), views=[[0, 1], [2, 3], [4]], scaling=ONE),
    "two views, weights and groups": Table(
        *rows(factors(4), 40), [[0, 1], [2, 3]], ALL, WEIGHT, np.arange(40) // 2
    ),
    "a constant column": Table(*rows(with_constant, 40)),
    "never-seen values": Table(*rows(one_hot, 40), views=[[0, 1, 2, 3], [4, 5, 6]]),
    "3 rows": Table(*rows(normal(2), 3)),
    "12 rows": Table(*rows(normal(2), 12)),
    "20 rows": Table(*rows(factors(4), 20), views=[[0, 1], [2, 3]], scaling=ONE),
    "several widths": Table(*rows(normal(3), 40), views=[[0, 1], [2]], scaling=ONE, widths=(0.3, 1.0)),
    "unscaled": Table(*rows(normal(3), 40), scaling=("none",)),
}


def steps(n):
    """What a value off a column that was constant becomes, by scaling."""
    n = 4.0 ** np.ceil(np.log(n) / np.log(4.0))
    step = (n + 1) / np.sqrt(n)
    return {"standard": step, "whiten": step, "quantile": ndtri((n + 0.5) / (n + 1)) - ndtri(0.5 * n / (n + 1))}


def model_of(table, **options):
    views = table.views and {f"view {v}": columns for v, columns in enumerate(table.views)}
    widths = table.widths if len(table.widths) > 1 else table.widths[0]
    options = {"views": views, "scaling": table.scaling, "widths": widths, **options}
    return MultiKernelFisherNull(**options).fit(table.X, sample_weight=table.weight, groups=table.groups)


def judged(table, b, **options):
    """By plain loops; rows of weight zero take no part."""
    X, weight, groups = table.X, table.weight, table.groups
    if weight is not None:
        X, groups, weight = X[weight > 0], None if groups is None else groups[weight > 0], weight[weight > 0]
    views = table.views or [list(range(X.shape[1]))]
    scalings = [table.scaling] * (len(views) + 1)
    return oracle.judge_table(
        X, table.new, b, views=views, scalings=scalings, steps=steps(len(X)), widths=table.widths,
        weight=weight, groups=groups, **options,
    )


def assert_agrees(found, new, expected, rate=0.05):
    """The fitted model and what it says of new rows are those of the loops."""
    model = getattr(found, "model_", found)
    rule = model.rule
    close = {"rtol": TOLERANCE, "atol": TOLERANCE}
    np.testing.assert_allclose(rule.left_out, expected.left_out, **close)
    np.testing.assert_allclose(rule.left_out_evidence, expected.left_out_evidence, **close)
    np.testing.assert_allclose(rule.left_out_scores, expected.left_out_scores, **close)
    cross = model.kernels.cross(new)
    np.testing.assert_allclose(rule.evidence(cross), expected.evidence, **close)
    scores = rule.score(cross)
    np.testing.assert_allclose(scores, expected.scores, **close)
    np.testing.assert_allclose(model.calibration.p_values(scores), expected.p_values(), **close)
    np.testing.assert_allclose(model.threshold, expected.threshold(rate), **close)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name):
    table = TABLES[name]
    model = model_of(table)
    assert_agrees(model, table.new, judged(table, model.weights_))
