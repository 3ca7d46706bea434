"""Coupled tasks: plain loops, cvxpy, and the two ends of the coupling."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from experiments.family.coupled import couple, task_covariance, task_kernels
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack

TASKS = np.array([0, 2, 1, 0, 2, 2, 1, 0, 1, 1])


def stack_of(seed=0, J=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(TASKS), J))
    return DenseStack(np.stack([rbf_kernel(X[:, [j]]) for j in range(J)]))


def test_coupled_kernels_by_loops():
    stack = DenseStack(stack_of().kernels, scale=np.array([3.0, 1.0]))
    T = task_kernels(3, pairs=True)
    coupled, M = couple(stack, T, TASKS), len(T)
    for j in range(stack.J):
        for m in range(M):
            for i in range(stack.n):
                for k in range(stack.n):
                    expected = T[m, TASKS[i], TASKS[k]] * stack.kernels[j, i, k]
                    assert coupled.kernels[j * M + m, i, k] == expected
    assert coupled.scale.tolist() == [3.0] * M + [1.0] * M
    assert np.linalg.eigvalsh(coupled.kernels).min() > -1e-12
    cross = couple(DenseStack(stack.kernels[:, :3]), T, TASKS[:3], TASKS)
    np.testing.assert_array_equal(cross.kernels, coupled.kernels[:, :3])


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_the_identity_alone_is_the_joint_problem(p):
    """Uncoupled end: shared weights, and coefficients task by task."""
    stack, ridge = stack_of(), 0.4
    uncoupled = couple(stack, np.eye(3)[None], TASKS)
    found = solve(FisherProblem(uncoupled, ridge), LpBall(p), tol=1e-10)
    blocks = [np.flatnonzero(c == TASKS) for c in range(3)]
    joint = JointFisherProblem(
        [FisherProblem(DenseStack(stack.kernels[:, rows][:, :, rows]), ridge) for rows in blocks]
    )
    expected = solve(joint, LpBall(p), tol=1e-10)
    assert found.value == pytest.approx(expected.value, rel=1e-8)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-5)
    for rows, coef in zip(blocks, joint.split(expected.coef), strict=True):
        np.testing.assert_allclose(found.coef[rows], coef, atol=1e-5)


def test_all_ones_alone_is_one_task():
    """Fully shared end."""
    stack = stack_of()
    shared = couple(stack, np.ones((1, 3, 3)), TASKS)
    np.testing.assert_array_equal(shared.kernels, stack.kernels)


def test_the_learned_coupling_by_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    stack, ridge = stack_of(1), 0.4
    T = task_kernels(3)
    coupled = couple(stack, T, TASKS)
    a = cvxpy.Variable(stack.n)
    forms = cvxpy.hstack([cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in coupled.kernels])
    dual = 2 * cvxpy.sum(a) - ridge * cvxpy.sum_squares(a) - cvxpy.pnorm(forms, 2)
    best = cvxpy.Problem(cvxpy.Maximize(dual))
    best.solve(solver=cvxpy.CLARABEL)
    result = solve(FisherProblem(coupled, ridge), LpBall(2), tol=1e-9)
    assert result.value == pytest.approx(best.value, rel=1e-6)
    mixed = MixedBall(2.0, 1.0, np.repeat(np.arange(stack.J), len(T)))
    assert solve(FisherProblem(coupled, ridge), mixed, tol=1e-7).converged


def test_the_learned_optimum_is_below_both_ends():
    """F over the coupled weights contains both ends as points of its ball."""
    stack, ridge = stack_of(2), 0.4
    T = task_kernels(3)
    learned = solve(FisherProblem(couple(stack, T, TASKS), ridge), LpBall(2), tol=1e-9)
    for end in (T[:1], T[1:]):
        alone = solve(FisherProblem(couple(stack, end, TASKS), ridge), LpBall(2), tol=1e-9)
        assert learned.value <= alone.value + 1e-9


def test_task_covariance():
    T = task_kernels(3)
    np.testing.assert_allclose(task_covariance(np.array([1.0, 0.0, 2.0, 0.0]), T), np.eye(3))
    np.testing.assert_allclose(task_covariance(np.array([0.0, 1.0]), T), np.ones((3, 3)))
    np.testing.assert_allclose(
        task_covariance(np.array([1.0, 3.0]), T), 0.25 * np.eye(3) + 0.75 * np.ones((3, 3))
    )


def test_what_is_refused():
    stack = stack_of()
    with pytest.raises(ValueError, match="n_tasks"):
        task_kernels(0)
    with pytest.raises(ValueError, match=r"symmetric matrices"):
        couple(stack, np.triu(np.ones((1, 3, 3))), TASKS)
    with pytest.raises(ValueError, match="positive semidefinite"):
        couple(stack, -np.eye(3)[None], TASKS)
    for bad in (TASKS[:4], TASKS + 1, TASKS - 1, TASKS / 2):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            couple(stack, task_kernels(3), bad)
