"""Fused-kernel estimators against scikit-learn, naive linear algebra and refits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.neighbors import KernelDensity

from kernull import KernelStack
from kernull.detector.calibration import Cross
from kernull.errors import InvalidKernelError
from kernull.paper import FisherNull, GaussianProcessOneClass, KernelPCANovelty
from tests.plain import lowered, plain_fisher

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(15, 3)) * 1.5
K, K_NEW = rbf_kernel(X, gamma=0.5), rbf_kernel(X_NEW, X, gamma=0.5)


def two_kernels(rows=None):
    A = X if rows is None else rows
    return np.stack([rbf_kernel(A, X, gamma=0.5), rbf_kernel(A, X, gamma=2.0)])


class TestGaussianProcess:
    @pytest.mark.parametrize("noise", [0.01, 0.3])
    def test_is_gaussian_process_regression_of_ones(self, noise):
        oracle = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(noise), alpha=0, optimizer=None)
        mean, std = oracle.fit(X, np.ones(40)).predict(X_NEW, return_std=True)
        for model, rows in (
            (GaussianProcessOneClass("precomputed", noise=noise).fit(K), K_NEW),
            (
                GaussianProcessOneClass(
                    lambda A, B: rbf_kernel(A, B, gamma=0.5), scaling="none", noise=noise
                ).fit(X),
                X_NEW,
            ),
        ):
            ours = model.mean_and_variance(rows)
            np.testing.assert_allclose(ours[0], mean, atol=1e-6)
            np.testing.assert_allclose(ours[1], std**2, atol=1e-6)

    def test_scores_are_the_formulas_of_mean_and_variance(self):
        m, v = GaussianProcessOneClass("precomputed").fit(K).mean_and_variance(K_NEW)
        expected = {
            "mean": m,
            "variance": -v,
            "log_density": -((1 - m) ** 2 / v + np.log(2 * np.pi * v)) / 2,
            "ratio": m / np.sqrt(v),
        }
        for name, scores in expected.items():
            model = GaussianProcessOneClass("precomputed", score_type=name).fit(K)
            np.testing.assert_allclose(model.score_samples(K_NEW), scores, rtol=1e-12)

    def test_mean_is_fisher_null_with_that_ridge(self):
        process = GaussianProcessOneClass("precomputed", noise=0.02).fit(two_kernels())
        fisher = FisherNull("precomputed", delta=0.02 / 40).fit(two_kernels())
        new = two_kernels(X_NEW)
        np.testing.assert_allclose(
            process.score_samples(new), fisher.score_samples(new), atol=1e-10
        )

    @pytest.mark.parametrize("score_type", ["mean", "variance", "log_density", "ratio"])
    def test_calibration_is_leave_one_out(self, score_type):
        model = GaussianProcessOneClass("precomputed", score_type=score_type, calibration=Cross(40))
        model.fit(K)
        refits = _refits(model, K[None])
        np.testing.assert_allclose(model.calibration_.scores, np.sort(lowered(refits)), atol=1e-8)


def _refits(model, stack):
    """Scores of each row by a model fitted to the others."""
    stack, n = KernelStack(stack), stack.shape[-1]
    out = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        fitted = clone(model).fit(stack[np.ix_(rest, rest)])
        out.append(fitted.score_samples(stack[np.ix_([i], rest)])[0])
    return np.array(out)


def naive_null_space(K, K_new):
    """The one-class null space of its papers: eigenvectors, and the origin as the other class."""
    n = len(K)
    extended = np.zeros((n + 1, n + 1))
    extended[:n, :n] = K
    centre = np.eye(n + 1) - 1 / (n + 1)
    values, vectors = np.linalg.eigh(centre @ extended @ centre)
    keep = values > 1e-12 * values[-1]
    basis = centre @ vectors[:, keep] / np.sqrt(values[keep])  # orthonormal in feature space
    means = np.zeros((n + 1, n + 1))
    means[:n, :n], means[n, n] = 1 / n, 1
    within = basis.T @ extended @ (np.eye(n + 1) - means)
    scatter, directions = np.linalg.eigh(within @ within.T)
    assert scatter[0] < 1e-10 < scatter[1]  # exactly one null direction
    null = basis @ directions[:, 0]
    cross = np.hstack([K_new, np.zeros((len(K_new), 1))])
    return np.abs(cross @ null - np.mean(extended[:n] @ null))


class TestFisherNull:
    def test_null_space_is_the_eigen_decomposition(self):
        model = FisherNull("precomputed", delta=0, score_type="null-space").fit(K)
        np.testing.assert_allclose(
            -model.score_samples(K_NEW), naive_null_space(K, K_NEW), atol=1e-6
        )

    def test_training_rows_land_on_one_without_ridge(self):
        model = FisherNull("precomputed", delta=0).fit(K)
        np.testing.assert_allclose(model.score_samples(K), 1.0, atol=1e-8)
        assert model.rank_ == 40

    def test_a_refit_with_ridge_forgets_the_rank(self):
        model = FisherNull("precomputed", delta=0).fit(K)
        model.set_params(delta=0.1).fit(K)
        assert model.rank_ is None

    def test_is_mk_fn_at_one_kernel(self):
        one = FisherNull("precomputed", delta=0.05).fit(K)
        other = plain_fisher("precomputed", delta=0.05).fit(K)
        np.testing.assert_allclose(one.score_samples(K_NEW), other.score_samples(K_NEW), atol=1e-12)
        assert one.threshold_ == pytest.approx(other.threshold_, abs=1e-12)

    @pytest.mark.parametrize("delta", [0.0, 0.01])
    @pytest.mark.parametrize(
        "kernels",
        [
            K[None],
            two_kernels(),
            linear_kernel(X)[None],
            linear_kernel(np.vstack([X, X[:3]]))[None],
        ],
        ids=["rbf", "two rbf", "low rank", "low rank with copies"],
    )
    def test_calibration_is_leave_one_out(self, kernels, delta):
        """Also for the pseudo-inverse, of kernels of full and of low rank."""
        refit = FisherNull("precomputed", delta=delta)
        model = clone(refit).set_params(calibration=Cross(kernels.shape[-1])).fit(kernels)
        expected = np.sort(lowered(_refits(refit, kernels)))
        np.testing.assert_allclose(model.calibration_.scores, expected, atol=1e-7)

    def test_distance_ranks_like_null_space(self):
        scores = [
            FisherNull("precomputed", score_type=s).fit(K).score_samples(K_NEW)
            for s in ("distance", "null-space")
        ]
        np.testing.assert_array_equal(np.argsort(scores[0]), np.argsort(scores[1]))


class TestKernelPCA:
    @pytest.mark.parametrize("m", [1, 5, 20])
    def test_is_the_reconstruction_error_of_kernel_pca(self, m):
        kernels, new = two_kernels(), two_kernels(X_NEW)
        mean, mean_new = kernels.mean(axis=0), new.mean(axis=0)
        oracle = KernelPCA(m, kernel="precomputed", eigen_solver="dense").fit(mean)
        own = 1 - 2 * mean_new.mean(axis=1) + mean.mean()
        expected = (oracle.transform(mean_new) ** 2).sum(axis=1) - own
        model = KernelPCANovelty("precomputed", components=m).fit(kernels)
        np.testing.assert_allclose(model.score_samples(new), expected, atol=1e-6)

    def test_all_directions_leave_training_rows_no_error(self):
        model = KernelPCANovelty("precomputed", components=100).fit(K)
        assert model.n_components_ == 39  # the centre costs one
        np.testing.assert_allclose(model.score_samples(K), 0.0, atol=1e-10)

    def test_no_direction_ranks_like_a_parzen_window(self):
        model = KernelPCANovelty("precomputed", components=0).fit(K)
        window = KernelDensity(bandwidth=1.0).fit(X).score_samples(X_NEW)
        np.testing.assert_array_equal(np.argsort(model.score_samples(K_NEW)), np.argsort(window))

    @pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
    def test_share_of_variance(self, share):
        m = KernelPCANovelty("precomputed", components=share).fit(K).n_components_
        centre = np.eye(40) - 1 / 40
        values = np.linalg.eigvalsh(centre @ K @ centre)[::-1]
        assert values[:m].sum() >= share * values.sum() > values[: m - 1].sum()

    def test_calibration_is_of_rows_left_out(self):
        """Refits without each row, their squared distance to the mean on the final scale."""
        model = KernelPCANovelty("precomputed", components=4, calibration=Cross(40)).fit(K)
        refits = _refits(KernelPCANovelty("precomputed", components=4), K[None])
        rest = [np.delete(np.arange(len(K)), i) for i in range(len(K))]
        means = np.array([K[np.ix_(r, r)].mean() for r in rest])
        expected = np.sort(lowered(refits + means - K.mean()))
        np.testing.assert_allclose(model.calibration_.scores, expected, atol=1e-8)

    @pytest.mark.parametrize("components", [-1, 0.0, 1.0, 1.5, "all", True])
    def test_components_are_checked(self, components):
        with pytest.raises(ValueError, match=r"components: got .*expected an int"):
            KernelPCANovelty("precomputed", components=components).fit(K)


ALL = [FisherNull, GaussianProcessOneClass, KernelPCANovelty]


class TestFusion:
    @pytest.mark.parametrize("estimator", ALL)
    @pytest.mark.parametrize("fusion", ["average", "product"])
    def test_is_the_one_kernel_model_on_the_mean(self, estimator, fusion):
        kernels, new = two_kernels(), two_kernels(X_NEW)
        if fusion == "average":
            one, one_new = (kernels[0] + kernels[1]) / 2, (new[0] + new[1]) / 2
        else:
            one, one_new = np.sqrt(kernels[0] * kernels[1]), np.sqrt(new[0] * new[1])
        fused = estimator("precomputed", fusion=fusion).fit(kernels)
        single = estimator("precomputed").fit(one)
        np.testing.assert_allclose(
            fused.score_samples(new), single.score_samples(one_new), atol=1e-9
        )
        # Folds are drawn from the kernels: with one row each, the same in both.
        folds = Cross(len(K))
        fused, single = (clone(m).set_params(calibration=folds) for m in (fused, single))
        threshold = single.fit(one).threshold_
        assert fused.fit(kernels).threshold_ == pytest.approx(threshold, abs=1e-7)

    @pytest.mark.parametrize("estimator", ALL)
    @pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
    def test_a_product_that_is_not_semidefinite_is_refused(self, estimator):
        # Each is semidefinite; their geometric mean has eigenvalues 1 -+ sqrt(1.2).
        path = np.eye(3) + 0.6 * (np.eye(3, k=1) + np.eye(3, k=-1))
        kernels = np.stack([path, np.ones((3, 3))])
        with pytest.raises(InvalidKernelError, match=r"not positive\s+semidefinite.*average"):
            estimator("precomputed", fusion="product").fit(kernels)
        estimator("precomputed").fit(kernels)

    @pytest.mark.parametrize("estimator", ALL)
    def test_a_product_of_negative_values_is_refused(self, estimator):
        kernels = np.stack([K, linear_kernel(X)])
        with pytest.raises(InvalidKernelError, match="kernel 1 has negative values"):
            estimator("precomputed", fusion="product").fit(kernels)

    @pytest.mark.parametrize("estimator", ALL)
    def test_unknown_fusion(self, estimator):
        with pytest.raises(ValueError, match="fusion: got 'sum'; expected 'average'"):
            estimator("precomputed", fusion="sum").fit(K)
