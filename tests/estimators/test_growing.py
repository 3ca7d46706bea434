"""partial_fit, forget and budgets: equal to refits given the same ridge, scaling, widths, b."""

import pickle
import warnings

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.calibration import Calibration
from kernull.calibration.left_out_scores import lower_ties
from kernull.datasets import load_digits_views
from kernull.errors import (
    CalibrationWarning,
    InvalidKernelError,
    MemoryLimitError,
    MissingCapabilityError,
    TooFewRowsWarning,
)
from kernull.models.growing import beyond_budget
from kernull.problems import FisherProblem, incremental
from kernull.views import join_views
from tests.plain import plain_fisher

DATA = load_digits_views()
X, VIEWS = join_views(DATA.views)
FOURS = X[DATA.y == 4]
OTHERS = X[DATA.y == 9]


# A few dozen rows of 64 columns, and few of them at first: both are said, and tested below.
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning"),
    pytest.mark.filterwarnings("ignore::kernull.errors.CalibrationWarning"),
]


def model(**options):
    return plain_fisher(views=VIEWS, widths=0.5, **options)


def refit(grown, table, weight=None):
    """Coefficients, thresholds and scores by plain NumPy, from what must stay the same."""
    bank = grown.bank_.with_rows(table)
    b, n = grown.weights_, len(table)
    w = np.ones(n) if weight is None else weight
    K = np.einsum("j,jmn->mn", b, np.stack([K for _, K in bank.matrices()]))
    a = np.linalg.solve(K + np.diag(grown.ridge_ / w), np.ones(n))
    scores = np.empty(n)
    own = K @ a
    for i in range(n):  # no higher than as a new row
        rows = np.arange(n) != i
        A = K[np.ix_(rows, rows)] + np.diag(grown.ridge_ / w[rows])
        scores[i] = min(K[i, rows] @ np.linalg.solve(A, np.ones(n - 1)), own[i])
    scores = lower_ties(scores)  # of rows that were given twice
    threshold, _ = Calibration.of(scores, w, smooth=True).threshold(grown.false_alarm_rate)
    cross = np.stack([K for _, K in bank.matrices(OTHERS[:20])])
    return a, threshold, np.einsum("j,jmn,n->m", b, cross, a), scores


def agree(grown, table, weight=None):
    a, threshold, others, scores = refit(grown, table, weight)
    np.testing.assert_allclose(grown.coef_, a, rtol=0, atol=1e-8)
    assert grown.threshold_ == pytest.approx(threshold, abs=1e-8)
    assert grown.offset_ == grown.threshold_
    np.testing.assert_allclose(grown.calibration_.scores, np.sort(scores), rtol=0, atol=1e-8)
    np.testing.assert_allclose(grown.score_samples(OTHERS[:20]), others, rtol=0, atol=1e-8)


def test_ten_pieces_equal_one_fit():
    grown = model()
    for piece in np.array_split(FOURS[:100], 10):
        grown.partial_fit(piece)
    assert len(grown.coef_) == 100
    agree(grown, FOURS[:100])
    assert grown.sample_indices_.tolist() == list(range(100))
    assert grown.n_samples_seen_ == 100


def test_ten_pieces_equal_one_fit_of_the_same_estimator():
    # The other way round: fit on everything, and let the pieces start from its scaling, widths,
    # weights and ridge.
    whole = model(tol=1e-12).fit(FOURS[:100])
    grown = model(tol=1e-12).fit(FOURS[:100])
    grown.forget(np.arange(10, 100))
    for piece in np.array_split(FOURS[10:100], 9):
        grown.partial_fit(piece)
    np.testing.assert_allclose(grown.coef_, whole.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        grown.score_samples(OTHERS), whole.score_samples(OTHERS), rtol=0, atol=1e-8
    )


def test_row_weights_grow_too():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, size=60).astype(float)
    weight[:2] = 1.0
    grown = model(false_alarm_rate=0.1)
    for rows in np.array_split(np.arange(60), 4):
        grown.partial_fit(FOURS[rows], sample_weight=weight[rows])
        weight[rows] /= weight[rows][weight[rows] > 0].mean()  # against the rows of one call
    kept = weight > 0
    assert len(grown.coef_) == kept.sum()
    agree(grown, FOURS[:60][kept], weight[kept])


