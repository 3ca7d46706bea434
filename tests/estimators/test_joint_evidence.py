"""Tasks that decide by evidence: one task is the plain model; each has its own rows' evidence."""

from dataclasses import replace

import numpy as np
import pytest

import kernull
from kernull import JointMultiKernelFisherNull, MultiKernelFisherNull, Solver
from kernull.detector import evidence
from kernull.errors import DominantViewWarning, MissingCapabilityError
from tests.estimators.joint_data import precomputed

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning"),
    pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning"),
]

RNG = np.random.default_rng(0)
MIXING = RNG.normal(size=(2, 3, 6))
VIEWS = {"left": slice(0, 3), "right": slice(3, 6)}


def rows(task, n, seed):
    rng = np.random.default_rng([task, seed])
    return rng.normal(size=(n, 3)) @ MIXING[task] + 0.3 * rng.normal(size=(n, 6))


TRAIN = np.vstack([rows(0, 40, 0), rows(1, 30, 0)])
GROUPS = np.repeat(["a", "b"], [40, 30])
NEW = np.vstack([rows(0, 20, 1), rows(1, 20, 1)])
ASKED = np.repeat(["a", "b"], 20)


def joint(**options):
    return JointMultiKernelFisherNull(**({"views": VIEWS} | options))


@pytest.mark.parametrize("weighted", [False, True])
def test_one_task_is_the_plain_model(weighted):
    weight = np.random.default_rng(3).integers(0, 3, size=40).astype(float) if weighted else None
    alone = MultiKernelFisherNull(views=VIEWS)
    one = joint()
    first = alone.fit_predict(TRAIN[:40], sample_weight=weight)
    np.testing.assert_array_equal(one.fit_predict(TRAIN[:40], sample_weight=weight), first)
    np.testing.assert_allclose(one.weights_, alone.weights_, rtol=1e-10)
    for ask in ("score_samples", "p_values", "rarity", "evidence", "contributions"):
        expected = getattr(alone, ask)(NEW)
        np.testing.assert_allclose(getattr(one.task(), ask)(NEW), expected, rtol=1e-9, atol=1e-12)
    assert one.offset_ == pytest.approx(alone.threshold_, rel=1e-9)


def test_each_task_has_the_evidence_of_its_own_rows():
    model = joint().fit(TRAIN, groups=GROUPS)
    for name in "ab":
        alone = MultiKernelFisherNull(views=VIEWS).fit(TRAIN[name == GROUPS])
        there, rule = model.model_.tasks[name].rule, alone.model_.rule
        # The evidence of each score does not depend on the weights,
        np.testing.assert_allclose(there.left_out, rule.left_out, rtol=1e-9)
        np.testing.assert_allclose(there.factors, rule.factors, rtol=1e-9)
        # and is combined with those of all tasks.
        shared = replace(rule, projection=there.projection)
        expected = shared.score(alone.model_.kernels.cross(NEW))
        np.testing.assert_allclose(model.score_samples(NEW, groups=name), expected, rtol=1e-9)


def test_evidence_rarity_and_reasons_belong_together():
    model = joint().fit(TRAIN, groups=GROUPS)
    scores = model.score_samples(NEW, groups=ASKED)
    for name in model.tasks_:
        asked, one = NEW[name == ASKED], model.task(name)
        for by, columns in (("kernel", len(model.weights_)), ("view", 2)):
            evidence = one.evidence(asked, by=by)
            assert evidence.shape == (len(asked), columns)
            norms = np.linalg.norm(evidence, axis=1)
            assert np.corrcoef(norms, -scores[name == ASKED])[0, 1] > 0.9
        reason = one.explain(asked)
        np.testing.assert_allclose(reason.scores, scores[name == ASKED], rtol=1e-9)
        np.testing.assert_allclose(reason.rarity, one.rarity(asked), rtol=1e-9)
        np.testing.assert_allclose(reason.contributions, -(one.evidence(asked) ** 2))
        np.testing.assert_allclose(reason.p_values, model.p_values(asked, groups=name))


