"""Balls against brute force and cvxpy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernull.mkl.balls import LpBall, Simplex, _quadratic

P = [1.0, 1 + 1e-9, 32 / 31, 4 / 3, 2.0, 8.0, 1e6, np.inf]
VECTORS = {
    "positive": np.array([3.0, 4.0, 0.5, 1.0]),
    "negative and zero": np.array([-1.0, 2.0, 0.0, 1.5]),
    "huge": np.array([1e200, 3e200, 2e199, 1e100]),
    "tiny": np.array([1e-200, 3e-200, 2e-201, 0.0]),
    "one": np.array([2.0]),
}


def p_norm(b, p):
    if np.isinf(p):
        return np.abs(b).max()
    top = np.abs(b).max()
    return top * ((np.abs(b) / top) ** p).sum() ** (1 / p) if top > 0 else 0.0


def q_norm(u, p):
    if p == 1:
        return np.maximum(u, 0).max()
    return p_norm(np.maximum(u, 0), p / (p - 1)) if np.isfinite(p) else np.maximum(u, 0).sum()


def points_of_the_ball(rng, J, p, count=3000):
    """Random points of b >= 0, ||b||_p <= 1, corners and centre included."""
    b = np.concatenate([rng.exponential(size=(count, J)) ** 3, np.eye(J), np.ones((1, J))])
    return np.array([row / p_norm(row, p) for row in b])


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("name", VECTORS)
def test_oracle_lies_in_the_ball_and_beats_every_other_point(p, name, rng):
    u, ball = VECTORS[name], LpBall(p)
    b = ball.oracle(u)
    assert (b >= 0).all()
    assert p_norm(b, p) <= 1 + 1e-9
    assert b @ u == pytest.approx(ball.support(u), rel=1e-8)
    assert ball.support(u) == pytest.approx(q_norm(u, p), rel=1e-7)
    assert (points_of_the_ball(rng, len(u), p) @ u).max() <= ball.support(u) * (1 + 1e-8)


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("u", [np.array([-1.0, -2.0]), np.zeros(3)])
def test_oracle_where_nothing_is_gained(p, u):
    """Of a u without a positive entry the best is 0; no NaN, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        b = LpBall(p).oracle(u)
        assert LpBall(p).support(u) == 0.0
    assert np.isfinite(b).all()
    assert b @ u == 0.0
    assert p_norm(b, p) <= 1 + 1e-9


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 8.0, np.inf])
@pytest.mark.parametrize("name", ["positive", "negative and zero"])
def test_support_equals_cvxpy(p, name):
    cp = pytest.importorskip("cvxpy")
    u, ball = VECTORS[name], LpBall(p)
    b = cp.Variable(len(u))
    programme = cp.Problem(cp.Maximize(b @ u), ball.cvxpy_constraints(b))
    programme.solve(solver=cp.CLARABEL)
    assert ball.support(u) == pytest.approx(programme.value, rel=1e-6)
    if 1 < p < np.inf:  # elsewhere the maximiser need not be unique
        # Where u_j = 0 a weight costs b_j^p, which an interior-point method cannot see.
        np.testing.assert_allclose(ball.oracle(u)[u != 0], b.value[u != 0], atol=2e-4)


def test_oracle_is_the_papers_update_in_plain_powers():
    u = np.array([0.3, 1.2, 0.7])
    for p in (1.5, 2.0, 5.0):
        powers = u ** (1 / (p - 1))
        expected = powers / (powers**p).sum() ** (1 / p)
        np.testing.assert_allclose(LpBall(p).oracle(u), expected, rtol=1e-12)


@pytest.mark.parametrize("ball", [*map(LpBall, P), Simplex()], ids=repr)
def test_uniform_and_normalise(ball, rng):
    p = getattr(ball, "p", 1.0)
    b = ball.uniform(7)
    assert np.ptp(b) == 0
    assert p_norm(b, p) == pytest.approx(1.0, abs=1e-9)
    c = rng.exponential(size=7)
    c[2] = 0.0
    normalised = ball.normalise(c)
    assert p_norm(normalised, p) == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(normalised / normalised.max(), c / c.max(), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("p", P)
def test_kloft_is_its_formula(p, rng):
    u, b = rng.exponential(size=5), LpBall(p).normalise(rng.exponential(size=5))
    raw = np.ones(5) if np.isinf(p) else np.exp((2 * np.log(b) + np.log(u)) / (p + 1))
    np.testing.assert_allclose(LpBall(p).kloft(u, b), raw / p_norm(raw, p), rtol=1e-6)


def test_kloft_survives_zero_u_and_zero_weights():
    for p in (1.0, 2.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            b = LpBall(p).kloft(np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.5, 0.0]))
        np.testing.assert_allclose(b, [0, 1, 0])


def model_value(c, u, H, b):
    d = c - b
    return -u @ d + d @ H @ d / 2


