"""Leave-one-out in closed form against n refits, kernel by kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from kernull import FisherProblem
from kernull.calibration import (
    attributed_contributions,
    leave_one_out,
    leave_one_out_contributions,
)
from kernull.calibration.left_out_scores import not_above_own
from kernull.mkl import RidgeInverse
from kernull.stacks import DenseStack
from tests.oracles import interpolated
from tests.plain import plain_fisher

VIEWS = {"a": [0, 1], "b": [2], "c": [2, 3, 4]}

#: Ten problems: kernels, norms, ridges, scalings, row weights.
PROBLEMS = [
    {"p": 2.0},
    {"p": 1.0, "delta": 1e-3},
    {"p": np.inf, "delta": 1.0},
    {"p": 4 / 3, "widths": [0.25, 1.0]},
    {"kernels": "laplacian", "delta": 1e-4},
    {"kernels": ["rbf", "polynomial"], "p": 3.0},
    {"kernels": "cosine", "scaling": "none"},
    {"scaling": "whiten", "delta": 1e-5},
    {"weighted": "copies"},
    {"weighted": "fractions", "p": 1.5},
]


def rows(seed, n=32):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 5)) @ rng.standard_normal((5, 5)) + 1.0


def row_weights(kind, n, seed):
    rng = np.random.default_rng(seed)
    if kind == "copies":
        return rng.integers(1, 4, n).astype(float)
    return rng.uniform(0.2, 1.0, n) if kind == "fractions" else None


def refits(kernels, weights, ridge, w):
    """Contributions to each row by n models that did not see it: scikit-learn's."""
    combined = np.tensordot(weights, kernels, axes=1)
    n = len(combined)
    out = np.empty((n, len(weights)))
    for i in range(n):
        keep = np.flatnonzero(np.arange(n) != i)
        model = KernelRidge(alpha=ridge, kernel="precomputed")
        model.fit(
            combined[np.ix_(keep, keep)],
            np.ones(n - 1),
            sample_weight=None if w is None else w[keep],
        )
        out[i] = weights * (kernels[:, i, keep] @ model.dual_coef_)
    return out


def own_scores(kernels, weights, ridge, w):
    """Score of each row by the whole model."""
    combined = np.tensordot(weights, kernels, axes=1)
    n = len(combined)
    A = combined + ridge * np.diag(np.ones(n) if w is None else 1 / w)
    return combined @ np.linalg.solve(A, np.ones(n))


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_equals_n_refits(number):
    """At fixed kernels. No row scores higher than it does as a new row."""
    options = dict(PROBLEMS[number])
    X = rows(number)
    w = row_weights(options.pop("weighted", None), len(X), number)
    table = plain_fisher(views=VIEWS, **options).fit(X, sample_weight=w)
    kernels = table.bank_.stack().kernels
    same = {name: value for name, value in options.items() if name in ("p", "delta")}
    model = plain_fisher("precomputed", **same).fit(kernels, sample_weight=w)
    w = None if w is None else w / w.mean()
    ridge = model.delta * len(X)
    expected = refits(kernels, model.weights_, ridge, w)
    own = own_scores(kernels, model.weights_, ridge, w)
    found = model.calibration_contributions_
    below = expected.sum(axis=1) < own
    assert below.mean() > 0.3
    np.testing.assert_allclose(found[below], expected[below], rtol=0, atol=1e-8)
    np.testing.assert_allclose(found[~below].sum(axis=1), own[~below], rtol=0, atol=1e-8)
    # The sum is the textbook formula, with the coefficients of an exact solve.
    problem = FisherProblem(DenseStack(kernels), ridge, row_weight=w)
    plain = leave_one_out(problem, model.weights_, problem.evaluate(model.weights_).coef, w)
    np.testing.assert_allclose(expected.sum(axis=1), plain, rtol=0, atol=1e-8)


