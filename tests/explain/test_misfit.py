"""Which view is out of line: what misfit is, and whether it points at the culprit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

from experiments.datasets import load_multiple_features
from kernull import MultiKernelFisherNull, Storage, join_views
from kernull.detector.cross_fit import assign_folds, dense_ranks
from kernull.detector.usual import FARTHEST_PREDICTOR, FOLDS, MISFIT_ROWS, ViewMisfit
from tests.plain import plain_fisher

RNG = np.random.default_rng(0)
COLUMNS = ([0, 1, 2], [3], [4, 5])
VIEWS = tuple(map(np.array, COLUMNS))


def by_definition(new, train):
    """scikit-learn's Mahalanobis lengths of rows, less those without a view, others held near."""
    mean, scale = train.mean(axis=0), train.std(axis=0)
    Z, standard = (new - mean) / scale, (train - mean) / scale
    out = np.empty((len(new), len(COLUMNS)))
    for v, columns in enumerate(COLUMNS):
        rest = np.setdiff1d(np.arange(6), columns)
        row = Z.clip(-FARTHEST_PREDICTOR, FARTHEST_PREDICTOR)
        row[:, columns] = Z[:, columns]
        whole, others = (
            LedoitWolf(assume_centered=True).fit(standard[:, seen]).mahalanobis(row[:, seen])
            for seen in (np.arange(6), rest)
        )
        out[:, v] = whole - others
    return out


def correlated(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 6))
    return X + 0.5 * rng.standard_normal(X.shape)


def test_misfit_is_a_difference_of_mahalanobis_lengths():
    """Of training rows by those of other folds, of new rows by as many."""
    X, new = correlated(23, 0), correlated(6, 1) + 1.0
    misfit, usual = ViewMisfit.fit(X, VIEWS)(new)
    fold = assign_folds(dense_ranks(X), FOLDS)
    for k in (0, 4, FOLDS - 1):
        expected = by_definition(X[fold == k], X[fold != k])
        np.testing.assert_allclose(usual[fold == k], expected, rtol=1e-8)
    np.testing.assert_allclose(misfit, by_definition(new, X[fold != FOLDS - 1]), rtol=1e-8)


@pytest.mark.parametrize("n", [20, 60])
def test_wide_views_are_judged_fairly(n):
    """More columns than rows: new normal rows are as usual as witnesses were, in every view."""
    rng = np.random.default_rng(2)
    mix = rng.standard_normal((4, 402))

    def draw(m):
        return rng.standard_normal((m, 4)) @ mix + rng.standard_normal((m, 402))

    views = {"wide": slice(0, 400), "b": [400], "c": [401]}
    surprise = [
        plain_fisher(views=views).fit(draw(n)).explain(draw(50)).surprise for _ in range(10)
    ]
    assert np.abs(np.mean(surprise, axis=(0, 1))).max() < 0.4


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.1, 1e4), st.floats(-1e3, 1e3))
def test_units_of_columns_do_not_matter(seed, unit, origin):
    X, new = correlated(30, seed), correlated(4, seed + 1)
    plain, _ = ViewMisfit.fit(X, VIEWS)(new)
    moved, _ = ViewMisfit.fit(unit * X + origin, VIEWS)(unit * new + origin)
    np.testing.assert_allclose(moved, plain, rtol=1e-5)


def test_a_view_that_does_not_vary():
    X = np.column_stack([RNG.standard_normal((40, 2)), np.zeros(40)])
    predictor = ViewMisfit.fit(X, tuple(np.arange(3)[:, None]))
    misfit, _ = predictor(np.array([[0.1, 0.1, 0.0], [0.1, 0.1, 0.5]]))
    assert np.isfinite(misfit).all()
    assert misfit[0, 2] == pytest.approx(0.0)
    assert misfit[1].argmax() == 2


@pytest.mark.parametrize("size", [1e3, 1e200, 1e306])
def test_a_broken_view_does_not_drag_others_down(size):
    X = correlated(80, 3)
    model = plain_fisher(views=dict(zip("abc", COLUMNS, strict=True))).fit(X[:60])
    broken = X[60:].copy()
    broken[:, COLUMNS[1]] = size
    surprise = model.explain(broken).surprise
    assert np.isfinite(surprise).all()
    assert (surprise.argmin(axis=1) == 1).all()
    assert (surprise[:, 1] < -100).all()
    assert np.median(surprise[:, [0, 2]]) > -3


