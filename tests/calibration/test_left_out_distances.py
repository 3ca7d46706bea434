"""Squared distances under a scaling without the row, against refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull.calibration import left_out_whitening, left_out_wide
from kernull.calibration.left_out_distances import left_out_distances, trust
from kernull.views import SCALINGS, ViewScaler
from tests.calibration.left_out_tables import refitted, relative_error, tables

SIZES = [(26, 5), (18, 24), (20, 1)]
NAMES = list(tables(20, 4))
#: What each scaling promises on these sizes.
EXACT = {"none": 1e-9, "standard": 1e-8, "whiten-raw": 1e-8, "whiten": 1e-8, "quantile": 1e-8}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_distances_are_those_of_refits(kind, n, d, weighted):
    for name, X in tables(n, d).items():
        w = np.random.default_rng(1).uniform(0.2, 4.0, n) if weighted else None
        found = left_out_distances(kind, X, w).rows()
        assert relative_error(found, refitted(kind, X, w)) < EXACT[kind], name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), [(72, 5), (72, 12), (72, 36), (66, 80)])
def test_near_distances_of_whitened_views(n, d, weighted):
    """Beyond FEW rows: the error is small and the order of the distances stays."""
    made = tables(n, d)
    for name in ("gauss", "skewed", "factors", "lognormal"):
        X = made[name]
        w = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
        found, truth = left_out_distances("whiten", X, w).rows(), refitted("whiten", X, w)
        off = np.isfinite(truth)
        assert relative_error(found, truth) < 0.05, name
        assert np.corrcoef(found[off], truth[off])[0, 1] > 0.999, name


@pytest.mark.parametrize("d", [3, 40, 65])
def test_near_distances_are_numbers_where_a_row_holds_a_direction(d):
    """Copies, hardly any noise, a row far from all others: as many columns as rows, nearly."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(66, 2)) @ rng.normal(size=(2, d))
    far = 0.01 * rng.normal(size=(66, d))
    far[0] += 1.0
    for X in (np.repeat(far[:33], 2, axis=0), factors + 1e-6 * rng.normal(size=(66, d)), far):
        found, truth = left_out_distances("whiten", X).rows(), refitted("whiten", X)
        assert relative_error(found, truth) < 0.05


@pytest.mark.parametrize(("n", "d"), [(72, 36), (66, 80)])
def test_near_distances_of_columns_that_are_independent(n, d):
    """Where all is shrunk to the diagonal, entries do not meet: each by itself is exact."""
    X = np.random.default_rng(0).exponential(size=(n, d))
    found = left_out_distances("whiten", X).rows()
    assert relative_error(found, refitted("whiten", X)) < 1e-7


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_in_blocks_are_exact_where_they_are_scaled_one_by_one(weighted):
    for name, X in tables(22, 400).items():  # three blocks, on both sides of the sum
        w = np.random.default_rng(1).uniform(0.2, 4.0, 22) if weighted else None
        found = left_out_distances("standard", X, w).rows()
        assert relative_error(found, refitted("standard", X, w)) < 1e-8, name


@pytest.mark.parametrize("name", NAMES)
def test_rows_with_as_many_large_entries_may_be_solved_for_together(name, monkeypatch):
    X = tables(70, 90)[name]
    together = left_out_distances("whiten", X).rows()
    monkeypatch.setattr(left_out_wide, "FEW_ENTRIES", 0)
    monkeypatch.setattr(left_out_wide, "BATCH_CELLS", 1)
    np.testing.assert_allclose(together, left_out_distances("whiten", X).rows(), rtol=1e-9)


def test_the_near_and_the_exact_form_of_whitening_meet(monkeypatch):
    X = tables(60, 12)["factors"]
    exact = left_out_distances("whiten", X).rows()
    monkeypatch.setattr(left_out_whitening, "FEW", 0)
    assert relative_error(left_out_distances("whiten", X).rows(), exact) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_near_normal_scores(name, monkeypatch):
    X = tables(120, 30)[name]
    exact = left_out_distances("quantile", X).rows()
    monkeypatch.setattr("kernull.calibration.left_out_quantile.EXACT_CELLS", 0)
    near = left_out_distances("quantile", X).rows()
    off = np.isfinite(exact)
    assert np.corrcoef(near[off], exact[off])[0, 1] > 0.999
    typical = np.median(exact[off]) or 1.0
    assert np.median(np.abs(near[off] - exact[off])) < 0.02 * typical


