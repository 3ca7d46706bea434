"""Scores of left-out rows: against refits, with copies, weights and groups."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import kernull
from kernull.calibration import Calibration, minus_rounding
from kernull.calibration.left_out_distances import left_out_distances, trust
from kernull.calibration.left_out_scores import (
    KernelProjection,
    left_out_coefficients,
    left_out_contributions,
    left_out_view,
    log_nearest,
    nearest_floor,
    not_above_own,
)
from kernull.errors import (
    CalibrationWarning,
    NearCopiesWarning,
    TooFewRowsWarning,
    TrainingRowsWarning,
)
from kernull.kernels import mean_distance
from kernull.mkl import RidgeInverse
from kernull.models.own_scores import own_of_view
from kernull.stacks import KernelSet
from kernull.views import ViewScaler
from tests.calibration.left_out_tables import tables


def rbf(A, B, width):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * width**2))


def refits(X, widths, b, ridge, weight, groups):
    """Contributions by models of the others, unscaled rows, fixed widths: (n, J)."""
    n = len(X)
    out = np.empty((n, len(b)))
    for i in range(n):
        others = groups != groups[i]
        K = sum(bj * rbf(X[others], X[others], s) for bj, s in zip(b, widths, strict=True))
        a = np.linalg.solve(K + np.diag(ridge / weight[others]), np.ones(others.sum()))
        out[i] = [
            bj * (rbf(X[i : i + 1], X[others], s) @ a)[0] for bj, s in zip(b, widths, strict=True)
        ]
    return out


def rbf_rows(distances, widths):
    """Rows of rbf kernels, of shape (J, r, n), from left-out distances."""
    return lambda index: np.stack(
        [np.exp(-distances.rows(index) / (2.0 * width**2)) for width in widths]
    )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["gauss", "copies", "integers"])
def test_contributions_are_those_of_refits(name, weighted, grouped, rng):
    """Exact where the scaling knows no rows."""
    X = tables(24, 3)[name]
    X = X / X.std(axis=0)
    groups = np.arange(24) // 2 if grouped else np.arange(24)
    w = trust(rng.uniform(0.5, 3.0, 24), 24) if weighted else np.ones(24)
    b, widths, ridge = np.array([0.3, 0.7]), [0.8, 2.0], 0.5
    K = sum(bj * rbf(X, X, s) for bj, s in zip(b, widths, strict=True))
    inverse = RidgeInverse.of(K, ridge, w)
    rows = rbf_rows(left_out_distances("none", X, w, groups), widths)
    labels = groups if grouped else None
    found = left_out_contributions(rows, b, inverse.inverse, inverse.coef(), groups=labels)
    np.testing.assert_allclose(found, refits(X, widths, b, ridge, w, groups), rtol=1e-8, atol=1e-10)


def test_coefficients_without_a_row_solve_the_system_without_it(rng):
    X = rng.normal(size=(12, 2))
    inverse = RidgeInverse.of(rbf(X, X, 1.0), 0.1)
    found = left_out_coefficients(inverse.inverse, inverse.coef(), [3, 7])
    others = np.arange(12) != 3
    K = rbf(X[others], X[others], 1.0) + 0.1 * np.eye(11)
    np.testing.assert_allclose(found[0, others], np.linalg.solve(K, np.ones(11)), rtol=1e-9)
    assert found[0, 3] == 0.0


def fitted(X, kind, delta, weight=None):
    """Scaled rows, width, inverse, coefficients and left-out scores of a model of one kernel."""
    n = len(X)
    scaler = ViewScaler.fit(kind, X, weight)
    Z = scaler.transform(X)
    width = 0.5 * mean_distance(Z) or 1.0
    w = trust(weight, n)
    inverse = RidgeInverse.of(rbf(Z, Z, width), delta * n, w)
    coef = inverse.coef()
    rows = rbf_rows(left_out_distances(kind, X, w), [width])
    parts = left_out_contributions(rows, np.ones(1), inverse.inverse, coef)
    own = 1.0 - delta * n / w * coef
    return scaler, Z, width, coef, not_above_own(parts, own).sum(axis=1)


@pytest.mark.parametrize("kind", ["none", "standard", "whiten", "quantile"])
@given(seed=st.integers(0, 2**31), delta=st.sampled_from([1e-4, 1e-3, 1e-2]))
@settings(max_examples=12, deadline=None)
def test_a_copy_never_ranks_below_its_own_kind(kind, seed, delta):
    """p of a new row equal to training rows is at least that of each of these, left out."""
    rng = np.random.default_rng(seed)
    kinds = rng.normal(size=(6, 2)).round(1)
    X = kinds[np.minimum(rng.geometric(0.5, 30) - 1, 5)]  # a few kinds, the first in half the rows
    X[0] = [3.0, -2.0]
    scaler, Z, width, coef, scores = fitted(X, kind, delta)
    calibration = Calibration.of(minus_rounding(scores), smooth=True)
    as_new = calibration.p_values(rbf(scaler.transform(X), Z, width) @ coef)
    assert (as_new >= calibration.p_values(minus_rounding(scores)) - 1e-12).all()


def test_the_commonest_row_is_normal():
    """297 equal rows of 300: the model overshoots there, and they must not be flagged."""
    X = np.zeros((300, 2))
    X[:3] = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]
    scaler, Z, width, coef, scores = fitted(X, "standard", 1e-3)
    calibration = Calibration.of(minus_rounding(scores), smooth=True)
    p = calibration.p_values(rbf(scaler.transform(np.zeros((1, 2))), Z, width) @ coef)
    assert p[0] > 0.9


def test_only_rows_beyond_their_target_are_minus_rounding(rng):
    parts, own = rng.normal(size=(50, 3)), rng.normal(size=50)
    found = not_above_own(parts, own)
    over = parts.sum(axis=1) > own
    assert over.any()
    np.testing.assert_array_equal(found[~over], parts[~over])
    np.testing.assert_allclose(found[over].sum(axis=1), own[over], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2])
def test_own_projections_and_nearest_rows_are_those_of_refits(groups):
    X = tables(20, 3)["gauss"]
    X = X / X.std(axis=0)
    distances = left_out_distances("none", X, groups=groups)
    projection = KernelProjection.fit(rbf(X, X, 1.5))
    found, nearest2 = left_out_view(distances, np.full((20, 1), 1.5), [projection])
    labels = np.arange(20) if groups is None else groups
    ridge = 1e-4 * 20
    truth = refits(X, [1.5], np.ones(1), ridge, np.ones(20), labels)[:, 0]
    a = np.linalg.solve(rbf(X, X, 1.5) + ridge * np.eye(20), np.ones(20))
    np.testing.assert_allclose(projection.coef, a, rtol=1e-7)
    truth = np.minimum(truth, rbf(X, X, 1.5) @ a)
    np.testing.assert_allclose(found[:, 0], truth, rtol=1e-6, atol=1e-8)
    plain = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    plain[labels[:, None] == labels] = np.inf
    np.testing.assert_allclose(nearest2, plain.min(axis=1), rtol=1e-8, atol=1e-12)


def test_the_nearest_row_of_a_copy_is_near_and_no_infinity():
    X = np.vstack([tables(20, 3)["factors"], np.ones((4, 3))])
    _, nearest2 = left_out_view(
        left_out_distances("standard", X),
        np.ones((24, 1)),
        [KernelProjection.fit(np.eye(24))],
    )
    scores = log_nearest(nearest2, nearest_floor(nearest2))
    assert np.isfinite(scores).all()
    assert (scores[20:] > scores[:20].max()).all()
    assert np.ptp(scores[20:]) == 0.0
    assert np.isfinite(log_nearest(np.zeros(3), nearest_floor(np.zeros(3)))).all()


@pytest.mark.parametrize("kind", ["none", "standard", "whiten", "quantile"])
def test_copies_are_at_distance_zero_exactly(kind):
    """Rounding must not pass for a distance: the floor of the logarithm would be rounding too."""
    X = np.zeros((60, 6))
    X[:5] = np.random.default_rng(0).integers(0, 2, (5, 6)) + 0.1
    X += 0.3
    nearest2 = left_out_distances(kind, X).rows().min(axis=1)
    assert (nearest2[5:] == 0.0).all()
    assert nearest_floor(nearest2) > 1e-5


@pytest.mark.parametrize("together", [False, True])
def test_left_out_projections_of_products_are_those_of_refits_of_everything(together, rng):
    X = rng.lognormal(size=(14, 3))
    groups = np.arange(14) // 2 if together else None
    view = KernelSet.fit(X, {"all": np.arange(3)}, kernels="polynomial").views[0]
    found = own_of_view(view, X, np.ones(14), groups)[1][:, 0]
    for i in range(14):
        others = np.arange(14) // 2 != i // 2 if together else np.arange(14) != i
        scaler = StandardScaler().fit(X[others])
        Z, z = scaler.transform(X[others]), scaler.transform(X[[i]])
        K = (Z @ Z.T / 3 + 1.0) ** 3
        ridge = 1e-4 * np.trace(K) * np.eye(len(K))
        truth = ((z @ Z.T / 3 + 1.0) ** 3 @ np.linalg.solve(K + ridge, np.ones(len(K))))[0]
        assert found[i] <= truth + 1e-9
        assert found[i] == pytest.approx(truth, rel=1e-6) or found[i] > 0.9  # no higher than as new


def test_polynomial_kernels_keep_the_rate_with_far_more_columns_than_rows():
    """By scores of one row less, which are higher, 60% of the normal rows were flagged."""
    flagged = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = (rng.normal(size=(n, 200)) for n in (20, 500))
        model = kernull.MultiKernelFisherNull(kernels="polynomial", scaling="whiten")
        with pytest.warns(CalibrationWarning, match="200 columns hardly tell 20 rows"):
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


@pytest.mark.parametrize(
    ("decision", "calibration", "n", "d"),
    [("sum", "auto", 100, 100), ("sum", "loo", 100, 100), ("evidence", "auto", 500, 2000)],
)
@pytest.mark.filterwarnings("error::kernull.errors.NearCopiesWarning")  # rows of one category
def test_categories_never_seen_rank_with_those_seen_once(decision, calibration, n, d):
    """A third, or three quarters, of new rows have one that is new; so have rows left out."""
    rng = np.random.default_rng(0)
    X, new = (np.eye(d)[rng.integers(0, d, k)] for k in (n, 1000))
    model = kernull.MultiKernelFisherNull(decision=decision, calibration=calibration).fit(X)
    assert (model.predict(new) < 0).mean() < 0.05


def readings(n, phi, d, seed=0):
    rng = np.random.default_rng(seed)
    X = np.zeros((n + 200, d))
    for t in range(1, len(X)):
        X[t] = phi * X[t - 1] + rng.normal(size=d)
    return X[200:]


def test_readings_in_time_are_warned_of_with_groups_that_help():
    past, future = np.split(readings(1500, 0.95, 8), [1000])
    with pytest.warns(NearCopiesWarning, match="one to the next") as said:
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
    with pytest.warns(NearCopiesWarning, match="one to the next"):
        kernull.MultiKernelFisherNull().fit(rows)


@pytest.mark.parametrize("length", [2, 20])
def test_groups_too_short_for_their_correlation_are_warned_of(length):
    """They silenced the warning, and flagged two rows in three, or one in four."""
    past = readings(1000, 0.95, 8)
    with pytest.warns(NearCopiesWarning, match=r"in groups so short.*np.arange\(1000\) // \d\d\d"):
        kernull.MultiKernelFisherNull().fit(past, groups=np.arange(1000) // length)


def test_series_that_do_not_follow_each_other_are_groups_of_any_length():
    rows = np.vstack([readings(10, 0.9, 8, seed) for seed in range(40)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernull.MultiKernelFisherNull().fit(rows, groups=np.repeat(np.arange(40), 10))


def test_rows_too_few_for_their_correlation_are_told():
    """No groups help 400 rows that are worth ten."""
    rows = readings(400, 0.97, 6)
    with pytest.warns(
        NearCopiesWarning, match=r"400 such rows are worth about \d independent ones"
    ):
        kernull.MultiKernelFisherNull().fit(rows)
    with pytest.warns(TooFewRowsWarning, match="too few for false_alarm_rate=0.05"):
        kernull.MultiKernelFisherNull().fit(rows, groups=np.arange(400) // 80)


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


@pytest.mark.parametrize("weighted", [False, True])
def test_a_projection_without_its_inverse_is_the_same(weighted):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(90, 3))
    weight = rng.uniform(0.5, 2.0, 90) if weighted else None
    whole, half = (
        KernelProjection.fit(rbf(X, X, 1.2), weight, whole=kind) for kind in (True, False)
    )
    for name in ("coef", "own", "diagonal"):
        np.testing.assert_allclose(getattr(half, name), getattr(whole, name), rtol=1e-8)
    assert half.inverse is None
