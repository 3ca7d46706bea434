"""Rates that hold on awkward tables, and warnings where they cannot."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine

import kernull
from kernull import Solver
from kernull.detector import evidence
from kernull.errors import (
    NearCopiesWarning,
    TooFewRowsWarning,
    TrainingRowsWarning,
)


def test_polynomial_kernels_keep_the_rate_with_far_more_columns_than_rows():
    """By scores of one row less, which are higher, 60% of the normal rows were flagged."""
    flagged = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = (rng.normal(size=(n, 200)) for n in (20, 500))
        model = kernull.MultiKernelFisherNull(kernels="polynomial", scaling="whiten")
        model.fit(X)
        flagged.append((model.predict(new) < 0).mean())
    assert np.mean(flagged) < 0.2


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.filterwarnings("ignore::kernull.errors.ZeroProjectionWarning")
def test_kernels_of_products_keep_the_rate(kernel):
    """A fifth of the normal rows was flagged at 5%."""
    flagged = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, new = (rng.normal(size=(n, 8)) for n in (100, 500))
        model = kernull.MultiKernelFisherNull(kernels=kernel).fit(X)
        flagged.append((model.predict(new) < 0).mean())
    assert 0.02 < np.mean(flagged) < 0.08


@pytest.mark.parametrize(("decision", "n", "d"), [("sum", 100, 100), ("evidence", 500, 2000)])
@pytest.mark.filterwarnings("error::kernull.errors.NearCopiesWarning")  # rows of one category
def test_categories_never_seen_rank_with_those_seen_once(decision, n, d):
    """A third, or three quarters, of new rows have one that is new; so have rows left out."""
    rng = np.random.default_rng(0)
    X, new = (np.eye(d)[rng.integers(0, d, k)] for k in (n, 1000))
    model = kernull.MultiKernelFisherNull(decision=decision).fit(X)
    assert (model.predict(new) < 0).mean() < 0.05


def readings(n, phi, d, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n + 200, d))
    for t in range(1, len(X)):
        X[t] = phi * X[t - 1] + rng.normal(size=d)
    return X[200:]


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")  # nine groups
def test_readings_in_time_are_warned_of_with_groups_that_help():
    past, future = np.split(readings(1500, 0.95, 8), [1000])
    with pytest.warns(NearCopiesWarning, match="as readings in time are") as said:
        alone = kernull.MultiKernelFisherNull().fit(past)
    stretch = int(re.search(r"// (\d+)", str(said[0].message)).group(1))
    assert said[0].message.in_options.endswith(
        f"--stretch {stretch}. If the rows were merely sorted, shuffle them."
    )
    groups = np.arange(len(past)) // stretch
    together = kernull.MultiKernelFisherNull().fit(past, groups=groups)
    assert (alone.predict(future) < 0).mean() > 0.5
    assert (together.predict(future) < 0).mean() < 0.15


@pytest.mark.parametrize("name", ["some columns", "many columns", "few rows"])
def test_readings_are_seen_by_some_columns_and_by_weak_correlations_of_many(name):
    """Three slow columns beside four of noise flagged 18%, forty of correlation 0.55 43%."""
    rows = {
        "some columns": lambda: np.hstack(
            [readings(300, 0.95, 3), np.random.default_rng(1).normal(size=(300, 4))]
        ),
        "many columns": lambda: readings(300, 0.55, 40),
        "few rows": lambda: readings(100, 0.55, 15),
    }[name]()
    with pytest.warns(NearCopiesWarning, match="as readings in time are"):
        kernull.MultiKernelFisherNull().fit(rows)


NOT_READINGS = [
    "independent", "sorted", "one column, sorted", "two columns, sorted", "categories, sorted",
    "classes", "constant", "few", "wine",
]  # fmt: skip


@pytest.mark.filterwarnings("error::kernull.errors.NearCopiesWarning")
@pytest.mark.parametrize("name", NOT_READINGS)
def test_rows_in_no_order_or_merely_sorted_are_not_taken_for_readings(name):
    X = np.random.default_rng(1).normal(size=(300, 8))
    if name == "sorted":
        X = X[np.argsort(X[:, 0])]
    elif name == "classes":  # three, far apart, one after the other
        X += 10 * np.repeat(np.arange(3), 100)[:, None]
    elif name == "constant":
        X[:, 1:] = 1.0
    elif name == "few":
        X = readings(9, 0.9, 8)
    elif name == "wine":  # three classes, one after the other, each of them nearly in no order
        X = load_wine().data
    elif name == "one column, sorted":
        X = np.sort(X[:, :1], axis=0)
    elif name == "two columns, sorted":
        X = X[np.argsort(X[:, 0]), :2]
    elif name == "categories, sorted":
        X = np.eye(20)[np.arange(300) // 15]
    kernull.MultiKernelFisherNull(false_alarm_rate=0.1).fit(X)


@pytest.mark.parametrize("settings", [{}, {"decision": "sum"}, {"views": "features"}])
def test_rows_that_were_learned_from_are_told_from_new_ones(settings):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = kernull.MultiKernelFisherNull(**settings).fit(X)
    with pytest.warns(TrainingRowsWarning, match="fit_predict"):
        found = model.predict(X)
    assert (found == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        model.predict(X[::-1])
        model.predict(X[:-1])
        model.score_samples(X)
        model.fit_predict(X)


def test_judging_training_rows_warns_where_a_sample_of_them_is_kept(monkeypatch):
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 40)
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = kernull.MultiKernelFisherNull().fit(X)
    with pytest.warns(TrainingRowsWarning, match="fit_predict"):
        model.predict(X)


@pytest.mark.filterwarnings("ignore::kernull.errors.SuspectRowsWarning")  # it stands apart
def test_one_row_far_off_does_not_hide_others():
    """It changes the scaling of every fold that learns from it: its own fold looked odd as a whole,
    and nothing was flagged."""
    alarms, caught = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(400, 6)), rng.normal(size=(1000, 6))
        X[0] *= 1e4
        model = kernull.MultiKernelFisherNull().fit(X)
        alarms.append((model.predict(new) < 0).mean())
        away = rng.normal(size=(100, 6))
        odd = new[:100] + 10 * away / np.linalg.norm(away, axis=1, keepdims=True)
        caught.append((model.predict(odd) < 0).mean())
    assert 0.02 < np.mean(alarms) < 0.07
    assert min(caught) > 0.9


@pytest.mark.parametrize("decision", ["evidence", "sum"])
@pytest.mark.parametrize("levels", [2, 5])
def test_a_common_category_is_not_flagged(decision, levels):
    """Scored by models of different folds, a fifth of all rows was flagged."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = (np.eye(levels)[rng.integers(levels, size=n)] for n in (300, 500))
        model = kernull.MultiKernelFisherNull(decision=decision).fit(X)
        assert (model.predict(new) == 1).all()


