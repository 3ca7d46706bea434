"""Kernels given as matrices: their diagonals and scales, at fit and in scores."""

import numpy as np
import pytest
from sklearn.base import clone

from kernull import GaussianProcessOneClass, KernelPCANovelty, KernelStack, MultiKernelSVDD
from kernull.errors import InvalidKernelError
from kernull.selection import TargetsOnly

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
NEW = RNG.normal(size=(60, 3)) * 3.0
VARIANCE = GaussianProcessOneClass("precomputed", score_type="variance")
LEAVING_OUT = [
    (MultiKernelSVDD("precomputed"), "split"),
    (KernelPCANovelty("precomputed"), "split"),
    (VARIANCE, "split"),
    (VARIANCE, "zero weights"),
]


def between(rows, columns):
    """Two kernels, neither of constant diagonal."""
    linear = rows @ columns.T
    return np.stack([linear, (1.0 + linear) ** 2])


def own(rows):
    return np.einsum("jii->ji", between(rows, rows))


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
@pytest.mark.parametrize(("estimator", "how"), LEAVING_OUT)
class TestRowsThatFitLeavesOut:
    def fitted(self, estimator, how, kernels):
        model = clone(estimator)
        if how == "split":
            return model.set_params(calibration="split").fit(kernels)
        return model.fit(kernels, sample_weight=np.where(np.arange(40) < 30, 1.0, 0.0))

    def test_their_diagonal_is_in_the_array(self, estimator, how):
        K = between(X, X)
        given = self.fitted(estimator, how, KernelStack(K, diagonal=own(X)))
        for kernels in (K, KernelStack(K)):
            model = self.fitted(estimator, how, kernels)
            np.testing.assert_array_equal(model._training_scores, given._training_scores)
            assert model.threshold_ == given.threshold_

    def test_their_scores_are_those_of_new_rows(self, estimator, how):
        model = self.fitted(estimator, how, between(X, X))
        left = np.setdiff1d(np.arange(40), model._learned_rows)
        cross = KernelStack(between(X[left], X), diagonal=own(X[left]))
        np.testing.assert_allclose(model._training_scores[left], model.score_samples(cross))


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