def random_model(seed, J):
    """A convex quadratic as Newton meets it: u = -gradient with positive entries, H >= 0."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(J, rng.integers(1, J + 1)))  # often rank-deficient
    return rng.uniform(0.1, 2.0, J), root @ root.T * rng.uniform(0, 0.3), rng


def falls_everywhere(u, H, b):
    """Whether the model falls in every weight all over the unit box, as F does.

    Only then is its minimiser over the ball also that over the sphere.
    """
    return (u + H @ b - np.maximum(H, 0).sum(axis=1) > 0).all()


@pytest.mark.parametrize("p", [1.0, 32 / 31, 4 / 3, 2.0, 8.0, np.inf])
@pytest.mark.parametrize("seed", range(8))
def test_minimise_model_equals_cvxpy(p, seed):
    cp = pytest.importorskip("cvxpy")
    ball, J = LpBall(p), 2 + seed % 5
    u, H, rng = random_model(seed, J)
    b = ball.normalise(rng.exponential(size=J))
    if p == 1:
        ball = Simplex()  # the model may turn up before the sphere: compare on equal terms
    else:
        H = H / max(np.abs(H).sum(axis=1).max(), 1e-300) * 0.4 * u.min()
        assert falls_everywhere(u, H, b)
    c = ball.minimise_model(u, H, b)
    assert (c >= 0).all()
    assert p_norm(c, p) == pytest.approx(1.0, abs=1e-9)
    x = cp.Variable(J)
    model = -u @ (x - b) + cp.quad_form(x - b, cp.psd_wrap(H)) / 2
    programme = cp.Problem(cp.Minimize(model), ball.cvxpy_constraints(x))
    programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    scale = max(abs(programme.value), u.max())
    assert model_value(c, u, H, b) <= programme.value + 1e-6 * scale
    assert model_value(c, u, H, b) >= programme.value - 1e-6 * scale


@settings(deadline=None, max_examples=60)
@given(
    arrays(float, 4, elements=st.floats(-10, 10)),
    arrays(float, (4, 3), elements=st.floats(-3, 3)),
    arrays(float, 4, elements=st.floats(0.0, 1.0)).filter(lambda b: b.sum() > 1e-3),
)
def test_minimise_on_the_simplex_satisfies_its_optimality_conditions(u, root, b):
    """No move towards a vertex lowers the model: the gap of its own linearisation is zero."""
    H = root @ root.T
    b = b / b.sum()
    c = Simplex().minimise_model(u, H, b)
    assert (c >= 0).all()
    assert c.sum() == pytest.approx(1.0)
    downhill = u - H @ (c - b)
    scale = np.abs(u).max() + np.abs(H).max() + 1e-300
    assert downhill.max() - downhill @ c <= 1e-8 * scale


@settings(deadline=None, max_examples=100)
@given(
    arrays(float, 5, elements=st.floats(-1e3, 1e3)),
    st.one_of(st.sampled_from(P), st.floats(1.0, 50.0)),
)
def test_support_is_never_beaten(u, p):
    ball = LpBall(p)
    b = ball.oracle(u)
    assert np.isfinite(b).all()
    assert p_norm(b, p) <= 1 + 1e-7
    others = points_of_the_ball(np.random.default_rng(0), 5, p, count=200)
    assert (others @ u).max() <= ball.support(u) + 1e-7 * np.abs(u).max() + 1e-300
    assert b @ u == pytest.approx(ball.support(u), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan, "2", None, True, [2]])
def test_p_must_be_a_number_from_one_on(p):
    with pytest.raises(ValueError, match=r"^p: got .*expected a number in \[1, inf\]"):
        LpBall(p)


def test_minimise_on_the_simplex_is_exact_where_weights_nearly_tie():
    """Entries of u that differ by 1e-4 still decide which weights are positive."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        J = int(rng.integers(2, 12))
        root = rng.normal(size=(J, J))
        H, u = 1e-3 * root @ root.T, 1 + 1e-4 * rng.normal(size=J)
        b = rng.dirichlet(np.ones(J))
        c = Simplex().minimise_model(u, H, b)
        downhill = u - H @ (c - b)
        assert downhill.max() - downhill @ c <= 1e-9


def test_many_weights_cost_few_and_small_systems(monkeypatch):
    """From a full start of 500 weights, the work follows the few that stay positive."""
    rng = np.random.default_rng(0)
    root, sizes = rng.normal(size=(500, 20)), []
    plain = _quadratic._equality_step

    def counted(w, H):
        sizes.append(len(w))
        return plain(w, H)

    monkeypatch.setattr(_quadratic, "_equality_step", counted)
    c = Simplex().minimise_model(rng.uniform(1, 2, 500), root @ root.T, np.full(500, 1 / 500))
    used = np.count_nonzero(c)
    assert used <= 21  # no more than the rank of H, plus one
    assert max(sizes) <= 3 * used
    assert len(sizes) <= 10 * used
