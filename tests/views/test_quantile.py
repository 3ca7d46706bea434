"""Normal scores by training ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from kernull.views import Quantile
from kernull.views.scaling import scores_of_knots


def test_scores_of_training_rows_are_those_of_mid_ranks(rng):
    X = np.column_stack([rng.normal(size=50), rng.poisson(2.0, 50), rng.integers(0, 2, 50)])
    found = Quantile().fit(X).transform(X)
    truth = norm.ppf((rankdata(X, axis=0) - 0.5) / 50)
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-12)


def test_weights_are_shares_of_the_ranks(rng):
    X = rng.normal(size=(30, 2))
    copies = rng.integers(1, 4, 30)
    weighted = Quantile().fit(X, sample_weight=copies.astype(float)).transform(X)
    repeated = Quantile().fit(np.repeat(X, copies, axis=0)).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-12)
    constant = Quantile().fit(X, sample_weight=np.full(30, 7.0)).transform(X)
    np.testing.assert_allclose(constant, Quantile().fit(X).transform(X), atol=1e-12)


def test_outermost_values_of_next_to_no_weight_have_scores(rng):
    X = np.sort(rng.normal(size=(50, 1)), axis=0)
    weight = np.ones(50)
    weight[[0, -1]] = 1e-30
    knots, own = scores_of_knots(X, weight)
    assert np.isfinite(own).all()
    assert np.isfinite(knots.slopes).all()
    np.testing.assert_allclose(own[1:-1], scores_of_knots(X[1:-1])[1])


@given(seed=st.integers(0, 2**31), shift=st.floats(-100, 100), size=st.floats(1e-6, 1e6))
@settings(max_examples=25, deadline=None)
def test_units_do_not_matter_and_order_stays(seed, shift, size):
    rng = np.random.default_rng(seed)
    X, new = rng.standard_t(2, (30, 2)), 5 * rng.standard_t(2, (20, 2))
    plain = Quantile().fit(X).transform(new)
    other = Quantile().fit(shift * size + size * X).transform(shift * size + size * new)
    np.testing.assert_allclose(other, plain, rtol=1e-6, atol=1e-6)
    for c in range(2):
        order = np.argsort(new[:, c])
        assert (np.diff(plain[order, c]) > 0).all()


def test_values_of_many_knots_find_their_places_in_any_order(rng):
    """Columns of more knots than a cache holds are read in order: the same scores."""
    rows, new = rng.normal(size=(20_000, 1)), rng.normal(size=(50, 1))
    scores = Quantile().fit(rows).transform(new)[:, 0]
    knots = norm.ppf((np.arange(len(rows)) + 0.5) / len(rows))
    np.testing.assert_allclose(scores, np.interp(new[:, 0], np.sort(rows[:, 0]), knots), atol=1e-12)


def test_scores_are_linear_beyond_the_ends(rng):
    X = rng.lognormal(0, 1, (40, 3))
    scaler = Quantile().fit(X)
    above = X.max(axis=0) + np.array([[1.0], [2.0], [3.0]])
    new = np.vstack([X, above, X.min(axis=0) - 5.0])
    Z = scaler.transform(new)
    np.testing.assert_allclose(Z[41] - Z[40], Z[42] - Z[41], rtol=1e-9)
    assert (Z[40] > Z[:40].max(axis=0)).all()
    assert (Z[-1] < Z[:-1].min(axis=0)).all()


@pytest.mark.parametrize("value", [1e8, -1e8])
def test_far_away_is_far_away(value, rng):
    X = rng.normal(size=(50, 2))
    assert np.abs(Quantile().fit(X).transform(np.full((1, 2), value))).min() > 1e6
