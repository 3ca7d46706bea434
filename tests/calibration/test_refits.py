"""Calibration by folds: refits that leave scaling, widths and coefficients to other rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernull import JointMultiKernelFisherNull, MultiKernelFisherNull
from kernull.errors import CalibrationWarning, MissingCapabilityError
from tests.calibration.test_decisions import correlated_rows
from tests.plain import plain_fisher, row_scores


def held_out_weight(weight, folds=10):
    """What each fold holds out of each of some different, sorted rows: one copy after the other."""
    out = np.zeros((folds, len(weight)))
    for i, left in enumerate(weight):
        k = i
        while left > 0:
            out[k % folds, i] += min(left, 1.0)
            k, left = k + 1, left - 1.0
    return out


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_are_refits(weighted):
    """Against estimators fitted to what folds leave, with the kernel weights held by p."""
    rows = correlated_rows()[:31]
    rows = rows[np.lexsort(rows.T[::-1])]
    weight = np.random.default_rng(1).uniform(0.5, 25.0, 31) if weighted else np.ones(31)
    views = {"a": slice(0, 25), "b": slice(25, 40)}
    options = {"views": views, "scaling": ["standard", "whiten"], "p": np.inf}  # equal weights
    model = plain_fisher(calibration="folds", false_alarm_rate=0.1, **options)
    model.fit(rows, sample_weight=weight if weighted else None)
    expected = np.zeros(31)
    for held in held_out_weight(weight):
        part = plain_fisher(calibration="loo", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part.fit(rows, sample_weight=np.maximum(weight - held, 0))
        expected += held / weight * part.score_samples(rows)
    scores = row_scores(model, rows, sample_weight=weight if weighted else None)
    np.testing.assert_allclose(scores, expected, rtol=1e-8)
    np.testing.assert_allclose(model.calibration_.scores, np.sort(expected), rtol=1e-8)
    parts = model.calibration_contributions_
    assert parts.shape == (31, 4)
    np.testing.assert_allclose(parts.sum(axis=1), expected, rtol=1e-8)


def test_a_weight_counts_as_copies():
    rows = correlated_rows()[:24]
    twice = np.concatenate([rows, rows[:6]])
    weight = np.append(np.full(6, 2.0), np.ones(18))
    model = plain_fisher(calibration="folds", scaling="whiten")
    given = ((rows, weight), (twice, None))
    scores = [row_scores(model, X, sample_weight=w)[:24] for X, w in given]
    np.testing.assert_allclose(*scores, rtol=1e-8)
    one, two = (clone(model).fit(X, sample_weight=w).threshold_ for X, w in given)
    assert one == pytest.approx(two, rel=1e-8)


def test_a_column_that_is_not_read_does_not_tell_copies_apart():
    rows = correlated_rows()[:20]
    twice = np.concatenate([rows, rows])
    named = np.column_stack([twice, np.arange(40)])
    models = [
        plain_fisher(calibration="folds", views={"a": slice(0, 40)}, scaling="whiten").fit(X)
        for X in (twice, named)
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


@pytest.mark.filterwarnings("ignore::kernull.errors.CalibrationWarning")
def test_a_view_may_be_constant_in_a_task():
    X, views = rarely_active()
    joint = JointMultiKernelFisherNull(views=views, scaling="whiten")
    joint.fit(X, groups=np.arange(100) // 50)
    joint.enroll(X[60:], "new")
    assert np.isfinite(joint.score_samples(X[:5], groups="new")).all()


@pytest.mark.parametrize("rows", [2, 3])
def test_hardly_any_rows(rows):
    X = np.random.default_rng(0).normal(size=(rows, 4))
    model = MultiKernelFisherNull(false_alarm_rate=0.5, decision="sum", scaling="whiten")
    if rows < 3:
        with pytest.warns(CalibrationWarning, match="was whitened by the 2 rows"):
            model.fit(X)
        with pytest.raises(MissingCapabilityError, match="at least three different rows"):
            model.set_params(calibration="folds").fit(X)
    else:
        model.fit(X)
    assert np.isfinite(model.threshold_)


@pytest.mark.parametrize("params", [{"storage": "tiled"}, {"reference": "permuted"}])
def test_folds_that_cannot_be_had(params):
    rows = correlated_rows()[:50]
    options = {"scaling": "whiten", "false_alarm_rate": 0.1, **params}
    with pytest.raises(MissingCapabilityError, match="calibration: got 'folds'"):
        plain_fisher(calibration="folds", **options).fit(rows)
    with pytest.warns(CalibrationWarning, match="was whitened by the 50 rows"):
        plain_fisher(calibration="auto", **options).fit(rows)
