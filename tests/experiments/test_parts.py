"""Pieces of the experiments against oracles."""

import numpy as np
import pytest
from scipy.io import savemat
from scipy.stats import friedmanchisquare
from sklearn.metrics import roc_auc_score

from benchmarks.peers import get_method
from experiments import e4_protocol, load_experiment, published
from experiments._flowers import (
    DESCRIPTORS,
    PUBLISHED,
    class_kernels,
    kernel_of_distances,
    published_distances,
)
from experiments._models import (
    LAST,
    LOWEST,
    NEXT,
    Split,
    aucs,
    cycle_at_p_1,
    kernels_by_width,
    path_scores,
    printed_at_p_1,
    printed_scores,
    split_rows,
)
from experiments._ranks import paired, rank_methods
from experiments.e2 import best_threshold
from kernull import Solver
from kernull.mkl.problems import FisherProblem
from tests.plain import plain_fisher


def test_exact_ties_share_their_rank():
    """Sums in another order differ in the last bit and nothing else."""
    one, other = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert one != other
    ranking = rank_methods(["a", "b", "c"], [[one, other, 0.1], [other, one, 0.2], [0.5, 0.5, 0]])
    assert ranking.ranks == (1.5, 1.5, 3.0)
    assert paired([one, other], [other, one]) == (0.0, 0, 0, 1.0)


def test_aucs_equal_the_metric(rng):
    labels = rng.choice([1, -1], size=40)
    scores = np.round(rng.normal(size=(3, 2, 40)), 1)  # with ties
    found = aucs(labels, scores)
    for index in np.ndindex(3, 2):
        assert found[index] == pytest.approx(roc_auc_score(labels, scores[index]), abs=1e-14)


def test_split_keeps_the_shares(rng):
    labels = np.repeat([1, -1], [50, 21])
    split = split_rows(labels, rng)
    assert sorted(np.concatenate(split)) == list(range(71))
    assert (labels[split.train] == 1).all()
    assert [len(split.train), (labels[split.validation] == 1).sum()] == [30, 10]
    assert [(labels[part] == -1).sum() for part in split[1:]] == [10, 11]


def test_kernels_and_scores_equal_the_estimator(wine):
    """Powers of kernels and the shared path against one plain fit for each model."""
    targets, outliers = wine
    X = np.concatenate([targets, outliers])
    split = Split(np.arange(40), np.arange(40, 59), np.arange(59, len(X)))
    views = {f"x{i}": X[:, i] for i in range(4)}
    seen = []
    for width, stack, cross in kernels_by_width((0.25, 1.0, 0.5, 0.3), views, split):
        seen.append(width)
        scores, _ = path_scores(stack, cross, (1.0, 2.0), (0.01, 1.0), 1e-9)
        for i, p in enumerate((1.0, 2.0)):
            model = plain_fisher(
                views="features", widths=width, p=p, delta=0.01, solver=Solver(tol=1e-9)
            )
            expected = model.fit(X[:40, :4]).score_samples(X[40:, :4])
            np.testing.assert_allclose(scores[i, 0], expected, atol=2e-5)
    assert seen == [1.0, 0.5, 0.3, 0.25]


def algorithm_1(K, delta, p, steps):
    """Weights after so many updates, and the coefficients that belong to them."""
    J, n, _ = K.shape

    def solution(b):
        return np.linalg.solve(np.tensordot(b, K, 1) + delta * n * np.eye(n), np.ones(n))

    b = np.full(J, J ** (-1 / p))
    for _ in range(steps):
        a = solution(b)
        u = np.array([a @ Kj @ a for Kj in K])
        b = np.eye(J)[u.argmax()] if p == 1 else u ** (1 / (p - 1))
        b /= np.linalg.norm(b, p)
    return b, solution(b)


@pytest.fixture
def five_kernels(wine):
    targets, outliers = wine
    X = np.concatenate([targets, outliers])
    split = Split(np.arange(40), np.arange(40, 59), np.arange(59, len(X)))
    views = {f"x{i}": X[:, i] for i in range(5)}
    ((_, stack, cross),) = kernels_by_width((0.5,), views, split)
    return stack, cross


