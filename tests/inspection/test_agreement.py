"""Which view is out of line: what agreement is, and whether it points at the culprit."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from kernull import join_views
from kernull.calibration import Witnesses
from kernull.calibration.agreement import WITNESSES
from kernull.datasets import load_multiple_features
from tests.plain import plain_fisher

RNG = np.random.default_rng(0)
RIDGE = 0.3


def rbf(A, B, width=1.0):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / (2 * width**2))


def by_definition(new, train, weights, groups):
    """Agreement of one row with loops and a general solver, from kernels (J, 1, w), (J, w, w)."""
    K = sum(b * part for b, part in zip(weights, train, strict=True))
    out = np.empty(len(weights))
    for j, group in enumerate(groups):
        rest = sum(weights[u] * new[u] for u in range(len(weights)) if groups[u] != group)
        shares = np.clip(np.linalg.solve(K + RIDGE * np.eye(len(K)), rest), 0, None)
        out[j] = weights[j] * np.average(new[j], weights=shares)
    return out


@pytest.fixture
def kernels():
    X, new = RNG.standard_normal((30, 4)), RNG.standard_normal((5, 4))
    parts = [([0, 1], 1.0), ([0, 1], 0.5), ([2], 1.0), ([3], 1.0)]
    train = np.stack([rbf(X[:, c], X[:, c], width) for c, width in parts])
    cross = np.stack([rbf(new[:, c], X[:, c], width) for c, width in parts])
    return train, cross, np.array([0.2, 0.4, 0.7, 0.1]), np.array([0, 0, 1, 2])


def test_agreement_is_what_it_says(kernels):
    train, cross, weights, groups = kernels
    witnesses = Witnesses.of(train, weights, groups, RIDGE)
    expected = [by_definition(cross[:, i], train, weights, groups) for i in range(5)]
    np.testing.assert_allclose(witnesses.agreement(cross), expected, rtol=1e-9)


def test_a_witness_is_judged_by_the_others(kernels):
    train, _, weights, groups = kernels
    usual = Witnesses.of(train, weights, groups, RIDGE).usual
    for i in (0, 7, 29):
        others = np.arange(30) != i
        expected = by_definition(
            train[:, i][:, others], train[:, others][:, :, others], weights, groups
        )
        np.testing.assert_allclose(usual[i], expected, rtol=1e-9)


def test_rows_like_no_witness():
    """All kernels zero: agreement is zero, not NaN."""
    train = np.stack([np.eye(4), np.eye(4)])
    witnesses = Witnesses.of(train, np.ones(2), np.arange(2), RIDGE)
    assert (witnesses.agreement(np.zeros((2, 3, 4))) == 0).all()
    assert np.isfinite(witnesses.usual).all()


def test_a_view_of_another_normal_row_is_found():
    """Each view alone is perfectly normal, and contributes as usual; together they are not."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 260)
    X = np.column_stack([np.cos(angle + k) for k in range(6)])
    X += 0.05 * rng.standard_normal(X.shape)
    views = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    model = plain_fisher(views=views, widths=0.25).fit(X[:200])
    rows, partner = X[200:230].copy(), np.roll(angle[200:230], 1)
    apart = np.abs(np.angle(np.exp(1j * (angle[200:230] - partner)))) > 1.0
    rows[:, views["b"]] = np.roll(X[200:230][:, views["b"]], 1, axis=0)
    why = model.explain(rows[apart])
    assert (why.surprise.argmin(axis=1) == 1).all()
    alone = replace(why, agreement=None)
    assert (alone.surprise.argmin(axis=1) == 1).mean() < 0.6


def test_few_witnesses_stand_for_many(monkeypatch):
    X = RNG.standard_normal((300, 4))
    model = plain_fisher(views={"a": [0, 1], "b": [2, 3]}).fit(X)
    why = model.explain(X[:7])
    assert why.usual_agreement.shape == (WITNESSES, 2)
    monkeypatch.setattr("kernull.calibration.agreement.CHUNK_BYTES", 1)  # one row at a time
    np.testing.assert_allclose(model.explain(X[:7]).surprise, why.surprise, rtol=1e-10)


def test_normalised_kernels_count_as_in_the_model():
    X = np.random.default_rng(5).standard_normal((50, 4))
    views = {"a": [0, 1], "b": [2, 3]}
    model = plain_fisher(views=views, widths=(0.5, 2.0), normalize="offdiagonal").fit(X)
    kernels = np.stack([K for _, K in model.bank_.matrices()])
    assert not np.allclose(model.scale_, 1.0)
    weights = model.weights_ * model.scale_
    used = weights > 0
    expected = Witnesses.of(
        kernels[used], weights[used], np.array([0, 0, 1, 1])[used], model.ridge_
    ).usual
    np.testing.assert_allclose(model.explain(X[:1]).usual_agreement[:, used], expected, rtol=1e-9)


@pytest.mark.parametrize("storage", ["tiled", "nystroem"])
def test_whatever_the_storage(storage):
    X = RNG.standard_normal((80, 6))
    views = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    full = plain_fisher(views=views).fit(X)
    other = plain_fisher(views=views, storage=storage, landmarks=80).fit(X)
    new = RNG.standard_normal((9, 6))
    np.testing.assert_allclose(
        np.sort(other.explain(new).surprise), np.sort(full.explain(new).surprise), rtol=1e-3
    )


def test_one_view_is_judged_by_its_contribution():
    X = RNG.standard_normal((40, 3))
    model = plain_fisher(views={"a": [0, 1], "b": [2]}).fit(X)
    why = model.explain(X, missing_views="b")
    assert why.agreement is None
    assert why.surprise.shape == (40, 1)


@pytest.mark.skipif(not os.environ.get("KERNULL_DATA"), reason="KERNULL_DATA is unset")
@pytest.mark.parametrize("width", [0.125, 0.25, 0.5])
def test_the_view_of_another_digit_ranks_first(width):
    """In at least 95% of 200 rows (python -m benchmarks.trust explain: more seeds, fresh rows)."""
    digits = load_multiple_features()
    X, views = join_views(digits.views)
    rng = np.random.default_rng(11)
    found = 0
    for digit in range(10):
        train = rng.permutation(np.flatnonzero(digits.y == digit))[:140]
        model = plain_fisher(views=views, p=2, widths=width, delta=0.01).fit(X[train])
        heavy = np.flatnonzero(model.weights_ >= 0.5 * model.weights_.mean())
        rows, swapped = X[rng.choice(train, 20)], rng.choice(heavy, 20)
        for row, v in zip(rows, swapped, strict=True):
            columns = views[list(views)[v]]
            row[columns] = X[rng.choice(np.flatnonzero(digits.y != digit)), columns]
        found += int((model.explain(rows).surprise.argmin(axis=1) == swapped).sum())
    assert found >= 190