@pytest.mark.parametrize("score_type", ["projection", "distance"])
def test_one_row_at_a_time(score_type):
    grown = model(score_type=score_type).fit(FOURS[:20])
    for row in FOURS[20:26]:
        grown.partial_fit(row[None])
    a, *_ = refit(grown, FOURS[:26])
    np.testing.assert_allclose(grown.coef_, a, rtol=0, atol=1e-8)


def test_forgetting_equals_never_having_seen():
    grown = model().fit(FOURS[:50])
    drop = np.array([3, 49, 17, 0])
    grown.forget(drop)
    rest = np.delete(np.arange(50), drop)
    agree(grown, FOURS[rest])
    assert grown.sample_indices_.tolist() == rest.tolist()
    assert not hasattr(grown, "gap_")  # the certificate was that of other rows
    grown.partial_fit(FOURS[50:53]).forget(np.arange(49) < 5)  # a mask
    agree(grown, FOURS[np.r_[rest[5:], 50:53]])


def test_updates_need_no_factorisation_of_the_whole(monkeypatch):
    grown = model().partial_fit(FOURS[:80])
    sizes = []
    for name in ("lower_factor", "cho_factor"):
        original = getattr(incremental, name)
        monkeypatch.setattr(
            incremental,
            name,
            lambda A, *a, _f=original, **k: (sizes.append(len(A)), _f(A, *a, **k))[1],
        )
    monkeypatch.setattr(FisherProblem, "factorise", None)
    grown.partial_fit(FOURS[80:83])
    grown.forget([1, 2])
    assert sizes == [3, 2]  # the Schur complements, nothing else


def test_relearned_weights_are_those_of_a_fit_with_this_scaling():
    grown = model(tol=1e-10, p=4 / 3).fit(FOURS[:30])
    old = grown.weights_.copy()
    grown.partial_fit(FOURS[30:60], relearn=True)
    assert grown.gap_ <= 1e-10
    assert grown.ridge_ == pytest.approx(grown.delta * 60)
    assert np.abs(grown.weights_ - old).max() > 1e-6
    kernels = np.stack([K for _, K in grown.bank_.with_rows(FOURS[:60]).matrices()])
    fresh = plain_fisher("precomputed", tol=1e-10, p=4 / 3).fit(kernels)
    np.testing.assert_allclose(grown.weights_, fresh.weights_, atol=1e-5)
    assert grown.threshold_ == pytest.approx(fresh.threshold_, abs=1e-5)
    agree(grown, FOURS[:60])
    grown.partial_fit(FOURS[60:62])  # and it still grows
    agree(grown, FOURS[:62])


def test_warm_start_saves_iterations():
    grown = model(p=8 / 7).fit(FOURS[:100])
    cold = model(p=8 / 7).fit(FOURS[:105]).n_iter_
    assert grown.partial_fit(FOURS[100:105], relearn=True).n_iter_ < cold


def test_mixed_norms_grow_too():
    options = {"widths": [0.25, 0.5], "views": VIEWS, "r": 1.0}
    grown = plain_fisher(**options).fit(FOURS[:30]).partial_fit(FOURS[30:40])
    agree(grown, FOURS[:40])
    grown.partial_fit(FOURS[40:50], relearn=True)
    assert grown.gap_ <= 1e-6


def test_a_budget_keeps_the_same_rows_however_they_come():
    def kept(pieces, **options):
        grown = model(max_samples=30, **options)
        for piece in pieces:
            grown.partial_fit(piece)
            assert len(grown.coef_) <= 30
        assert grown.n_samples_seen_ == 90
        agree(grown, FOURS[grown.sample_indices_])
        return grown.sample_indices_.tolist()

    rows = kept([FOURS[:90]])
    assert sorted(rows) == rows  # in the order of their coming
    assert kept(np.array_split(FOURS[:90], 9)) == rows
    assert kept([FOURS[:31], *FOURS[31:90, None]]) == rows  # most never enter
    assert kept([FOURS[:90]], random_state=None) == rows
    assert kept([FOURS[:90]], random_state=1) != rows
    K = np.stack([K for _, K in model().fit(FOURS[:30]).bank_.with_rows(FOURS[:90]).matrices()])
    given = plain_fisher("precomputed", max_samples=30).partial_fit(K[:, :50, :50])
    new = np.arange(50, 90)
    columns = np.concatenate([given.sample_indices_, new])
    given.partial_fit(K[:, new][:, :, columns])
    assert given.sample_indices_.tolist() == rows


