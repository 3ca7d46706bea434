"""Support-vector problems where F has kinks: columns with few distinct values."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import LpBall, Simplex
from kernull.mkl.problems import FisherProblem, OneClassSVMProblem, SVDDProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.views import KernelSet


def discrete_stack(seed, n=60, J=6):
    """Kernels of rank 2 to 6: many rows coincide in each, so inner solutions are not unique."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, rng.integers(2, 7), n).astype(float) for _ in range(J)]
    return DenseStack(np.stack([rbf_kernel(c[:, None], gamma=2.0) for c in columns]))


def graded_stack(seed, n=80, J=9):
    """Wide kernels on correlated grades from 1 to 10: often one takes all the weight."""
    rng = np.random.default_rng(seed)
    grades = 5 + 3 * rng.normal(size=(n, 1)) + 2 * rng.normal(size=(n, J))
    X = np.clip(np.round(grades), 1, 10)
    return DenseStack.of(KernelSet.fit(X, {str(j): np.array([j]) for j in range(J)}))


def saddle_value(stack, nu):
    cvxpy = pytest.importorskip("cvxpy")
    a, t = cvxpy.Variable(stack.n), cvxpy.Variable()
    box = [a >= 0, a <= 1 / (nu * stack.n), cvxpy.sum(a) == 1]
    limits = []
    for K in stack.kernels:  # by roots: quad_form goes wrong on kernels of low rank
        values, vectors = np.linalg.eigh(K)
        root = vectors[:, values > 1e-12] * np.sqrt(values[values > 1e-12])
        limits.append(cvxpy.sum_squares(root.T @ a) / 2 <= t)
    problem = cvxpy.Problem(cvxpy.Minimize(t), [*box, *limits])
    problem.solve(solver=cvxpy.CLARABEL)
    return -problem.value


@pytest.mark.parametrize("nu", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [discrete_stack, graded_stack])
def test_certified_on_discrete_columns(make, seed, nu):
    stack = make(seed)
    expected = saddle_value(stack, nu)
    one = solve(OneClassSVMProblem(stack, nu), LpBall(1), tol=1e-5)
    other = solve(SVDDProblem(stack, nu), Simplex(), tol=1e-5)
    assert one.converged
    assert other.converged
    assert one.value == pytest.approx(expected, rel=1e-4)
    assert other.value == pytest.approx(1 + 2 * expected, rel=1e-4)
    # The certificate is a bound: it may not claim more than the truth.
    for result in (one, other):
        truth = expected if result is one else 1 + 2 * expected
        for record in result.history:
            scale = max(abs(record.value), abs(truth))
            assert record.value - truth <= record.gap * scale * (1 + 1e-3) + 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_planes_are_needed():
    """Newton alone does not get there: its own coefficients certify nothing at a kink."""
    runs = [
        solve(SVDDProblem(graded_stack(seed), 0.02), Simplex(), "newton", tol=1e-5, max_iter=40)
        for seed in range(2)
    ]
    assert not all(run.converged for run in runs)


def test_history_is_one_story():
    result = solve(SVDDProblem(graded_stack(0), 0.02), Simplex(), tol=1e-5)
    assert result.n_iter == len(result.history)
    assert result.history[-1].gap == result.gap


def test_only_for_the_simplex_and_support_vectors():
    with pytest.raises(MissingCapabilityError, match="simplex"):
        solve(OneClassSVMProblem(discrete_stack(0), 0.2), LpBall(2), "cutting-plane")
    with pytest.raises(MissingCapabilityError, match="plane"):
        solve(FisherProblem(discrete_stack(0), 1.0), LpBall(1), "cutting-plane")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 14, 15, 16, 20, 21, 36])
def test_no_more_steps_than_asked_for(max_iter):
    steps = []
    result = solve(
        SVDDProblem(graded_stack(1), 0.02),
        Simplex(),
        "cutting-plane",
        tol=1e-14,
        max_iter=max_iter,
        callback=steps.append,
    )
    assert result.n_iter == len(result.history) == len(steps) <= max_iter
    assert result.value <= min(record.value for record in steps) * (1 + 1e-12)
    assert result.gap <= min(record.gap for record in steps)
    assert not result.converged
