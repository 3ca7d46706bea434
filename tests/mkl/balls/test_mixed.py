"""The mixed (r, p) ball against cvxpy and against the plain ball."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

from kernull.errors import MissingCapabilityError
from kernull.mkl.balls import LpBall, MixedBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.oracles import conic

NORMS = (1.0, 32 / 31, 4 / 3, 2.0, 8.0, np.inf)
GROUPS = ["a", "a", "a", "b", "b", "b", "b", "c", "c"]


def random_problem(seed, n=25, J=9, delta=1e-2):
    rng = np.random.default_rng(seed)
    kernels = []
    for _ in range(J):
        X = rng.normal(size=(n, 3))
        distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
        kernels.append(np.exp(-distances / (12 * (0.3 + rng.random()) ** 2)))
    return FisherProblem(DenseStack(np.array(kernels)), delta * n)


def mixed_norm(b, groups, r, p):
    groups = np.asarray(groups)
    inner = [np.linalg.norm(b[groups == g], r) for g in dict.fromkeys(groups.tolist())]
    return np.linalg.norm(inner, p)


@pytest.mark.parametrize("case", range(100))
def test_oracle_and_support_match_cvxpy_linear_maximisation(case):
    import cvxpy

    rng = np.random.default_rng(case)
    J = int(rng.integers(1, 9))
    groups = rng.integers(0, 3, size=J).tolist()
    norms = [1.0, 1.1, 1.5, 2.0, 3.0, np.inf]
    r, p = rng.choice(norms), rng.choice(norms)
    u = rng.normal(size=J) if case % 3 == 0 else rng.exponential(size=J)
    ball = MixedBall(p, r, groups)
    b = cvxpy.Variable(J)
    parts = []
    for g in sorted(set(groups)):  # the norm written out once more, not the ball's own
        members = [j for j in range(J) if groups[j] == g]
        parts.append(cvxpy.pnorm(b[members], r))
    norm = cvxpy.pnorm(cvxpy.hstack(parts), p)
    programme = cvxpy.Problem(cvxpy.Maximize(u @ b), [b >= 0, norm <= 1])
    programme.solve(solver=cvxpy.CLARABEL)
    found = ball.oracle(u)
    assert found.min() >= 0
    assert mixed_norm(found, groups, r, p) <= 1 + 1e-10
    assert u @ found == pytest.approx(programme.value, abs=2e-6)
    assert ball.support(u) == pytest.approx(u @ found, abs=1e-12)
    # The ball's own constraints describe the same set.
    own = cvxpy.Problem(cvxpy.Maximize(u @ b), ball.cvxpy_constraints(b))
    own.solve(solver=cvxpy.CLARABEL)
    assert own.value == pytest.approx(programme.value, abs=2e-6)


@pytest.mark.parametrize("p", NORMS)
def test_equal_norms_are_the_plain_ball(p):
    rng = np.random.default_rng(0)
    plain, mixed = LpBall(p), MixedBall(p, p, GROUPS)
    for _ in range(20):
        u, b = rng.exponential(size=9), rng.exponential(size=9)
        close = {"rtol": 0, "atol": 1e-10}
        np.testing.assert_allclose(mixed.oracle(u), plain.oracle(u), **close)
        np.testing.assert_allclose(mixed.support(u), plain.support(u), **close)
        np.testing.assert_allclose(mixed.normalise(b), plain.normalise(b), **close)
        np.testing.assert_allclose(mixed.kloft(u, b), plain.kloft(u, b), **close)
    np.testing.assert_allclose(mixed.uniform(9), plain.uniform(9), rtol=0, atol=1e-10)
    assert mixed.polyhedral == plain.polyhedral
    for solver in ("newton", "subspace"):
        found = [solve(random_problem(1), ball, solver, tol=1e-8) for ball in (plain, mixed)]
        np.testing.assert_allclose(found[0].weights, found[1].weights, rtol=0, atol=1e-10)


@pytest.mark.parametrize("r", NORMS)
@pytest.mark.parametrize("p", NORMS)
def test_default_solver_reaches_its_gap_for_every_pair_of_norms(r, p):
    for delta in (1e-5, 1e-2, 1.0):
        problem = random_problem(3, delta=delta)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no ConvergenceWarning
            result = solve(problem, MixedBall(p, r, GROUPS), tol=1e-8)
        assert result.solver == "newton"
        assert result.gap <= 1e-8
        assert result.n_evaluations <= 20
        assert mixed_norm(result.weights, GROUPS, r, p) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("r", "p"), [(1, 2), (2, 1), (4 / 3, 2), (2, 4 / 3), (1, np.inf), (3, 3)])
def test_optimum_agrees_with_cvxpy(r, p):
    ball = MixedBall(p, r, GROUPS)
    problem = random_problem(5, n=12)
    mine = solve(problem, ball, tol=1e-10)
    best = solve(problem, ball, conic, tol=1e-4)
    assert mine.value == pytest.approx(best.value, rel=1e-6)
    assert mine.value <= best.value * (1 + 1e-9)
    np.testing.assert_allclose(mine.weights, best.weights, atol=2e-3 if min(r, p) == 1 else 1e-4)


@pytest.mark.parametrize(("r", "p"), [(4 / 3, 2), (2, 4 / 3), (np.inf, 2), (2, np.inf)])
def test_kloft_never_raises_the_value_and_arrives(r, p):
    problem = random_problem(7)
    result = solve(problem, MixedBall(p, r, GROUPS), "kloft", tol=1e-6)
    values = [record.value for record in result.history]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(values))
    assert result.converged


def test_kloft_minimises_its_majoriser():
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    u, b = rng.exponential(size=9), rng.exponential(size=9)
    ball = MixedBall(1.7, 3.0, GROUPS)
    cost = b * b * u
    found = ball.kloft(u, b)

    def majoriser(logs):  # over the whole boundary, by a general-purpose minimiser
        return float((cost / ball.normalise(np.exp(logs))).sum())

    best = minimize(majoriser, np.zeros(9), method="BFGS", options={"gtol": 1e-9})
    assert float((cost / found).sum()) <= best.fun * (1 + 1e-8)


@pytest.mark.parametrize(("r", "p"), [(4 / 3, 2), (2, 2)])
def test_frank_wolfe_certifies_mixed_norms(r, p):
    result = solve(random_problem(4, delta=0.1), MixedBall(p, r, GROUPS), "frank-wolfe", tol=1e-6)
    assert result.converged


def test_sparse_within_groups_and_dense_between():
    # Two kernels a view, one of them clearly better for each: r = 1 picks it, p = 2 keeps views.
    rng = np.random.default_rng(0)
    kernels = []
    for _ in range(3):
        X = rng.normal(size=(30, 2))
        distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
        kernels += [np.exp(-distances / 50), np.exp(-distances / 0.01)]
    problem = FisherProblem(DenseStack(np.array(kernels)), 3.0)
    weights = solve(problem, MixedBall(2, 1, [0, 0, 1, 1, 2, 2]), tol=1e-9).weights
    assert weights[1::2].max() < 1e-6
    assert weights[::2].min() > 0.3


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"r: got 0\.5"):
        MixedBall(2, 0.5, [0])
    with pytest.raises(ValueError, match="p: got 0"):
        MixedBall(0, 2, [0])
    with pytest.raises(ValueError, match="groups: got none"):
        MixedBall(2, 2, [])
    with pytest.raises(ValueError, match="groups: got 2 entries for 3 kernels"):
        MixedBall(2, 1, [0, 1]).oracle(np.ones(3))
    with pytest.raises(MissingCapabilityError, match="cvxpy_constraints"):
        solve(random_problem(0), _Bare(), "paper-cvx")


class _Bare:
    polyhedral = False


def groups_of(shape, within="row"):
    """The group of each weight of a table: its row, or its column."""
    return np.indices(shape)[0 if within == "row" else 1].ravel()


class TestMatrix:
    """The matrix norm of a table of weights."""

    @pytest.mark.parametrize("within", ["row", "column"])
    @pytest.mark.parametrize(("r", "p"), [(1.0, 2.0), (2.0, 1.0), (4 / 3, 4.0), (8.0, 32 / 31)])
    def test_the_norm_by_loops(self, within, r, p, rng):
        ball = MixedBall(p, r, groups_of((3, 4), within))
        b = ball.normalise(rng.uniform(0.1, 1.0, 12))
        table = b.reshape(3, 4) if within == "row" else b.reshape(3, 4).T
        norm = sum(sum(w**r for w in row) ** (p / r) for row in table) ** (1 / p)
        assert norm == pytest.approx(1.0, rel=1e-9)

    @pytest.mark.parametrize("within", ["row", "column"])
    def test_fisher_by_cvxpy(self, within, rng):
        cvxpy = pytest.importorskip("cvxpy")
        n, shape, p, r, ridge = 12, (2, 3), 2.0, 4 / 3, 0.5
        roots = rng.normal(size=(6, n, 3))
        K = np.einsum("jik,jlk->jil", roots, roots)
        # In the coefficients alone: the dual norm of the table of a'K_j a.
        a = cvxpy.Variable(n)
        forms = [cvxpy.quad_form(a, cvxpy.psd_wrap(k)) for k in K]
        table = np.arange(6).reshape(shape) if within == "row" else np.arange(6).reshape(shape).T
        inner = [cvxpy.pnorm(cvxpy.hstack([forms[j] for j in g]), r / (r - 1)) for g in table]
        dual = 2 * cvxpy.sum(a) - ridge * cvxpy.sum_squares(a)
        dual -= cvxpy.pnorm(cvxpy.hstack(inner), p / (p - 1))
        best = cvxpy.Problem(cvxpy.Maximize(dual))
        best.solve(solver=cvxpy.CLARABEL)
        ball = MixedBall(p, r, groups_of(shape, within))
        result = solve(FisherProblem(DenseStack(K), ridge), ball, tol=1e-8)
        assert result.converged
        assert result.value == pytest.approx(best.value, rel=1e-5)

    def test_equal_norms_are_the_plain_ball(self, rng):
        u = rng.uniform(0.1, 1.0, 6)
        plain = LpBall(4 / 3).oracle(u)
        np.testing.assert_allclose(MixedBall(4 / 3, 4 / 3, groups_of((2, 3))).oracle(u), plain)
