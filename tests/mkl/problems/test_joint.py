"""The joint Fisher problem: certificate, curvature, and what it equals."""

import numpy as np
import pytest

from kernull.errors import InvalidKernelError, MissingCapabilityError
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import BlockDiagonalStack, DenseStack


def random_task(rng, n, J, delta=1e-2, weighted=False):
    kernels = []
    for _ in range(J):
        X = rng.normal(size=(n, 2))
        distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
        kernels.append(rng.uniform(0.5, 2) * np.exp(-distances / (8 * (0.3 + rng.random()) ** 2)))
    weight = rng.uniform(0.3, 3, size=n) if weighted else None
    return FisherProblem(DenseStack(np.array(kernels)), delta * n, row_weight=weight)


def random_joint(seed, J=4, sizes=None, **options):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 12, size=int(rng.integers(2, 5))) if sizes is None else sizes
    return JointFisherProblem([random_task(rng, int(n), J, **options) for n in sizes])


def conic_optimum(problem, p):
    """The joint programme written out for cvxpy, in the dual: no code of the package."""
    import cvxpy

    J = problem.J
    objective, norms = 0, [0] * J
    for task in problem.tasks:
        a = cvxpy.Variable(task.n)
        weight = np.ones(task.n) if task.row_scale is None else task.row_scale**2
        objective += 2 * cvxpy.sum(a) - task.ridge * cvxpy.sum(cvxpy.multiply(a**2, 1 / weight))
        for j, K in enumerate(task.stack.kernels):
            root = np.linalg.cholesky(K + 1e-13 * np.eye(task.n))
            norms[j] += cvxpy.sum_squares(root.T @ a)
    q = np.inf if p == 1 else 1 if p == np.inf else p / (p - 1)
    norm = cvxpy.pnorm(cvxpy.hstack(norms), q)
    programme = cvxpy.Problem(cvxpy.Maximize(objective - norm))
    programme.solve(solver=cvxpy.CLARABEL)
    return programme.value


@pytest.mark.parametrize("seed", range(20))
def test_certificate_agrees_with_cvxpy_on_random_joint_problems(seed):
    p = [1.0, 8 / 7, 4 / 3, 2.0, 4.0][seed % 5]
    problem = random_joint(seed, delta=[1e-3, 1e-2, 0.1][seed % 3], weighted=seed % 2 == 1)
    result = solve(problem, LpBall(p), tol=1e-9)
    assert result.gap <= 1e-9
    optimum = conic_optimum(problem, p)
    assert result.value == pytest.approx(optimum, rel=1e-6)
    # Away from the optimum the bounds hold it between them.
    rng = np.random.default_rng(seed)
    ball = LpBall(p)
    point = problem.evaluate(ball.normalise(rng.exponential(size=problem.J)))
    lower = point.lower_bound(ball.support(point.u))
    assert lower <= optimum * (1 + 1e-7)
    assert point.value >= optimum * (1 - 1e-7)


def test_it_is_one_problem_with_block_diagonal_kernels():
    problem = random_joint(0, weighted=True)
    dense = problem.stack.rows(slice(None))
    weight = np.concatenate([task.row_scale**2 / task.ridge for task in problem.tasks])
    whole = FisherProblem(DenseStack(dense), 1.0, row_weight=weight)
    b = np.random.default_rng(1).random(problem.J)
    mine, truth = problem.evaluate(b), whole.evaluate(b)
    assert mine.value == pytest.approx(truth.value, rel=1e-12)
    np.testing.assert_allclose(mine.u, truth.u, rtol=1e-10)
    np.testing.assert_allclose(mine.coef, truth.coef, rtol=1e-9)
    np.testing.assert_allclose(mine.curvature(), truth.curvature(), rtol=1e-8, atol=1e-10)
    assert mine.lower_bound(3.0) == pytest.approx(truth.lower_bound(3.0), rel=1e-12)