def test_a_budget_keeps_every_row_as_often():
    times = np.zeros(200)
    for seed in range(400):
        stay = np.delete(np.arange(200), beyond_budget(np.arange(200), 50, seed))
        times[stay] += 1
    # 400 draws of one in four: mean 100, standard deviation 8.66.
    z = (times - 100) / 8.66
    assert np.abs(z).max() < 4.5
    assert (z**2).mean() == pytest.approx(1, abs=0.4)
    halves = z.reshape(2, 100).sum(axis=1) / 10
    assert np.abs(halves).max() < 3.5  # neither the first rows nor the last
    # Seen in two calls: what went is gone, and the rest is the sample of all.
    first = np.delete(np.arange(120), beyond_budget(np.arange(120), 50, 7))
    both = np.concatenate([first, np.arange(120, 200)])
    at_once = np.delete(np.arange(200), beyond_budget(np.arange(200), 50, 7))
    assert np.delete(both, beyond_budget(both, 50, 7)).tolist() == at_once.tolist()


def test_the_false_alarm_rate_holds_after_growing_within_a_budget():
    # Where rows that the others explain were dropped: 0.9% of normal rows, 60% of shifted ones.
    def flagged(grown):
        return np.array([np.mean(grown.predict(rows) == -1) for rows in (normal, shifted)])

    before, after = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows, normal, shifted = (rng.normal(size=(n, 5)) for n in (400, 1000, 1000))
        shifted[:, 0] += 4
        grown = MultiKernelFisherNull(max_samples=100).fit(rows[:100])
        before.append(flagged(grown))
        for piece in np.array_split(rows[100:], 6):
            grown.partial_fit(piece)
        after.append(flagged(grown))
    rate, caught = np.mean(after, axis=0)
    assert rate == pytest.approx(0.05, abs=0.015)
    assert caught > np.mean(before, axis=0)[1] - 0.05


def test_a_budget_is_read_by_fit_too(recwarn):
    with pytest.raises(ValueError, match="max_samples: got 1;"):
        model(max_samples=1).fit(FOURS[:20])
    assert len(model(max_samples=20).fit(FOURS[:20]).coef_) == 20
    assert len(model(max_samples=10).partial_fit(FOURS[:20]).coef_) == 10
    model(max_samples=10, storage="nystroem", landmarks=15).fit(FOURS[:20])
    assert not [w for w in recwarn if str(w.message).startswith("max_samples")]
    with pytest.warns(UserWarning, match="max_samples=10 bounds partial_fit alone"):
        assert len(model(max_samples=10).fit(FOURS[:20]).coef_) == 20


def test_thirty_rows_of_120_do_nearly_as_well_as_all():
    from kernull.metrics import auc

    results = []
    rng = np.random.default_rng(0)
    for digit in range(10):
        rows = rng.permutation(np.flatnonzero(DATA.y == digit))
        train, test = X[rows[:120]], np.setdiff1d(np.arange(len(X)), rows[:120])
        labels = np.where(DATA.y[test] == digit, 1, -1)
        full = model().fit(train)
        with pytest.warns(UserWarning, match="max_samples: fit learned from all 120 rows"):
            budget = model(max_samples=30).fit(train)
        budget.partial_fit(train[:1])  # one more row, and the budget is applied
        results.append([auc(labels, m.score_samples(X[test])) for m in (full, budget)])
    full, budget = np.mean(results, axis=0)
    assert budget > full - 0.015


def test_precomputed_kernels_grow():
    bank = model().fit(FOURS[:10]).bank_.with_rows(FOURS[:30])
    K = np.stack([K for _, K in bank.matrices()])
    grown = plain_fisher("precomputed").partial_fit(K[:, :12, :12])
    grown.partial_fit(K[:, 12:20, :20]).partial_fit(K[:, 20:30, :30])
    A = np.einsum("j,jmn->mn", grown.weights_, K) + grown.ridge_ * np.eye(30)
    np.testing.assert_allclose(grown.coef_, np.linalg.solve(A, np.ones(30)), atol=1e-8)
    assert grown.score_samples(K[:, :3]).shape == (3,)
    grown.forget([0, 5])
    assert grown.score_samples(np.delete(K, [0, 5], axis=2)).shape == (30,)
    with pytest.raises(MissingCapabilityError, match="weighted sum"):
        grown.partial_fit(K[:, :1, :29], relearn=True)
    with pytest.raises(InvalidKernelError, match="needs shape"):
        grown.partial_fit(K[:, :1, :7])
    with pytest.raises(MissingCapabilityError, match="partial_fit instead of fit"):
        plain_fisher("precomputed").fit(K).forget([0])


