"""The adapter for nonconform (Python 3.12 or newer only)."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine

from kernull import to_monitor, to_nonconform
from kernull.errors import MissingDependencyError
from tests.plain import plain_fisher

X, Y = load_wine(return_X_y=True)
TARGETS, OTHERS = X[Y == 0], X[Y == 2]

NO_NONCONFORM = "nonconform is not installed: pip install nonconform (Python 3.12 or newer)"


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nonconform", None)
    for adapter in (to_nonconform, to_monitor):
        with pytest.raises(MissingDependencyError, match=r"kernull\[nonconform\]"):
            adapter(plain_fisher())


def test_detached_p_values_are_ours():
    pytest.importorskip("nonconform", reason=NO_NONCONFORM)
    fit_rows, held = TARGETS[:39], TARGETS[39:]
    model = plain_fisher().fit(fit_rows)
    detector = to_nonconform(model, held)
    scores = model.score_samples(held)
    expected = [(1 + (scores <= s).sum()) / (1 + len(held)) for s in model.score_samples(OTHERS)]
    np.testing.assert_allclose(detector.compute_p_values(OTHERS), expected)


def test_integrated_and_weighted():
    nonconform = pytest.importorskip("nonconform", reason=NO_NONCONFORM)
    detector = to_nonconform(plain_fisher(calibration_fraction=0.4), seed=1).fit(TARGETS)
    found = detector.select(np.vstack([TARGETS[:10], OTHERS]), alpha=0.2)
    assert found[10:].mean() > 0.9
    weighted = to_nonconform(
        plain_fisher(), weight_estimator=nonconform.logistic_weight_estimator(), seed=1
    ).fit(TARGETS)
    p = weighted.compute_p_values(OTHERS)
    assert ((p >= 0) & (p <= 1)).all()


def test_monitor_raises_the_alarm():
    pytest.importorskip("nonconform", reason=NO_NONCONFORM)
    monitor = to_monitor(plain_fisher(), seed=0)
    monitor.fit(TARGETS[:30])
    monitor.prime(TARGETS[30:])
    states = [monitor.update(row) for row in OTHERS]
    assert states[-1].martingale > 100
