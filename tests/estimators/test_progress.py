"""A long fit shows how far it is, to who wants to know."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tests.plain import plain_fisher

X = np.random.default_rng(0).standard_normal((60, 4))


def test_silent_by_default(capsys):
    plain_fisher(views="features").fit(X)
    out = capsys.readouterr()
    assert out.out == out.err == ""


def test_iterations_are_shown(capsys):
    model = plain_fisher(views="features", solver="newton", verbose=1).fit(X)
    out = capsys.readouterr()
    assert out.out == ""
    lines = out.err.splitlines()
    assert sum(f"iteration {i}, gap" in line for i, line in enumerate(lines, 1)) == model.n_iter_
    plan = "60 rows, 4 kernels (dense)"
    assert lines[-1].startswith(f"{plan}: {model.n_iter_} iterations in")


@pytest.mark.parametrize("solver", ["newton", "subspace", "frank-wolfe"])
def test_the_logger_hears_of_them(solver, caplog):
    with caplog.at_level(logging.INFO, logger="kernull"):
        model = plain_fisher(views="features", solver=solver, tol=1e-3).fit(X)
    told = [record.message for record in caplog.records if record.name == "kernull"]
    assert len(told) == model.n_iter_
    assert f"gap {model.gap_:.1e}" in told[-1]


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="verbose: got 'loud'; expected 0"):
        plain_fisher(verbose="loud").fit(X)
