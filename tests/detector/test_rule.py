"""The whole rule, from rows to p-values, is that of plain loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernull import (
    Cross,
    Evidence,
    JointMultiKernelFisherNull,
    MultiKernelFisherNull,
    Split,
    _runtime,
)
from kernull.detector import Nearest
from kernull.detector.tails import Tails, left_out_evidence
from tests.oracles import evidence as oracle

#: Few rows are warned of, and so are rates that they cannot honour.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ALL = ("standard", "whiten", "quantile")
ONE = ("standard", "quantile")
#: What a value off a column that was constant in training becomes.
STEPS = {"standard": 32.0, "whiten": 32.0, "quantile": 3.3}
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


class Table(NamedTuple):
    """Rows to learn from, new ones, and how they are judged."""

    X: np.ndarray
    new: np.ndarray
    views: list | None = None
    scaling: tuple = ALL
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    widths: tuple = ("auto",)


def rows(draw, n, seed=0, m=8):
    """Rows, and new ones of which a half is moved away or holds values never seen."""
    rng = np.random.default_rng(seed)
    X = draw(rng, n + m)
    new = X[n:].copy()
    new[m // 2 :] += rng.normal(scale=3.0, size=new[m // 2 :].shape)
    new[-1] *= 1000.0
    return X[:n], new


def normal(d):
    return lambda rng, n: rng.normal(size=(n, d))


def factors(d):
    loads = np.random.default_rng(7).normal(size=(2, d))
    return lambda rng, n: rng.normal(size=(n, 2)) @ loads + 0.3 * rng.normal(size=(n, d))


def one_hot(rng, n):
    return np.hstack([np.eye(4)[rng.integers(4, size=n)], np.eye(3)[rng.integers(3, size=n)]])


def copies(rng, n):
    return np.repeat(rng.normal(size=(n // 3 + 1, 3)), 3, axis=0)[rng.permutation(n)]


def with_constant(rng, n):
    X = rng.normal(size=(n, 4))
    X[:, 1] = 5.0
    return X


def half_noise(rng, n):
    hidden = rng.normal(size=n)
    related = hidden[:, None] + 0.2 * rng.normal(size=(n, 3))
    return np.hstack([related, rng.normal(size=(n, 2))])


def weakly_related(rng, n):
    return rng.normal(size=(n, 4)) + 0.6 * rng.normal(size=(n, 1))


GATE_WEIGHT = np.random.default_rng(27).uniform(0.1, 1.0, 41)
WEIGHT = np.random.default_rng(3).uniform(0.02, 2.0, 40)
TABLES = {
    "continuous": Table(*rows(normal(3), 40)),
    "ties": Table(*rows(lambda rng, n: rng.integers(0, 4, (n, 3)) * 1.0, 40)),
    "copies": Table(*rows(copies, 39)),
    "one-hot": Table(*rows(one_hot, 40)),
    "factors": Table(*rows(factors(6), 40)),
    "heavy tails": Table(*rows(lambda rng, n: rng.standard_t(1.5, (n, 3)), 40)),
    "mostly copies": Table(
        *rows(lambda rng, n: (rng.random((n, 4)) < 0.1) * 1.0, 40), [[0, 1], [2, 3]]
    ),
    "copies of weight": Table(*rows(copies, 40), weight=WEIGHT),
    "weights": Table(*rows(normal(3), 40), weight=WEIGHT),
    "weights and ties": Table(
        *rows(lambda rng, n: rng.integers(0, 4, (n, 2)) * 1.0, 40), weight=WEIGHT
    ),
    "a weight of zero": Table(*rows(normal(3), 40), weight=(np.arange(40) % 7 > 0) * 1.0),
    "groups": Table(*rows(copies, 40), groups=np.arange(40) // 3),
    "groups and weights": Table(*rows(normal(2), 40), weight=WEIGHT, groups=np.arange(40) % 13),
    "more columns than rows": Table(*rows(normal(30), 20)),
    "one-column views": Table(*rows(factors(3), 40), views=[[0], [1], [2]], scaling=ONE),
    "two views": Table(*rows(half_noise, 40), views=[[0, 1, 2], [3, 4]]),
    "three views": Table(*rows(factors(5), 40), views=[[0, 1], [2, 3], [4]], scaling=ONE),
    "two views, weights and groups": Table(
        *rows(factors(4), 40), [[0, 1], [2, 3]], ALL, WEIGHT, np.arange(40) // 2
    ),
    "a constant column": Table(*rows(with_constant, 40)),
    "never-seen values": Table(*rows(one_hot, 40), views=[[0, 1, 2, 3], [4, 5, 6]]),
    "a fold of one row": Table(*rows(normal(3), 5), groups=np.array([0, 0, 1, 0, 0])),
    "3 rows": Table(*rows(normal(2), 3)),
    "12 rows": Table(*rows(normal(2), 12)),
    "20 rows": Table(*rows(factors(4), 20), views=[[0, 1], [2, 3]], scaling=ONE),
    "several widths": Table(
        *rows(normal(3), 40), views=[[0, 1], [2]], scaling=ONE, widths=(0.3, 1.0)
    ),
    "a gate half open": Table(
        *rows(weakly_related, 41, 27), [[0, 1], [2, 3]], ("standard",), GATE_WEIGHT
    ),
    "unscaled": Table(*rows(normal(3), 40), scaling=("none",)),
}


def model_of(table, **options):
    views = table.views and {f"view {v}": columns for v, columns in enumerate(table.views)}
    widths = table.widths if len(table.widths) > 1 else table.widths[0]
    options = {"views": views, "scaling": table.scaling, "widths": widths, **options}
    return MultiKernelFisherNull(**options).fit(
        table.X, sample_weight=table.weight, groups=table.groups
    )


def judged(table, b, **options):
    """By plain loops; rows of weight zero take no part."""
    X, weight, groups = table.X, table.weight, table.groups
    if weight is not None:
        X, groups, weight = (
            X[weight > 0],
            None if groups is None else groups[weight > 0],
            weight[weight > 0],
        )
    views = table.views or [list(range(X.shape[1]))]
    scalings = [table.scaling] * (len(views) + 1)
    return oracle.judge_table(
        X,
        table.new,
        b,
        views=views,
        scalings=scalings,
        steps=STEPS,
        widths=table.widths,
        weight=weight,
        groups=groups,
        **options,
    )


def assert_agrees(found, new, expected, rate=0.05):
    """The fitted model and what it says of new rows are those of the loops."""
    model = getattr(found, "model_", found)
    rule = model.rule
    np.testing.assert_allclose(rule.left_out, expected.left_out, **CLOSE)
    np.testing.assert_allclose(rule.left_out_evidence, expected.left_out_evidence, **CLOSE)
    np.testing.assert_allclose(rule.calibration_scores, expected.calibration_scores, **CLOSE)
    cross = model.kernels.cross(new)
    np.testing.assert_allclose(rule.evidence(cross), expected.evidence, **CLOSE)
    scores = rule.score(cross)
    np.testing.assert_allclose(scores, expected.scores, **CLOSE)
    np.testing.assert_allclose(model.calibration.p_values(scores), expected.p_values(), **CLOSE)
    np.testing.assert_allclose(model.threshold, expected.threshold(rate), **CLOSE)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name):
    table = TABLES[name]
    model = model_of(table)
    assert_agrees(model, table.new, judged(table, model.weights_))


def test_weights_in_part_of_a_gate():
    """A view between noise and signal counts by the odds, whatever the rounding of weights."""
    table = TABLES["a gate half open"]
    factors = model_of(table).model_.rule.factors
    assert ((factors > 1.0) & (factors < 2.0)).any()


def test_evidence_of_equal_counts_is_equal(rng):
    """However sums of weights are rounded: ties of evidence are ties of scores and of p-values."""
    weight = 1.0 / rng.integers(1, 8, 60)
    order = np.array([rng.permutation(60) for _ in range(20)]).T
    first, total = rng.permutation(60)[:30], weight.sum()
    low = np.isin(np.arange(60), first)
    scores = np.argsort(order, axis=0) + 100.0 * ~low[:, None]  # these 30 rows are the lowest
    tails = Tails.fit(scores, weight, np.full(20, True))
    middle, highest = (
        tails.evidence(np.full((1, 20), 80.0)),
        tails.evidence(np.full((1, 20), 200.0)),
    )
    assert len(np.unique(middle)) == 1
    assert middle[0, 0] == pytest.approx(-np.log((1 + weight[low].sum()) / (1 + total)))
    assert (highest == 0.0).all()
    fold = np.arange(60) % 10
    found = left_out_evidence(scores, weight, np.full(20, True), fold)
    assert (found.min(axis=0) == 0.0).all()


def test_scores_that_differ_by_rounding_have_no_tail(rng):
    scores = 13.0 + 1e-11 * rng.normal(size=(50, 1))
    tails = Tails.fit(scores, np.ones(50), np.array([True]))
    assert tails.evidence(np.array([[0.0]])) == pytest.approx(np.log(51.0))


def test_order_of_rows_whose_scores_tie_does_not_matter(rng):
    scores, weight = np.floor(np.arange(60) / 3.0), rng.uniform(0.1, 1.0, 60)
    fold, far = np.arange(60) % 10, np.array([True])
    found = left_out_evidence(scores[:, None], weight, far, fold)
    for _ in range(5):
        order = rng.permutation(60)
        permuted = left_out_evidence(scores[order, None], weight[order], far, fold[order])
        np.testing.assert_allclose(permuted, found[order], **CLOSE)


@pytest.mark.parametrize(
    ("options", "loops"),
    [
        ({"decision": Evidence(whole=False)}, {"whole": False}),
        ({"decision": Evidence(scores=[Nearest()])}, {"scores": ("nearest",)}),
        ({"calibration": Cross(folds=3)}, {"folds": 3}),
        ({"random_state": 5}, {"seed": 5}),
    ],
)
def test_settings(options, loops):
    table = TABLES["two views"]
    model = model_of(table, **options)
    assert_agrees(model, table.new, judged(table, model.weights_, **loops))


@pytest.mark.parametrize("name", ["12 rows", "20 rows"])
def test_one_fold_a_row(name):
    table = TABLES[name]
    model = model_of(table, calibration=Cross(folds=len(table.X)))
    assert_agrees(model, table.new, judged(table, model.weights_, folds=len(table.X)))


@pytest.mark.parametrize("name", ["two views", "12 rows"])
def test_split(name):
    """Rows held out calibrate the final score, and p-values count."""
    table = TABLES[name]
    model = model_of(table, calibration=Split(0.3), false_alarm_rate=0.2)
    held = oracle.held_out(table.X, 0.3)
    learned = table._replace(
        X=np.delete(table.X, held, axis=0), new=np.vstack([table.X[held], table.new])
    )
    expected = judged(learned, model.weights_)
    of_held, of_new = np.split(expected.scores, [len(held)])
    np.testing.assert_allclose(model.model_.rule.left_out, expected.left_out, **CLOSE)
    np.testing.assert_allclose(model.score_samples(table.new), of_new, **CLOSE)
    ones, of_held = np.ones(len(held)), of_held - 1e-12 * np.abs(of_held).max()
    found = [oracle.counted(of_held, ones, s) for s in of_new]
    np.testing.assert_allclose(model.p_values(table.new), found, **CLOSE)
    lowest = oracle.threshold(of_held, ones, 0.2, oracle.counted)
    np.testing.assert_allclose(model.threshold_, lowest, **CLOSE)


def kernels(seed, n=30, m=6, diagonals="constant"):
    """Square kernels of n rows, and those of m new rows with them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n + m, 3))
    x[-m // 2 :] += 4.0
    D = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    K = np.array([2.0 * np.exp(-D / 2), np.exp(-D / 8), 1 / (1 + D)])
    if diagonals == "unequal":
        K[1] = (x @ x.T + 1) ** 2
    return K[:, :n, :n], K[:, n:, :n]


KERNEL_WEIGHT = np.random.default_rng(5).uniform(0.02, 2.0, 30)


@pytest.mark.parametrize("diagonals", ["constant", "unequal"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": KERNEL_WEIGHT},
        {"groups": np.arange(30) // 2},
        {"whole": False},
        {"folds": 30},
    ],
    ids=str,
)
def test_precomputed(diagonals, options):
    K, new = kernels(0, diagonals=diagonals)
    model = MultiKernelFisherNull(
        kernels="precomputed",
        decision=Evidence(whole=options.get("whole", True)),
        calibration=Cross(options.get("folds")),
    ).fit(K, sample_weight=options.get("weight"), groups=options.get("groups"))
    assert_agrees(model, new, oracle.judge_kernels(K, new, model.weights_, **options))


def test_precomputed_weights_of_zero():
    K, new = kernels(0)
    kept = np.arange(30) % 4 > 0
    model = MultiKernelFisherNull(kernels="precomputed").fit(K, sample_weight=kept * 1.0)
    expected = oracle.judge_kernels(K[:, kept][:, :, kept], new[:, :, kept], model.weights_)
    assert_agrees(model, new[:, :, kept], expected)


def test_joint_tasks():
    """Each task is judged by its own rows under the shared weights, and so is one that enrols."""
    tables = {name: TABLES[name] for name in ("two views", "two views, weights and groups")}
    views = {"view 0": [0, 1], "view 1": [2, 3]}
    tables = {
        name: Table(table.X[:, :4], table.new[:, :4], list(views.values()), weight=table.weight)
        for name, table in tables.items()
    }
    third = Table(*rows(normal(4), 20, 4), list(views.values()))
    X = np.vstack([table.X for table in tables.values()])
    tasks = np.repeat(list(tables), [len(table.X) for table in tables.values()])
    weight = np.concatenate(
        [np.ones(40) if t.weight is None else t.weight for t in tables.values()]
    )
    model = JointMultiKernelFisherNull(views=views, scaling=ALL)
    model.fit(X, sample_weight=weight, groups=tasks).enroll(third.X, "third")
    for name, table in (tables | {"third": third}).items():
        expected = judged(table, model.weights_)
        assert_agrees(model.model_.tasks[name], table.new, expected)
        found = model.p_values(table.new, groups=[name] * len(table.new))
        np.testing.assert_allclose(found, expected.p_values(), **CLOSE)


def test_joint_precomputed_tasks():
    tasks = {name: kernels(seed, n) for name, seed, n in (("a", 0, 30), ("b", 1, 20))}
    model = JointMultiKernelFisherNull(kernels="precomputed")
    model.fit({name: K for name, (K, _) in tasks.items()})
    for name, (K, new) in tasks.items():
        assert_agrees(model.model_.tasks[name], new, oracle.judge_kernels(K, new, model.weights_))


# -- the sum ---------------------------------------------------------------------------------------


def assert_sum_agrees(model, new, left_out, scores, weight=None):
    """Left-out scores in the order of the rows, scores of new rows, their p-values, threshold."""
    found = model.model_.left_out.sum(axis=1)
    np.testing.assert_allclose(found, left_out, **CLOSE)
    np.testing.assert_allclose(model.score_samples(new), scores, **CLOSE)
    weight = oracle.rank_weights(np.ones(len(left_out)) if weight is None else weight)
    left_out = oracle.lowered(left_out)
    p_values = [oracle.p_value(left_out, weight, s) for s in scores]
    np.testing.assert_allclose(model.p_values(new), p_values, **CLOSE)
    lowest = oracle.threshold(left_out, weight, 0.05)
    np.testing.assert_allclose(model.threshold_, lowest, **CLOSE)


SUMS = ["two views", "ties", "weights", "a weight of zero", "more columns than rows"]


@pytest.mark.parametrize("name", SUMS)
def test_sum(name):
    table = TABLES[name]
    model = model_of(table, decision="sum")
    X, weight = table.X, table.weight
    if weight is not None:
        X, weight = X[weight > 0], weight[weight > 0]
    views = table.views or [list(range(X.shape[1]))]
    left_out, scores = oracle.sum_of_table(
        X,
        table.new,
        model.weights_,
        views=views,
        scalings=[table.scaling] * len(views),
        steps=STEPS,
        ridge=model.delta,
        weight=weight,
    )
    assert_sum_agrees(model, table.new, left_out, scores, weight)


@pytest.mark.parametrize("weight", [None, KERNEL_WEIGHT], ids=["", "weights"])
def test_sum_of_precomputed(weight):
    K, new = kernels(0, diagonals="unequal")
    model = MultiKernelFisherNull(kernels="precomputed", decision="sum").fit(
        K, sample_weight=weight
    )
    left_out, scores = oracle.sum_of_kernels(
        K, new, model.weights_, ridge=model.delta, weight=weight
    )
    assert_sum_agrees(model, new, left_out, scores, weight)


@pytest.mark.parametrize("n_rows", [8, 30])
def test_one_fold_a_row_is_the_closed_form_of_leave_one_out(n_rows):
    """A fold's ridge is delta times its own n - 1 rows."""
    K = kernels(2, n_rows)[0]
    options = {"decision": "sum", "normalize": "none", "calibration": Cross(n_rows), "delta": 0.03}
    model = MultiKernelFisherNull(kernels="precomputed", **options).fit(K)
    summed = np.tensordot(model.weights_, K, 1)
    expected = oracle.left_out_of_ridge_system(summed, 0.03 * (n_rows - 1))
    np.testing.assert_allclose(model.model_.left_out.sum(axis=1), expected, **CLOSE)
    # Kernels on a table that learn nothing from it.
    X = np.random.default_rng(0).normal(size=(n_rows, 3)) + 1.0
    names = ["linear", "polynomial"]
    model = MultiKernelFisherNull(kernels=names, scaling="none", **options).fit(X)
    summed = np.tensordot(model.weights_, [X @ X.T, (X @ X.T / 3 + 1) ** 3], 1)
    expected = oracle.left_out_of_ridge_system(summed, 0.03 * (n_rows - 1))
    np.testing.assert_allclose(model.model_.left_out.sum(axis=1), expected, **CLOSE)


# -- order and threads -----------------------------------------------------------------------------


def left_out_of(decision, X, weight, groups):
    """Left-out scores of the rows; p is inf, so that weights do not depend on a solver."""
    views = {"a": [0, 1], "b": [2]}
    model = MultiKernelFisherNull(views=views, p=np.inf, scaling=ONE, decision=decision)
    model.fit(X, sample_weight=weight, groups=groups)
    if decision == "sum":
        return model.model_.left_out.sum(axis=1)
    return model.model_.rule.calibration_scores


@settings(max_examples=20)
@given(
    decision=st.sampled_from(["evidence", "sum"]),
    X=st.integers(10, 24).flatmap(
        lambda n: arrays(float, (n, 3), elements=st.sampled_from([0.0, 1.0, 2.5, 7.0]))
    ),
    weighted=st.booleans(),
    seed=st.integers(0, 99),
)
def test_permuting_rows_permutes_left_out_scores(decision, X, weighted, seed):
    """Copies, which are of different folds, may change places among themselves."""
    assume((np.ptp(X, axis=0) > 0).all())
    weight = 1.0 + X[:, 0] if weighted else None
    order = np.random.default_rng(seed).permutation(len(X))
    found = left_out_of(decision, X, weight, None)
    permuted = left_out_of(decision, X[order], weight if weight is None else weight[order], None)

    def by_content(X, scores):
        return np.array(sorted(zip(X.tolist(), scores, strict=True)), dtype=object)[:, 1]

    expected = by_content(X, found).astype(float)
    np.testing.assert_allclose(by_content(X[order], permuted).astype(float), expected, **CLOSE)


@pytest.mark.parametrize("decision", ["evidence", "sum"])
def test_permuting_rows_and_groups_permutes_left_out_scores(decision, rng):
    X, groups, order = rng.normal(size=(30, 3)), np.arange(30) // 3, rng.permutation(30)
    found = left_out_of(decision, X, 1.0 + X[:, 0] ** 2, groups)
    permuted = left_out_of(decision, X[order], 1.0 + X[order, 0] ** 2, groups[order])
    np.testing.assert_allclose(permuted, found[order], **CLOSE)


@pytest.mark.parametrize("diagonals", ["constant", "unequal"])
def test_permuting_kernels_permutes_left_out_scores(diagonals, rng):
    K, order = kernels(0, diagonals=diagonals)[0], rng.permutation(30)
    model = MultiKernelFisherNull(kernels="precomputed", p=np.inf)
    found = model.fit(K).model_.rule.calibration_scores
    permuted = model.fit(K[:, order][:, :, order]).model_.rule.calibration_scores
    np.testing.assert_allclose(permuted, found[order], **CLOSE)


@pytest.mark.parametrize("decision", ["evidence", "sum"])
def test_threads(decision, rng, monkeypatch):
    """1, 2 and 16 threads give the same scores."""
    monkeypatch.setattr(_runtime, "FEW_ROWS", 0)  # else few rows take one thread
    X, new, found = rng.normal(size=(150, 3)), rng.normal(size=(20, 3)), []
    for threads in (1, 2, 16):
        with _runtime.Limit(threads) as limit, limit:
            model = MultiKernelFisherNull(
                views={"a": [0, 1], "b": [2]}, scaling=ONE, p=np.inf, decision=decision
            )
            model.fit(X)
            rule = model.model_.rule
            left_out = (
                model.model_.left_out.sum(axis=1) if decision == "sum" else rule.calibration_scores
            )
            found.append(
                [*left_out, *model.score_samples(new), *model.p_values(new), model.threshold_]
            )
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], **CLOSE)
