"""Thresholds, p-values, detection, and views that are missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control
from sklearn.datasets import load_wine

from kernull import KernelStack, MultiKernelFisherNull, Sum, load, save
from kernull.detector.calibration import Calibration, Cross, Split
from kernull.errors import (
    InvalidKernelError,
    MissingCapabilityError,
    TooFewRowsWarning,
)
from kernull.estimators import JointMultiKernelFisherNull
from kernull.paper import (
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from tests.oracles.evidence import held_out
from tests.plain import plain_fisher

X, Y = load_wine(return_X_y=True)
TARGETS, OTHERS = X[Y == 0], X[Y == 2]
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}


def split_model(**options):
    options = {"calibration": Split(20), **options}
    return plain_fisher(views=VIEWS, **options)


# -- the rule ------------------------------------------------------------------------------------

scores = arrays(
    float,
    st.integers(1, 60),
    elements=st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: round(v, 1)),
)


@given(scores, st.floats(0.01, 0.99), scores, st.booleans())
@settings(max_examples=240, deadline=None)
def test_flagged_exactly_where_p_is_at_most_the_rate(calibration, rate, new, smooth):
    judge = Calibration.of(calibration, smooth=smooth)
    if rate < 1 / (len(calibration) + 1):
        with pytest.warns(TooFewRowsWarning):
            threshold, used = judge.threshold(rate)
        assert used == pytest.approx(1 / (len(calibration) + 1))
    else:
        threshold, used = judge.threshold(rate)
        assert used == rate
    # Calibration scores among the new ones: ties are the hard case.
    new = np.concatenate([new, calibration])
    # (1 + 1e-12: a rate such as 3/10 is not a binary number)
    np.testing.assert_array_equal(new < threshold, judge.p_values(new) <= used * (1 + 1e-12))


@given(scores)
@settings(max_examples=100, deadline=None)
def test_p_values_count(calibration):
    """The definition; ties count."""
    new = np.concatenate([calibration, calibration + 0.05, calibration - 0.05])
    expected = [(1 + (calibration <= s).sum()) / (len(calibration) + 1) for s in new]
    np.testing.assert_allclose(Calibration.of(calibration).p_values(new), expected)


@pytest.mark.parametrize("calibration", [Cross(), Split(20)], ids=["cross", "split"])
@pytest.mark.parametrize("score", ["projection", "distance"])
@pytest.mark.parametrize("missing", [None, "look", ["look", "taste"]])
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_predict_agrees_with_p_values(calibration, score, missing, rate):
    model = split_model(calibration=calibration, decision=Sum(score), false_alarm_rate=rate)
    model.fit(TARGETS)
    p = model.p_values(X, missing_views=missing)
    flagged = model.predict(X, missing_views=missing) == -1
    np.testing.assert_array_equal(flagged, p <= model.false_alarm_rate_)
    assert 0 < flagged.sum() < len(X)


def test_a_calibration_row_is_judged_alike_in_every_batch():
    model = split_model(false_alarm_rate=0.2).fit(TARGETS)
    one_by_one = np.concatenate([model.predict(row[None]) for row in TARGETS])
    np.testing.assert_array_equal(one_by_one, model.predict(TARGETS))


# -- split ---------------------------------------------------------------------------------------


def test_split_is_a_fit_of_the_other_rows():
    model = split_model(random_state=3).fit(TARGETS)
    held = held_out(TARGETS, 20 / len(TARGETS), 3)
    plain = plain_fisher(views=VIEWS).fit(np.delete(TARGETS, held, axis=0))
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(X), atol=1e-12)
    expected = np.sort(plain.score_samples(TARGETS[held]))
    np.testing.assert_allclose(model.calibration_.scores, expected, atol=1e-10)
    np.testing.assert_allclose(
        model.model_.left_out, plain.contributions(TARGETS[held]), atol=1e-12
    )


def test_split_with_precomputed_kernels_takes_all_columns():
    table = split_model(random_state=1).fit(TARGETS)
    full = plain_fisher(views=VIEWS).fit(TARGETS)  # for its kernels alone
    kernels = np.stack([K for _, K in full.kernel_set_.matrices(X)])
    square = np.stack([K for _, K in full.kernel_set_.matrices()])
    model = plain_fisher("precomputed", calibration=Split(20), random_state=1).fit(square)
    learned = model.model_.learned
    assert len(model.coef_) == len(learned) == len(TARGETS) - 20 == len(table.coef_)
    all_columns = model.score_samples(kernels)
    np.testing.assert_array_equal(all_columns, model.score_samples(KernelStack(kernels)))
    some_columns = model.score_samples(kernels[:, :, learned])
    np.testing.assert_array_equal(all_columns, some_columns)


def test_split_with_sample_weights():
    weight = np.ones(len(TARGETS))
    weight[:5] = 0.0
    weight[5:10] = 1.5
    model = split_model().fit(TARGETS, sample_weight=weight)
    held = 5 + np.array(held_out(TARGETS[5:], 20 / len(TARGETS[5:])))  # weight zero is absence
    worth = weight[held].sum() ** 2 / (weight[held] ** 2).sum()
    assert model.calibration_.total == pytest.approx(worth)
    assert len(model.fit_predict(TARGETS, sample_weight=weight)) == len(TARGETS)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_held_out_are_drawn_from_their_content(grouped):
    order = np.random.default_rng(0).permutation(len(TARGETS))
    groups = np.arange(len(TARGETS)) // 3 if grouped else np.arange(len(TARGETS))
    model = split_model(false_alarm_rate=0.2).fit(TARGETS, groups=groups)
    again = split_model(false_alarm_rate=0.2).fit(TARGETS[order], groups=groups[order])
    np.testing.assert_array_equal(np.sort(order[again.model_.learned]), model.model_.learned)
    np.testing.assert_allclose(again.score_samples(X), model.score_samples(X), atol=1e-10)
    assert again.threshold_ == pytest.approx(model.threshold_, abs=1e-10)
    other = split_model(false_alarm_rate=0.2, random_state=1).fit(TARGETS, groups=groups)
    assert set(other.model_.learned) != set(model.model_.learned)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1, 1.5, "half", True, 59, 58])
def test_bad_fractions_say_so(fraction):
    with pytest.raises(ValueError, match="Split"):
        split_model(calibration=Split(fraction)).fit(TARGETS)


def test_bad_calibration_says_so():
    with pytest.raises(ValueError, match=r"calibration: got 'naive'"):
        split_model(calibration="naive").fit(TARGETS)


def test_random_state_decides_the_split():
    first, again, other = (split_model(random_state=s).fit(TARGETS) for s in (0, 0, 1))
    assert first.threshold_ == again.threshold_
    assert first.threshold_ != other.threshold_


def test_too_few_rows_warn():
    with pytest.warns(TooFewRowsWarning, match="needs at least 19"):
        model = split_model(calibration=Split(18)).fit(TARGETS)
    assert model.false_alarm_rate_ == pytest.approx(1 / 19)


def test_split_rate_on_simulated_rows():
    """Averaged over many draws, exactly floor(rate (m + 1)) / (m + 1) for continuous scores."""
    rng = np.random.default_rng(0)
    m, flagged, judged = 19, 0, 0
    for seed in range(100):
        rows = rng.standard_normal((60, 2))
        model = plain_fisher(
            widths=0.5,
            false_alarm_rate=0.1,
            calibration=Split(m),
            random_state=seed,
        ).fit(rows)
        new = rng.standard_normal((50, 2))
        flagged += (model.predict(new) == -1).sum()
        judged += len(new)
    # Each fit's own rate is Beta(2, 18): standard deviation 0.065, so 0.006 of the mean.
    assert abs(flagged / judged - 0.1) < 4 * 0.007


# -- detect --------------------------------------------------------------------------------------


def test_detect_is_benjamini_hochberg():
    model = split_model().fit(TARGETS)
    p = model.p_values(X)
    order = np.argsort(p)
    below = np.flatnonzero(p[order] <= 0.2 * np.arange(1, len(p) + 1) / len(p))
    expected = np.zeros(len(p), dtype=bool)
    expected[order[: below.max() + 1]] = True  # the textbook procedure
    found = model.detect(X, fdr=0.2)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, false_discovery_control(p) <= 0.2)
    assert found.dtype == bool
    assert 0 < found.sum() < len(X)


@pytest.mark.parametrize("fdr", [0, 1, -0.1, "x", True])
def test_bad_fdr_says_so(fdr):
    with pytest.raises(ValueError, match="fdr"):
        split_model().fit(TARGETS).detect(X, fdr=fdr)


# -- missing views -------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", [Cross(), Split(20)], ids=["cross", "split"])
def test_dead_sensor_may_hold_anything(calibration):
    model = split_model(calibration=calibration).fit(TARGETS)
    expected = model.contributions(X)[:, [0, 2]].sum(axis=1)
    for value in (0.0, np.nan, np.inf, 1e300):
        broken = X.copy()
        broken[:, 6:9] = value
        found = model.score_samples(broken, missing_views="phenols")
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"infinity|NaN"):
        model.score_samples(broken * np.nan, missing_views="phenols")
    np.testing.assert_array_equal(model.score_samples(X, missing_views=[]), model.score_samples(X))


def test_columns_shared_with_a_living_view_must_be_there():
    views = {"first": [0, 1], "second": [1, 2]}
    model = plain_fisher(views=views).fit(TARGETS)
    broken = X.copy()
    broken[:, 0] = np.nan
    assert np.isfinite(model.score_samples(broken, missing_views="first")).all()
    broken[:, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.score_samples(broken, missing_views="first")


def test_missing_precomputed_kernel():
    """Its p-values count the rows held out, which are judged without it too."""
    everything = split_model().fit(TARGETS).kernel_set_.with_rows(TARGETS)
    square = np.stack([K for _, K in everything.matrices()])
    cross = np.stack([K for _, K in everything.matrices(X[len(TARGETS) :])])  # no ties
    model = plain_fisher("precomputed", calibration=Split(20)).fit(square)
    held = np.delete(square, model.model_.learned, axis=1)
    calibration = model.score_samples(held, missing_views="kernel 1")
    cross[1] = np.nan
    new = model.score_samples(cross, missing_views="kernel 1")
    expected = [(1 + (calibration <= s).sum()) / 21 for s in new]
    np.testing.assert_allclose(model.p_values(cross, missing_views="kernel 1"), expected)


def test_evidence_without_a_view_counts_the_rows_held_out(tmp_path):
    model = MultiKernelFisherNull(views=VIEWS, calibration=Split(20)).fit(TARGETS)
    held = np.delete(TARGETS, model.model_.learned, axis=0)
    calibration = model.score_samples(held, missing_views="taste")
    new = model.score_samples(OTHERS + 1e-3, missing_views="taste")  # no ties
    expected = [(1 + (calibration <= s).sum()) / 21 for s in new]
    save(model, tmp_path / "split.kernull")
    for known in (model, load(tmp_path / "split.kernull")):
        p = known.p_values(OTHERS + 1e-3, missing_views="taste")
        np.testing.assert_allclose(p, expected)


def test_kernels_in_another_order_are_refused_without_a_view_too():
    K = np.stack([K for _, K in plain_fisher(views=VIEWS).fit(TARGETS).kernel_set_.matrices()])
    model = plain_fisher("precomputed").fit(KernelStack(K, names=["a", "b", "c"]))
    other = KernelStack(K[[1, 0, 2]], names=["b", "a", "c"])
    for missing in (None, "c"):
        with pytest.raises(InvalidKernelError, match="names"):
            model.score_samples(other, missing_views=missing)


def test_typical_targets_keep_their_rate_without_a_view():
    """Leave-one-out p-values of the training rows are uniform by construction."""
    model = plain_fisher(views=VIEWS, false_alarm_rate=0.2).fit(TARGETS)
    kept = model.model_.kept_kernels(["phenols"])
    partial = model.model_.left_out[:, kept].sum(axis=1)
    share = (partial < model.model_.without(["phenols"]).threshold).mean()
    assert share == pytest.approx(np.floor(0.2 * 60 - 1) / 59)


@pytest.mark.parametrize(
    ("missing", "message"),
    [("colour", "no view 'colour'"), (list(VIEWS), "at least one"), (3, "missing_views: got 3")],
)
def test_bad_missing_views_say_so(missing, message):
    model = plain_fisher(views=VIEWS).fit(TARGETS)
    with pytest.raises(ValueError, match=message):
        model.score_samples(X, missing_views=missing)


def test_scores_that_are_no_sum_say_so():
    model = FisherNull(views=VIEWS, scaling="standard").fit(TARGETS)
    assert not hasattr(model, "explain")
    with pytest.raises(MissingCapabilityError, match="FisherNull are no sums over"):
        model.predict(X, missing_views="look")


@pytest.mark.parametrize(
    "cls",
    [
        FisherNull,
        GaussianProcessOneClass,
        KernelPCANovelty,
        MultiKernelOneClassSVM,
        MultiKernelSVDD,
    ],
)
@pytest.mark.parametrize("calibration", [Cross(), Split(20)], ids=["cross", "split"])
def test_every_estimator_is_calibrated(cls, calibration):
    model = cls(views=VIEWS, calibration=calibration).fit(TARGETS)
    p = model.p_values(X)
    np.testing.assert_array_equal(model.predict(X) == -1, p <= model.false_alarm_rate_)
    np.testing.assert_array_equal(model.detect(X, 0.2), false_discovery_control(p) <= 0.2)
    if isinstance(calibration, Split):
        assert model.calibration_.total == 20
        held = held_out(TARGETS, 20 / len(TARGETS))
        expected = np.sort(model.score_samples(TARGETS[held]))
        np.testing.assert_allclose(model.calibration_.scores, expected, atol=1e-10)


def test_tasks_have_p_values():
    groups = np.repeat(["a", "b"], [30, 29])
    model = JointMultiKernelFisherNull(views=VIEWS).fit(TARGETS, groups=groups)
    p = model.p_values(X, groups="b")
    np.testing.assert_array_equal(
        model.predict(X, groups="b") == -1, p <= model.task("b").false_alarm_rate_
    )
    np.testing.assert_array_equal(model.task("b").detect(X, 0.2), false_discovery_control(p) <= 0.2)


def correlated_rows():
    rng = np.random.default_rng(0)
    mixed = np.eye(40) + rng.standard_normal((40, 40)) / 4  # columns that go together
    return rng.standard_normal((460, 40)) @ mixed


def test_whitening_by_few_rows_keeps_its_rate():
    """Rows that were whitened with would look far more normal than new ones: they are left out."""
    rows = correlated_rows()
    options = {"scaling": "whiten", "false_alarm_rate": 0.1}
    for calibration in (Cross(), Split(29)):
        model = plain_fisher(calibration=calibration, **options).fit(rows[:60])
        assert (model.predict(rows[60:]) == -1).mean() < 0.2