def ring(seed):
    """Three views of an angle, each of which alone says nothing of the others' being wrong."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 260)
    X = np.column_stack([np.cos(angle + k) for k in range(6)])
    return angle, X + 0.05 * rng.standard_normal(X.shape)


def test_a_view_of_another_normal_row_is_found():
    """Each view alone is perfectly normal, and contributes as usual; together they are not."""
    angle, X = ring(1)
    views = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    model = plain_fisher(views=views, widths=0.25).fit(X[:200])
    rows, partner = X[200:230].copy(), np.roll(angle[200:230], 1)
    apart = np.abs(np.angle(np.exp(1j * (angle[200:230] - partner)))) > 1.0
    rows[:, views["b"]] = np.roll(X[200:230][:, views["b"]], 1, axis=0)
    why = model.explain(rows[apart])
    assert (why.surprise.argmin(axis=1) == 1).all()
    alone = replace(why, out_of_line=None)
    assert (alone.surprise.argmin(axis=1) == 1).mean() < 0.6


@pytest.mark.parametrize("scaling", ["none", "whiten", "whiten-raw", ("whiten", "standard")])
def test_scaling_does_not_matter(scaling):
    """Views are compared as they were given, and not as a whitening that saw them has them."""
    X = correlated(60, 4)
    views = dict(zip("abc", COLUMNS, strict=True))
    plain, other = (
        MultiKernelFisherNull(views=views, p=2, scaling=kind).fit(X[:50])
        for kind in ("standard", scaling)
    )
    np.testing.assert_allclose(other.explain(X).surprise, plain.explain(X).surprise, rtol=1e-6)


def test_views_without_weight_are_in_line():
    X = correlated(40, 1)
    views = dict(zip("abc", COLUMNS, strict=True))
    model = plain_fisher(views=views, p=1).fit(X)
    unused = np.flatnonzero(model.weights_ < 1e-7)
    used = np.flatnonzero(model.weights_ > 1e-3)
    assert len(unused) == 1  # of this data; the other two have something to say of each other
    surprise = model.explain(10 + X).surprise
    assert (surprise[:, unused] == 0).all()
    alone = plain_fisher(views={k: v for k, v in views.items() if k != "abc"[unused[0]]}, p=2)
    np.testing.assert_allclose(surprise[:, used], alone.fit(X).explain(10 + X).surprise)


def test_few_rows_stand_for_many():
    X = RNG.standard_normal((300, 4))
    model = plain_fisher(views={"a": [0, 1], "b": [2, 3]}).fit(X)
    assert model.model_.view_misfit.usual.shape == (MISFIT_ROWS, 2)


@pytest.mark.parametrize("storage", ["tiled", "nystroem"])
def test_whatever_the_storage(storage):
    X = RNG.standard_normal((80, 6))
    views = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    full = plain_fisher(views=views).fit(X)
    other = plain_fisher(views=views, storage=Storage(storage, landmarks=80)).fit(X)
    new = RNG.standard_normal((9, 6))
    np.testing.assert_allclose(other.explain(new).surprise, full.explain(new).surprise, rtol=1e-8)


def test_rows_of_next_to_no_weight_take_no_part():
    X, junk = correlated(60, 7), 10 * RNG.standard_normal((40, 6))
    views = dict(zip("abc", COLUMNS, strict=True))
    rows = np.concatenate([X, junk])
    weight = np.append(np.ones(60), np.full(40, 1e-9))
    plain = plain_fisher(views=views).fit(X).explain(X[:5])
    weighted = plain_fisher(views=views).fit(rows, sample_weight=weight).explain(X[:5])
    np.testing.assert_allclose(weighted.surprise, plain.surprise, rtol=1e-9)
    equal = plain_fisher(views=views).fit(rows).explain(X[:5])
    assert np.abs(equal.surprise - plain.surprise).max() > 0.5


def test_one_view_is_judged_by_its_contribution():
    X = RNG.standard_normal((40, 3))
    model = plain_fisher(views={"a": [0, 1], "b": [2]}).fit(X)
    why = model.explain(X, missing_views="b")
    assert why.out_of_line is None
    assert why.surprise.shape == (40, 1)


def test_hardly_any_rows_are_judged_by_their_contributions():
    X = RNG.standard_normal((4, 3))
    why = plain_fisher(views={"a": [0, 1], "b": [2]}, false_alarm_rate=0.5).fit(X).explain(X)
    assert why.out_of_line is None
    assert np.isfinite(why.surprise).all()


@pytest.mark.data
@pytest.mark.parametrize("kind", ["training", "fresh"])
@pytest.mark.parametrize("options", [{}, {"scaling": "standard", "widths": 0.25}])
def test_the_view_of_another_digit_ranks_first(kind, options):
    """In at least 95% of 200 rows (python -m benchmarks.view_reasons: more seeds)."""
    digits = load_multiple_features()
    X, views = join_views(digits.views)
    rng = np.random.default_rng(11)
    found = 0
    for digit in range(10):
        targets = rng.permutation(np.flatnonzero(digits.y == digit))
        train, fresh = targets[:140], targets[140:]
        model = MultiKernelFisherNull(views=views, p=2, delta=0.01, **options).fit(X[train])
        owner = np.array(model.kernel_set_.kernel_views)
        weights = np.array([model.weights_[owner == name].sum() for name in views])
        heavy = np.flatnonzero(weights >= 0.5 * weights.mean())
        rows = X[rng.choice(train if kind == "training" else fresh, 20)]
        swapped = rng.choice(heavy, 20)
        for row, v in zip(rows, swapped, strict=True):
            columns = views[list(views)[v]]
            row[columns] = X[rng.choice(np.flatnonzero(digits.y != digit)), columns]
        found += int((model.explain(rows).surprise.argmin(axis=1) == swapped).sum())
    assert found >= 190
