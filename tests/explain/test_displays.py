"""Displays show what they say they show."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine

from kernull import (
    ConvergenceDisplay,
    FisherProblem,
    LpBall,
    MultiKernelFisherNull,
    ScoresDisplay,
    WeightsDisplay,
    solve,
)
from kernull.operators import DenseStack
from tests.plain import plain_fisher

plt = pytest.importorskip("matplotlib.pyplot")

X, Y = load_wine(return_X_y=True)
TARGETS, OTHERS = X[Y == 0], X[Y == 2]
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}


@pytest.fixture(scope="module")
def model():
    return plain_fisher(views=VIEWS).fit(TARGETS)


@pytest.fixture(autouse=True)
def _close():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def test_weights(model):
    shown = WeightsDisplay.from_estimator(model)
    widths = [bar.get_width() for bar in shown.ax_.patches]
    np.testing.assert_allclose(widths, np.sort(model.weights_)[::-1])
    labels = [label.get_text() for label in shown.ax_.get_yticklabels()]
    assert labels == [model.kernel_names_[j] for j in np.argsort(-model.weights_)]
    assert "p = 2" in shown.ax_.get_title(loc="left")
    auto = WeightsDisplay.from_estimator(MultiKernelFisherNull(views=VIEWS).fit(TARGETS))
    assert "p = 4" in auto.ax_.get_title(loc="left")
    fewer = WeightsDisplay.from_estimator(model, most=1)
    assert len(fewer.ax_.patches) == 1
    assert "2 lighter" in fewer.ax_.get_xlabel()


def test_convergence(model):
    shown = ConvergenceDisplay.from_estimator(model)
    line = shown.ax_.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [max(r.gap, 1e-16) for r in model.history_])
    assert shown.ax_.get_yscale() == "log"
    problem = FisherProblem(DenseStack.of(model.kernel_set_), 0.5)
    result = solve(problem, LpBall(2), "kloft")
    again = ConvergenceDisplay.from_history(result.history, 1e-6, "kloft", ax=shown.ax_)
    assert again.ax_ is shown.ax_
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert texts == [model.solver_, "tolerance", "kloft"]


def test_scores(model):
    y = np.where(Y == 0, 1, -1)
    shown = ScoresDisplay.from_estimator(model, X, y)
    assert any(model.threshold_ in line.get_xdata() for line in shown.ax_.get_lines())
    texts = " ".join(text.get_text() for text in shown.ax_.get_legend().get_texts())
    assert "outliers (119)" in texts
    assert "threshold at 5.0%" in texts
    assert "new rows (178)" in " ".join(
        text.get_text() for text in ScoresDisplay.from_estimator(model, X).ax_.get_legend().texts
    )
    assert list(ScoresDisplay.from_estimator(model).groups) == ["calibration"]


def test_contributions(model):
    why = model.explain(OTHERS)
    ax = why.plot(2)
    bars = {round(bar.get_y() + bar.get_height() / 2): bar for bar in ax.patches}
    order = np.argsort(why.surprise[2])[::-1]
    widths = [bars[place].get_width() for place in range(3)]
    np.testing.assert_allclose(widths, why.by_view[2, order])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [why.view_names[v] for v in order]
    assert ax.get_title(loc="left").startswith("flagged")
    assert ax.get_xlabel() == "contribution to the score (lower is more unusual)"
    assert len(model.explain(OTHERS, missing_views="look").plot().patches) == 2


def test_the_picture_of_evidence_says_what_it_shows():
    model = MultiKernelFisherNull(views=VIEWS).fit(TARGETS)
    why = model.explain(OTHERS)
    _, given = plt.subplots()
    for ax in (why.plot(2), why.plot(2, ax=given)):
        assert ax.get_xlabel() == "evidence against the row (higher is more unusual)"
        bars = sorted(ax.patches, key=lambda bar: bar.get_y())
        evidence = model.evidence(OTHERS[2:3], by="view")[0]
        np.testing.assert_allclose([bar.get_width() for bar in bars], np.sort(evidence))
        legend = ax.get_legend() or ax.figure.legends[0]
        texts = [text.get_text() for text in legend.get_texts()]
        assert "this row, more unusual than 95% of normal rows" in texts
        assert texts[-1] == "normal rows: mean, 5% to 95%"
        ax.figure.canvas.draw()
        box = legend.get_window_extent()
        assert ax.figure.bbox.contains(box.x0, box.y0)
        assert ax.figure.bbox.contains(box.x1, box.y1)


def test_given_axes_are_used(model):
    plt.close("all")  # of tests before
    _, axes = plt.subplots(1, 4)
    WeightsDisplay.from_estimator(model, ax=axes[0])
    ConvergenceDisplay.from_estimator(model, ax=axes[1])
    ScoresDisplay.from_estimator(model, ax=axes[2])
    assert model.explain(OTHERS).plot(ax=axes[3]) is axes[3]
    assert len(plt.get_fignums()) == 1


def test_matplotlib_is_imported_only_when_drawing():
    code = (
        "import sys, kernull.explain as i; assert 'matplotlib' not in sys.modules; "
        "sys.modules['matplotlib'] = None\n"
        "try: i.WeightsDisplay([1.0], ['a']).plot()\n"
        "except ImportError as e: assert 'kernull[plot]' in str(e)\n"
        "else: raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
