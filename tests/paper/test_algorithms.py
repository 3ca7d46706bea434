"""Algorithms 1 and 2 beside plain NumPy, over the paper's whole grid of p and delta."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from kernull import KernelStack
from kernull.paper import algorithm1, algorithm2, cvx, gradient, kloft
from tests.docs.pages import ROOT

P = [1, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2, 4, 8, 10**6]
DELTAS = [1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100]


def rbf_by_column(X):
    """One Gaussian kernel a column, of half the mean pairwise distance."""
    kernels = []
    for x in X.T:
        d = np.abs(x[:, None] - x[None])
        width = 0.5 * d.sum() / (len(x) * (len(x) - 1))
        kernels.append(np.exp(-(d**2) / (2 * width**2)))
    return np.array(kernels)


def kernel_sets():
    """Name -> kernels of tasks that share their columns; the first is the single task."""
    wine, iris, cancer = (
        load(return_X_y=True) for load in (load_wine, load_iris, load_breast_cancer)
    )
    rng = np.random.default_rng(0)
    linear = rng.normal(size=(5, 36, 2)) + 0.5
    return {
        "wine": [rbf_by_column(wine[0][wine[1] == c][:n]) for c, n in ((0, 59), (1, 30))],
        "iris": [rbf_by_column(iris[0][iris[1] == c][:n]) for c, n in ((0, 50), (1, 40), (2, 12))],
        "mixed kinds": [
            np.concatenate([rbf_by_column(cancer[0][rows, :3]), L @ L.transpose(0, 2, 1)])
            for rows, L in ((slice(20), linear[:, :20]), (slice(20, 36), linear[:, 20:]))
        ],
    }


SETS = kernel_sets()


# -- the paper's algorithms, in plain NumPy ------------------------------------------------------


def coefficients(K, b, ridge):
    """alpha = (delta I + sum_j beta_j K_j)^-1 1."""
    return np.linalg.solve(ridge * np.eye(K.shape[1]) + np.tensordot(b, K, 1), np.ones(K.shape[1]))


def update(u, p):
    """beta = u^(1/(p-1)) / ||u^(1/(p-1))||_p; at p = 1 one kernel takes everything."""
    if p == 1:
        return np.eye(len(u))[np.argmax(u)]
    logs = np.log(u / u.max()) / (p - 1)
    return np.exp(logs - np.log(np.exp(p * logs).sum()) / p)


def step(tasks, b, p, ridges):
    """Lines 4 to 6 of Algorithm 1, lines 7 to 11 of Algorithm 2: (next b, all a at b)."""
    coefs = [coefficients(K, b, ridge) for K, ridge in zip(tasks, ridges, strict=True)]
    v = sum(np.array([a @ Kj @ a for Kj in K]) for K, a in zip(tasks, coefs, strict=True))
    return update(v, p), coefs


def objective(tasks, b, ridges):
    return sum(coefficients(K, b, ridge).sum() for K, ridge in zip(tasks, ridges, strict=True))


def relative_gap(tasks, b, p, ridges):
    """(U - L)/U with U = F(b) and L the best multiple of the dual value at a(b)."""
    coefs = [coefficients(K, b, ridge) for K, ridge in zip(tasks, ridges, strict=True)]
    u = sum(np.array([a @ Kj @ a for Kj in K]) for K, a in zip(tasks, coefs, strict=True))
    norm = u.max() if p == 1 else u.max() * ((u / u.max()) ** (p / (p - 1))).sum() ** ((p - 1) / p)
    linear = sum(a.sum() for a in coefs)
    quadratic = sum(ridge * a @ a for a, ridge in zip(coefs, ridges, strict=True))
    return (linear - linear**2 / (quadratic + norm)) / linear


def check(found, tasks, p, ridges):
    """Everything that the paper's text demands of a run, and what is said of its end."""
    J = len(tasks[0])
    b = found.iterates
    assert len(b) == found.n_iter + 1 == len(found.history)
    np.testing.assert_allclose(b[0], J ** (-1 / p), rtol=1e-12)
    # Each step from our iterate; where ours repeats, plain NumPy would only repeat itself.
    changes, known, last = [], {}, None
    for k in range(len(b)):
        key = b[k].tobytes()
        if key not in known:
            known[key] = step(tasks, b[k], p, ridges)
        after, coefs = known[key]
        if k + 1 < len(b):
            np.testing.assert_allclose(b[k + 1], after, rtol=0, atol=1e-9, err_msg=f"step {k}")
        a = np.concatenate(coefs)
        if last is not None:
            changes.append(np.linalg.norm(a - last) / np.linalg.norm(a))
        last = a
    # The last iterate comes back, with its own coefficients.
    np.testing.assert_array_equal(found.weights, b[-1])
    ours = found.coef if isinstance(found.coef, tuple) else (found.coef,)
    for a, plain in zip(ours, known[b[-1].tobytes()][1], strict=True):
        np.testing.assert_allclose(a, plain, rtol=0, atol=1e-9 * np.abs(plain).max())
    # It stopped by the change of a, and not before.
    assert all(change > 1e-6 * (1 - 1e-6) for change in changes[:-1])
    assert found.n_iter == 200 or changes[-1] <= 1e-6 * (1 + 1e-6)
    # The certificate, and the best point that was visited.
    assert found.gap == pytest.approx(relative_gap(tasks, b[-1], p, ridges), abs=1e-9)
    best = found.best.weights
    assert found.best.gap == pytest.approx(relative_gap(tasks, best, p, ridges), abs=1e-9)
    assert any(np.array_equal(best, x) for x in b)
    values = [objective(tasks, x, ridges) for x in np.unique(b, axis=0)]
    assert found.best.value <= min(values) * (1 + 1e-6)
    # A cycle is told as such, and only a cycle.
    P = found.cycle
    moved = np.abs(np.diff(b, axis=0)).max(axis=1)
    if P:
        assert found.n_iter == 200
        assert P >= 2
        np.testing.assert_allclose(b[-P:], b[-2 * P : -P], atol=1e-3)
        assert moved[-P:].max() > 100 * np.abs(b[-P:] - b[-2 * P : -P]).max()
    elif found.n_iter == 200:  # neither settled nor repeating, not even after many steps
        for period in range(2, 51):
            assert (
                np.abs(b[-period:] - b[-2 * period : -period]).max() > 1e-4 * moved[-period:].max()
            )
    if p == 1:
        assert sorted(found.weights) == [0.0] * (J - 1) + [1.0]


