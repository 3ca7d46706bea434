"""A long fit shows how far it is, to who wants to know."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from kernull import Solver
from tests.plain import plain_fisher

X = np.random.default_rng(0).standard_normal((60, 4))


def test_silent_by_default(capsys):
    plain_fisher(views="features").fit(X)
    out = capsys.readouterr()
    assert out.out == out.err == ""


@pytest.mark.parametrize("solver", ["newton", "subspace", "frank-wolfe"])
def test_the_logger_hears_of_them(solver, caplog):
    with caplog.at_level(logging.INFO, logger="kernull"):
        model = plain_fisher(views="features", solver=Solver(solver, 1e-3)).fit(X)
    told = [record.message for record in caplog.records if record.name == "kernull"]
    assert len(told) == model.n_iter_
    assert told[0].startswith("60 rows, 4 kernels (dense): iteration 1, gap")
    assert f"gap {model.gap_:.1e}" in told[-1]
