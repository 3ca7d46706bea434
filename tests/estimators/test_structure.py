"""A view's say: the more its columns hang together, the more; noise has little."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernull.models.structure import (
    LEAST,
    _correlated,
    mixed_cells,
    view_structure,
)
from scipy.stats import norm, rankdata
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score

import kernull
from kernull import MultiKernelFisherNull
from kernull.models import evidence, structure


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
    seen, two_errors = 2 * np.array(truth) - 1, 4 / np.sqrt(12 * 80)
    for shown in (np.zeros(2), np.array([0.5, 0.4]), np.ones(2)):
        found = view_structure(left_out, mixed, member, shown)
        between = np.maximum(seen, np.minimum(shown, seen + two_errors))
        np.testing.assert_allclose(found, np.maximum(between, LEAST))


@pytest.mark.parametrize("d", [3, 30])
def test_correlations_show_structure_as_a_loop_over_pairs_finds_it(d, rng):
    n = 24
    X = np.exp(line(rng, n, d))
    codes = np.eye(3)[rng.integers(3, size=n)]
    table = np.hstack([X[:, :2], codes, X[:, 2:], np.ones((n, 1))])
    category = np.r_[0, 1, 2, 2, 2, np.arange(5, d + 4)]
    _, found = mixed_cells(table, [np.arange(d + 4)])
    np.testing.assert_array_equal(found, category)
    total = expected = 0.0
    for k in range(d + 3):
        for j in range(k):
            if category[k] != category[j]:
                scores = [norm.ppf((rankdata(table[:, c]) - 0.5) / n) for c in (j, k)]
                total += np.corrcoef(scores)[0, 1] ** 2 - 1 / (n - 1)
                expected += 2 / (n - 1) ** 2
    truth = 2 * norm.cdf(np.sqrt((total - 2 * np.sqrt(expected)) / 2)) - 1
    np.testing.assert_allclose(_correlated(table, category), truth, rtol=1e-9)


def test_few_rows_of_independent_columns_show_no_correlation(rng):
    """Squared correlations of independent columns are taken off, with two standard errors."""
    shown = [_correlated(rng.standard_t(2, size=(30, 6)), np.arange(6)) for _ in range(200)]
    assert np.mean(np.array(shown) > 0) < 0.06


def test_noise_beside_few_rows_costs_little():
    """Thirty-five rows hardly show by an area under a curve which view is noise; pairs do."""
    X, y = load_wine(return_X_y=True)
    views = {"a": range(6), "b": range(6, 13), "noise": range(13, 17)}
    lost = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = np.hstack([X, rng.normal(size=(len(X), 4))])
        train = rng.permutation(np.flatnonzero(y == 1))[:35]
        new = np.setdiff1d(np.arange(len(X)), train)
        with_noise = fitted(table[train], views).score_samples(table[new])
        without = fitted(X[train], {v: views[v] for v in "ab"}).score_samples(X[new])
        lost += [roc_auc_score(y[new] == 1, s) for s in (without, with_noise)]
    assert np.mean(lost[::2]) - np.mean(lost[1::2]) < 0.04


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


def test_structure_is_the_same_every_time_and_survives_files(rng, tmp_path):
    X = np.hstack([line(rng, 90), rng.normal(size=(90, 3))])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6]}
    model, again = fitted(X, views), fitted(X, views)
    np.testing.assert_array_equal(model.model_.rule.structure, again.model_.rule.structure)
    kernull.save(model, tmp_path / "m.kernull")
    loaded = kernull.load(tmp_path / "m.kernull")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.model_.rule.structure, model.model_.rule.structure)


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
    drawn, _ = mixed_cells(table, [np.arange(table.shape[1])])
    mixed = np.take_along_axis(table, drawn, axis=0)
    for c in range(table.shape[1]):
        assert np.isin(mixed[:, c], table[:, c]).all()
    assert (mixed[:, 2 : 3 + K].sum(axis=1) == 1).all()
    if 2 < len(np.unique(codes)) <= n // 4:
        known = {tuple(row) for row in places}
        assert {tuple(row) for row in mixed[:, -2:]} <= known


@pytest.mark.parametrize("seed", [0, 5, 10, 11, 15])
def test_the_order_of_rows_does_not_matter(seed):
    """Scores of a category tie up to rounding, and so rank alike in whichever order they come."""
    rng = np.random.default_rng(seed)
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


def test_a_broken_column_of_little_say_is_flagged():
    """Beside views with structure it has little: one row in five passed, broken by 100 sd."""
    views = {"a": slice(0, 6), "b": slice(6, 12), "c": slice(12, 18), "one": [18]}
    factors = np.random.default_rng(1).normal(size=(3, 3, 6))
    flagged = []
    for seed in range(8):
        rng = np.random.default_rng(seed)

        def rows(n, rng=rng):
            related = [rng.normal(size=(n, 3)) @ f + 0.5 * rng.normal(size=(n, 6)) for f in factors]
            return np.column_stack([*related, rng.normal(size=n)])

        train, broken = rows(100), rows(50)
        broken[:, 18] = 100.0
        model = MultiKernelFisherNull(views=views).fit(train)
        assert model.model_.rule.relative_weights()[-1] < 0.8
        flagged.append((model.predict(broken) == -1).mean())
    assert min(flagged) == 1.0
