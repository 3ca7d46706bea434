"""Evidence: ranks inside, a tail below, each training row among the others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull.calibration.evidence import Tails, _tied_rows, combine, rarity
from kernull.calibration.left_out_scores import lower_ties


def naive(s, S, tail=None, predicted=False):
    """For one score, by a loop; between two of the sample the count rises linearly.

    The tail is exponential, or what one ``predicted`` from k rows is.
    """
    n, c = len(S), sorted(S)
    tail = len(set(c)) >= 20 if tail is None else tail
    if s >= c[0] or not tail:
        count = sum(k <= s for k in c)
        if 0 < count < n:
            count += (s - c[count - 1]) / (c[count] - c[count - 1])
        return -np.log((1 + count) / (n + 1))
    k = min(max(5, int(n / 10)), n - 1)
    tau = max(np.mean([c[k] - v for v in c[:k]]), 1e-3 * (c[-1] - c[0]))
    steps = (c[0] - s) / tau
    return np.log(n + 1) + (k * np.log(1 + steps / k) if predicted else steps)


def left_out(S, i, tail, new):
    """Of row i among the others; with a new row below all, in this share of the kinds."""
    rest = np.delete(S, i)
    count = np.exp(-naive(S[i], rest, tail=False)) * len(S) - 1.0  # interpolated
    with_new = -np.log((2 + count) / (len(S) + 1))
    return naive(S[i], rest, tail, predicted=True) * (1 - new) + with_new * new


def share_below(S):
    """Share of the kinds in which the oddest twentieth of the rows lies below all others."""
    n, kinds = len(S), range(len(S[0]))
    oddness = [
        sum(np.log(sum(r[j] <= row[j] for r in S) / (n + 1)) ** 2 for j in kinds) for row in S
    ]
    odd = sorted(range(n), key=lambda i: oddness[i])[-max(1, n // 20) :]
    rest = [row for i, row in enumerate(S) if i not in odd]
    below = [S[i][j] <= min(row[j] for row in rest) for i in odd for j in kinds]
    return (sum(below) + 1) / (len(below) + 2)


@pytest.mark.parametrize("n", [3, 19, 20, 40, 155])
@pytest.mark.parametrize("kind", ["gauss", "heavy", "discrete", "constant"])
def test_evidence_is_that_of_a_loop(n, kind, rng):
    S = {
        "gauss": rng.normal(size=n),
        "heavy": rng.standard_t(1, n),
        "discrete": rng.integers(0, 5, n).astype(float),
        "constant": np.ones(n),
    }[kind]
    new = np.concatenate([S, [S.min() - 3.0, S.min() - 1e-3, S.max() + 1.0]])
    tails = Tails.fit(S[:, None])
    given, S = S, lower_ties(S, _tied_rows(n))
    truth = [naive(s, S) for s in new]
    np.testing.assert_allclose(tails.evidence(new[:, None])[:, 0], truth, rtol=1e-6, atol=1e-9)
    tail = len(np.unique(given)) >= 20
    others = [left_out(S, i, tail, share_below(S[:, None])) for i in range(n)]
    np.testing.assert_allclose(tails.own[:, 0], others, rtol=1e-6, atol=1e-9)
    assert tails.distinct[0] == len(np.unique(given))
    assert np.isfinite(tails.tau[0]) == tail


@pytest.mark.parametrize("n", [5, 25, 110])
@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_a_new_row_counts_in_the_kinds_in_which_odd_rows_stand_out(n, shared, rng):
    S = shared * rng.normal(size=(n, 1)) + (1 - shared) * rng.normal(size=(n, 4))
    new = share_below(lower_ties(S, _tied_rows(n)))
    tails = Tails.fit(S)
    for j in range(4):
        truth = [left_out(S[:, j], i, n >= 20, new) for i in range(n)]
        np.testing.assert_allclose(tails.own[:, j], truth, rtol=1e-6, atol=1e-9)


def test_kinds_do_not_mix(rng):
    S, new = rng.normal(size=(60, 4)), rng.normal(size=(30, 4)) * 3
    together = Tails.fit(S)
    for j in range(4):
        alone = Tails.fit(S[:, j])
        np.testing.assert_array_equal(together.evidence(new)[:, [j]], alone.evidence(new[:, j]))
        order = np.argsort(together.own[:, j])  # in each kind by its own scores alone
        np.testing.assert_array_equal(order, np.argsort(alone.own[:, 0]))


def test_whole_weights_inside_the_sample_count_as_rows(rng):
    """In ranks a weight is a share: twice the weight, twice the rows, against as many in all."""
    S = rng.normal(size=50)
    w = rng.integers(1, 4, 50).astype(float)
    s = np.sort(S)[[5, 25, 45]]
    share = [(w[s_k >= S].sum() / w.sum() * 50 + 1) / 51 for s_k in s]
    found = Tails.fit(S, w).evidence(s)[:, 0]
    np.testing.assert_allclose(found, -np.log(share), rtol=1e-9)
    np.testing.assert_array_equal(Tails.fit(S, np.full(50, 3.7)).own, Tails.fit(S).own)


def test_weights_enter_the_tail(rng):
    S = np.sort(rng.normal(size=100))
    w = np.ones(100)
    w[:3] = 1e-6  # rows that are hardly trusted
    low = np.array([S[0] - 5.0])
    assert Tails.fit(S, w).evidence(low)[0, 0] > 1.1 * Tails.fit(S).evidence(low)[0, 0]


def test_rows_of_a_group_do_not_vouch_for_each_other(rng):
    S = rng.normal(size=40)
    S[:2] = [-9.0, -8.9]
    groups = np.r_[0, 0, np.arange(2, 40)]
    alone, together = Tails.fit(S).own[:, 0], Tails.fit(S, groups=groups).own[:, 0]
    new = share_below(S[:, None])
    truth = [left_out(np.r_[s, S[2:]], 0, True, new) for s in S[:2]]
    np.testing.assert_allclose(together[:2], truth, rtol=1e-6)
    assert together[1] > 1.5 * alone[1]
    np.testing.assert_allclose(together[2:], alone[2:], rtol=1e-12)


values = st.one_of(
    st.floats(allow_nan=False, width=64), st.floats(-5, 5), st.sampled_from([-1e308, 1e308, 0.0])
)


@given(st.lists(values, min_size=2, max_size=40), st.lists(values, min_size=2, max_size=10))
@settings(max_examples=150, deadline=None)
def test_evidence_falls_as_scores_rise_and_is_a_number(S, new):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tails = Tails.fit(np.array(S))
        new = np.sort(np.array(new))
        e = tails.evidence(new)[:, 0]
        E = combine(np.column_stack([e, e]), np.ones(2))
    assert np.isfinite(e).all()
    assert np.isfinite(E).all()
    assert (np.diff(e) <= 0).all()
    assert (e >= 0).all()
    assert np.isfinite(tails.own).all()


def test_distinct_scores_below_the_minimum_stay_distinct(rng):
    tails = Tails.fit(rng.normal(size=100))
    s = -np.concatenate([np.linspace(5, 100, 50), 10.0 ** np.arange(3, 309), [1.7e308, np.inf]])
    e = tails.evidence(s)[:, 0]
    assert (np.diff(e) > 0).all()
    assert tails.evidence(np.array([np.nan]))[0, 0] == e[-1]
    assert tails.extrapolates(s).all()
    assert tails.evidence(np.array([np.inf]))[0, 0] == 0.0


def test_rows_that_differ_by_rounding_are_one_kind():
    S = np.repeat(np.linspace(0.1, 0.9, 10), 10)
    noisy = S * (1 + 1e-15 * np.random.default_rng(0).normal(size=100))
    tails = Tails.fit(noisy)
    assert tails.distinct[0] == 10
    np.testing.assert_allclose(tails.own, Tails.fit(S).own, rtol=1e-12)


@pytest.mark.parametrize("n", [40, 200])
def test_left_out_evidence_is_calibrated(n):
    """New rows and left-out rows have the same combined evidence: 5% of them lie in the top 5%."""
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(60):
        S, T = rng.normal(size=(n, 6)), rng.normal(size=(300, 6))
        tails = Tails.fit(S)
        left, new = combine(tails.own, np.ones(6)), combine(tails.evidence(T), np.ones(6))
        p = (1 + (left >= new[:, None]).sum(axis=1)) / (n + 1)
        rates.append((p <= 0.05).mean())
    attainable = np.floor(0.05 * (n + 1)) / (n + 1)
    assert abs(np.mean(rates) - attainable) < 3 * np.std(rates) / np.sqrt(60) + 0.004


def test_combined_evidence(rng):
    e, b = rng.exponential(size=(20, 3)), np.array([0.2, 0.8, 0.0])
    parts = e * b / 0.8
    np.testing.assert_allclose(combine(e, b), np.linalg.norm(parts, axis=1), rtol=1e-12)


def test_rarity_counts_inside_and_extrapolates_below(rng):
    E = rng.exponential(size=199)
    tails = Tails.fit(-E)
    one_in, beyond = rarity(np.array([0.0, np.sort(E)[-2], E.max() + 3.0, 1e300]), tails)
    np.testing.assert_allclose(one_in[:2], [1.0, 200 / 3], rtol=1e-9)
    np.testing.assert_array_equal(beyond, [False, False, True, True])
    assert 200 < one_in[2] < 1e9
    assert np.isfinite(one_in).all()


def test_beyond_the_edge_scores_without_a_tail_count(rng):
    """Few values say nothing of a tail; what is farther away than any two rows still counts."""
    S = -rng.integers(0, 3, size=60).astype(float)
    without, tails = Tails.fit(S), Tails.fit(S, edges=np.array([-4.0]))
    new = np.array([-2.0, -3.0, -4.0, -5.0, -24.0])
    np.testing.assert_allclose(without.evidence(new)[2:, 0], np.log(61))
    expected = [*without.evidence(new)[:3, 0], np.log(61) + 1.0, np.log(61) + 20.0]
    np.testing.assert_allclose(tails.evidence(new)[:, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(tails.own, without.own)


@given(st.lists(st.integers(-500, 500), min_size=12, max_size=60, unique=True))
@settings(max_examples=100, deadline=None)
def test_different_scores_inside_the_sample_have_different_evidence(S):
    S = np.array(S) / 10.0
    e = Tails.fit(S).evidence(np.linspace(S.min(), S.max(), 37)[:-1])[:, 0]
    assert (np.diff(e) < 0).all()
