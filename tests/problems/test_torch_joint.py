"""The batched joint problem on torch against the one on the host."""

import numpy as np
import pytest

from kernull.balls import LpBall, Simplex
from kernull.errors import InvalidKernelError
from kernull.problems import FisherProblem, JointFisherProblem
from kernull.solvers import solve
from kernull.stacks import DenseStack
from tests.needs import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from kernull.problems.torch_joint import BatchedJointFisherProblem  # noqa: E402
from kernull.stacks.torch_tiled import TorchDenseStack  # noqa: E402

pytestmark = pytest.mark.torch

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
SIZES = (12, 40, 11, 3, 39, 12, 33)


def both(device, *, seed=0, J=4, weighted=False, dtype=np.float64):
    """The same tasks on the host and on a device, with scales of their own."""
    rng = np.random.default_rng(seed)
    host, there = [], []
    for n in SIZES:
        kernels = []
        for _ in range(J):
            X = rng.normal(size=(n, 3))
            squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
            kernels.append(np.exp(-squared / (8 * rng.uniform(0.3, 1.3) ** 2)))
        K, scale = np.array(kernels, dtype=dtype), rng.uniform(0.5, 2.0, J)
        weight = rng.uniform(0.3, 3, size=n) if weighted else None
        ridge = 10.0 ** rng.uniform(-3, -1) * n
        host.append(FisherProblem(DenseStack(K, scale), ridge, row_weight=weight))
        stack = TorchDenseStack(torch.as_tensor(K, device=device), scale)
        there.append(FisherProblem(stack, ridge, row_weight=weight))
    return JointFisherProblem(host), BatchedJointFisherProblem(there)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_point_is_that_of_the_host(device, weighted):
    host, batched = both(device, weighted=weighted)
    b = np.random.default_rng(1).dirichlet(np.ones(4))
    one, other = host.evaluate(b), batched.evaluate(b)
    assert other.value == pytest.approx(one.value, rel=1e-10)
    np.testing.assert_allclose(other.u, one.u, rtol=1e-8)
    np.testing.assert_allclose(other.coef, one.coef, atol=1e-8)
    np.testing.assert_allclose(other.curvature(), one.curvature(), rtol=1e-6, atol=1e-8)
    assert other.lower_bound(0.7) == pytest.approx(one.lower_bound(0.7), rel=1e-10)
    for (a, diagonal), (a2, diagonal2) in zip(host.solutions(b), batched.solutions(b), strict=True):
        np.testing.assert_allclose(a2, a, atol=1e-8)
        np.testing.assert_allclose(diagonal2, diagonal, rtol=1e-8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ball", [LpBall(4 / 3), LpBall(2), Simplex()], ids=str)
def test_weights_are_those_of_the_host(device, ball):
    host, batched = both(device)
    expected = solve(host, ball, tol=1e-12)
    result = solve(batched, ball, tol=1e-12)
    assert result.solver == expected.solver == "newton"
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-8)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-8)


def test_solvers_without_factorisations_serve_too():
    host, batched = both("cpu", weighted=True)
    expected = solve(host, LpBall(2), "newton", tol=1e-10)
    result = solve(batched, LpBall(2), "subspace", tol=1e-10)
    assert result.gap <= 1e-10
    assert result.value == pytest.approx(expected.value, rel=2e-10)


def test_single_precision_is_that_of_the_host():
    host, batched = both("cpu", dtype=np.float32)
    expected, result = (solve(problem, LpBall(2), tol=1e-5) for problem in (host, batched))
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-4)


def test_tasks_of_like_size_share_a_factorisation(monkeypatch):
    _, batched = both("cpu")
    groups = [sorted(SIZES[i] for i in batch.tasks) for batch in batched.batches]
    assert groups == [[33, 39, 40], [11, 12, 12], [3]]
    calls = []
    original = torch.linalg.cholesky_ex
    monkeypatch.setattr(
        torch.linalg, "cholesky_ex", lambda A: (calls.append(A.shape), original(A))[1]
    )
    batched.evaluate(np.full(4, 0.5))
    assert calls == [(3, 40, 40), (3, 12, 12), (1, 3, 3)]


def test_kernels_that_are_none_are_refused():
    K = torch.tensor([[[1.0, 5.0], [5.0, 1.0]]], dtype=torch.float64)
    tasks = [FisherProblem(TorchDenseStack(k), 0.1) for k in (torch.eye(2)[None].double(), K)]
    with pytest.raises(InvalidKernelError, match="of task 1 plus its ridge"):
        BatchedJointFisherProblem(tasks).evaluate(np.ones(1))