COMMON = {
    "one category": (lambda rng, n: np.eye(5)[rng.integers(5, size=n)], "features"),
    "coins": (lambda rng, n: (rng.random((n, 10)) < 0.5).astype(float), "features"),
    "two coins": (lambda rng, n: (rng.random((n, 2)) < 0.5).astype(float), "features"),
    "rare events": (lambda rng, n: rng.poisson(0.1, (n, 10)).astype(float), "features"),
    "five coins": (lambda rng, n: (rng.random((n, 5)) < 0.5).astype(float), None),
}


@pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning")
@pytest.mark.parametrize("n", [100, 300])
@pytest.mark.parametrize("table", COMMON)
def test_few_values_are_not_flagged_more_often(table, n):
    """Where copies scored differently as new rows than left out, up to all rows were flagged."""
    make, views = COMMON[table]
    rates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model = kernull.MultiKernelFisherNull(views=views).fit(make(rng, n))
        rates.append((model.predict(make(rng, 500)) == -1).mean())
    assert np.mean(rates) <= 0.07


def test_rows_of_unequal_weights_count_as_fewer():
    X = np.random.default_rng(0).normal(size=(300, 4))
    weight = np.r_[1e3, np.ones(299)]
    with pytest.warns(TooFewRowsWarning, match=r"unequal weights .* got 1\.\d+: the lowest rate"):
        kernull.MultiKernelFisherNull().fit(X, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernull.MultiKernelFisherNull().fit(X, sample_weight=np.r_[5.0, np.ones(299)])


@pytest.mark.parametrize("decision", ["evidence", "sum"])
def test_the_order_of_many_rows_does_not_matter(decision):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1500, 5)), rng.normal(size=(50, 5))
    one, other = (
        kernull.MultiKernelFisherNull(decision=decision, solver=Solver(tol=1e-11)).fit(rows)
        for rows in (X, X[rng.permutation(1500)])
    )
    np.testing.assert_allclose(other.score_samples(new), one.score_samples(new), rtol=1e-6)
    assert other.threshold_ == pytest.approx(one.threshold_, rel=1e-6)