def run(call, *args):
    """A result, and the warnings it gave."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = call(*args)
    return found, [str(w.message) for w in given if issubclass(w.category, ConvergenceWarning)]


def check_warning(found, messages):
    if found.gap <= 1e-6:
        assert messages == []
        return
    (message,) = messages
    assert f"relative duality gap of {found.gap:.2g}" in message
    assert ("cycles with period" in message) == (found.cycle > 0)
    if found.cycle:
        assert f"cycles with period {found.cycle}," in message
        assert f"best point that it visited leaves {found.best.gap:.2g}" in message


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("p", P, ids=lambda p: f"p={p:.4g}")
def test_algorithm_1_is_the_papers(name, p):
    K = SETS[name][0]
    for delta in DELTAS:
        found, messages = run(algorithm1, K, p, delta)
        check(found, [K], p, [delta * K.shape[1]])
        check_warning(found, messages)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("p", P, ids=lambda p: f"p={p:.4g}")
def test_algorithm_2_is_the_papers(name, p):
    tasks = SETS[name]
    for delta in DELTAS:
        found, messages = run(algorithm2, tasks, p, delta)
        check(found, tasks, p, [delta * K.shape[1] for K in tasks])
        check_warning(found, messages)


def test_the_grid_meets_cycles_of_several_periods():
    """What `check` says of cycles is not said of none."""
    found = [
        run(algorithm1, K[0], p, d)[0] for K in SETS.values() for p in P[:4] for d in DELTAS[:3]
    ]
    periods = {r.cycle for r in found}
    assert {0, 2} < periods
    assert sum(r.cycle > 0 for r in found) > 10


@pytest.mark.filterwarnings("ignore:solver=.paper.")
def test_ties_at_p_1_go_to_the_first():
    K = SETS["iris"][0]
    found = algorithm1(np.concatenate([K, K]), 1, 1e-3)
    assert np.argmax(found.weights) < len(K)


def test_one_task_is_algorithm_1():
    K = SETS["wine"][0]
    one, two = algorithm1(K, 2, 1e-2), algorithm2([K], 2, 1e-2)
    np.testing.assert_allclose(two.iterates, one.iterates, atol=1e-12)
    np.testing.assert_allclose(two.coef[0], one.coef, atol=1e-12)


def test_one_delta_for_all_tasks_as_in_the_paper():
    tasks, delta = SETS["iris"], 0.5  # absolute, whatever the rows of a task
    found = algorithm2(tasks, 2, [delta / K.shape[1] for K in tasks])
    check(found, tasks, 2, [delta] * len(tasks))
    with pytest.raises(ValueError, match=r"delta: got shape \(2,\) for 3 tasks"):
        algorithm2(tasks, 2, [1.0, 1.0])


@pytest.mark.parametrize("p", [8 / 7, 2, 4])
def test_the_other_algorithms_find_the_same_optimum(p):
    K = SETS["wine"][0]
    best = kloft(K, p, 1.0)
    assert best.gap <= 1e-6
    for other in (algorithm1, gradient):
        found = other(K, p, 1.0)
        assert found.value == pytest.approx(best.value, rel=2e-6)


def test_the_weight_step_by_cvxpy():
    pytest.importorskip("cvxpy")
    K = SETS["iris"][0]
    np.testing.assert_allclose(cvx(K, 2, 1.0).weights, algorithm1(K, 2, 1.0).weights, atol=1e-3)


def test_a_stack_is_taken_as_it_is():
    K = SETS["iris"][0]
    one, two = algorithm1(K, 2, 1.0), algorithm1(KernelStack(K), 2, 1.0)
    np.testing.assert_array_equal(one.weights, two.weights)


def test_the_page_says_what_the_grid_says():
    """Numbers of docs/explanations/algorithm1.md, from the table of every cell."""
    with (ROOT / "docs/results/delft_grid.csv").open() as file:
        cells = list(csv.DictReader(file))
    left = [c for c in cells if float(c["paper_gap"]) > 1e-6]
    cycles = [c for c in left if int(c["paper_cycle"])]
    two = sum(c["paper_cycle"] == "2" for c in cycles)
    first = [c for c in left if c["p"] == "1" and float(c["delta"]) == 1e-4]
    last, best = (
        np.median([float(c[key]) for c in first]) for key in ("paper_gap", "paper_best_gap")
    )
    page = " ".join((ROOT / "docs/explanations/algorithm1.md").read_text().split())
    assert f"{len(cells):,} cells" in page
    assert f"These are {len(left)} cells, all at p <= 4/3. {len(cycles)} of them end" in page
    assert f"{two} of these of period 2; in the other {len(left) - len(cycles)} the" in page
    assert f"gap of {best:.0e} instead of {last:.0e} at p = 1 and delta = 1e-4 n" in page
    assert {c["p"] for c in left} == {"1", "32/31", "16/15", "8/7", "4/3"}
