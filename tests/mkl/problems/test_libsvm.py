"""The low-level call of libsvm gives what OneClassSVM gives, and is not needed."""

import numpy as np
import pytest

from kernull.mkl.problems import machines


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("n", [5, 60])
def test_both_ways_are_equal(n, nu, monkeypatch, capfd):
    X = np.random.default_rng(n).normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    direct = machines.solve_capped(K, nu)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(machines, "_libsvm", None)
    np.testing.assert_array_equal(direct, machines.solve_capped(K, nu))


def test_another_interface_is_no_harm(monkeypatch):
    class Other:
        @staticmethod
        def set_verbosity_wrap(level):
            pass

        @staticmethod
        def fit(X):
            raise AssertionError("called with what it does not know")

    K = np.eye(4) + 1.0
    expected = machines.solve_capped(K, 0.5)
    monkeypatch.setattr(machines, "_libsvm", Other)
    np.testing.assert_array_equal(machines.solve_capped(K, 0.5), expected)
