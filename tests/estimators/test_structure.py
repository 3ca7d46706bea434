"""A view's say: the more its columns hang together, the more; noise has little."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import kernull
from kernull import MultiKernelFisherNull
from kernull.models import evidence, structure
from kernull.models.structure import LEAST, mixed_rows, view_structure


def line(rng, n, d=4):
    """Columns of one factor."""
    return rng.normal(size=(n, 1)) * np.linspace(1, 2, d) + 0.3 * rng.normal(size=(n, d))


def fitted(X, views):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultiKernelFisherNull(views=views).fit(X)


def test_structure_is_an_area_under_a_curve(rng):
    left_out, mixed = rng.exponential(size=(80, 8)), rng.exponential(size=(120, 8))
    mixed[:, [1, 5]] += 1.0
    member = np.array([0, 0, 1, 1])
    labels = np.r_[np.zeros(80), np.ones(120)]
    area = [roc_auc_score(labels, np.r_[left_out[:, j], mixed[:, j]]) for j in range(8)]
    truth = [max(area[j] for j in (0, 1, 4, 5)), max(area[j] for j in (2, 3, 6, 7))]
    least = max(LEAST, 4 / np.sqrt(12 * 80))
    np.testing.assert_allclose(
        view_structure(left_out, mixed, member), np.maximum(2 * np.array(truth) - 1, least)
    )


@pytest.mark.parametrize("noise", ["Gaussian", "heavy", "category", "one-hot", "constant"])
def test_noise_has_less_say_than_columns_that_hang_together(noise, rng):
    n = 200
    extra = {
        "Gaussian": rng.normal(size=(n, 4)),
        "heavy": rng.standard_t(2, size=(n, 4)),
        "category": rng.integers(3, size=(n, 1)).astype(float),
        "one-hot": np.eye(3)[rng.integers(3, size=n)],
        "constant": np.where(rng.random((n, 1)) < 0.02, rng.normal(size=(n, 1)), 5.0),
    }[noise]
    X = np.hstack([line(rng, n), line(rng, n), extra])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "noise": list(range(8, X.shape[1]))}
    rule = fitted(X, views).model_.rule
    of_noise = rule.structure[rule.member == rule.member[-1]]
    assert of_noise.max() == pytest.approx(LEAST)
    assert rule.structure.max() > 0.5
    say = np.bincount(rule.member, rule.relative_weights() ** 2)
    learned = np.bincount(rule.member, rule.weights**2)
    assert say[-1] / say.sum() < learned[-1] / learned.sum()


def test_one_view_alone_decides_by_its_weights(rng):
    rule = fitted(line(rng, 60), None).model_.rule
    assert rule.structure is None
    np.testing.assert_array_equal(rule.relative_weights(), rule.weights / rule.weights.max())


def test_structure_is_the_same_every_time_and_survives_files_and_growth(rng, tmp_path):
    X = np.hstack([line(rng, 90), rng.normal(size=(90, 3))])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6]}
    model, again = fitted(X, views), fitted(X, views)
    np.testing.assert_array_equal(model.model_.rule.structure, again.model_.rule.structure)
    kernull.save(model, tmp_path / "m.kernull")
    loaded = kernull.load(tmp_path / "m.kernull")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.model_.rule.structure, model.model_.rule.structure)
    model.partial_fit(X[:5] + 0.01)
    np.testing.assert_array_equal(model.model_.rule.structure, again.model_.rule.structure)


def test_units_and_the_order_of_views_do_not_matter(rng):
    X = np.hstack([line(rng, 80), rng.normal(size=(80, 3)), line(rng, 80, 3)])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}
    plain = fitted(X, views)
    other = fitted(X, dict(reversed(views.items())))
    np.testing.assert_allclose(other.score_samples(X), plain.score_samples(X), rtol=1e-7)
    scaled = fitted(X * 1e3, views)
    np.testing.assert_allclose(scaled.score_samples(X * 1e3), plain.score_samples(X), rtol=1e-8)


@given(st.integers(2, 40), st.integers(1, 5), st.integers(0, 10))
@settings(max_examples=40, deadline=None)
def test_mixed_rows_have_cells_of_the_table_and_whole_categories(n, K, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(K + 1, size=n)
    places = rng.normal(size=(K + 1, 2))[codes]
    table = np.hstack([rng.normal(size=(n, 2)), np.eye(K + 1)[codes], places])
    mixed = mixed_rows(table, [np.arange(table.shape[1])])
    for c in range(table.shape[1]):
        assert np.isin(mixed[:, c], table[:, c]).all()
    assert (mixed[:, 2 : 3 + K].sum(axis=1) == 1).all()
    if 2 < len(np.unique(codes)) <= n // 4:
        known = {tuple(row) for row in places}
        assert {tuple(row) for row in mixed[:, -2:]} <= known


def test_the_order_of_rows_does_not_matter(rng):
    X = np.hstack([line(rng, 60), rng.normal(size=(60, 3)), np.eye(3)[rng.integers(3, size=60)]])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}
    plain, other = fitted(X, views), fitted(X[rng.permutation(60)], views)
    np.testing.assert_allclose(other.score_samples(X), plain.score_samples(X), rtol=1e-6)


@pytest.mark.parametrize("d", [8, 50])
def test_mixed_rows_scaled_by_their_cells_are_mixed_rows_scaled(rng, d, monkeypatch):
    X = np.hstack([line(rng, 30, d), rng.normal(size=(30, d)), np.eye(3)[rng.integers(3, size=30)]])
    views = {"a": slice(0, d), "b": slice(d, 2 * d), "c": slice(2 * d, None)}
    plain = fitted(X, views).model_.rule
    monkeypatch.setattr(structure, "OUTSIDE", -1.0)  # no principal axes
    full = fitted(X, views).model_.rule
    monkeypatch.setattr(
        evidence, "with_structure", lambda *args, own: structure.with_structure(*args)
    )
    slow = fitted(X, views).model_.rule
    for other in (full, slow):
        np.testing.assert_allclose(other.structure, plain.structure, rtol=1e-9)
