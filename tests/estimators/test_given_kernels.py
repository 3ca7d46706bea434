"""Kernels given as matrices: their diagonals and scales, at fit and in scores."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from kernull import (
    JointMultiKernelFisherNull,
    KernelStack,
    MultiKernelFisherNull,
    Storage,
    load,
    save,
)
from kernull.detector.calibration import Cross
from kernull.errors import InvalidKernelError
from kernull.paper import (
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from kernull.splitters import TargetsOnly
from tests.plain import lowered, plain_fisher, row_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
NEW = RNG.normal(size=(60, 3)) * 3.0
VARIANCE = GaussianProcessOneClass("precomputed", score_type="variance")
LEAVING_OUT = [
    MultiKernelSVDD("precomputed"),
    KernelPCANovelty("precomputed"),
    VARIANCE,
]


def between(rows, columns):
    """Two kernels, neither of constant diagonal."""
    linear = rows @ columns.T
    return np.stack([linear, (1.0 + linear) ** 2])


def own(rows):
    return np.einsum("jii->ji", between(rows, rows))


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
@pytest.mark.parametrize("estimator", LEAVING_OUT)
class TestRowsThatFitLeavesOut:
    def fitted(self, estimator, kernels):
        """A fitted model, and the scores by which it judges its training rows."""
        model = clone(estimator).set_params(calibration="split")
        return model.fit(kernels), row_scores(model, kernels)

    def test_their_diagonal_is_in_the_array(self, estimator):
        K = between(X, X)
        given, expected = self.fitted(estimator, KernelStack(K, diagonal=own(X)))
        for kernels in (K, KernelStack(K)):
            model, scores = self.fitted(estimator, kernels)
            np.testing.assert_array_equal(scores, expected)
            assert model.threshold_ == given.threshold_

    def test_their_scores_are_those_of_new_rows(self, estimator):
        model, scores = self.fitted(estimator, between(X, X))
        left = np.setdiff1d(np.arange(40), model.model_.learned)
        cross = KernelStack(between(X[left], X), diagonal=own(X[left]))
        np.testing.assert_allclose(scores[left], model.score_samples(cross))


def trained(kind):
    if kind == "split":
        model = MultiKernelSVDD("precomputed", calibration="split")
        return model.fit(KernelStack(between(X, X)))
    y = np.where(np.arange(40) < 30, 1, -1)
    return TargetsOnly(MultiKernelSVDD("precomputed")).fit(KernelStack(between(X, X)), y)


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
class TestAsManyNewRowsAsTrainingRows:
    @pytest.mark.parametrize("kind", ["split", "targets"])
    @pytest.mark.parametrize("m", [39, 40, 41])
    def test_a_square_cross_stack_does_not_tell_the_diagonal(self, kind, m):
        model = trained(kind)
        with pytest.raises(InvalidKernelError, match="KernelStack"):
            model.score_samples(KernelStack(between(NEW[:m], X)))

    @pytest.mark.parametrize("kind", ["split", "targets"])
    def test_given_the_diagonal_scores_do_not_depend_on_the_number_of_rows(self, kind):
        model = trained(kind)
        whole = model.score_samples(KernelStack(between(NEW, X), diagonal=own(NEW)))
        part = model.score_samples(KernelStack(between(NEW[:40], X), diagonal=own(NEW[:40])))
        np.testing.assert_allclose(part, whole[:40], rtol=1e-12)


SCALE = np.array([3.0, 0.25])
ALL = [
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelFisherNull,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
]


@pytest.mark.parametrize("cls", ALL)
class TestScale:
    def expected(self, cls):
        """Scores of a model of kernels that were multiplied out."""
        K = SCALE[:, None, None]
        model = cls("precomputed").fit(K * between(X, X))
        diagonal = SCALE[:, None] * own(NEW)
        return model.score_samples(KernelStack(K * between(NEW, X), diagonal=diagonal))

    def fitted(self, cls):
        return cls("precomputed").fit(KernelStack(between(X, X), SCALE))

    @pytest.mark.parametrize("scale", [None, np.ones(2), SCALE])
    def test_of_the_fit_holds_in_scores(self, cls, scale):
        scores = self.fitted(cls).score_samples(KernelStack(between(NEW, X), scale, own(NEW)))
        expected = self.expected(cls)
        np.testing.assert_allclose(scores, expected, atol=1e-6 * np.ptp(expected))

    def test_another_one_is_refused(self, cls):
        for kernels in (KernelStack(between(X, X), SCALE), between(X, X)):
            model = cls("precomputed").fit(kernels)
            with pytest.raises(InvalidKernelError, match=r"scale: got \[2\. 2\.\]"):
                model.score_samples(KernelStack(between(NEW, X), 2 * np.ones(2), own(NEW)))

    def test_files_keep_it(self, cls, tmp_path):
        model, stack = self.fitted(cls), KernelStack(between(NEW, X), diagonal=own(NEW))
        save(model, tmp_path / "model")
        scores = load(tmp_path / "model").score_samples(stack)
        np.testing.assert_array_equal(scores, model.score_samples(stack))

    def test_a_later_fit_on_a_table_forgets_it(self, cls):
        model = self.fitted(cls).set_params(kernels="rbf").fit(X)
        np.testing.assert_array_equal(model.score_samples(NEW), cls().fit(X).score_samples(NEW))


def test_plain_arrays_take_the_scale_of_the_fit():
    factor = SCALE[:, None, None]
    model = plain_fisher("precomputed").fit(KernelStack(between(X, X), SCALE))
    plain = plain_fisher("precomputed").fit(factor * between(X, X))
    scores = model.score_samples(between(NEW, X))
    expected = plain.score_samples(factor * between(NEW, X))
    np.testing.assert_allclose(scores, expected, atol=1e-6 * np.ptp(expected))


class TestNames:
    NAMES = ("straight", "bent")

    def test_show_in_the_model_and_its_explanations(self, tmp_path):
        stack = KernelStack(between(X, X), names=self.NAMES)
        model = plain_fisher("precomputed").fit(stack)
        assert model.kernel_names_.tolist() == list(self.NAMES)
        assert "bent" in str(model.explain(between(X, X)[:, :1]))
        plain = plain_fisher("precomputed").fit(between(X, X))
        assert plain.kernel_names_.tolist() == ["kernel 0", "kernel 1"]
        new = between(NEW, X)
        np.testing.assert_array_equal(model.score_samples(new), plain.score_samples(new))
        np.testing.assert_array_equal(
            model.score_samples(new, missing_views="bent"),
            plain.score_samples(new, missing_views="kernel 1"),
        )
        save(model, tmp_path / "model")
        assert load(tmp_path / "model").kernel_names_.tolist() == list(self.NAMES)

    def test_travel_with_slices(self):
        stack = KernelStack(between(X, X), names=self.NAMES)
        assert stack[np.ix_([0, 1], [2, 3])].names == self.NAMES
        assert stack[:5].names == stack.columns([1, 2]).names == self.NAMES
        assert stack.select([False, True]).names == ("bent",)
        small = plain_fisher("precomputed", storage=Storage(dtype="float32")).fit(stack)
        assert small.kernel_names_.tolist() == list(self.NAMES)

    def test_of_other_kernels_are_refused(self):
        model = plain_fisher("precomputed")
        model.fit(KernelStack(between(X, X), names=self.NAMES))
        swapped = KernelStack(between(NEW, X)[::-1], names=self.NAMES[::-1])
        with pytest.raises(InvalidKernelError, match=r"names: got \['bent', 'straight'\]"):
            model.score_samples(swapped)

    @pytest.mark.parametrize("names", ["ab", ["a"], ["a", "a"], [1, 2]])
    def test_are_checked(self, names):
        with pytest.raises(ValueError, match="names: got"):
            KernelStack(between(X, X), names=names)

    @pytest.mark.filterwarnings("ignore::kernull.errors.DominantViewWarning")  # of three kernels
    def test_of_tasks(self, tmp_path):
        stack = KernelStack(between(X, X), names=self.NAMES)
        tasks = {"a": stack[np.ix_(range(20), range(20))], "b": between(X[20:], X[20:])}
        model = JointMultiKernelFisherNull("precomputed").fit(tasks)
        assert model.kernel_names_.tolist() == list(self.NAMES)
        save(model, tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.model_.tasks["a"].kernels.names == self.NAMES
        swapped = KernelStack(between(X[:9], X[:9]), names=self.NAMES[::-1])
        for wrong in (
            lambda: model.enroll(swapped, "c"),
            lambda: model.fit({**tasks, "c": swapped}),
            lambda: model.score_samples({"a": swapped[np.ix_(range(9), [0] * 20)]}),
        ):
            with pytest.raises(InvalidKernelError, match=r"names: got \['bent', 'straight'\]"):
                wrong()


def rbf_kernels(rng, n=40):
    X = rng.normal(size=(n, 4))
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    return np.stack([np.exp(-squared / s) for s in (2.0, 8.0, 32.0)])


def test_left_out_contributions_are_those_of_refits(rng):
    """As many folds as rows leave one row out."""
    K = rbf_kernels(rng)
    options = {"decision": "sum", "normalize": "none", "calibration": Cross(folds=40)}
    model = MultiKernelFisherNull("precomputed", **options).fit(K)
    scores, parts = model.calibration_.scores, model.model_.left_out
    n, b = K.shape[1], model.weights_
    ridge = model.ridge_ * (n - 1) / n  # relative to the rows learned from
    truth = np.empty((n, 3))
    for i in range(n):
        others = np.arange(n) != i
        A = np.tensordot(b, K, axes=1)[np.ix_(others, others)] + ridge * np.eye(n - 1)
        truth[i] = b * (K[:, i, others] @ np.linalg.solve(A, np.ones(n - 1)))
    np.testing.assert_allclose(parts, truth, atol=1e-10)
    np.testing.assert_allclose(np.sort(lowered(truth.sum(axis=1))), scores, atol=1e-10)


def test_left_out_contributions_travel_with_copies(rng):
    K = rbf_kernels(rng)
    model = MultiKernelFisherNull("precomputed", decision="sum").fit(K)
    copy = pickle.loads(pickle.dumps(model))
    K[:] = np.eye(K.shape[1])  # the kernels of the user, used for something else
    parts = copy.model_.left_out
    np.testing.assert_array_equal(parts, model.model_.left_out)


def test_fit_leaves_the_factors_of_a_stack_alone(rng):
    stack = KernelStack(rbf_kernels(rng))
    model = MultiKernelFisherNull("precomputed").fit(stack)
    np.testing.assert_array_equal(stack.scale, np.ones(3))
    assert (model.score_samples(stack[:5]) == model.score_samples(stack.kernels[:, :5])).all()


@pytest.mark.parametrize("decision", ["sum", "evidence"])
def test_what_a_model_of_given_kernels_has_can_be_listed(decision, rng):
    """As a shell does that completes names; the sum has no evidence."""
    X = rng.normal(size=(40, 3))
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))[None]
    model = MultiKernelFisherNull(kernels="precomputed", decision=decision).fit(K)
    assert "threshold_" in dir(model)
    assert hasattr(model, "evidence") == (decision == "evidence")