def test_pickled_models_are_small_and_grow_on():
    grown = model().fit(FOURS[:40]).partial_fit(FOURS[40:50])
    data = pickle.dumps(grown)
    assert len(data) < len(pickle.dumps(model().fit(FOURS[:50]))) + 3000
    again = pickle.loads(data).partial_fit(FOURS[50:55])
    agree(again, FOURS[:55])
    assert again.n_samples_seen_ == 55


def test_rounding_does_not_pile_up():
    grown = model(delta=1e-5).fit(FOURS[:60])
    given = [*range(60)]
    for step in range(40):  # in and out, many times, with a tiny ridge
        given += range(60 + step, 70 + step)
        grown.partial_fit(FOURS[60 + step : 70 + step]).forget(np.arange(10) + step % 20)
    agree(grown, FOURS[np.array(given)[grown.sample_indices_]])


WRONG = {
    "nan": (lambda m: m.partial_fit(FOURS[:3] * np.nan), "NaN"),
    "columns": (lambda m: m.partial_fit(FOURS[:3, :5]), "features"),
    "no rows": (lambda m: m.partial_fit(FOURS[:0]), "minimum of 1"),
    "weights": (lambda m: m.partial_fit(FOURS[:3], sample_weight=[1, 2]), "sample_weight"),
    "negative": (lambda m: m.partial_fit(FOURS[:2], sample_weight=[1, -2]), "[Nn]egative"),
    "range": (lambda m: m.forget([30]), "the model holds rows 0 to 29"),
    "below": (lambda m: m.forget([-1]), "the model holds rows 0 to 29"),
    "twice": (lambda m: m.forget([1, 1]), "occurs twice"),
    "too many": (lambda m: m.forget(np.arange(29)), "would leave 1 of 30 rows"),
    "floats": (lambda m: m.forget([0.5]), "expected positions"),
    "mask": (lambda m: m.forget([True, False]), "mask of shape"),
    "budget": (lambda m: m.set_params(max_samples=1).partial_fit(FOURS[:3]), "max_samples: got 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_get_a_clear_error_and_change_nothing(case):
    grown = model().fit(FOURS[:25]).partial_fit(FOURS[25:30])
    call, message = WRONG[case]
    if case == "budget":
        before = pickle.dumps(vars(grown.set_params(max_samples=1)))
    else:
        before = pickle.dumps(vars(grown))
    with pytest.raises(ValueError, match=message):
        call(grown)
    assert pickle.dumps(vars(grown)) == before


def test_a_failed_relearning_changes_nothing():
    grown = model().fit(FOURS[:25]).partial_fit(FOURS[25:30])
    grown.set_params(delta=-1.0)
    before = pickle.dumps(vars(grown))
    with pytest.raises(ValueError, match="delta"):
        grown.partial_fit(FOURS[30:32], relearn=True)
    assert pickle.dumps(vars(grown)) == before


def test_groups_without_r():
    with pytest.raises(ValueError, match="r is None"):
        model(kernel_groups=[0, 0, 1]).fit(FOURS[:9])
    with pytest.raises(ValueError, match="kernel_groups: got"):
        model(r=1, kernel_groups=[0, 0]).fit(FOURS[:9])
    with pytest.raises(ValueError, match="r: got 0"):
        model(r=0).fit(FOURS[:9])


@pytest.mark.torch
def test_tensors_grow_and_stay_tensors():
    import torch

    grown = model().fit(torch.as_tensor(FOURS[:20]))
    grown.partial_fit(torch.as_tensor(FOURS[20:30])).forget([0])
    assert torch.is_tensor(grown.coef_)
    assert torch.is_tensor(grown.weights_)
    plain = model().fit(FOURS[:20]).partial_fit(FOURS[20:30]).forget([0])
    np.testing.assert_allclose(grown.coef_.numpy(), plain.coef_, atol=1e-10)


def test_low_rank_models_say_that_they_cannot_grow():
    low = model(storage="nystroem", landmarks=10).fit(FOURS[:40])
    with pytest.raises(MissingCapabilityError, match="nystroem"):
        low.partial_fit(FOURS[40:42])


@pytest.mark.parametrize("method", ["partial_fit", "forget"])
def test_rows_held_out_do_not_become_leave_one_out_unasked(method):
    split = model(calibration="split").fit(FOURS[:80])
    before = pickle.dumps(vars(split))
    with pytest.raises(MissingCapabilityError, match=r"calibration: got 'split'.*Fit again"):
        split.partial_fit(FOURS[80:85]) if method == "partial_fit" else split.forget([0])
    assert pickle.dumps(vars(split)) == before
    with pytest.raises(MissingCapabilityError, match="calibration"):
        model(calibration="split").partial_fit(FOURS[:80])


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_rows_of_weight_zero_count_as_seen(first):
    weight = np.r_[np.zeros(10), np.ones(90)]
    grown = getattr(model(), first)(FOURS[:100], sample_weight=weight)
    if first == "fit":
        grown.forget([89])
    assert grown.sample_indices_[:3].tolist() == [10, 11, 12]
    assert grown.n_samples_seen_ == 100
    grown.partial_fit(FOURS[100:102])
    assert grown.sample_indices_[-2:].tolist() == [100, 101]
    agree(grown, FOURS[grown.sample_indices_])


def test_relearning_is_planned_before_kernels_are_allocated(monkeypatch):
    # Three kernels and the working matrices of 60 rows need 173 kB, the update alone 144 kB.
    grown = model(storage="tiled", memory_limit="160kB").fit(FOURS[:20])
    grown.partial_fit(FOURS[20:58])
    before = pickle.dumps(vars(grown))
    monkeypatch.setattr(type(grown.bank_), "stack", None)
    with pytest.raises(MemoryLimitError, match="dense kernels of 60 x 60"):
        grown.partial_fit(FOURS[58:60], relearn=True)
    assert pickle.dumps(vars(grown)) == before


def test_a_small_first_batch_is_warned_of():
    """Scaling and widths stay those of the first rows; relearning does not change that."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(TooFewRowsWarning, match=r"partial_fit: scaling.*the first 25 rows"):
        model = plain_fisher().partial_fit(rows[:25])
    first = model.bank_.views[0].scaler.mean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(rows[25:], relearn=True)
        plain_fisher().partial_fit(rows[:30])
    np.testing.assert_array_equal(model.bank_.views[0].scaler.mean, first)


def whitened_rows(n):
    rng = np.random.default_rng(8)
    mix = rng.normal(size=(20, 20)) / np.sqrt(20)
    return rng.normal(size=(n, 20)) @ mix


def test_a_first_batch_is_calibrated_as_by_fit():
    X = whitened_rows(80)
    fitted, grown = MultiKernelFisherNull().fit(X), MultiKernelFisherNull().partial_fit(X)
    assert grown.threshold_ == fitted.threshold_
    np.testing.assert_array_equal(grown.calibration_.scores, fitted.calibration_.scores)
    np.testing.assert_array_equal(grown.explain(X).reference, fitted.explain(X).reference)


@pytest.mark.parametrize("change", ["partial_fit", "forget"])
def test_leave_one_out_that_will_not_hold_is_warned_of(change):
    X = whitened_rows(90)
    model = MultiKernelFisherNull(decision="sum").fit(X[:80])
    with pytest.warns(CalibrationWarning, match="was whitened by the"):
        model.partial_fit(X[80:]) if change == "partial_fit" else model.forget([0])


@pytest.mark.parametrize("calibration", ["folds", "split"])
def test_calibrations_that_cannot_be_kept_up(calibration):
    model = MultiKernelFisherNull(calibration=calibration, decision="sum").fit(whitened_rows(80))
    with pytest.raises(MissingCapabilityError, match=f"got '{calibration}', which partial_fit"):
        model.partial_fit(whitened_rows(2))
    with pytest.raises(MissingCapabilityError, match=f"got '{calibration}', which forget"):
        model.forget([0])