def test_gradient_and_value_are_those_of_the_sum():
    problem = random_joint(2)
    b, h = np.array([0.5, 0.2, 0.4, 0.7]), 1e-6
    u = problem.evaluate(b).u
    for j in range(4):
        step = h * np.eye(4)[j]
        slope = (problem.evaluate(b + step).value - problem.evaluate(b - step).value) / (2 * h)
        assert -slope == pytest.approx(u[j], rel=1e-6)


@pytest.mark.parametrize("copies", [1, 2, 7])
@pytest.mark.parametrize("p", [1.0, 8 / 7, 2.0])
def test_copies_of_one_task_give_its_weights(copies, p):
    task = random_task(np.random.default_rng(3), 15, 5)
    alone = solve(task, LpBall(p), tol=1e-12)
    joint = solve(JointFisherProblem([task] * copies), LpBall(p), tol=1e-12)
    np.testing.assert_allclose(joint.weights, alone.weights, rtol=0, atol=1e-8)
    assert joint.value == pytest.approx(copies * alone.value, rel=1e-10)


@pytest.mark.parametrize("solver", ["subspace", "kloft", "frank-wolfe", "gradient"])
def test_every_solver_serves_joint_problems(solver):
    problem = random_joint(4, sizes=(8, 5, 11), delta=0.1)
    exact = solve(problem, LpBall(2), tol=1e-10)
    found = solve(problem, LpBall(2), solver, tol=1e-6)
    assert found.value == pytest.approx(exact.value, rel=2e-6)
    assert [len(a) for a in problem.split(found.coef)] == [8, 5, 11]


def test_mixed_ball_on_a_joint_problem():
    result = solve(random_joint(5), MixedBall(2, 1, [0, 0, 1, 1]), tol=1e-8)
    assert result.gap <= 1e-8


def test_threads_give_the_same_numbers():
    one, two = random_joint(6, sizes=(20, 9, 14)), random_joint(6, sizes=(20, 9, 14))
    parallel = JointFisherProblem(two.tasks, n_jobs=2)
    b = LpBall(2).uniform(4)
    np.testing.assert_allclose(parallel.evaluate(b).coef, one.evaluate(b).coef, rtol=1e-12)
    assert parallel.n_evaluations == 3


def test_small_tasks_are_factorised_even_when_there_are_many():
    problem = random_joint(7, sizes=[10] * 60)  # 600 rows, but none of the tasks is large
    assert solve(problem, LpBall(2)).solver == "newton"


def test_errors():
    with pytest.raises(ValueError, match="tasks: got none"):
        JointFisherProblem([])
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidKernelError, match=r"tasks have \[2, 3\] kernels"):
        JointFisherProblem([random_task(rng, 4, 2), random_task(rng, 4, 3)])


class TestBlockDiagonalStack:
    def stack(self):
        rng = np.random.default_rng(0)
        return BlockDiagonalStack([random_task(rng, n, 3).stack for n in (4, 2, 5)])

    def test_protocol_against_the_dense_stack(self):
        stack = self.stack()
        dense = DenseStack(stack.rows(slice(None)))
        V = np.random.default_rng(1).normal(size=(11, 2))
        assert stack.shape == (11, 11)
        np.testing.assert_allclose(stack.products(V), dense.products(V))
        np.testing.assert_allclose(stack.products(V[:, 0]), dense.products(V[:, 0]))
        np.testing.assert_allclose(stack.diagonal(), dense.diagonal())
        np.testing.assert_allclose(stack.rows([9, 0]), dense.rows([9, 0]))
        b = np.array([0.2, 0.3, 0.9])
        np.testing.assert_allclose(stack.combine(b), dense.combine(b))

    def test_no_combine_where_a_block_has_none(self):
        class Bare(DenseStack):
            can_combine = False

        stack = BlockDiagonalStack([*self.stack().blocks, Bare(np.ones((3, 2, 2)))])
        with pytest.raises(MissingCapabilityError, match="never forms a matrix"):
            stack.combine(np.ones(3))