def test_missing_view_threshold_is_that_of_refits_without_it():
    X = rows(3)
    table = plain_fisher(views=VIEWS).fit(X)
    kernels = table.bank_.stack().kernels
    model = plain_fisher("precomputed", false_alarm_rate=0.2).fit(kernels)
    ridge = model.delta * len(X)
    parts = refits(kernels, model.weights_, ridge, None)
    parts = not_above_own(parts, own_scores(kernels, model.weights_, ridge, None))
    expected = parts[:, [0, 2]].sum(axis=1)
    own = np.stack([K for _, K in table.bank_.matrices(rows(4, 50))])
    scores = np.einsum("j,jmn,n->m", model.weights_[[0, 2]], own[[0, 2]], model.coef_)
    p = np.array([interpolated(expected, score) for score in scores])
    missing = {"missing_views": "kernel 1"}
    np.testing.assert_allclose(model.score_samples(own, **missing), scores, atol=1e-10)
    np.testing.assert_allclose(model.p_values(own, **missing), p, atol=1e-9)
    np.testing.assert_array_equal(model.predict(own, **missing) == -1, p <= 0.2)


@pytest.mark.parametrize("weighted", [None, "copies"])
def test_precomputed_kernels_are_taken_apart_when_fitted(weighted):
    X = rows(5)
    w = row_weights(weighted, len(X), 1)
    table = plain_fisher("laplacian", views=VIEWS).fit(X, sample_weight=w)
    model = plain_fisher("precomputed").fit(table.bank_.stack().kernels, sample_weight=w)
    np.testing.assert_allclose(
        model.calibration_contributions_, table.calibration_contributions_, rtol=0, atol=1e-8
    )


def test_matrix_free_sums_are_the_calibration_scores():
    X = rows(5, 700)
    model = plain_fisher(views=VIEWS, storage="tiled").fit(X)
    found = model.calibration_contributions_
    assert len(found) == 500
    np.testing.assert_allclose(np.sort(found.sum(axis=1)), model.calibration_.scores, atol=1e-12)
    p = model.p_values(X, missing_views="b")
    np.testing.assert_array_equal(model.predict(X, missing_views="b") == -1, p <= 0.05)


def test_shared_out_contributions_are_right_to_first_order():
    """Ten times the ridge, a hundredth of the error; and sums are as given."""
    X = rows(5, 200)
    stack = plain_fisher(views=VIEWS).fit(X).bank_.stack()
    b, picked = np.array([0.5, 0.3, 0.6]), np.array([3, 17, 40, 199])
    errors = []
    for ridge in (20.0, 200.0, 2000.0):
        inverse = RidgeInverse.of(stack.combine(b), ridge)
        exact = leave_one_out_contributions(stack, b, inverse)[picked]
        sums = exact.sum(axis=1)
        found = attributed_contributions(stack, b, inverse.coef(), sums, picked)
        np.testing.assert_allclose(found.sum(axis=1), sums, rtol=0, atol=1e-14)
        training = (stack.products(inverse.coef()).T * b)[picked]
        errors.append(np.abs(found - exact).max() / np.abs(training - exact).max())
    # Relative to the correction itself, the error falls with the ridge.
    assert errors[0] < 0.1
    assert errors[2] < errors[1] / 5 < errors[0] / 10


def test_exact_even_where_the_solver_stopped_early():
    """A loose tolerance leaves the solver's coefficients inexact; leave-one-out solves anew."""
    X = rows(6, 100)
    model = plain_fisher("laplacian", views=VIEWS, solver="subspace", tol=1e-2).fit(X)
    A = model.bank_.stack().combine(model.weights_) + model.delta * len(X) * np.eye(len(X))
    G = np.linalg.inv(A)
    expected = 1.0 - G.sum(axis=1) / np.diag(G)
    expected = np.minimum(expected, 1.0 - model.delta * len(X) * G.sum(axis=1))
    found = model.calibration_contributions_.sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.calibration_.scores, np.sort(expected), rtol=0, atol=1e-8)
