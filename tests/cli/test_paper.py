"""``kernull fit --paper``: the paper's rule at the command line."""

from __future__ import annotations

import numpy as np
import pytest

import kernull as library
from tests.cli.conftest import kernull

VIEWS = ("--view", "colour=col_*", "--view", "size=width,height")


def fitted(tables, *options):
    done = kernull("fit", "train.csv", "-o", "paper.kernull", *options, cwd=tables)
    assert done.returncode == 0, done.stderr
    return library.load(tables / "paper.kernull"), done.stderr


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ((), {}),
        (("--set", "p=4", "--false-alarm-rate", "0.1"), {"p": 4.0, "false_alarm_rate": 0.1}),
    ],
)
def test_it_is_the_papers_setting(tables, options, changes):
    model, said = fitted(tables, "--paper", *VIEWS, *options)
    parameters = model.get_params()
    expected = library.PAPER | changes
    assert {name: parameters[name] for name in expected} == expected
    assert model.solver_ == "paper"
    assert "nothing is weighed" not in said


def test_one_view_alone_is_told_by_options(tables):
    _, said = fitted(tables, "--paper")
    assert "nothing is weighed" in said
    assert "--views features" in said
    model, said = fitted(tables, "--paper", "--views", "features")
    assert "nothing is weighed" not in said
    assert len(model.weights_) == len(np.unique(model.kernel_names_)) > 1
