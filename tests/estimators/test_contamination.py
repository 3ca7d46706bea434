"""Training rows that are not clean."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from kernull import MultiKernelFisherNull
from kernull.detector.cautions import stand_apart
from kernull.detector.contamination import LEAST, WIDE, beyond_tail, suspects
from kernull.errors import CannotFlagWarning, MissingCapabilityError, SuspectRowsWarning

#: Plain fits to the same rows, too.
pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.SuspectRowsWarning")


def unclean(seed=0, n=180, outliers=20):
    """Two clusters of normal rows, then rows of a wide cloud around them; new rows of both."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0] * 5, [4.0] * 5])

    def normal(count):
        return centres[rng.integers(2, size=count)] + rng.normal(size=(count, 5))

    def other(count):
        return 2.0 + 6.0 * rng.normal(size=(count, 5))

    return np.vstack([normal(n), other(outliers)]), np.vstack([normal(100), other(50)])


def test_suspects_are_the_lowest_rows():
    scores = np.array([3.0, 1.0, 2.0, 0.5, 9.0, 1.0, 4.0, 5.0, 6.0, 7.0])
    assert suspects(scores, 0.3).tolist() == [1, 3, 5]
    assert suspects(scores, 0.05).tolist() == []
    assert suspects(scores, 0.1).tolist() == [3]


@pytest.mark.filterwarnings("ignore::kernull.errors.CannotFlagWarning")  # with its suspects
def test_it_is_two_fits_of_the_sum_with_wide_kernels():
    X, new = unclean()
    model = MultiKernelFisherNull(contamination=0.1).fit(X)
    wide = MultiKernelFisherNull(**WIDE)
    left_out = np.asarray(wide._fit(X).row_scores())
    found = np.sort(np.argsort(left_out)[:20])
    np.testing.assert_array_equal(model.suspects_, found)
    weight = np.where(np.isin(np.arange(len(X)), found), LEAST, 1.0)
    second = MultiKernelFisherNull(**WIDE)
    own = np.asarray(second._fit(X, weight).row_scores())
    np.testing.assert_allclose(model.score_samples(new), second.score_samples(new))
    assert not hasattr(model, "evidence")
    # All rows decide the threshold, but for suspects that are beyond the tail of the others.
    counted = np.delete(own, found[beyond_tail(own, found)])
    assert 180 <= len(counted) <= 190
    assert abs((counted < model.threshold_).mean() - 0.05) <= 1.5 / len(counted)


def test_outliers_among_the_training_rows_are_found_and_lose_their_say():
    X, new = unclean()
    labels = np.r_[np.ones(100), np.zeros(50)]
    model = MultiKernelFisherNull(contamination=0.1).fit(X)
    assert (model.suspects_ >= 180).mean() >= 0.8
    ours = roc_auc_score(labels, model.score_samples(new))
    assert ours >= roc_auc_score(labels, MultiKernelFisherNull().fit(X).score_samples(new))
    assert ours >= 0.95


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_real_rows_as_well_as_an_isolation_forest(share):
    X, y = load_breast_cancer(return_X_y=True)
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        normal, outliers = rng.permutation(X[y == 1]), rng.permutation(X[y == 0])
        count = round(share * 170 / (1 - share))
        train = np.vstack([normal[:170], outliers[:count]])
        new = np.vstack([normal[170:], outliers[count:]])
        labels = np.r_[np.ones(357 - 170), np.zeros(212 - count)]
        ours = MultiKernelFisherNull(contamination=0.1).fit(train).score_samples(new)
        peer = IsolationForest(random_state=seed).fit(train).score_samples(new)
        found.append(roc_auc_score(labels, ours) - roc_auc_score(labels, peer))
    assert np.mean(found) >= -0.02


def test_clean_rows_keep_the_false_alarm_rate():
    rates = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model = MultiKernelFisherNull(contamination=0.1).fit(rng.normal(size=(200, 5)))
        rates.append((model.predict(rng.normal(size=(1000, 5))) == -1).mean())
    assert abs(np.mean(rates) - 0.05) <= max(0.015, 3 * np.std(rates) / np.sqrt(10))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_outliers_among_the_training_rows_do_not_hide_others(share):
    """Far ones have no say in the threshold; with one, 0 to 25% of their kind were flagged."""
    caught, alarms = [], []
    for seed in range(5):
        rng, k = np.random.default_rng(seed), round(200 * share)
        X = np.vstack([rng.normal(size=(200 - k, 6)), 20.0 * rng.normal(size=(k, 6))])
        model = MultiKernelFisherNull(contamination=share).fit(X)
        caught.append((model.predict(20.0 * rng.normal(size=(100, 6))) == -1).mean())
        alarms.append((model.predict(rng.normal(size=(500, 6))) == -1).mean())
    assert np.mean(caught) >= 0.99
    assert abs(np.mean(alarms) - 0.05) <= max(0.015, 3 * np.std(alarms) / np.sqrt(5))


