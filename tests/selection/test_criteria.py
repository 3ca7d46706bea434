"""Criteria against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kernull.paths.pseudo import PSEUDO, draw_pseudo
from kernull.selection.criteria import Consistency, FoldView, OutlierAcer, auc_of, read_scoring
from kernull.selection.results import best_index, edges


def test_auc_is_scikit_learns():
    rng = np.random.default_rng(0)
    high, low = rng.integers(0, 9, (3, 4, 15)) + 0.0, rng.integers(-2, 7, (3, 4, 20)) + 0.0
    found = auc_of(high, low)
    for i in np.ndindex(3, 4):
        labels, scores = np.r_[np.ones(15), np.zeros(20)], np.r_[high[i], low[i]]
        assert found[i] == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def view(held_out, outliers=None, training=None):
    empty = np.empty((*held_out.shape[:2], 0))
    return FoldView(
        held_out=held_out,
        outliers=empty if outliers is None else outliers,
        training=held_out if training is None else training,
        train_rows=None,
        score_rows=lambda rows: rows,
        seed=0,
    )


def test_acer_is_zero_for_what_separates_and_half_for_chance():
    held_out = np.array([[[1.0, 2.0, 3.0, 4.0]] * 2])
    outliers = np.array([[[-1.0, -2.0, -3.0, -4.0], [1.0, 2.0, 3.0, 4.0]]])
    found = OutlierAcer().of_fold(view(held_out, outliers))[..., 0]
    assert found[0, 0] == 0.0
    assert found[0, 1] == pytest.approx(-0.5, abs=0.13)


def test_consistency_takes_the_most_complex_model_that_is_not_overfitted():
    rng = np.random.default_rng(0)
    training = np.ones((1, 3, 200)) + 0.01 * rng.standard_normal((1, 3, 200))
    # Modest, well fitted, overfitted: the last rejects most of what it did not see.
    held_out = training - np.array([0.0, 0.001, 0.5])[None, :, None]
    criterion = Consistency()
    scores = criterion.finish([criterion.of_fold(view(held_out, training=training))]).mean(axis=0)
    assert best_index(scores) == (0, 1)
    assert scores[0, 2] < -1


@pytest.mark.parametrize("kind", sorted(PSEUDO))
def test_pseudo_rows_surround_the_targets(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1.0, 50.0, 0.01] + [0.0, 1000.0, -3.0]
    X = np.column_stack([X, np.full(200, 7.0)])
    rows = draw_pseudo(kind, X, 300, np.random.default_rng(1))
    assert np.isfinite(rows.outliers).all()
    assert (rows.outliers[:, 3] == 7.0).all()  # a constant column stays what it is
    if kind != "shift":
        assert len(rows.outliers) == 300
    Z, far = ((Y[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0) for Y in (X, rows.outliers))
    assert np.linalg.norm(far, axis=1).mean() > np.linalg.norm(Z, axis=1).mean()
    again = draw_pseudo(kind, X, 300, np.random.default_rng(1))
    np.testing.assert_array_equal(rows.outliers, again.outliers)


def test_shifted_outliers_leave_and_shifted_targets_stay():
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    radius = np.sqrt(np.linspace(0, 1, 400))
    order = np.random.default_rng(0).permutation(400)
    disc = np.column_stack([radius[order] * np.cos(angle), radius[order] * np.sin(angle)])
    rows = draw_pseudo("shift", disc, 0, np.random.default_rng(0))
    assert 5 < len(rows.outliers) < 200
    assert np.linalg.norm(rows.outliers, axis=1).mean() > 1.0
    assert rows.targets is not None
    assert np.linalg.norm(rows.targets, axis=1).max() < 1.1


def test_uniform_sphere_is_uniform():
    X = np.random.default_rng(0).standard_normal((500, 2))
    far = draw_pseudo("sphere", X, 4000, np.random.default_rng(1)).outliers
    radius = np.linalg.norm((far - X.mean(axis=0)) / X.std(axis=0), axis=1)
    share = np.mean(radius < radius.max() / 2)
    assert share == pytest.approx(0.25, abs=0.03)  # half the radius, a quarter of the disc


def test_ties_go_to_the_middle_of_the_plateau():
    scores = np.zeros((1, 5, 5))
    scores[0, 1:4, 1:4] = 1.0
    assert best_index(scores) == (0, 2, 2)
    scores[0, 0, 0] = 1.1
    assert best_index(scores) == (0, 0, 0)


def test_edges_are_told_where_they_matter():
    scores = np.zeros((3, 3, 3))
    scores[0, 0, 2] = 1.0
    widths = (0.25, 0.5, 1.0)
    # nothing below p = 1
    assert edges(scores, (0, 0, 2), widths, (1.0, 2.0, 4.0)) == ["width", "delta"]
    assert edges(scores, (0, 0, 2), widths, (1.1, 2.0, 4.0)) == ["width", "p", "delta"]
    assert edges(np.zeros((3, 3, 3)), (0, 0, 0), widths, (1.1, 2.0, 4.0)) == []  # a plateau
    assert edges(np.ones((1, 1, 1)), (0, 0, 0), (0.5,), (2.0,)) == []  # no grid, no edge


def test_an_automatic_width_is_no_edge():
    widths, ps = ("auto", 0.5, 1.0), (1.0, 2.0)
    scores = np.zeros((3, 2, 1))
    for i, found in enumerate([[], ["width"], ["width"]]):
        one = scores.copy()
        one[i, 0, 0] = 1.0
        assert edges(one, (i, 0, 0), widths, ps) == found
    assert edges(one[:2], (1, 0, 0), widths[:2], ps) == []  # one number is no axis


def test_several_kinds_are_averaged():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))

    def score_rows(rows):
        return -np.stack([[(rows**2).sum(axis=1), np.abs(rows[:, 0])]])

    seen = FoldView(
        held_out=score_rows(X[:20]),
        outliers=np.empty((1, 2, 0)),
        training=score_rows(X[20:]),
        train_rows=X[20:],
        score_rows=score_rows,
        seed=3,
    )
    each = [read_scoring(k, has_outliers=False)[1].of_fold(seen) for k in ("shift", "sphere")]
    both = read_scoring("shift+sphere", has_outliers=False)[1].of_fold(seen)
    np.testing.assert_allclose(both, (each[0] + each[1]) / 2)
    assert (both[0, 0] > both[0, 1]).all()  # seeing both columns beats seeing one


def test_scoring_is_read():
    assert read_scoring(None, has_outliers=True)[0] == "auc"
    assert read_scoring(None, has_outliers=False)[0] == "shift"
    with pytest.raises(ValueError, match="y has no outliers"):
        read_scoring("auc", has_outliers=False)
    with pytest.raises(ValueError, match="scoring: got 'nonsense'"):
        read_scoring("nonsense", has_outliers=True)
