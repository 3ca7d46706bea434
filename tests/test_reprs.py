"""What a notebook shows: short reprs of whatever holds arrays, and scikit-learn's diagrams."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_wine

import kernull
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from tests.plain import plain_fisher


@pytest.fixture(scope="module")
def model():
    X, y = load_wine(return_X_y=True)
    views = {"taste": slice(0, 6), "look": slice(6, 13)}
    return plain_fisher(views=views).fit(X[y == 0])


def test_the_estimator_shows_what_was_set(model):
    assert repr(kernull.MultiKernelFisherNull(p=1)) == "MultiKernelFisherNull(p=1)"
    assert "MultiKernelFisherNull" in model._repr_html_()


def test_objects_with_arrays_say_what_they_hold_in_one_line(model):
    X, _ = load_wine(return_X_y=True)
    stack = DenseStack.of(model.kernel_set_)
    problem = kernull.FisherProblem(stack, 1.0)
    shown = {
        "explanation": repr(model.explain(X)),
        "calibration": repr(model.calibration_),
        "bank": repr(model.kernel_set_),
        "stack": repr(stack),
        "problem": repr(problem),
        "result": repr(solve(problem, kernull.LpBall(2.0))),
    }
    for what, text in shown.items():
        assert "\n" not in text, what
        assert len(text) < 150, what
        assert " object at 0x" not in text, what
    assert "178 rows" in shown["explanation"]
    assert "taste, look" in shown["explanation"]
    assert "59 rows" in shown["calibration"]
    assert "J=2, n=59" in shown["bank"]
    assert "converged" in shown["result"]