@pytest.mark.parametrize("tail", ["normal", "exponential", "laplace"])
def test_tails_of_clean_rows_are_their_own(tail):
    """Of a tail no heavier than exponential hardly a row is taken for an outlier."""
    found = []
    for seed in range(200):
        scores = -np.abs(getattr(np.random.default_rng(seed), tail)(size=200))
        found.append(beyond_tail(scores, suspects(scores, 0.1)).mean())
    assert np.mean(found) <= 0.01


def test_a_model_that_cannot_flag_says_so_once():
    rows = np.random.default_rng(0).normal(size=(100, 30))
    with pytest.warns(CannotFlagWarning, match="without it to the rows that are not") as said:
        MultiKernelFisherNull(contamination=0.1, widths=0.02).fit(rows)
    assert len(said) == 1


def test_given_settings_and_weights_are_kept():
    X, new = unclean()
    model = MultiKernelFisherNull(widths=0.5, delta=0.05, contamination=0.1).fit(X)
    assert model.widths_ == {"all": [0.5]}
    assert model.ridge_ == pytest.approx(0.05 * len(X))
    weight = np.ones(len(X))
    weight[:10] = 0.0
    weighted = MultiKernelFisherNull(contamination=0.1).fit(X, sample_weight=weight)
    assert len(weighted.coef_) == len(X) - 10
    same = MultiKernelFisherNull(contamination=0.1, views={"a": [0, 1], "b": [2, 3, 4]}).fit(X)
    assert same.score_samples(new, missing_views="a").shape == (150,)
    same.set_params(contamination=None).fit(X)
    assert same.ridge_ == MultiKernelFisherNull().fit(X).ridge_
    assert set(same.suspects_) <= set(range(180, 200))  # named, and learned from


@pytest.mark.filterwarnings("ignore::kernull.errors.CannotFlagWarning")  # with its suspects
@pytest.mark.parametrize("each", [1.0, 3.0])
def test_rows_of_weight_zero_are_absent_and_only_ratios_of_weights_matter(each):
    X, new = unclean()
    absent = 20.0 * np.random.default_rng(1).normal(size=(50, 5))
    model = MultiKernelFisherNull(contamination=0.1).fit(X)
    weight = np.r_[np.full(len(X), each), np.zeros(len(absent))]
    same = MultiKernelFisherNull(contamination=0.1).fit(np.r_[X, absent], sample_weight=weight)
    np.testing.assert_array_equal(same.suspects_, model.suspects_)
    assert same.threshold_ == pytest.approx(model.threshold_, rel=1e-12)
    np.testing.assert_allclose(same.p_values(new), model.p_values(new), rtol=1e-12)


@pytest.mark.parametrize("wrong", [0.0, 0.6, -0.1, True, "auto", np.nan])
def test_a_share_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="contamination: got"):
        MultiKernelFisherNull(contamination=wrong).fit(unclean()[0])


def test_what_takes_rows_to_be_normal_refuses():
    X, _ = unclean()
    with pytest.raises(MissingCapabilityError, match="calibration='cross'"):
        MultiKernelFisherNull(contamination=0.1, calibration="split").fit(X)


def test_rows_that_stand_apart_are_named_and_weights_of_zero_are_absent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    odd = rng.permutation(200)[:10]
    X[odd] *= 5.0
    with pytest.warns(SuspectRowsWarning, match="X: 10 of 200 rows stand apart") as told:
        model = MultiKernelFisherNull().fit(X)
    np.testing.assert_array_equal(model.suspects_, np.sort(odd))
    assert "--contamination 0.05" in told[0].message.in_options
    weight = np.ones(200)
    weight[odd] = 0.0
    assert len(MultiKernelFisherNull().fit(X, sample_weight=weight).suspects_) == 0


@pytest.mark.filterwarnings("error::kernull.errors.SuspectRowsWarning")
@pytest.mark.parametrize("degrees", [2.0, 1000.0])
def test_tails_of_clean_rows_do_not_stand_apart(degrees):
    """A power-law tail, however heavy, has exponential spacings of its logarithms."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(200):
        rows = np.linalg.norm(rng.standard_t(degrees, size=(300, 4)), axis=1)
        alarms += len(stand_apart(rows, 0.2)) > 0
    assert alarms <= 2
