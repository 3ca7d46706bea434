"""Fixtures that all tests share."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_wine

# No deadlines: what is true does not depend on how busy the machine is, and a first call also
# imports and compiles. Time is tested where it is promised, in processor seconds or by counting.
# (`too_slow` is off for the same reason; a failure prints the blob that repeats it.)
settings.register_profile(
    "kernull", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("kernull")


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch):
    """No test reaches for the network."""
    monkeypatch.setenv("KERNULL_OFFLINE", "1")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def wine():
    """Rows of wine's first class (59) and all other rows (119)."""
    X, y = load_wine(return_X_y=True)
    return X[y == 0], X[y != 0]


@pytest.fixture(scope="session")
def delft_home():
    """The folder that holds the Delft data; tests that ask for it are marked ``data``."""
    return os.environ["KERNULL_DATA"]
