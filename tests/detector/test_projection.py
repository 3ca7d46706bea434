"""Projections of many rows, against NumPy's solution for each sample."""

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.detector import Projection
from kernull.views.kernel_set import Recipe


def fitted_view(rows):
    ((view, pairs),) = Recipe({"all": np.arange(rows.shape[1])}, scaling="standard").fit_views(
        rows, None, 50
    )
    return view, pairs


@pytest.mark.parametrize(("n", "samples"), [(19, 1), (20, 1), (39, 1), (40, 2), (60, 3), (200, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_samples_that_share_no_row(n, samples, weighted):
    rng = np.random.default_rng(n)
    view, pairs = fitted_view(rng.normal(size=(n, 3)))
    weight = rng.uniform(0.5, 1.5, n) if weighted else None
    fit = Projection(ridge=1e-3, max_rows=20, samples=3).fit(view, weight, None, pairs)
    m, expected, (kernel,) = min(n, 20), np.zeros(5), view.kernels
    ridge = 1e-3 * max(1.0, n / 60) ** 3
    for part in (slice(k * m, (k + 1) * m) for k in range(samples)):
        counts = np.ones(m) if weight is None else weight[part]
        K = kernel(view.train[part]) + ridge * m * np.diag(counts.mean() / counts)
        expected += kernel(view.train[:5], view.train[part]) @ np.linalg.solve(K, np.ones(m))
    scores = fit.score(view, view.train[:5])
    np.testing.assert_allclose(scores[:, 0], expected / samples, rtol=1e-9)


def test_a_fit_without_a_fold_has_the_ridge_of_all_rows():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    view, pairs = fitted_view(rows)
    projection = Projection(max_rows=20, samples=3)
    full = projection.fit(view, None, None, pairs)
    few, pairs = fitted_view(rows[:100])
    fold = projection.fit(few, None, full, pairs)
    wider = Projection(ridge=1e-4 * (300 / 100) ** 3, max_rows=20, samples=3)
    expected = wider.fit(few, None, None, pairs)
    assert fold.n == 300
    np.testing.assert_allclose(fold.coef, expected.coef, rtol=1e-9)


@pytest.mark.slow
def test_rates_hold_where_the_ridge_grows():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(5, 20))

    def draw(n):
        return rng.normal(size=(n, 5)) @ mix + 0.5 * rng.normal(size=(n, 20))

    model = MultiKernelFisherNull().fit(draw(6000))
    assert np.mean(model.predict(draw(10_000)) == -1) == pytest.approx(0.05, abs=0.012)
