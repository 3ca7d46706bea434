"""The decision by evidence, against plain loops, and what it promises."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score

import kernull
from kernull import KernelStack, MultiKernelFisherNull, Storage
from kernull.detector import Evidence, Nearest, evidence
from kernull.errors import MissingCapabilityError

# Tables here are small, and some views empty, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning"),
    pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning"),
    pytest.mark.filterwarnings("ignore::kernull.errors.ZeroProjectionWarning"),
]

X_ALL, LABEL = load_wine(return_X_y=True)
TRAIN, REST = X_ALL[LABEL == 0][:50], X_ALL[LABEL == 0][50:]
NEW = np.concatenate([REST, X_ALL[LABEL == 1][:10], X_ALL[LABEL == 2][:10]])
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}
EVIDENCE = {
    "decision": "evidence",
    "p": 1.5,
    "delta": 0.01,
    "normalize": "offdiagonal",
    "scaling": ("standard", "whiten", "quantile"),
    "widths": "auto",
}


def model(**options):
    return MultiKernelFisherNull(**(EVIDENCE | {"views": VIEWS} | options))


def test_evidence_adds_up_by_kernel_and_by_view():
    fitted = model().fit(TRAIN)
    by_kernel, by_view = fitted.evidence(NEW), fitted.evidence(NEW, by="view")
    assert by_kernel.shape == (len(NEW), 9)
    assert by_view.shape == (len(NEW), 3)
    scores = fitted.score_samples(NEW)
    length = np.linalg.norm(by_kernel, axis=1)
    np.testing.assert_allclose(np.linalg.norm(by_view, axis=1), length, rtol=1e-12)
    assert np.corrcoef(length, -scores)[0, 1] > 0.9
    why = fitted.explain(NEW)
    np.testing.assert_allclose(why.shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(why.by_view, -(by_view**2), rtol=1e-12)
    np.testing.assert_allclose(why.scores, scores)
    assert "1 in" in why.words(len(NEW) - 1)
    with pytest.raises(ValueError, match="by: got"):
        fitted.evidence(NEW, by="column")


def test_flags_p_values_and_rarity_agree():
    fitted = model(false_alarm_rate=0.1).fit(TRAIN)
    p, rare = fitted.p_values(NEW), fitted.rarity(NEW)
    np.testing.assert_array_equal(fitted.predict(NEW) == -1, p <= fitted.false_alarm_rate_)
    order = np.argsort(-fitted.score_samples(NEW))
    assert (np.diff(rare[order]) >= 0).all()
    assert (rare >= 1).all()


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("value", [1e8, -1e8])
def test_a_broken_view_cannot_hide(view, value):
    fitted = model().fit(TRAIN)
    broken = REST.copy()
    broken[:, VIEWS[view]] = value
    assert (fitted.predict(broken) == -1).all()
    assert (np.argmax(fitted.evidence(broken, by="view"), axis=1) == list(VIEWS).index(view)).all()


@pytest.mark.parametrize(
    "kernels", ["rbf", "laplacian", "linear", "polynomial", "cosine", ["rbf", "linear"]]
)
def test_far_rows_are_never_normal(kernels):
    rng = np.random.default_rng(0)
    fitted = model(views=None, kernels=kernels).fit(rng.normal(size=(80, 4)))
    directions = rng.normal(size=(20, 4))
    rows = 1e4 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assert (fitted.predict(np.vstack([rows, 1e4 * np.eye(4), -1e4 * np.ones((1, 4))])) == -1).all()


def test_alarms_have_a_rank():
    fitted = model().fit(TRAIN)
    rows = REST[:1] + np.linspace(1, 1e9, 200)[:, None] * X_ALL.std(axis=0)
    scores = fitted.score_samples(rows)
    assert len(np.unique(scores)) == len(rows)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) < 0).all()


@settings(max_examples=10, deadline=None)
@given(power=st.lists(st.integers(-3, 3), min_size=13, max_size=13))
def test_units_do_not_matter(power):
    unit = 10.0 ** np.array(power)
    one = model().fit(TRAIN).score_samples(NEW)
    two = model().fit(TRAIN * unit).score_samples(NEW * unit)
    np.testing.assert_allclose(two, one, rtol=1e-8)


def test_weight_zero_is_absence():
    plain = model().fit(TRAIN)
    more = np.concatenate([TRAIN, X_ALL[LABEL == 2][:5]])
    zero = model().fit(more, sample_weight=np.r_[np.ones(50), np.zeros(5)])
    np.testing.assert_allclose(zero.score_samples(NEW), plain.score_samples(NEW), rtol=1e-9)


def test_a_category_of_noise_does_no_harm():
    rng = np.random.default_rng(0)
    y = np.r_[np.ones(len(REST)), np.zeros(20)]
    clean = roc_auc_score(y, model().fit(TRAIN).score_samples(NEW))

    def with_noise(rows):
        return np.column_stack([rows, np.eye(3)[rng.integers(0, 3, len(rows))]])

    noisy = model(views=VIEWS | {"noise": [13, 14, 15]}).fit(with_noise(TRAIN))
    assert roc_auc_score(y, noisy.score_samples(with_noise(NEW))) > clean - 0.01


def test_without_a_view_the_rate_is_kept():
    fitted = model(false_alarm_rate=0.1).fit(TRAIN)
    holes = NEW.copy()
    holes[:, VIEWS["look"]] = np.nan
    p = fitted.p_values(holes, missing_views="look")
    np.testing.assert_array_equal(fitted.predict(holes, missing_views="look") == -1, p <= 0.1)
    alone = fitted.evidence(holes, by="view", missing_views="look")
    assert (alone[:, 2] == 0).all()
    np.testing.assert_allclose(alone[:, :2], fitted.evidence(NEW, by="view")[:, :2], rtol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "tiled", "nystroem"])
def test_files_give_the_same_bits(storage, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(storage=Storage(storage, landmarks=20)).fit(TRAIN)
    kernull.save(fitted, tmp_path / "model")
    again = kernull.load(tmp_path / "model")
    for method in ("score_samples", "p_values", "predict", "rarity", "evidence"):
        np.testing.assert_array_equal(getattr(again, method)(NEW), getattr(fitted, method)(NEW))
    assert again.explain(NEW).words(0) == fitted.explain(NEW).words(0)


def test_given_kernels_are_judged_by_projection_and_distance():
    sets = model(scaling="standard").fit(TRAIN).kernel_set_
    square = np.stack([K for _, K in sets.matrices()])
    cross = np.stack([K for _, K in sets.matrices(NEW)])
    fitted = MultiKernelFisherNull("precomputed", **{**EVIDENCE, "widths": 1.0}).fit(square)
    y = np.r_[np.ones(len(REST)), np.zeros(20)]
    assert roc_auc_score(y, fitted.score_samples(cross)) > 0.95
    stack = KernelStack(2.0 * square)  # a factor is no evidence
    other = MultiKernelFisherNull("precomputed", **{**EVIDENCE, "widths": 1.0}).fit(stack)
    np.testing.assert_allclose(
        other.score_samples(2.0 * cross), fitted.score_samples(cross), rtol=1e-6
    )


def test_given_kernels_have_no_rows_for_other_scores():
    square = np.stack([K for _, K in model().fit(TRAIN).kernel_set_.matrices()])
    decision = Evidence(scores=[Nearest()])
    with pytest.raises(MissingCapabilityError, match="precomputed kernels have no rows"):
        MultiKernelFisherNull("precomputed", decision=decision).fit(square)


def test_split_and_landmarks():
    fitted = model(calibration="split").fit(TRAIN)
    assert len(fitted.calibration_.scores) == round(0.25 * 50)
    rows = np.random.default_rng(0).normal(size=(900, 4))
    near = model(views=None, storage=Storage("nystroem", landmarks=60)).fit(rows)
    alarms = (near.predict(np.random.default_rng(1).normal(size=(2000, 4))) == -1).mean()
    assert 0.02 < alarms < 0.09


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="decision: got 'vote'"):
        model(decision="vote").fit(TRAIN)


def test_the_sum_has_no_evidence():
    fitted = MultiKernelFisherNull(decision="sum").fit(TRAIN)
    assert not hasattr(fitted, "evidence")
    assert not hasattr(fitted, "rarity")


def test_a_sample_of_many_rows_keeps_the_rate_and_travels(monkeypatch, tmp_path):
    """Scaled by all rows, left-out rows of the sample looked more normal than new ones."""
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 300)
    X, new = factors(600), factors(4000, seed=1)
    fitted = model(views=None).fit(X)
    assert len(fitted.model_.rule.left_out) == len(fitted.calibration_.scores) == 300
    assert len(fitted.coef_) == 300
    assert abs((fitted.predict(new) == -1).mean() - 0.05) < 0.025
    kernull.save(fitted, tmp_path / "model")
    again = kernull.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(new[:50]), fitted.score_samples(new[:50]))
    assert len(fitted.fit_predict(X)) == 600


def factors(n, seed=0, d=20):
    mix = np.random.default_rng(99).normal(size=(5, d))
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) @ mix + 0.5 * rng.normal(size=(n, d))


def test_each_row_may_be_the_nearest_where_few_are_ranked(monkeypatch):
    """A copy of a training row is at distance zero, ranked or not."""
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 100)
    X = factors(900)
    fitted = model(views=None).fit(X)
    parts, nearest = fitted.model_.rule.scores.parts, fitted.model_.rule.scores.of(X)[:, 1::2]
    floors = np.array([part.scores[1].floor for part in parts])
    np.testing.assert_allclose(nearest, np.broadcast_to(-np.log(floors), nearest.shape))


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_are_not_ranked_do_not_vouch_for_themselves(monkeypatch, grouped):
    """Nor do other rows of their group: 300 rows come three times, nearly the same."""
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 150)
    X, groups = factors(900), None
    if grouped:
        X = np.repeat(factors(300), 3, axis=0)
        X = X + 1e-3 * np.random.default_rng(2).normal(size=X.shape)
        groups = np.repeat(np.arange(300), 3)
    fitted = model(views=None, false_alarm_rate=0.2)
    flags = fitted.fit_predict(X, groups=groups) == -1
    others = np.setdiff1d(np.arange(900), fitted.fit(X, groups=groups).model_.learned)
    assert len(others) == 750
    assert abs(flags[others].mean() - (fitted.predict(factors(4000, 5)) == -1).mean()) < 0.04


def test_ranking_few_rows_or_all_flags_nearly_the_same_rows(monkeypatch):
    """Of 1,500 rows, 1,000 are ranked; weights are those of the same rows both times."""
    X, new = factors(1500), factors(4000, seed=1)
    flags = model(views=None).fit(X).predict(new)
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 1000)
    few = model(views=None, storage="dense").fit(X).predict(new)
    assert (few != flags).mean() < 0.015


def test_a_storage_asks_for_weights_from_all_rows(monkeypatch):
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 100)
    X = factors(300)
    for storage, rows in (("auto", 100), ("dense", 300), ("tiled", 300)):
        fitted = model(views=None, storage=storage).fit(X)
        assert len(fitted.coef_) == rows
        assert len(fitted.calibration_.scores) == 100
        assert len(fitted.fit_predict(X)) == 300


@pytest.mark.parametrize("far", [10.0, 1e4, 1e8, -1e4])
def test_a_far_row_is_not_normal_to_a_given_kernel_without_bounds(far, rng):
    X = rng.normal(size=(80, 3)) + 3.0
    model = MultiKernelFisherNull("precomputed").fit((X @ X.T)[None])
    new = far * (rng.normal(size=(20, 3)) + 3.0)
    assert (model.predict((new @ X.T)[None]) == -1).all()
