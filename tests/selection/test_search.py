"""MultiKernelFisherNullCV against fits done by hand, and by scikit-learn's rules."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernull
from kernull.errors import EdgeOfGridWarning, MissingCapabilityError
from kernull.models import GivenRows
from kernull.models.grid import Sums
from kernull.paths import shared_path
from kernull.selection import (
    PAPER_GRID,
    TARGETS_ONLY,
    MultiKernelFisherNullCV,
    OneClassKFold,
    SelectionDisplay,
)
from kernull.stacks import DenseStack
from tests.plain import plain_fisher

GRID = {"ps": [1, 2, np.inf], "deltas": [1e-3, 1e-2, 1e-1], "widths": [0.25, 1.0]}
SUM = {"decision": "sum", "normalize": "none"}
GRID |= {"scaling": "standard", **SUM}


def wine():
    X, label = load_wine(return_X_y=True)
    keep = np.r_[0:100]
    return X[keep], np.where(label == 0, 1, -1)[keep]


@pytest.fixture(autouse=True)
def no_edge_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeOfGridWarning)
        yield


def by_hand(X, y, metric, cv):
    """Scores of every model from fits one by one, of shape (folds, widths, ps, deltas)."""
    out = []
    for train, test in cv.split(X, y):
        for width in GRID["widths"]:
            for p in GRID["ps"]:
                for delta in GRID["deltas"]:
                    model = plain_fisher(views="features", p=p, delta=delta, widths=width, tol=1e-8)
                    scores = model.fit(X[train]).score_samples(X[test])
                    out.append(metric(y[test] == 1, scores))
    return np.array(out).reshape(-1, 2, 3, 3)


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [("auc", roc_auc_score), ("average_precision", average_precision_score)],
)
def test_scores_are_those_of_fits_one_by_one(scoring, metric):
    X, y = wine()
    cv = OneClassKFold(3, random_state=0)
    search = MultiKernelFisherNullCV(views="features", **GRID, cv=cv, scoring=scoring, tol=1e-8)
    search.fit(X, y)
    expected = by_hand(X, y, metric, cv)
    np.testing.assert_allclose(search.scores_, expected.mean(axis=0), atol=1e-10)
    first = search.cv_results_["split0_test_score"].reshape(2, 3, 3)
    np.testing.assert_allclose(first, expected[0], atol=1e-10)


def test_the_final_model_is_a_plain_fit_on_the_targets():
    X, y = wine()
    search = MultiKernelFisherNullCV(views="features", **GRID).fit(X, y)
    plain = plain_fisher(views="features", **search.best_params_).fit(X[y == 1])
    np.testing.assert_allclose(search.score_samples(X), plain.score_samples(X))
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))
    np.testing.assert_allclose(search.contributions(X).sum(axis=1), search.score_samples(X))
    assert search.gap_ <= 1e-6
    assert search.offset_ == plain.offset_


def test_results_follow_scikit_learns_conventions():
    X, y = wine()
    search = MultiKernelFisherNullCV(views="features", **GRID, cv=4).fit(X, y)
    results = search.cv_results_
    assert search.n_splits_ == 4
    assert len(results["params"]) == 18
    splits = np.stack([results[f"split{k}_test_score"] for k in range(4)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"][search.best_index_] == 1
    assert results["mean_test_score"][search.best_index_] == search.best_score_
    assert results["params"][search.best_index_] == search.best_params_
    assert results["max_gap"].max() <= 1e-4
    pd = pytest.importorskip("pandas")
    assert len(pd.DataFrame(results)) == 18
    assert clone(search).get_params()["cv"] == 4


@pytest.mark.parametrize("scoring", TARGETS_ONLY)
@pytest.mark.parametrize("cv", [3, "loo"])
def test_no_outliers_are_needed(scoring, cv):
    X, y = wine()
    search = MultiKernelFisherNullCV(views="features", **GRID, scoring=scoring, cv=cv)
    search.fit(X[y == 1])
    assert np.isfinite(search.scores_).all()
    assert roc_auc_score(y == 1, search.score_samples(X)) > 0.8
    again = clone(search).fit(X[y == 1])
    np.testing.assert_array_equal(search.scores_, again.scores_)


def test_leave_one_out_is_n_refits_at_fixed_weights():
    X, y = wine()
    targets = X[y == 1][:15]
    rows = np.vstack([targets, X[y == -1][:10]])
    K = np.exp(-(((rows[:, None] - rows) / X.std(axis=0)) ** 2)).transpose(2, 0, 1)
    labels = np.r_[np.ones(15), -np.ones(10)]
    alike = {"tol": 1e-10, "false_alarm_rate": 0.1}
    search = MultiKernelFisherNullCV("precomputed", ps=[2], deltas=[0.01], cv="loo", **SUM, **alike)
    search.fit(K, labels)
    b = plain_fisher("precomputed", delta=0.01, **alike).fit(K[:, :15, :15]).weights_
    Kb = np.tensordot(b, K, 1)
    left_out = []
    for i in range(15):
        rest = np.delete(np.arange(15), i)
        a = np.linalg.solve(Kb[np.ix_(rest, rest)] + 0.01 * 15 * np.eye(14), np.ones(14))
        left_out.append(Kb[i, rest] @ a)
    a = np.linalg.solve(Kb[:15, :15] + 0.01 * 15 * np.eye(15), np.ones(15))
    scores = np.r_[left_out, Kb[15:, :15] @ a]
    assert search.best_score_ == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def test_precomputed_kernels():
    X, y = wine()
    Z = X / X.std(axis=0)
    K = np.exp(-((Z[:, None] - Z) ** 2)).transpose(2, 0, 1)
    search = MultiKernelFisherNullCV("precomputed", ps=[1, 2], deltas=[0.01, 0.1]).fit(K, y)
    assert search.scores_.shape == (1, 2, 2)
    assert search.score_samples(K[:, :7]).shape == (7,)
    assert roc_auc_score(y == 1, search.decision_function(K)) > 0.9
    stacked = MultiKernelFisherNullCV("precomputed", ps=[1, 2], deltas=[0.01, 0.1])
    stacked.fit(DenseStack(K), y)
    np.testing.assert_array_equal(stacked.score_samples(K), search.score_samples(K))
    alone = MultiKernelFisherNullCV(
        "precomputed", ps=[1, 2], deltas=[0.01], scoring="consistency", **SUM
    )
    inside = K[:, y == 1][:, :, y == 1]
    assert alone.fit(inside).scores_.shape == (1, 2, 1)
    with pytest.raises(ValueError, match="precomputed kernels do not have"):
        MultiKernelFisherNullCV("precomputed", ps=[2], deltas=[0.1]).fit(inside)


@pytest.mark.parametrize("storage", ["tiled", "nystroem"])
def test_every_way_to_keep_kernels(storage):
    X, y = wine()
    few = SUM | {"ps": [1, 2], "deltas": [0.01, 0.1], "widths": [0.5], "cv": 3, "tol": 1e-6}
    dense = MultiKernelFisherNullCV(views="features", **few).fit(X, y)
    other = MultiKernelFisherNullCV(views="features", storage=storage, **few)
    if storage == "nystroem":
        other.set_params(model_params={"landmarks": 30})
    other.fit(X, y)
    np.testing.assert_allclose(
        other.scores_, dense.scores_, atol=1e-10 if storage == "tiled" else 5e-3
    )
    assert roc_auc_score(y == 1, other.score_samples(X)) > 0.95


def test_mixed_norms_reach_the_path():
    X, y = wine()
    few = SUM | {"ps": [1, 2], "deltas": [0.01], "widths": [0.5], "cv": 3, "tol": 1e-8}
    groups = [f"{j % 2}" for j in range(X.shape[1])]
    mixed = {"r": 1.0, "kernel_groups": groups}
    plain, search = (
        MultiKernelFisherNullCV(
            views="features", scaling="standard", model_params=params, **few
        ).fit(X, y)
        for params in (None, mixed)
    )
    np.testing.assert_allclose(search.scores_[0, 0], plain.scores_[0, 0], atol=1e-10)  # r = p = 1
    assert not np.allclose(search.scores_[0, 1], plain.scores_[0, 1], atol=1e-6)
    assert search.best_estimator_.r == 1.0


def test_tables_keep_their_names():
    pd = pytest.importorskip("pandas")
    X, y = wine()
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    views = {"first": ["c0", "c1", "c2"], "rest": slice("c3", "c12")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EdgeOfGridWarning)
        search = MultiKernelFisherNullCV(views=views, **GRID).fit(table[y == 1])
        search.predict(table)
    assert list(search.feature_names_in_) == list(table.columns)
    assert list(search.kernel_names_) == ["first", "rest"]


def test_processes_change_nothing():
    X, y = wine()
    one, two = (
        MultiKernelFisherNullCV(views="features", **GRID, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    )
    np.testing.assert_allclose(one.scores_, two.scores_, atol=1e-12)


def test_the_edge_of_the_grid_is_told():
    X, y = wine()
    rows = np.vstack([X[y == 1], X[y == -1][:20]])
    labels = np.r_[np.ones((y == 1).sum()), -np.ones(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", EdgeOfGridWarning)
        search = MultiKernelFisherNullCV(ps=[2], deltas=[0.01], widths=[0.01, 4.0])
        with pytest.raises(EdgeOfGridWarning, match="lies on the edge of its grid"):
            search.fit(rows, labels)
        MultiKernelFisherNullCV(ps=[2], deltas=[0.01], widths=[0.5]).fit(rows, labels)


def test_progress_goes_to_stderr(capsys):
    X, y = wine()
    MultiKernelFisherNullCV(ps=[2], deltas=[0.01], widths=[0.5], verbose=1).fit(X, y)
    captured = capsys.readouterr()
    assert "choosing" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ps": []}, "ps: got an empty grid"),
        ({"deltas": ()}, "deltas: got an empty grid"),
        ({"widths": []}, "widths: got an empty grid"),
        ({"deltas": [0]}, "deltas: got 0"),
        ({"widths": [-1]}, "widths: got -1"),
        ({"cv": "lou"}, "cv: got 'lou'"),
        ({"scoring": "nonsense"}, "scoring: got 'nonsense'"),
        ({"cv": "loo", "scoring": "average_precision"}, "cv='loo' has none"),
        ({"cv": [(np.arange(10), np.arange(10, 20))]}, "fold 0 has no outliers"),
        ({"cv": [(np.arange(10), np.arange(90, 100))]}, "fold 0 has no targets"),
    ],
)
def test_bad_parameters_are_named(params, message):
    X, y = wine()
    with pytest.raises(ValueError, match=message):
        MultiKernelFisherNullCV(**{"views": "features", **GRID, **params}).fit(X, y)


def test_the_papers_grid_is_legal():
    X, y = wine()
    search = kernull.MultiKernelFisherNullCV(views="features", cv=2, **PAPER_GRID).fit(X, y)
    assert search.scores_.shape == (3, 9, 7)
    assert search.best_score_ > 0.97


# -- around the defaults -----------------------------------------------------------------------


def test_the_default_is_in_the_grid():
    search, model = MultiKernelFisherNullCV(), kernull.MultiKernelFisherNull()
    assert model.p in search.ps
    assert model.delta in search.deltas
    assert model.widths in search.widths
    shared = set(search.get_params()) & set(model.get_params()) - {"widths", "tol"}
    assert {n: search.get_params()[n] for n in shared} == {n: getattr(model, n) for n in shared}
    assert search.refit_tol == model.tol


def test_a_grid_of_the_default_alone_gives_the_default_model():
    X, y = wine()
    plain = kernull.MultiKernelFisherNull().fit(X[y == 1])
    search = MultiKernelFisherNullCV(ps=[1.5], deltas=[0.01], widths="auto", cv=3).fit(X, y)
    assert search.best_params_ == {"p": 1.5, "delta": 0.01, "widths": "auto"}
    assert search.best_estimator_.get_params() == plain.get_params()
    for ask in ("score_samples", "p_values", "rarity", "evidence", "contributions"):
        found = getattr(search.best_estimator_, ask)(X)
        np.testing.assert_array_equal(found, getattr(plain, ask)(X))
    assert search.threshold_ == plain.threshold_


@pytest.mark.parametrize("storage", ["dense", "nystroem"])
@pytest.mark.parametrize("scoring", ["auc", "average_precision"])
def test_scores_by_evidence_are_those_of_fits_one_by_one(scoring, storage):
    X, y = wine()
    cv = OneClassKFold(3, random_state=0)
    options = {"storage": storage, "scaling": ("standard", "quantile")}
    options |= {"views": {"taste": slice(0, 6), "rest": slice(6, 13)}}
    ps, deltas, widths = [1.0, 1.5], [1e-2, 1e-1], ["auto", 1.0]
    metric = {"auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    search = MultiKernelFisherNullCV(
        ps=ps, deltas=deltas, widths=widths, cv=cv, scoring=scoring, tol=1e-9, **options
    ).fit(X, y)
    expected = [
        metric(
            y[test] == 1,
            kernull.MultiKernelFisherNull(p=p, delta=delta, widths=width, tol=1e-9, **options)
            .fit(X[train])
            .score_samples(X[test]),
        )
        for train, test in cv.split(X, y)
        for width in widths
        for p in ps
        for delta in deltas
    ]
    expected = np.array(expected).reshape(3, 2, 2, 2).mean(axis=0)
    np.testing.assert_allclose(search.scores_, expected, atol=1e-6)


def test_leave_one_out_by_evidence_is_that_of_a_fit():
    X, y = wine()
    grid = {"ps": [1.5], "deltas": [0.01], "widths": ["auto"], "cv": "loo", "tol": 1e-9}
    search = MultiKernelFisherNullCV(**grid).fit(X, y)
    plain = kernull.MultiKernelFisherNull(tol=1e-9).fit(X[y == 1])
    rule = plain.model_.rule
    scores = np.append(-rule.left_out(), plain.score_samples(X[y == -1]))
    labels = np.append(np.ones((y == 1).sum()), np.zeros((y == -1).sum()))
    assert search.best_score_ == pytest.approx(roc_auc_score(labels, scores), abs=1e-9)


def test_an_automatic_width_is_on_no_edge_and_travels(tmp_path):
    X, y = wine()
    with warnings.catch_warnings():
        warnings.simplefilter("error", EdgeOfGridWarning)
        search = MultiKernelFisherNullCV(ps=[1.5], deltas=[0.01], widths=[0.01, "auto"], cv=2)
        search.fit(X, y)
    assert search.widths_ == ("auto", 0.01)
    assert search.best_params_["widths"] == "auto"
    assert list(search.cv_results_["param_widths"]) == ["auto", "0.01"]
    assert "width auto" in str(
        SelectionDisplay(search.scores_, search.ps_, search.deltas_, search.widths_, (0, 0, 0))
    )
    kernull.save(search, tmp_path / "search.kernull")
    loaded = kernull.load(tmp_path / "search.kernull")
    assert loaded.widths_ == search.widths_
    np.testing.assert_array_equal(loaded.score_samples(X), search.score_samples(X))


def test_consistency_needs_the_sum():
    X, y = wine()
    with pytest.raises(MissingCapabilityError, match="decision='sum'"):
        MultiKernelFisherNullCV(scoring="consistency").fit(X[y == 1])
    with pytest.raises(MissingCapabilityError, match="score_type: got 'distance'"):
        MultiKernelFisherNullCV(score_type="distance").fit(X[y == 1])


def test_display(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = wine()
    search = MultiKernelFisherNullCV(views="features", **GRID).fit(X, y)
    display = SelectionDisplay.from_estimator(search)
    assert len(display.axes_) == 2
    drawn = display.axes_[1].images[0].get_array()
    np.testing.assert_allclose(drawn, search.scores_[1].T)
    panel = GRID["widths"].index(search.best_params_["widths"])
    assert [len(ax.patches) for ax in display.axes_] == [int(i == panel) for i in range(2)]
    display.figure_.savefig(tmp_path / "grid.png")
    text = str(display)
    assert f"[{search.best_score_:.4f}]" in text
    assert text.count("width") == 2


class AllTargets(MultiKernelFisherNullCV):
    """The checks pass classes 0, 1, 2 as y, which the search refuses; here they are ignored."""

    def fit(self, X, y=None):
        return super().fit(X)


# scikit-learn checks with a dozen rows, and predicts those that it learned from.
@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
@pytest.mark.filterwarnings("ignore::kernull.errors.TrainingRowsWarning")
@parametrize_with_checks([AllTargets(ps=[1, 2], deltas=[0.01, 0.1], widths=[0.5], **SUM, cv=2)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_leave_one_out_does_not_depend_on_how_well_the_path_was_solved():
    # Enough rows for the shared subspace, whose coefficients are as rough as the tolerance.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 3))
    K = np.exp(-((Z[:, None] - Z) ** 2)).transpose(2, 0, 1)
    stack, n = DenseStack(K), len(Z)
    path = shared_path(stack, [2.0], [1e-3, 1e-2], tol=1e-2)
    training = GivenRows(stack).training(None, slice(None), plain_fisher().learning_settings())
    grid = Sums(training, path, "projection")
    for k, delta in enumerate(path.deltas):
        A = np.tensordot(path.weights[0, k], K, 1) + delta * n * np.eye(n)
        a = np.linalg.solve(A, np.ones(n))
        exact = 1 - a / np.diag(np.linalg.inv(A))
        np.testing.assert_allclose(grid.exact((0, k))[1], exact, atol=1e-10)
        one = grid.model((0, k), 0.05)
        np.testing.assert_allclose(one.rule.coef, a, atol=1e-10)
        np.testing.assert_allclose(one.calibration.scores, np.sort(exact), atol=1e-10)
