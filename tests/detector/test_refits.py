"""Calibration by folds: refits that leave scaling, widths and coefficients to other rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernull import JointMultiKernelFisherNull, MultiKernelFisherNull
from kernull.detector import assign_folds
from kernull.errors import (
    CannotFlagWarning,
    NearCopiesWarning,
)
from tests.detector.test_decisions import correlated_rows
from tests.plain import plain_fisher, row_scores

# Tables here are small on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning"),
    pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning"),
]


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_are_refits(weighted):
    """Against estimators fitted to what folds leave, with the kernel weights held by p."""
    rows = correlated_rows()[:31]
    weight = np.random.default_rng(1).uniform(0.5, 5.0, 31) if weighted else np.ones(31)
    views = {"a": slice(0, 25), "b": slice(25, 40)}
    options = {"views": views, "scaling": ["standard", "whiten"], "p": np.inf}  # equal weights
    model = plain_fisher(false_alarm_rate=0.1, **options)
    model.fit(rows, sample_weight=weight if weighted else None)
    ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in rows.T])
    fold, expected = assign_folds(ranks, 20), np.zeros(31)
    for k in range(20):
        held = fold == k
        part = plain_fisher(**options)
        part.fit(rows[~held], sample_weight=weight[~held])
        expected[held] = part.score_samples(rows[held])
    slack = 0.01 * np.subtract(*np.quantile(expected, [0.75, 0.25])) + 1e-9
    scores = row_scores(model, rows, sample_weight=weight if weighted else None)
    np.testing.assert_allclose(scores, expected - slack, rtol=1e-8)
    np.testing.assert_allclose(model.calibration_.scores, np.sort(expected - slack), rtol=1e-8)
    parts = model.model_.left_out
    assert parts.shape == (31, 4)
    np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-8)


@pytest.mark.parametrize("calibration", ["cross", "split"])
@pytest.mark.parametrize("weight", [0.01, 2.0, 5.0])
def test_a_constant_weight_changes_nothing_at_all(calibration, weight):
    rows = correlated_rows()[:60]
    model = MultiKernelFisherNull(calibration=calibration, decision="sum")
    plain, weighted = (clone(model).fit(rows, sample_weight=w) for w in (None, np.full(60, weight)))
    np.testing.assert_array_equal(weighted.p_values(rows), plain.p_values(rows))
    assert weighted.threshold_ == plain.threshold_


@pytest.mark.parametrize("calibration", ["cross", "split"])
def test_rows_of_weight_zero_are_absent(calibration):
    rows = correlated_rows()[:60]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    weight[40:] = 0.0
    model = MultiKernelFisherNull(calibration=calibration, decision="sum")
    some = clone(model).fit(rows[:40], sample_weight=weight[:40])
    given = clone(model).fit(rows, sample_weight=weight)
    np.testing.assert_allclose(given.p_values(rows), some.p_values(rows), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::kernull.errors.NearCopiesWarning")  # each is beside its twin
@pytest.mark.parametrize("calibration", ["cross", "split"])
def test_near_copies_need_their_groups(calibration):
    """Two readings of each thing: left out one by one, each still has its twin."""
    rng = np.random.default_rng(0)
    things, new = rng.normal(size=(250, 6)), rng.normal(size=(1000, 6))
    rows = np.repeat(things, 2, axis=0) + 1e-3 * rng.normal(size=(500, 6))
    model = MultiKernelFisherNull(calibration=calibration, false_alarm_rate=0.1, decision="sum")
    flagged = []
    for seed in range(8):  # one draw of the rows held out may be a lucky one
        again = clone(model).set_params(random_state=seed)
        alone = clone(again).fit(rows).predict(new) == -1
        together = clone(again).fit(rows, groups=np.repeat(np.arange(250), 2)).predict(new) == -1
        flagged.append([alone.mean(), together.mean()])
    alone, together = np.mean(flagged, axis=0)
    assert alone > 0.25
    assert together < 0.15


@pytest.mark.filterwarnings("ignore::kernull.errors.NearCopiesWarning")
def test_a_column_that_is_not_read_does_not_tell_copies_apart():
    rows = correlated_rows()[:20]
    twice = np.concatenate([rows, rows])
    named = np.column_stack([twice, np.arange(40)])
    models = [
        plain_fisher(views={"a": slice(0, 40)}, scaling="whiten").fit(X) for X in (twice, named)
    ]
    assert models[0].threshold_ == models[1].threshold_


def test_rows_of_few_kinds_are_told_from_others():
    """A new normal row finds its copies in the model; so must a row that calibrates."""
    rates = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        kinds, share = rng.integers(0, 2, (15, 12)).astype(float), rng.dirichlet(np.full(15, 2.0))
        model = MultiKernelFisherNull().fit(kinds[rng.choice(15, 100, p=share)])
        new = kinds[rng.choice(15, 500, p=share)], rng.integers(0, 2, (500, 12)).astype(float)
        rates.append([(model.predict(rows) == -1).mean() for rows in new])
    false_alarms, found = np.mean(rates, axis=0)
    assert false_alarms < 0.08
    assert found > 0.85


def rarely_active(n=100):
    X = np.random.default_rng(0).normal(size=(n, 14))
    X[:, 12:] = 0.0
    X[17, 12:] = 1.0, 2.0
    return X, {"main": slice(0, 12), "rare": [12, 13]}


def test_a_view_may_be_constant_in_a_fold():
    X, views = rarely_active()
    model = MultiKernelFisherNull(views=views).fit(X)
    assert np.isfinite(model.threshold_)
    assert np.isfinite(model.score_samples(X)).all()


def test_a_view_may_be_constant_in_a_task():
    X, views = rarely_active()
    joint = JointMultiKernelFisherNull(views=views, scaling="whiten")
    joint.fit(X, groups=np.arange(100) // 50)
    joint.enroll(X[60:], "new")
    assert np.isfinite(joint.score_samples(X[:5], groups="new")).all()


def test_rows_written_twice_are_warned_of():
    """All of a hundred new rows were flagged, without a word."""
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(200, 8)), rng.normal(size=(1000, 8))
    with pytest.warns(NearCopiesWarning, match="100% of the rows are copies of another"):
        alone = MultiKernelFisherNull().fit(np.vstack([rows, rows]))
    assert (alone.predict(new) == -1).mean() > 0.3
    together = MultiKernelFisherNull().fit(np.vstack([rows, rows]), groups=np.tile(range(200), 2))
    assert (together.predict(new) == -1).mean() < 0.08


def test_a_model_that_cannot_flag_says_so():
    """Under heavy tails most rows are alike no other, and none can score lower."""
    rows = np.random.default_rng(0).lognormal(0.0, 3.0, (100, 20))
    options = {"scaling": "standard", "widths": 0.01, "decision": "sum"}
    with pytest.warns(CannotFlagWarning, match="cannot flag any row"):
        model = MultiKernelFisherNull(**options).fit(rows)
    assert (model.predict(1e6 * rows) == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CannotFlagWarning)
        model = MultiKernelFisherNull().fit(rows)
    assert (model.predict(1e6 * rows) == -1).all()


@pytest.mark.parametrize("options", [{}, {"decision": "sum"}, {"calibration": "split"}])
def test_given_kernels_that_are_too_narrow_say_so(options):
    rows = np.random.default_rng(0).normal(size=(80, 5))
    squared = ((rows[:, None] - rows) ** 2).sum(axis=2)
    model = MultiKernelFisherNull(kernels="precomputed", **options)
    with pytest.warns(CannotFlagWarning, match="too narrow"):
        model.fit(np.exp(-squared / (2 * 0.05**2)))
    assert (model.predict(np.zeros((3, 80))) == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CannotFlagWarning)
        model.fit(np.exp(-squared / 2))
        model.fit(rows @ rows.T)  # may be of any size far away
    model.fit(np.exp(-squared / 2))
    assert (model.predict(np.zeros((3, 80))) == -1).all()


NO_LABELS = {
    "NaN": np.where(np.arange(40) < 2, np.nan, np.arange(40)),
    "NaN in a list of text": [np.nan, np.nan, *map(str, range(38))],
    "None": [None, None, *range(38)],
    "NaT": np.array(["NaT", "NaT", *np.arange(38)], dtype="datetime64[D]"),
}


@pytest.mark.parametrize("labels", [*NO_LABELS, "pandas.NA"])
def test_rows_without_a_label_are_refused(labels):
    """NaN was one group more, of rows that have nothing to do with each other."""
    if labels == "pandas.NA":
        pandas = pytest.importorskip("pandas")
        groups = pandas.Series([None, None, *range(38)], dtype="Int64")
    else:
        groups = NO_LABELS[labels]
    rows = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"groups: 2 of 40 rows have no label \(first: row 0"):
        MultiKernelFisherNull().fit(rows, groups=groups)
    with pytest.raises(ValueError, match="groups: row 0 has no task"):
        JointMultiKernelFisherNull().fit(rows, groups=groups)
