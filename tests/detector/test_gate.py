"""The gate: views, and the whole, count by the odds that mixed rows are told from rows."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score

import kernull
from kernull import MultiKernelFisherNull
from kernull.detector.gate import factors_by_odds, mixed_rows
from kernull.views.kernel_set import WHOLE


def line(rng, n, d=4):
    """Columns of one factor."""
    return rng.normal(size=(n, 1)) * np.linspace(1, 2, d) + 0.3 * rng.normal(size=(n, d))


def fitted(X, views):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultiKernelFisherNull(views=views).fit(X)


def factors_of(model):
    """Factor of each view, the whole among them."""
    rule = model.model_.rule
    views = [part.view.name for part in rule.scores.parts for _ in range(2)]
    return dict(zip(views, rule.factors, strict=True))


def test_factors_are_roots_of_odds(rng):
    left_out, mixed = rng.exponential(size=(80, 4)), rng.exponential(size=(120, 4)).round(1)
    mixed[:, 1] += 0.3
    mixed[:, 3] += 9.0
    labels = np.r_[np.zeros(80), np.ones(120)]
    area = [roc_auc_score(labels, np.r_[left_out[:, j], mixed[:, j]]) for j in range(4)]
    factors = factors_by_odds(left_out, mixed, np.array([0, 0, 1, 2]))
    expected = [np.sqrt(a / (1 - a)) for a in (max(area[:2]), max(area[:2]), area[2])]
    np.testing.assert_allclose(factors, [*expected, 2.0])
    np.testing.assert_allclose(factors_by_odds(mixed, left_out, np.arange(4))[3], 0.5)


def test_parts_come_from_different_rows():
    X = np.arange(60)[:, None] * np.ones(4)
    cells, pairs = mixed_rows(X, np.arange(4)), mixed_rows(X, np.array([0, 0, 2, 2]))
    assert cells.shape == pairs.shape == (500, 4)
    assert set(cells.ravel()) == set(range(60))
    assert (cells[:, 0] != cells[:, 1]).mean() > 0.9
    np.testing.assert_array_equal(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(pairs[:, 2], pairs[:, 3])
    assert (pairs[:, 0] != pairs[:, 2]).mean() > 0.9


def test_the_whole_counts_where_views_belong_together(rng):
    views = {"a": [0, 1, 2], "b": [3, 4, 5]}
    related, apart = line(rng, 200, 6), np.hstack([line(rng, 200, 3), line(rng, 200, 3)])
    assert factors_of(fitted(related, views))[WHOLE] == 2.0
    assert 0.7 < factors_of(fitted(apart, views))[WHOLE] < 1.3
    deep = rng.normal(size=(20, 200))  # rows of equal views are neighbours, rows left out are not
    assert factors_of(fitted(deep, {"a": range(100), "b": range(100, 200)}))[WHOLE] < 0.51


def test_views_of_other_rows_stand_out(rng):
    """Two views of one factor: rows whose second view is another row's."""
    views, loads = {"a": range(6), "b": range(6, 12)}, rng.normal(size=(3, 12))
    X = rng.normal(size=(700, 3)) @ loads + 0.3 * rng.normal(size=(700, 12))
    train, new = X[:300], X[300:]
    swapped = np.hstack([new[:, :6], np.roll(new, 1, axis=0)[:, 6:]])
    scores = fitted(train, views).score_samples(np.vstack([new, swapped]))
    assert roc_auc_score(np.arange(800) < 400, scores) > 0.93


def test_noise_beside_few_rows_costs_little():
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


@pytest.mark.parametrize("noise", ["Gaussian", "heavy", "one-hot", "constant"])
def test_noise_counts_less(noise, rng):
    n = 200
    extra = {
        "Gaussian": rng.normal(size=(n, 4)),
        "heavy": rng.standard_t(2, size=(n, 4)),
        "one-hot": rng.integers(2, size=(n, 3)).astype(float),
        "constant": np.where(rng.random((n, 2)) < 0.02, rng.normal(size=(n, 2)), 5.0),
    }[noise]
    X = np.hstack([line(rng, n), line(rng, n), extra])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "noise": list(range(8, X.shape[1]))}
    factors = factors_of(fitted(X, views))
    assert factors["a"] == factors["b"] == 2.0
    assert 0.5 <= factors["noise"] < 1.5


def test_one_view_alone_decides_by_its_weights(rng):
    rule = fitted(line(rng, 60), None).model_.rule
    np.testing.assert_array_equal(rule.by_kernel_weights, rule.weights)


def test_factors_are_the_same_every_time_and_survive_files(rng, tmp_path):
    X = np.hstack([line(rng, 90), rng.normal(size=(90, 3))])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6]}
    model, again = fitted(X, views), fitted(X, views)
    np.testing.assert_array_equal(model.model_.rule.factors, again.model_.rule.factors)
    kernull.save(model, tmp_path / "m.kernull")
    loaded = kernull.load(tmp_path / "m.kernull")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.model_.rule.factors, model.model_.rule.factors)


def test_units_and_the_order_of_views_do_not_matter(rng):
    X = np.hstack([line(rng, 80), rng.normal(size=(80, 3)), line(rng, 80, 3)])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}
    plain = fitted(X, views)
    other = fitted(X, dict(reversed(views.items())))
    np.testing.assert_allclose(other.score_samples(X), plain.score_samples(X), rtol=1e-7)
    scaled = fitted(X * 1e3, views)
    np.testing.assert_allclose(scaled.score_samples(X * 1e3), plain.score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("seed", [0, 5, 10, 11, 15])
def test_the_order_of_rows_does_not_matter(seed):
    """Scores of a category tie up to rounding, and so rank alike in whichever order they come."""
    rng = np.random.default_rng(seed)
    X = np.hstack([line(rng, 60), rng.normal(size=(60, 3)), np.eye(3)[rng.integers(3, size=60)]])
    views = {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}
    plain, other = fitted(X, views), fitted(X[rng.permutation(60)], views)
    np.testing.assert_allclose(other.score_samples(X), plain.score_samples(X), rtol=1e-6)


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
        flagged.append((model.predict(broken) == -1).mean())
    assert min(flagged) == 1.0
