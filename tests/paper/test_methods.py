"""The methods of the paper by their names: each is what its name says, and fits and judges."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernull import PAPER, paper
from kernull.paper.methods import PAPER_KERNELS

#: The list of section 6 of the paper, and those of its tables of times.
COMPARED = [
    "FN-Average", "FN-Product", "GP-Average", "GP-Product", "KPCA-Average", "KPCA-Product",
    "MK-SVDD", "Slim-MK-SVDD", "MK-OCSVM", "Slim-MK-OCSVM", "lp MK-FN", "Joint lp MK-FN",
]  # fmt: skip
TIMED = ["lp MK-FN-Grad", "lp MK-FN-CVX"]


def test_the_papers_list_is_complete():
    assert list(paper.METHODS) == [*COMPARED, *TIMED, "lp MK-FN, Kloft", "(r, p) MK-FN"]


@pytest.mark.parametrize("name", paper.METHODS)
def test_every_method_tells_far_rows(name, rng):
    if name == "lp MK-FN-CVX":
        pytest.importorskip("cvxpy")
    X = rng.normal(size=(40, 3))
    model = paper.method(name, views="features").fit(X)
    near, far = model.score_samples(X), model.score_samples(X + 50)
    assert near.min() > far.max()


@pytest.mark.parametrize("fusion", ["average", "product"])
def test_fused_methods_fuse_the_papers_kernels(fusion, rng):
    X, new = rng.normal(size=(30, 3)), rng.normal(size=(6, 3))
    model = paper.method(f"FN-{fusion.capitalize()}", views="features", delta=0.01).fit(X)
    bank = paper.FisherNull(**PAPER_KERNELS, views="features").fit(X).kernel_set_
    square = np.array([K for _, K in bank.matrices()])
    cross = np.array([K for _, K in bank.matrices(new)])
    for K, z in zip(square, ((X - X.mean(0)) / X.std(0)).T, strict=True):
        width = 0.5 * np.abs(np.subtract.outer(z, z)).sum() / (30 * 29)
        np.testing.assert_allclose(K, rbf_kernel(z[:, None], gamma=1 / (2 * width**2)), atol=1e-12)
    mean = {"average": lambda K: K.mean(0), "product": lambda K: np.exp(np.log(K).mean(0))}[fusion]
    a = np.linalg.solve(mean(square) + 0.01 * 30 * np.eye(30), np.ones(30))
    np.testing.assert_allclose(model.score_samples(new), mean(cross) @ a, rtol=1e-8)


def test_parameters_replace_those_of_the_method():
    model = paper.method("lp MK-FN", p=8, views="features")
    parameters = model.get_params()
    expected = PAPER | {"p": 8, "views": "features"}
    assert {name: parameters[name] for name in expected} == expected
    with pytest.raises(ValueError, match="name: got 'FN'; expected one of FN-Average, FN-Product"):
        paper.method("FN")