@pytest.mark.parametrize("kind", SCALINGS)
def test_groups_are_left_out_together(kind):
    X = tables(24, 5)["lognormal"]
    groups = np.arange(24) // 3 % 7
    found = left_out_distances(kind, X, groups=groups).rows()
    assert relative_error(found, refitted(kind, X, groups=groups)) < 1e-8


@pytest.mark.parametrize("kind", SCALINGS)
@given(constant=st.floats(1e-6, 1e6))
@settings(max_examples=5, deadline=None)
def test_a_constant_weight_changes_nothing_at_all(kind, constant):
    X = tables(20, 4)["factors"]
    plain = left_out_distances(kind, X).rows()
    np.testing.assert_array_equal(left_out_distances(kind, X, np.full(20, constant)).rows(), plain)


@pytest.mark.parametrize("kind", ["standard", "whiten", "quantile"])
@given(seed=st.integers(0, 2**31), exponent=st.floats(-6, 6))
@settings(max_examples=10, deadline=None)
def test_units_do_not_matter(kind, seed, exponent):
    """Nor does the size of the one value that a row alone has in a column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 4))
    X[:, 1] = 3.0
    X[rng.integers(25), 1] += 10.0**exponent
    plain = left_out_distances(kind, X).rows()
    X[:, 1] = np.where(X[:, 1] == 3.0, 3.0, 4.0)
    scaled = left_out_distances(kind, X * np.array([1e-3, 1e5, 10.0**exponent, 1.0])).rows()
    assert np.isfinite(plain[~np.eye(25, dtype=bool)]).all()
    assert relative_error(scaled, plain) < 1e-6


@pytest.mark.parametrize("kind", SCALINGS)
def test_blocks_are_rows_of_the_whole(kind):
    found = left_out_distances(kind, tables(30, 5)["one-hot"])
    whole = found.rows()
    parts = np.concatenate([found.rows(part) for part in found.blocks(limit=8 * 30 * 7)])
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)
    assert np.isinf(np.diagonal(whole)).all()


def test_no_square_matrix_of_the_columns(monkeypatch):
    """With more columns than rows nothing of size d x d is formed."""
    X = tables(70, 400)["factors"]
    shapes = []
    for name in ("inv", "eigh", "solve", "svd"):
        plain = getattr(np.linalg, name)

        def counting(A, *args, plain=plain, **kwargs):
            shapes.append(max(A.shape[-2:]))
            return plain(A, *args, **kwargs)

        monkeypatch.setattr(np.linalg, name, counting)
    for kind in ("whiten", "whiten-raw"):
        left_out_distances(kind, X).rows(np.arange(5))
    assert max(shapes) <= len(X) + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "whitening"}, "scaling: got"),
        ({"sample_weight": np.zeros(6)}, "positive numbers"),
        ({"sample_weight": np.ones(5)}, r"expected \(6,\)"),
        ({"groups": np.zeros(6)}, "all rows are of one group"),
        ({"groups": [0, 1]}, "one label per row"),
    ],
)
def test_mistakes(arguments, message):
    given_ = {"kind": "standard", **arguments}
    with pytest.raises(ValueError, match=message):
        left_out_distances(X=np.arange(12.0).reshape(6, 2), **given_)


def test_trust_has_mean_one():
    np.testing.assert_array_equal(trust(np.full(4, 1 / 3), 4), np.ones(4))
    assert trust([1.0, 2.0, 6.0], 3).mean() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw", "quantile"])
def test_a_value_off_a_constant_column_has_no_unit(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(30, 3)), np.full(30, 7.0)])
    scaler = ViewScaler.fit(kind, X)
    new = np.repeat(X[:1], 4, axis=0)
    new[:, 3] = [7.0, 7.0 + 1e-9, 7.0 + 1e9, 7.0 - 3.0]
    Z = scaler.transform(new)
    assert np.ptp(Z[:, :3], axis=0).max() == 0.0
    step = Z[1, 3]
    assert step > 2.0
    np.testing.assert_array_equal(Z[:, 3], [0.0, step, step, -step])
    np.testing.assert_array_equal(scaler.unseen(new)[:, 3], [False, True, True, True])
    assert not scaler.unseen(new)[:, :3].any()
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, rtol=1e-9)
    without = ViewScaler.fit(kind, X[:, :3]).transform(X[:, :3])
    np.testing.assert_allclose(scaler.transform(X)[:, :3], without, rtol=1e-9)  # nothing else


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw", "quantile"])
def test_a_scaling_of_one_row_knows_constants_only(kind):
    X = np.array([[1.0, 5.0, 2.0], [1.0, 6.0, 3.0]])
    found = left_out_distances(kind, X).rows()
    assert found[0, 1] == found[1, 0] > 0
    assert np.isfinite(found[0, 1])
