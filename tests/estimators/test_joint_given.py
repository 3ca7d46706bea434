"""JointMultiKernelFisherNull: precomputed kernels, metadata routing, errors."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernull import KernelStack, MixedBall, Solver, Storage
from kernull.errors import InvalidKernelError
from tests.estimators.joint_data import fitted, precomputed, some
from tests.plain import plain_joint

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")


# -- precomputed -----------------------------------------------------------------------------


def test_precomputed_stacks_by_task():
    table, groups = some((0, 1, 2), 12)
    K = precomputed(table)
    names = list(dict.fromkeys(groups.tolist()))
    index = {name: np.flatnonzero(groups == name) for name in names}
    by_task = {name: K[:, index[name]][:, :, index[name]] for name in names}
    options = {"kernels": "precomputed", "solver": Solver(tol=1e-10)}
    separate = plain_joint(**options).fit(by_task)
    scores = separate.score_samples(by_task)
    for name in names:
        own = by_task[name]
        truth = np.einsum("j,jmn,n->m", separate.weights_, own, separate.task(name).coef_)
        np.testing.assert_allclose(scores[name], truth, atol=1e-12)
        np.testing.assert_allclose(separate.task(name).score_samples(own), truth, atol=1e-12)
        assert set(separate.predict(by_task)[name]) <= {-1, 1}
    new = precomputed(some([3], 9)[0])
    separate.enroll(new, "three")
    assert separate.task("three").coef_.shape == (9,)
    with pytest.raises(InvalidKernelError, match="fitted on 3 kernels of 9 rows"):
        separate.score_samples({"three": new[:, :, :5]})


def test_precomputed_mistakes():
    table, groups = some((0, 1), 6)
    K = precomputed(table)
    model = plain_joint(kernels="precomputed")
    for wrong, said in (({"a": K}, groups), (K, None)):
        with pytest.raises(ValueError, match="precomputed kernels of tasks come as a mapping"):
            model.fit(wrong, groups=said)
    with pytest.raises(InvalidKernelError, match=r"tasks have \[2, 3\] kernels"):
        model.fit({"a": K, "b": K[:2]})
    with pytest.raises(InvalidKernelError, match="task 'b'"):
        model.fit({"a": K, "b": K[:, :, :4]})
    with pytest.raises(InvalidKernelError, match=r"task 'a': kernels: got 1 training row"):
        model.fit({"a": K[:, :1, :1]})
    with pytest.raises(ValueError, match="empty mapping"):
        model.fit({})
    with pytest.raises(ValueError, match="p: precomputed kernels belong to no view"):
        plain_joint(kernels="precomputed", p=MixedBall(2, 1)).fit({"a": K})
    grouped = plain_joint(kernels="precomputed", p=MixedBall(2, 1, ["x", "x", "y"]))
    assert grouped.fit({"a": K}).gap_ <= 1e-6


def test_the_scale_of_a_stack_counts_at_scoring_too():
    """Scaled kernels are the same kernels multiplied beforehand."""
    table, groups = some((0, 1), 12)
    K, scale = precomputed(table), np.array([0.5, 2.0, 3.0])
    times = K * scale[:, None, None]
    rows = {name: np.flatnonzero(groups == name) for name in ("zero", "one")}
    stack = {name: KernelStack(K, scale)[np.ix_(i, i)] for name, i in rows.items()}
    plain = {name: times[:, i][:, :, i] for name, i in rows.items()}
    new = {name: K[:, 2:7][:, :, i] for name, i in rows.items()}
    multiplied = {name: times[:, 2:7][:, :, i] for name, i in rows.items()}
    model = plain_joint("precomputed", solver=Solver(tol=1e-10)).fit(stack)
    expected = plain_joint("precomputed", solver=Solver(tol=1e-10)).fit(plain)
    np.testing.assert_allclose(model.weights_, expected.weights_, rtol=1e-10)
    wanted = expected.score_samples(multiplied)
    for given in (new, _scaled(new, scale)):  # bare values, and a stack with the same scale
        scores = model.score_samples(given)
        for name in rows:
            np.testing.assert_allclose(scores[name], wanted[name], rtol=1e-10)
    with pytest.raises(InvalidKernelError, match="scale: got"):
        model.score_samples(_scaled(new, 2 * scale))


def _scaled(kernels, scale):
    return {name: KernelStack(part, scale) for name, part in kernels.items()}


def test_long_tasks_have_exact_coefficients():
    # From 600 rows on the solver stops at coefficients that are good enough for its certificate.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((620, 3))
    K = np.exp(-((Z[:, None] - Z) ** 2)).transpose(2, 0, 1)
    kernels = {"long": K, "short": K[:, :50, :50]}
    model = plain_joint("precomputed", solver=Solver(tol=1e-2), delta=1e-3).fit(kernels)
    assert model.solver_ == "subspace"
    for name, stack in kernels.items():
        n = stack.shape[1]
        A = np.tensordot(model.weights_, stack, 1) + 1e-3 * n * np.eye(n)
        a = np.linalg.solve(A, np.ones(n))
        np.testing.assert_allclose(model.task(name).coef_, a, atol=1e-10)


# -- metadata routing ------------------------------------------------------------------------


def test_groups_travel_through_pipelines_and_cross_validation():
    table, groups = some((0, 1), 30)
    labels = np.ones(60)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), plain_joint())
        pipe.fit(table, groups=groups)
        assert pipe[-1].tasks_ == ["zero", "one"]
        assert pipe.predict(table, groups=groups).shape == (60,)
        assert pipe.decision_function(table, groups=groups).shape == (60,)
        with pytest.raises(ValueError, match="groups: missing"):
            pipe.predict(table)
        order = np.random.default_rng(0).permutation(60)
        out = cross_validate(
            plain_joint(),
            table[order],
            labels,
            params={"groups": groups[order]},
            scoring=_GroupScorer(),
            cv=3,
            error_score="raise",
        )
        assert out["test_score"].shape == (3,)


class _GroupScorer:
    """Share of rows accepted by their own task."""

    def __call__(self, estimator, X, y, groups=None):
        return float((estimator.predict(X, groups=groups) == 1).mean())

    def get_metadata_routing(self):
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="scorer")
        request.score.add_request(param="groups", alias=True)
        return request


# -- errors leave the model unchanged --------------------------------------------------------


def snapshot(model):
    return pickle.dumps(vars(model))


WRONG = {
    "unknown group": (lambda m, t: m.score_samples(t, groups="nine"), "unknown task"),
    "one unknown row": (
        lambda m, t: m.predict(t, groups=["zero"] * (len(t) - 1) + ["x"]),
        "unknown task",
    ),
    "groups missing": (lambda m, t: m.score_samples(t), "groups: missing"),
    "decision without groups": (lambda m, t: m.decision_function(t), "groups: missing"),
    "groups too short": (lambda m, t: m.predict(t, groups=["zero"]), "groups: got shape"),
    "a row without task": (
        lambda m, t: m.score_samples(t, groups=["zero"] * (len(t) - 1) + [None]),
        "has no task",
    ),
    "enroll a known name": (lambda m, t: m.enroll(t, "zero"), "already has a task 'zero'"),
    "enroll nothing": (lambda m, t: m.enroll(t[:0], "new"), r"got 0 row\(s\)"),
    "enroll one row": (lambda m, t: m.enroll(t[:1], "new"), r"got 1 row\(s\)"),
    "enroll nan": (lambda m, t: m.enroll(t * np.nan, "new"), "NaN"),
    "enroll other columns": (lambda m, t: m.enroll(t[:, :3], "new"), "features"),
    "enroll without a name": (lambda m, t: m.enroll(t, None), "has no task"),
    "forget unknown": (lambda m, t: m.forget("nine"), "unknown task"),
    "fit with a group of one": (
        lambda m, t: m.fit(t, groups=["a"] * (len(t) - 1) + ["b"]),
        r"'b' \(1\)",
    ),
    "fit with an empty group": (
        lambda m, t: m.fit(t, groups=["a"] * 3 + ["b"] * 4, sample_weight=[1] * 3 + [0] * 4),
        r"'b' \(0\)",
    ),
    "fit with a missing group": (
        lambda m, t: m.fit(t, groups=[np.nan] + [1.0] * (len(t) - 1)),
        "row 0 has no task",
    ),
    "fit with a wrong length": (lambda m, t: m.fit(t, groups=["a"]), "groups: got shape"),
    "fit on nan": (lambda m, t: m.fit(t * np.nan, groups=["a"] * len(t)), "NaN"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_get_a_clear_error_and_change_nothing(case):
    model = fitted(rows=6)
    table, _ = some([3], 7)
    call, message = WRONG[case]
    before = snapshot(model)
    with pytest.raises(ValueError, match=message):
        call(model, table)
    assert snapshot(model) == before


def test_the_last_task_cannot_be_forgotten():
    model = fitted(digits=(0,), rows=6)
    with pytest.raises(ValueError, match="only task"):
        model.forget("zero")


@pytest.mark.parametrize("wrong", [{"delta": 0}, {"p": 0.5}, {"decision": "x"}, {"storage": "x"}])
def test_wrong_parameters(wrong):
    table, groups = some((0, 1), 6)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        plain_joint(**wrong).fit(table, groups=groups)


def test_memory_is_planned_before_it_is_taken():
    table, groups = some((0, 1), 20)
    with pytest.raises(MemoryError, match="memory limit"):
        plain_joint(storage=Storage(memory_limit=1000)).fit(table, groups=groups)