def test_a_broken_view_is_flagged_in_every_task():
    model = joint().fit(TRAIN, groups=GROUPS)
    assert (model.predict(NEW, groups=ASKED) == 1).mean() > 0.75
    for columns in VIEWS.values():
        broken = NEW.copy()
        broken[:, columns] = 1e8
        assert (model.predict(broken, groups=ASKED) == -1).all()


def test_an_enrolled_task_has_evidence_of_its_rows():
    model = joint(solver=Solver(tol=1e-12)).fit(TRAIN, groups=GROUPS).enroll(rows(0, 25, 5), "c")
    new = model.model_.tasks["c"].rule
    alone = MultiKernelFisherNull(views=VIEWS).fit(rows(0, 25, 5)).model_.rule
    np.testing.assert_allclose(new.tails.ordered, alone.tails.ordered, rtol=1e-9)


def test_views_have_a_say_by_the_gate_of_each_task():
    model = joint().fit(TRAIN, groups=GROUPS).enroll(rows(0, 25, 5), "c")
    for task in model.model_.tasks.values():
        assert task.rule.factors.shape == task.rule.extrapolates.shape


def test_given_kernels_are_those_of_the_plain_model():
    table = RNG.normal(size=(40, 64 * 3))
    stack = precomputed(table)
    tasks = {"a": stack[:, :20, :20], "b": stack[:, 20:, 20:]}
    model = JointMultiKernelFisherNull("precomputed").fit(tasks)
    alone = MultiKernelFisherNull("precomputed").fit(tasks["b"])
    own = model.model_.tasks["b"].rule
    np.testing.assert_allclose(own.tails.ordered, alone.model_.rule.tails.ordered, atol=1e-10)
    np.testing.assert_allclose(model.model_.tasks["b"].kernels.scale, alone.scale_, rtol=1e-10)
    asked = {"a": stack[:, 20:25, :20]}
    assert model.score_samples(asked)["a"].shape == (5,)
    assert model.enroll(stack[:, 10:30, 10:30], "c").tasks_ == ["a", "b", "c"]


def test_more_rows_than_evidence_is_learned_from(monkeypatch):
    monkeypatch.setattr(evidence, "EVIDENCE_ROWS", 25)
    flags = joint().fit_predict(TRAIN, groups=GROUPS)
    assert set(flags) == {1, -1}
    stack = np.exp(-((TRAIN[:, None] - TRAIN[None]) ** 2).sum(axis=-1) / 12)[None]
    given = JointMultiKernelFisherNull("precomputed")
    stacks = {name: stack[:, name == GROUPS][:, :, name == GROUPS] for name in "ab"}
    assert (given.fit_predict(stacks) == 1).mean() > 0.8


def test_files_keep_the_evidence_of_each_task(tmp_path):
    model = joint().fit(TRAIN, groups=GROUPS).enroll(rows(0, 25, 5), "c")
    kernull.save(model, tmp_path / "joint.kernull")
    loaded = kernull.load(tmp_path / "joint.kernull")
    np.testing.assert_array_equal(loaded.task("a").rarity(NEW), model.task("a").rarity(NEW))
    np.testing.assert_array_equal(
        loaded.score_samples(NEW, groups="c"), model.score_samples(NEW, groups="c")
    )


def test_what_the_sum_does_not_have_is_absent():
    model = joint(decision="sum").fit(TRAIN, groups=GROUPS)
    assert not hasattr(model.task("a"), "evidence")
    assert not hasattr(model.task("a"), "rarity")
    with pytest.raises(MissingCapabilityError, match="calibration: got 'split'"):
        joint(calibration="split").fit(TRAIN, groups=GROUPS)
    with pytest.raises(MissingCapabilityError, match="contamination: got"):
        joint(contamination=0.1).fit(TRAIN, groups=GROUPS)
    with pytest.raises(ValueError, match="decision: got 'vote'"):
        joint(decision="vote").fit(TRAIN, groups=GROUPS)


def test_a_view_that_seizes_the_weight_is_named():
    views = {"left": [0], "right": [1], "noise": [2], "more": [3], "last": [4]}
    table = TRAIN.copy()
    table[:, 2] = np.arange(len(table)) % 12 == 0
    with pytest.warns(DominantViewWarning, match="noise"):
        joint(views=views, scaling="standard").fit(table, groups=GROUPS)