@pytest.mark.filterwarnings("ignore:solver=.paper.")
def test_algorithm_1_of_the_experiments_is_the_papers(five_kernels):
    stack, cross = five_kernels
    ps, deltas = (1.0, 4 / 3, 4.0), (1e-3, 1.0)
    scores = printed_scores(stack, cross, ps, deltas)
    for i, p in enumerate(ps):
        for k, delta in enumerate(deltas):
            b, a = algorithm_1(stack.kernels, delta, p, 200)
            expected = np.tensordot(b, cross.kernels, 1) @ a
            np.testing.assert_allclose(scores[i, k], expected, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:solver=.paper.")
def test_every_member_of_the_cycle_at_p_1(five_kernels):
    stack, cross = five_kernels
    deltas = (1e-4, 1e-3, 1.0)
    found = printed_at_p_1(stack, cross, deltas)
    for k, delta in enumerate(deltas):
        problem = FisherProblem(stack, delta * stack.n)
        members = cycle_at_p_1(problem)
        for steps, reading in ((200, LAST), (201, NEXT)):
            b, a = algorithm_1(stack.kernels, delta, 1, steps)
            scores, kernels, every = found[reading]
            assert len(every[k]) == len(members)
            assert kernels[k] == b.argmax()
            np.testing.assert_allclose(scores[k], cross.kernels[b.argmax()] @ a, rtol=1e-9)
        for step, member in enumerate(reversed(members)):
            assert member.kernel == algorithm_1(stack.kernels, delta, 1, 200 - step)[0].argmax()
        values = [a.sum() for a in (member.coef for member in members)]
        np.testing.assert_allclose([member.value for member in members], values)
        assert found[LOWEST].kernels[k] == members[int(np.argmin(values))].kernel
    assert (found[LAST].kernels != found[NEXT].kernels).any()  # some run does end in a cycle


def test_threshold_is_the_best_there_is(rng):
    for _ in range(50):
        labels = rng.choice([1, -1], size=12)
        scores = np.round(rng.normal(size=12), 1)
        threshold, error = best_threshold(labels, scores)
        flagged = scores < threshold
        assert error == pytest.approx((flagged == (labels == 1)).mean())
        cuts = [-np.inf, *(np.unique(scores) + 1e-9)]
        assert error == pytest.approx(min(((scores < c) == (labels == 1)).mean() for c in cuts))


def test_friedman_and_critical_difference(rng):
    table = np.round(rng.normal(size=(15, 4)), 1)
    ranking = rank_methods(list("abcd"), table)
    assert ranking.p_value == pytest.approx(friedmanchisquare(*table.T).pvalue)
    # Demsar (2006), Table 5: q at 0.05 for 4 methods is 2.569.
    assert ranking.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 15)), rel=1e-3)
    assert list(ranking.ranks) == sorted(ranking.ranks)
    assert sum(ranking.ranks) == pytest.approx(10)


def test_cliques_join_what_cannot_be_told_apart():
    better = np.arange(40)[:, None] * 0.0 + np.array([4.0, 3.99, 1.0])
    ranking = rank_methods(list("abc"), better)
    # Ranks 1, 2, 3 over 40 problems: every difference is beyond the critical one.
    assert ranking.cliques() == []
    few = rank_methods(list("abc"), better[:2])
    assert few.cliques() == [(0, 2)]


def test_paired_counts():
    difference, wins, losses, p_value = paired([1, 2, 3, 4], [0, 1, 4, 4])
    assert (wins, losses) == (2, 1)
    assert difference == pytest.approx(0.25)
    assert 0 < p_value <= 1
    assert paired([1, 2], [1, 2]) == (0.0, 0, 0, 1.0)


