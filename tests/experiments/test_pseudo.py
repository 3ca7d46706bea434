"""Pseudo-outliers lie around the targets, in their units."""

import numpy as np

from experiments.pseudo import pseudo_outliers


def test_pseudo_outliers_surround_the_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1.0, 50.0, 0.01] + [0.0, 1000.0, -3.0]
    X = np.column_stack([X, np.full(200, 7.0)])
    rows = pseudo_outliers(X, 300, np.random.default_rng(1))
    assert rows.shape == (300, 4)
    assert np.isfinite(rows).all()
    assert (rows[:, 3] == 7.0).all()  # a constant column stays what it is
    Z, far = ((Y[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0) for Y in (X, rows))
    assert np.linalg.norm(far, axis=1).mean() > np.linalg.norm(Z, axis=1).mean()
    np.testing.assert_array_equal(rows, pseudo_outliers(X, 300, np.random.default_rng(1)))
