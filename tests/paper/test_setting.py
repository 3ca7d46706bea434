"""`kernull.PAPER` is the paper's rule, for one task and for several, against plain NumPy."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from kernull import PAPER, JointMultiKernelFisherNull, MultiKernelFisherNull, Solver, Sum
from kernull.errors import OneKernelWarning

P, DELTA, WIDTH = PAPER["p"], PAPER["delta"], PAPER["widths"]


def kernels(X, rows=None):
    """One rbf kernel a column: exp(-d^2 / (2 s^2)), s half the mean distance of standardised X."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    new = Z if rows is None else (rows - X.mean(axis=0)) / X.std(axis=0)
    widths = [WIDTH * pdist(z[:, None]).mean() for z in Z.T]
    columns = zip(new.T, Z.T, widths, strict=True)
    return np.array([np.exp(-((a[:, None] - z) ** 2) / (2 * s * s)) for a, z, s in columns])


def algorithm2(tasks, p, iterations=50):
    """The paper's Algorithm 2, line by line; with one task it is Algorithm 1."""
    beta = np.full(len(tasks[0]), len(tasks[0]) ** (-1 / p))

    def alphas():
        return [
            np.linalg.solve(DELTA * K.shape[1] * np.eye(K.shape[1]) + np.tensordot(beta, K, 1),
                            np.ones(K.shape[1]))
            for K in tasks
        ]  # fmt: skip

    for _ in range(iterations):
        found = [np.einsum("i,jik,k->j", a, K, a) for a, K in zip(alphas(), tasks, strict=True)]
        beta = np.sum(found, axis=0) ** (1 / (p - 1))
        beta /= np.linalg.norm(beta, ord=p)
    return beta, alphas()


@pytest.mark.parametrize(
    "changes", [{"solver": Solver("paper", 1e-12)}, {"solver": Solver("paper", 1e-12), "p": 4}]
)
def test_one_task_is_algorithm_1(changes, rng):
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    model = MultiKernelFisherNull(**PAPER | changes, views="features").fit(X)
    beta, (alpha,) = algorithm2([kernels(X)], changes.get("p", P))
    np.testing.assert_allclose(model.weights_, beta, atol=1e-5)
    np.testing.assert_allclose(model.coef_, alpha, rtol=1e-3)
    projection = np.tensordot(beta, kernels(X, new), 1) @ alpha
    np.testing.assert_allclose(model.score_samples(new), projection, atol=1e-4)
    other = MultiKernelFisherNull(
        **PAPER | changes | {"decision": Sum("distance")}, views="features"
    )
    np.testing.assert_allclose(other.fit(X).score_samples(new), -np.abs(1 - projection), atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{"solver": Solver("paper", 1e-12)}, {"solver": Solver("paper", 1e-12), "p": 4}]
)
def test_several_tasks_are_algorithm_2(changes, rng):
    X = np.concatenate([rng.normal(size=(30, 3)), rng.normal(3, [1, 2, 5], (20, 3))])
    groups = np.repeat(["a", "b"], [30, 20])
    model = JointMultiKernelFisherNull(**PAPER | changes, views="features").fit(X, groups=groups)
    beta, alphas = algorithm2([kernels(X[:30]), kernels(X[30:])], changes.get("p", P))
    np.testing.assert_allclose(model.weights_, beta, atol=1e-5)
    for name, alpha in zip("ab", alphas, strict=True):
        np.testing.assert_allclose(model.task(name).coef_, alpha, rtol=1e-3)


@pytest.mark.parametrize("estimator", [MultiKernelFisherNull, JointMultiKernelFisherNull])
def test_one_kernel_alone_is_told(estimator, rng):
    X = rng.normal(size=(30, 3))
    with pytest.warns(OneKernelWarning, match=r"there is one.* nothing is weighed.*views="):
        estimator(**PAPER).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneKernelWarning)
        estimator(**PAPER, views="features").fit(X)
        estimator(**PAPER | {"widths": (0.25, 0.5)}).fit(X)
        estimator(**PAPER | {"solver": "auto"}).fit(X)
        estimator().fit(X)