def test_published_figures_are_the_papers():
    """A few facts the paper states about its own tables."""
    main = published.DELFT_AUC["lp MK-FN"]
    assert np.mean([mean for mean, _ in main.values()]) == pytest.approx(79.8)
    assert list(published.DELFT_AUC) == list(e4_protocol.PAPER_METHODS)
    for name in published.DELFT_SETS:  # "outperforms other methods on all datasets"
        assert max(published.DELFT_AUC, key=lambda m: published.DELFT_AUC[m][name]) == "lp MK-FN"
    assert published.TIMES_BY_SAMPLES["MK-OCSVM"][10000] == 163852.4
    assert published.DELFT_AUC["MK-SVDD"]["imports"] == (50.0, 0.0)


def test_protocol_of_e4_is_the_one_fixed_beforehand():
    from experiments.datasets._delft import TARGETS

    classes = "vehicle 4 diabetes 2 sonar 1 breast 1 imports 1 glass 1 wine 1 liver 1 survival 1"
    assert " ".join(f"{name} {c}" for name, c in TARGETS.items()) == classes
    assert e4_protocol.NUS == (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    assert sorted(e4_protocol.WIDTHS) == [0.25, 0.5, 1.0]
    assert e4_protocol.GRIDS["lp MK-FN"] == {
        "p": (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 1e6),
        "delta": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2),
    }
    for name, grid in e4_protocol.GRIDS.items():  # parameters that the methods do have
        assert set(grid) <= set(get_method(name).make().get_params(deep=True))


def test_published_distances_of_flowers(tmp_path, monkeypatch, rng):
    assert published_distances(tmp_path) is None
    folder = tmp_path / "flowers17"
    folder.mkdir()
    points = rng.normal(size=(1360, 2)).astype(np.float32)
    d = np.abs(points[:, None, 0] - points[None, :, 0]).astype(np.float32)
    savemat(folder / PUBLISHED[0], {"D_colourgc": d, "D_shapegc": 2 * d, "D_texturegc": d})
    savemat(folder / PUBLISHED[1], {f"D_{n}": d for n in ("hog", "hsv", "siftint", "siftbdy")})
    monkeypatch.setenv("KERNULL_DATA", str(tmp_path))
    kernels, names, source = class_kernels(3)
    assert kernels.shape == (7, 80, 80)
    assert set(names) >= {"colourgc", "hog", "siftbdy"}
    assert "published" in source
    part = d[240:320, 240:320].astype(float)
    np.testing.assert_allclose(kernels[0], np.exp(-part / part.mean()), atol=1e-6)


def test_kernels_of_distances_are_semidefinite(rng):
    d = rng.uniform(size=(30, 30))
    d = d + d.T
    np.fill_diagonal(d, 0)
    assert np.linalg.eigvalsh(np.exp(-d / d.mean()))[0] < -1e-3
    assert np.linalg.eigvalsh(kernel_of_distances(d))[0] > -1e-12


def test_descriptors_tell_colour_from_texture(rng):
    pytest.importorskip("skimage")
    red = np.zeros((128, 128, 3))
    red[..., 0] = 0.9
    blue = red[..., ::-1]
    stripes = red * (np.arange(128)[:, None, None] // 4 % 2)
    for name, describe in DESCRIPTORS.items():
        values = np.asarray(describe(red))
        assert (values >= 0).all()
        changes = not np.allclose(values, describe(stripes))
        assert changes, name
    for colour in ("rgb", "hsv", "lab"):
        assert not np.allclose(DESCRIPTORS[colour](red), DESCRIPTORS[colour](blue))


def test_e4_cell_equals_plain_fits(delft_home):
    """One method's cell against its estimator on the table, point by point of the grid."""
    from experiments import Cell
    from experiments.e4 import _candidates, _split, problem_of

    cell = Cell("survival 1", "GP-Average", 0)
    settings = load_experiment("E4").settings(True)
    settings["widths"] = [0.5]
    data, split = problem_of(cell.data), _split(cell)
    for width, parameters, validation, test in _candidates(cell, settings):
        model = get_method("GP-Average").make(views="features", widths=width, **parameters)
        model.fit(data.X[split.train])
        for rows, found in ((split.validation, validation), (split.test, test)):
            expected = roc_auc_score(data.y[rows], model.score_samples(data.X[rows]))
            assert found == pytest.approx(expected, abs=1e-9)
