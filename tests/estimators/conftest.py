"""Models and kernels that several tests of estimators look at."""

from __future__ import annotations

import pytest

from tests.oracles import random_kernels
from tests.plain import VIEWS, plain_fisher


@pytest.fixture(scope="module")
def fitted(wine):
    """The plain model of three views of wine."""
    return plain_fisher(views=VIEWS).fit(wine[0])


@pytest.fixture
def stacks(rng):
    """Training kernels (J, n, n) and scoring kernels (J, m, n) of one joint stack."""
    kernels = random_kernels(rng, 40, 3, kinds=("rbf", "linear", "full"))
    return kernels[:, :30, :30], kernels[:, 30:, :30]
