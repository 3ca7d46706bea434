"""Leave-one-out in closed form against n refits, kernel by kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from kernull import FisherProblem, MultiKernelFisherNull
from kernull.calibration import leave_one_out, leave_one_out_contributions, loo_sample
from kernull.calibration.loo import SAMPLE_ROWS, conjugate_gradients
from kernull.stacks import DenseStack

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
    """Contributions to each row by n models that did not see (one copy of) it: scikit-learn's."""
    combined = np.tensordot(weights, kernels, axes=1)
    n = len(combined)
    out = np.empty((n, len(weights)))
    for i in range(n):
        left = np.ones(n) if w is None else w.copy()
        left[i] = max(left[i] - 1.0, 0.0)
        keep = np.flatnonzero(left > 0)
        model = KernelRidge(alpha=ridge, kernel="precomputed")
        model.fit(combined[np.ix_(keep, keep)], np.ones(len(keep)), sample_weight=left[keep])
        out[i] = weights * (kernels[:, i, keep] @ model.dual_coef_)
    return out


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_equals_n_refits(number):
    options = dict(PROBLEMS[number])
    X = rows(number)
    w = row_weights(options.pop("weighted", None), len(X), number)
    model = MultiKernelFisherNull(views=VIEWS, **options).fit(X, sample_weight=w)
    kernels = model.bank_.stack().kernels
    ridge = model.delta * (len(X) if w is None else w.sum())
    expected = refits(kernels, model.weights_, ridge, w)
    np.testing.assert_allclose(model.calibration_contributions_, expected, rtol=0, atol=1e-8)
    # The sum is the textbook formula, with the coefficients of an exact solve.
    problem = FisherProblem(DenseStack(kernels), ridge, row_weight=w)
    plain = leave_one_out(problem, model.weights_, problem.evaluate(model.weights_).coef, None, w)
    np.testing.assert_allclose(expected.sum(axis=1), plain, rtol=0, atol=1e-8)


def test_missing_view_threshold_is_that_of_refits_without_it():
    X = rows(3)
    model = MultiKernelFisherNull(views=VIEWS, false_alarm_rate=0.2).fit(X)
    kernels = model.bank_.stack().kernels
    expected = refits(kernels, model.weights_, model.delta * len(X), None)[:, [0, 2]].sum(axis=1)
    new = rows(4, 50)
    own = np.stack([K for _, K in model.bank_.matrices(new)])
    scores = np.einsum("j,jmn,n->m", model.weights_[[0, 2]], own[[0, 2]], model.coef_)
    p = (1 + (expected[None, :] <= scores[:, None]).sum(axis=1)) / (len(X) + 1)
    np.testing.assert_allclose(model.score_samples(new, missing_views="b"), scores, atol=1e-10)
    np.testing.assert_allclose(model.p_values(new, missing_views=["b"]), p)
    np.testing.assert_array_equal(model.predict(new, missing_views=["b"]) == -1, p <= 0.2)


class Matrixless:
    """A stack that never forms an n x n matrix."""

    def __init__(self, stack):
        self.stack, self.n, self.J, self.shape = stack, stack.n, stack.J, stack.shape
        self.products, self.rows, self.diagonal = stack.products, stack.rows, stack.diagonal
        self.scale = stack.scale


@pytest.mark.parametrize("weighted", [None, "copies"])
def test_matrix_free_equals_dense(weighted):
    X = rows(5, 60)
    w = row_weights(weighted, len(X), 1)
    model = MultiKernelFisherNull(views=VIEWS).fit(X, sample_weight=w)
    stack = model.bank_.stack()
    ridge = model.delta * (len(X) if w is None else w.sum())
    lazy = FisherProblem(Matrixless(stack), ridge, row_weight=w)
    some = np.array([3, 17, 40])
    found = leave_one_out_contributions(lazy, model.weights_, w, some)
    np.testing.assert_allclose(found, model.calibration_contributions_[some], rtol=0, atol=1e-8)


def test_matrix_free_sample_is_500_rows():
    n = SAMPLE_ROWS + 20
    problem = FisherProblem(Matrixless(DenseStack(np.eye(n)[None])), 1.0)
    picked = loo_sample(problem)
    assert len(np.unique(picked)) == SAMPLE_ROWS
    assert picked.max() < n
    assert len(loo_sample(FisherProblem(DenseStack(np.eye(n)[None]), 1.0))) == n


def test_conjugate_gradients_solve():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((2, 25, 25))
    stack = DenseStack(root @ root.transpose(0, 2, 1))
    problem = FisherProblem(stack, 0.3)
    b = np.array([0.4, 0.6])
    B = rng.standard_normal((25, 4))
    expected = np.linalg.solve(stack.combine(b) + 0.3 * np.eye(25), B)
    np.testing.assert_allclose(conjugate_gradients(problem, b, B), expected, rtol=1e-7, atol=1e-9)


def test_exact_even_where_the_solver_stopped_early():
    """A loose tolerance leaves the coefficients inexact; leave-one-out solves anew."""
    X = rows(6, 100)
    model = MultiKernelFisherNull(views=VIEWS, solver="subspace", tol=1e-2).fit(X)
    A = model.bank_.stack().combine(model.weights_) + model.delta * len(X) * np.eye(len(X))
    G = np.linalg.inv(A)
    assert np.abs(model.coef_ - G.sum(axis=1)).max() > 1e-4 * np.abs(model.coef_).max()
    expected = 1.0 - G.sum(axis=1) / np.diag(G)
    found = model.calibration_contributions_.sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
