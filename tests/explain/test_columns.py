"""Reasons by column: the right one first, every score the model's own."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import Judge, MultiKernelFisherNull
from kernull.detector.usual import UsualValues
from kernull.explain import column_reasons
from tests.explain.test_explain_columns import left_out_residuals


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 10)) + 0.4 * rng.normal(size=(600, 10))
    return MultiKernelFisherNull().fit(X[:400]), UsualValues.fit(X[:400]), X[400:], X


def shifted(X, rng, size):
    out, columns = X.copy(), rng.integers(10, size=len(X))
    out[np.arange(len(X)), columns] += size * X.std(axis=0)[columns]
    return out, columns


def test_the_column_that_was_shifted_comes_first(correlated):
    model, filler, new, _ = correlated
    odd, columns = shifted(new, np.random.default_rng(1), 4.0)
    flagged = model.predict(odd) == -1
    found = column_reasons(model.score_samples, odd[flagged], filler, most=1)
    first = [int(reasons[0].column[1:]) for reasons in found]
    assert flagged.mean() > 0.9
    assert np.mean(first == columns[flagged]) >= 0.95


def test_scores_are_those_of_the_rows_with_the_column_replaced(correlated):
    model, filler, new, _ = correlated
    odd, _ = shifted(new[:5], np.random.default_rng(2), 3.0)
    for row, reasons in zip(odd, column_reasons(model.score_samples, odd, filler), strict=True):
        gone: list[int] = []
        for reason in reasons:
            assert reason.score == pytest.approx(_score_without(model, filler, row, gone))
            gone.append(int(reason.column[1:]))
            assert reason.without == pytest.approx(_score_without(model, filler, row, gone))
            # by brute force: no other column would have raised the score more
            others = [
                _score_without(model, filler, row, [*gone[:-1], j])
                for j in range(10)
                if j not in gone[:-1]
            ]
            if max(others) - reason.score > 0.05:
                assert reason.without == pytest.approx(max(others))


def _score_without(model, filler, row, gone):
    """The naive way: one regression by hand, one row at a time."""
    new = row.copy()
    if gone:
        kept = [j for j in range(10) if j not in gone]
        S = filler.correlation
        z = (row[kept] - filler.mean[kept]) / filler.scale[kept]
        weights = np.linalg.inv(S[np.ix_(kept, kept)]) @ S[np.ix_(kept, gone)]
        new[gone] = filler.mean[gone] + filler.scale[gone] * (z @ weights)
    return model.score_samples(new[None])[0]


def test_two_odd_columns_are_both_named(correlated):
    model, filler, new, _ = correlated
    odd = new[:40].copy()
    odd[:, 2] += 5 * new.std(axis=0)[2]
    odd[:, 7] -= 5 * new.std(axis=0)[7]
    found = column_reasons(model.score_samples, odd, filler, threshold=model.threshold_)
    assert np.mean([{"x2", "x7"} <= {r.column for r in reasons[:2]} for reasons in found]) > 0.9


def test_reasons_end_where_the_row_is_normal_again(correlated):
    model, filler, new, _ = correlated
    good = new[model.predict(new) == 1][:3]
    found = column_reasons(model.score_samples, good, filler, threshold=model.threshold_)
    assert found == [[], [], []]
    assert column_reasons(model.score_samples, new[:0], filler) == []


def test_ranges_hold_nine_normal_rows_in_ten(correlated):
    model, filler, new, _ = correlated
    inside = []
    for reasons in column_reasons(model.score_samples, new, filler, most=10):
        first = reasons[0]
        inside.append(first.low <= first.number <= first.high)
    every = filler.predict(new)
    low, high = filler.residuals[5], filler.residuals[95]
    share = ((new >= every + low) & (new <= every + high)).mean()
    assert share == pytest.approx(0.9, abs=0.03)
    assert len(inside) == len(new)


def test_later_reasons_know_that_fewer_columns_speak():
    """With its twin replaced, nobody says what a column should be: all its values are usual."""
    rng = np.random.default_rng(0)
    twins = rng.normal(size=(900, 1)) + 0.1 * rng.normal(size=(900, 2))
    X = np.column_stack([twins, rng.normal(size=900)])
    filler = UsualValues.fit(X[:400])
    told = column_reasons(lambda Z: -(Z[:, :2] ** 2).sum(axis=1), X[400:], filler, most=2)
    later = [reasons[1] for reasons in told if {r.column for r in reasons} == {"x0", "x1"}]
    assert len(later) > 200
    assert np.mean([r.low <= r.number <= r.high for r in later]) > 0.8
    assert not any(r.seen and r.share * 400 < 0.999 for r in later)  # none is said to be as far
    assert filler.widening(0, np.array([True, False, True])) == pytest.approx(7, rel=0.2)
    assert filler.widening(0, np.array([True, True, False])) == pytest.approx(1, rel=0.01)


def test_shares_are_those_of_the_training_rows(correlated):
    _, filler, _, X = correlated
    left = left_out_residuals(X[:400])
    for far in (0.2, 0.5, 1.0):
        for j in (0, 5):
            counted = (np.abs(left[:, j]) >= far).mean()
            assert filler.share_as_far(j, far) == pytest.approx(counted, abs=0.011)
            assert filler.share_as_far(j, -far) == filler.share_as_far(j, far)
    assert filler.share_as_far(0, 1e9) == pytest.approx(1 / 401)


def test_words_of_a_table():
    rng = np.random.default_rng(0)
    machine = rng.integers(2, size=300)
    rows = {
        "machine": np.array(["M1", "M2"])[machine].astype(object),
        "force": 10.0 * machine + rng.normal(size=300),
        "heat": rng.normal(size=300),
    }
    new = {"machine": ["M1", "M1", "M9"], "force": [30.0, 10.0, 40.0], "heat": [0.0] * 3}
    found = Judge().fit(rows).explain(new).columns
    assert found[0][0].column == "force"
    assert found[0][0].words.startswith("force is 30; ")
    assert found[0][0].words.endswith("none of 300 normal rows has a value so high.")
    # Either explains it: another machine, or another force.
    first = found[1][0]
    assert first.column in ("machine", "force")
    assert first.without > first.score
    if first.column == "machine":  # half of the rows have it
        assert first.words.startswith("machine is 'M1', as in ")
        assert first.words.endswith("% of the normal rows; rows like this have 'M2'.")
    seen = "this was never seen; the commonest is 'M2', in 163 of 300 normal rows"
    assert found[2][-1].words == f"machine is 'M9'; {seen}."
    assert found[0][0].record()["number"] == 30.0
