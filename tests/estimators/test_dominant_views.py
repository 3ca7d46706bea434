"""Views that a warning names: those that take most of the weight, or hardly vary."""

import warnings

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.errors import DominantViewWarning

EVIDENCE = {"decision": "evidence", "p": 1.5, "normalize": "offdiagonal"}


def rows(seed=0, n=120):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.normal(size=(n, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(n, 4))])


def named(X, views):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MultiKernelFisherNull(views=views, **EVIDENCE).fit(X)
    return model, [str(w.message) for w in caught if w.category is DominantViewWarning]


def test_a_category_beside_real_views_is_named():
    X = rows()
    noise = np.random.default_rng(1).integers(3, size=(len(X), 1))
    views = {"one": [0, 1, 2, 3], "two": [4, 5, 6, 7], "noise": [8]}
    model, found = named(np.hstack([X, noise]), views)
    assert len(found) == 1
    assert "view 'noise' has 3 different rows only" in found[0]
    own = np.array([str(name).startswith("noise") for name in model.kernel_names_])
    share = model.weights_[own].sum() / model.weights_.sum()
    assert ("view 'noise' takes" in found[0]) == (share > 0.5)
    assert "'one'" not in found[0]


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_views_and_single_views_are_not_named(seed):
    X = rows(seed)
    assert not named(X, {"one": [0, 1, 2, 3], "two": [4, 5, 6, 7]})[1]
    assert not named(X, None)[1]
    few = np.random.default_rng(seed).integers(3, size=(120, 1)).astype(float)
    assert not named(few, None)[1]
