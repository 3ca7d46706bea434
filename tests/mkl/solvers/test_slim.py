"""The slim search and Algorithm 1 by cvxpy."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import LpBall, Simplex
from kernull.mkl.problems import FisherProblem, OneClassSVMProblem, SVDDProblem
from kernull.mkl.solvers import solve
from kernull.mkl.solvers.slim import effective_share
from kernull.operators import DenseStack


def stack(seed=0, n=50, J=6):
    rng = np.random.default_rng(seed)
    return DenseStack(
        np.stack([rbf_kernel(rng.normal(size=(n, 2)), gamma=g) for g in np.geomspace(0.1, 10, J)])
    )


CASES = [
    pytest.param(lambda: SVDDProblem(stack(), 0.05), Simplex(), id="svdd"),
    pytest.param(lambda: OneClassSVMProblem(stack(), 0.05), LpBall(1), id="ocsvm p=1"),
    pytest.param(lambda: OneClassSVMProblem(stack(), 0.05), LpBall(2), id="ocsvm p=2"),
]


class TestSlim:
    def test_effective_share_by_hand(self):
        assert effective_share(np.full(5, 0.2)) == pytest.approx(1.0)
        assert effective_share(np.array([0.5, 0.5, 0, 0])) == pytest.approx(0.5)
        assert effective_share(np.array([1.0, 0, 0, 0])) == pytest.approx(0.25)

    @pytest.mark.parametrize(("make", "ball"), CASES)
    def test_lambda_zero_is_the_plain_method(self, make, ball):
        plain = solve(make(), ball, "newton", tol=1e-5)
        slim = solve(make(), ball, "slim", tol=1e-5, slim_lambda=0.0)
        np.testing.assert_array_equal(slim.weights, plain.weights)

    @pytest.mark.parametrize(("make", "ball"), CASES)
    def test_it_trades_value_for_support_vectors(self, make, ball):
        plain = solve(make(), ball, tol=1e-5)
        slim = solve(make(), ball, "slim", tol=1e-5, slim_lambda=0.3)
        assert slim.converged
        assert slim.value >= plain.value - plain.gap * abs(plain.value) - 1e-6
        price = 0.3 * abs(make().evaluate(ball.uniform(6)).value)

        def objective(result):
            return result.value - price * effective_share(result.coef)

        start = make().evaluate(ball.uniform(6))
        assert objective(slim) <= start.value - price * effective_share(start.coef)
        assert 0 <= slim.gap <= 1

    def test_share_of_support_vectors_grows_with_lambda(self):
        shares = [
            effective_share(
                solve(SVDDProblem(stack(), 0.05), Simplex(), "slim", slim_lambda=s).coef
            )
            for s in (0.0, 1.0, 1e6)
        ]
        assert shares[0] < shares[1] <= shares[2]

    def test_fisher_problems_have_no_support_vectors_to_count(self):
        with pytest.raises(MissingCapabilityError, match="slim"):
            solve(FisherProblem(stack(), 1.0), LpBall(2), "slim")


class TestPaperCvx:
    @pytest.mark.parametrize("p", [4 / 3, 2.0, 4.0])
    def test_takes_the_steps_of_algorithm_1(self, p):
        pytest.importorskip("cvxpy")
        runs = [
            solve(FisherProblem(stack(), 0.5), LpBall(p), name, tol=1e-6, max_iter=60)
            for name in ("paper", "paper-cvx")
        ]
        assert runs[1].solver == "paper-cvx"
        steps = min(len(run.history) for run in runs)
        assert steps > 2
        # A conic solver exact to 1e-8 in b'u is so to its root, 1e-4, in b: the set is round.
        for one, other in zip(runs[0].history, runs[1].history, strict=False):
            assert one.value == pytest.approx(other.value, rel=1e-4)
        np.testing.assert_allclose(runs[0].weights, runs[1].weights, atol=1e-3)
