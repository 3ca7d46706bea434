"""Numbers at the ends of what floats hold: a model, or an error that names the number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernull import LpBall, MultiKernelFisherNull, Solver, solve
from kernull.errors import CannotFlagWarning, InvalidKernelError, ZeroProjectionWarning
from kernull.mkl.problems import FisherProblem
from kernull.operators import DenseStack
from tests.plain import plain_fisher


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 4))


@pytest.mark.parametrize("factor", [1e-100, 1e-30, 1e30, 1e100])
def test_units_do_not_matter(X, factor):
    expected = plain_fisher(scaling="standard").fit(X).score_samples(X)
    scores = plain_fisher(scaling="standard").fit(X * factor).score_samples(X * factor)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("scaling", ["standard", "whiten", "none"])
@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e155, 1e200])
def test_values_that_cannot_be_squared_are_named(X, factor, scaling):
    """1e-200 gave one score for everything, silently; 1e200 "Input contains NaN"."""
    X[7, 2] = 50.0
    with pytest.raises(ValueError, match=r"view 'all' is 5e[+-]\d+ \(row 7, column 2\)"):
        plain_fisher(scaling=scaling).fit(X * factor)


def test_one_cell_that_cannot_be_squared(X):
    model = plain_fisher().fit(X)
    expected = model.score_samples(X)
    rows = X.copy()
    rows[3, 1] = 1e308
    with pytest.raises(ValueError, match=r"1e\+308 \(row 3, column 1\)"):
        plain_fisher().fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = model.score_samples(rows)
    assert model.predict(rows)[3] == -1
    np.testing.assert_allclose(np.delete(scores, 3), np.delete(expected, 3), rtol=1e-12)
    assert scores[3] < model.threshold_


@pytest.mark.parametrize("delta", [1e300, 1e308])
def test_a_ridge_that_cannot_be_squared_is_named(X, delta):
    """It was a ZeroDivisionError."""
    with pytest.raises(ValueError, match=r"ridge: got .* \(delta times the number of rows\)"):
        plain_fisher(delta=delta).fit(X)


def test_a_large_ridge_works(X):
    with pytest.warns(ZeroProjectionWarning), pytest.warns(CannotFlagWarning):
        model = plain_fisher(delta=1e100).fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_kernels_of_rank_one_are_no_indefinite_ones(X):
    model = plain_fisher(kernels="linear", delta=1e-12, scaling="none", solver=Solver(tol=1e-5))
    assert model.fit(X[:, :1]).gap_ < 1e-5


def test_indefinite_kernels_are_still_refused(rng):
    A = rng.normal(size=(30, 30))
    K = A @ A.T
    K[:, 0] *= -1
    K[0, :] *= -1
    K[0, 0] = -50.0
    for delta in (1e-12, 1e-2):
        with pytest.raises(InvalidKernelError, match=r"positive semidefinite|ridge"):
            MultiKernelFisherNull("precomputed", delta=delta).fit(K[None])


@pytest.mark.parametrize(("solver", "says"), [("newton", False), ("auto", False), ("kloft", True)])
def test_advice_to_use_auto_only_where_it_is_another_solver(rng, solver, says):
    A = rng.normal(size=(3, 40, 40))
    problem = FisherProblem(DenseStack(A @ A.transpose(0, 2, 1)), 0.1)
    with pytest.warns(ConvergenceWarning) as caught:
        solve(problem, LpBall(1.5), solver, tol=1e-30, max_iter=1)
    assert ("solver='auto'" in str(caught[0].message)) == says
