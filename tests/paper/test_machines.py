"""Multiple-kernel SVDD and one-class SVM against libsvm, cvxpy and each other."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import OneClassSVM

from kernull import KernelStack, Solver
from kernull.detector.calibration import Cross
from kernull.errors import ConstantViewWarning, InvalidKernelError
from kernull.mkl.solvers.slim import effective_share
from kernull.operators import DenseStack
from kernull.paper import MultiKernelOneClassSVM, MultiKernelSVDD
from kernull.views import KernelSet, resolve_views
from tests.plain import lowered

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(60, 4)), RNG.normal(size=(30, 4)) * 1.5


def kernels(rows=X):
    """Three kernels with unit diagonals."""
    return np.stack([rbf_kernel(rows, X, gamma=g) for g in (0.1, 0.5, 2.0)])


def uneven(rows=X):
    """Two kernels with unequal diagonals."""
    return np.stack([linear_kernel(rows, X) + 1.0, (linear_kernel(rows, X) / 4 + 1.0) ** 2])


def random_views(seed, n=60, J=5):
    """Kernels with unit diagonals on random views, which share the weight; for new rows too."""
    rng = np.random.default_rng(seed)
    train, new = [], []
    for _ in range(J):
        mixing, mean = rng.normal(size=(4, 4)), rng.normal(size=4)
        rows = rng.normal(size=(n, 4)) @ mixing + mean
        others = 1.5 * rng.normal(size=(30, 4)) @ mixing + mean
        gamma = rng.choice([0.05, 0.2, 1.0])
        train.append(rbf_kernel(rows, gamma=gamma))
        new.append(rbf_kernel(others, rows, gamma=gamma))
    return np.stack(train), np.stack(new)


class TestOneClassSVM:
    @pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
    def test_one_kernel_is_sklearns(self, nu):
        K, K_new = kernels()[1], kernels(X_NEW)[1]
        oracle = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(K)
        model = MultiKernelOneClassSVM("precomputed", nu=nu, p=1.0).fit(K)
        # scikit-learn's coefficients sum to nu n, ours to one.
        np.testing.assert_allclose(
            model.score_samples(K_new) * nu * 60, oracle.decision_function(K_new), atol=1e-6
        )
        assert model.weights_ == pytest.approx([1.0])
        np.testing.assert_array_equal(model.support_, oracle.support_)

    def test_other_norms_spread_the_weights(self):
        spread = [
            MultiKernelOneClassSVM("precomputed", p=p).fit(kernels()).weights_
            for p in (1.0, 2.0, np.inf)
        ]
        assert (spread[0] > 1e-3).sum() < 3
        assert spread[1].min() > 0
        np.testing.assert_allclose(spread[2], 1.0)

    @pytest.mark.parametrize("p", [0.5, -1, "a", True])
    def test_p_is_checked(self, p):
        with pytest.raises(ValueError, match="p: got"):
            MultiKernelOneClassSVM("precomputed", p=p).fit(kernels())


class TestSVDD:
    @pytest.mark.parametrize("slim", [False, True])
    @pytest.mark.parametrize("nu", [0.05, 0.3])
    def test_is_the_one_class_svm_on_a_unit_diagonal(self, nu, slim):
        """Score R^2 - 1 + 2y - a'Ka is twice y - rho at the same weights."""
        K, new = kernels()[1], kernels(X_NEW)[1]
        one = MultiKernelSVDD("precomputed", nu=nu, slim=slim).fit(K)
        other = MultiKernelOneClassSVM("precomputed", nu=nu, p=1.0, slim=slim).fit(K)
        np.testing.assert_allclose(one.score_samples(new), 2 * other.score_samples(new), atol=1e-6)
        assert one.threshold_ == pytest.approx(2 * other.threshold_, abs=1e-6)

    @pytest.mark.parametrize("nu", [0.05, 0.3])
    @pytest.mark.parametrize("seed", range(6))
    def test_is_the_one_class_svm_on_unit_diagonals_with_learned_weights(self, seed, nu):
        """Solved tightly enough, both find the same weights, scores and threshold.

        What keeps them apart is the gap each stops at, not their programmes: weights within a gap
        of 1e-6 may still move scores by more than that. 1e-7 is close to what libsvm's single
        precision allows.
        """
        stack, new = random_views(seed)
        one = MultiKernelSVDD("precomputed", nu=nu, solver=Solver(tol=1e-7)).fit(stack)
        other = MultiKernelOneClassSVM("precomputed", nu=nu, p=1.0, solver=Solver(tol=1e-7)).fit(
            stack
        )
        assert max(one.gap_, other.gap_) <= 1e-7
        np.testing.assert_allclose(one.weights_, other.weights_, atol=2e-6)
        scores, twice = one.score_samples(new), 2 * other.score_samples(new)
        np.testing.assert_allclose(scores, twice, atol=1e-6)
        np.testing.assert_array_equal(np.argsort(scores), np.argsort(twice))
        assert one.threshold_ == pytest.approx(2 * other.threshold_, abs=1e-6)

    # 1e-12 is more than the oracle can certify; whether it is near enough is asserted.
    @pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
    def test_scores_are_cvxpys_on_unequal_diagonals(self):
        cvxpy = pytest.importorskip("cvxpy")
        nu, n = 0.2, 60
        stack = uneven()
        a, t = cvxpy.Variable(n), cvxpy.Variable()
        limits = [t <= np.diagonal(K) @ a - cvxpy.quad_form(a, cvxpy.psd_wrap(K)) for K in stack]
        box = [a >= 0, a <= 1 / (nu * n), cvxpy.sum(a) == 1]
        cvxpy.Problem(cvxpy.Maximize(t), [*box, *limits]).solve(
            solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        d = np.array([np.ravel(c.dual_value)[0] for c in limits])
        K, coef = np.tensordot(d, stack, 1), a.value
        distance = np.diagonal(K) - 2 * K @ coef + coef @ K @ coef
        free = (coef > 1e-5) & (coef < 1 / (nu * n) - 1e-5)
        assert np.ptp(distance[free]) < 1e-4
        diagonal = np.stack([(X_NEW**2).sum(1) + 1, ((X_NEW**2).sum(1) / 4 + 1) ** 2])
        new = np.tensordot(d, uneven(X_NEW), 1)
        expected = distance[free].mean() - (d @ diagonal - 2 * new @ coef + coef @ K @ coef)

        model = MultiKernelSVDD("precomputed", nu=nu, solver=Solver(tol=1e-7)).fit(stack)
        scores = model.score_samples(KernelStack(uneven(X_NEW), diagonal=diagonal))
        np.testing.assert_allclose(model.weights_, d, atol=1e-5)
        np.testing.assert_allclose(scores, expected, atol=1e-6 * np.ptp(expected))
        np.testing.assert_array_equal(np.argsort(scores), np.argsort(expected))

    def test_unknown_self_similarity_is_asked_for(self):
        model = MultiKernelSVDD("precomputed").fit(uneven())
        with pytest.raises(InvalidKernelError, match="KernelStack"):
            model.score_samples(uneven(X_NEW))

    def test_slices_of_a_stack_carry_their_diagonal(self):
        stack = KernelStack(uneven())
        train, test = np.arange(40), np.arange(40, 60)
        model = MultiKernelSVDD("precomputed").fit(stack[np.ix_(train, train)])
        scores = model.score_samples(stack[np.ix_(test, train)])
        given = KernelStack(
            stack.kernels[:, 40:, :40], diagonal=np.einsum("jii->ji", stack.kernels)[:, 40:]
        )
        np.testing.assert_array_equal(scores, model.score_samples(given))

    def test_tables_and_kernels_agree_for_unequal_diagonals(self):
        table = MultiKernelSVDD("linear", scaling="none").fit(X)
        given = MultiKernelSVDD("precomputed").fit(linear_kernel(X))
        stack = KernelStack(linear_kernel(X_NEW, X)[None], diagonal=(X_NEW**2).sum(axis=1)[None])
        np.testing.assert_allclose(
            table.score_samples(X_NEW), given.score_samples(stack), atol=1e-10
        )

    def test_a_constant_view_is_dropped_or_takes_all(self):
        """The paper's 50.0 on imports: a constant column takes all the weight, and says nothing."""
        table = np.column_stack([X, np.full(60, 7.0)])
        with pytest.warns(ConstantViewWarning, match="x4"):
            model = MultiKernelSVDD(views="features", scaling="standard").fit(table)
        assert model.weights_.shape == (4,)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            given = KernelSet.fit(table, resolve_views("features", 5), drop_constant=False)
            kept = MultiKernelSVDD("precomputed").fit(DenseStack.of(given))
        np.testing.assert_allclose(kept.weights_, [0, 0, 0, 0, 1], atol=1e-6)
        assert kept.gap_ <= 1e-4
        # Every row that has the constant looks the same: an AUC of one half.
        new = np.column_stack([X_NEW, np.full(30, 7.0)])
        cross = np.stack([K for _, K in given.matrices(new)])
        assert np.ptp(kept.score_samples(cross)) < 1e-12


@pytest.mark.parametrize("estimator", [MultiKernelSVDD, MultiKernelOneClassSVM])
class TestBoth:
    def test_gap_and_history(self, estimator):
        model = estimator("precomputed", nu=0.05).fit(kernels())
        assert 0 <= model.gap_ <= 1e-4
        assert model.n_iter_ == len(model.history_)
        assert all(record.gap >= 0 for record in model.history_)
        assert model.history_[-1].gap == model.gap_
        assert model.coef_.sum() == pytest.approx(1.0)
        assert model.coef_.max() <= 1 / (0.05 * 60) + 1e-12

    def test_nu_bounds_the_rows_outside(self, estimator):
        for nu in (0.1, 0.3):
            model = estimator("precomputed", nu=nu).fit(kernels())
            scores = model.score_samples(kernels())
            assert (scores < -1e-6).mean() <= nu
            assert len(model.support_) / 60 >= nu

    def test_calibration_is_of_rows_left_out(self, estimator):
        """One kernel, as many folds as rows: refits without each row, on the final scale.

        The scale is fixed by the score of a row that is like no other (all similarities zero).
        """
        stack = KernelStack(kernels()[1:2])
        model = estimator("precomputed", calibration=Cross(60)).fit(stack)
        own = stack.diagonal()

        def floor(fitted, n, i):
            far = KernelStack(np.zeros((1, 1, n)), diagonal=own[:, [i]])
            return fitted.score_samples(far)[0]

        refits = []
        for i in range(60):
            rest = np.delete(np.arange(60), i)
            fitted = estimator("precomputed").fit(stack[np.ix_(rest, rest)])
            above = fitted.score_samples(stack[np.ix_([i], rest)])[0] - floor(fitted, 59, i)
            refits.append(floor(model, 60, i) + above)
        np.testing.assert_allclose(
            model.calibration_.scores, np.sort(lowered(np.array(refits))), atol=1e-6
        )

    def test_slim_has_more_support_vectors_and_lambda_zero_is_plain(self, estimator):
        plain = estimator("precomputed", nu=0.05).fit(kernels())
        none = estimator("precomputed", nu=0.05, slim=True, slim_lambda=0.0).fit(kernels())
        slim = estimator("precomputed", nu=0.05, slim=True, slim_lambda=100.0).fit(kernels())
        np.testing.assert_array_equal(none.weights_, plain.weights_)
        assert effective_share(slim.coef_) > effective_share(plain.coef_)
        assert slim.solver_ == "slim"

    def test_slim_is_named_as_ours(self, estimator):
        assert "Loosli" in MultiKernelOneClassSVM.__doc__
        assert "Ours is" in MultiKernelOneClassSVM.__doc__

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"nu": 0}, "nu: got 0"),
            ({"nu": 1.1}, "nu: got 1.1"),
            ({"slim": "yes"}, "slim: got 'yes'"),
            ({"slim": True, "slim_lambda": -1}, "slim_lambda: got -1"),
            ({"slim": True, "solver": "kloft"}, "solver: got 'kloft' with slim=True"),
            ({"solver": "x"}, "solver: got 'x'"),
            ({"solver": "simplex"}, "solver: got 'simplex'"),
        ],
    )
    def test_parameters_are_checked(self, estimator, params, message):
        with pytest.raises(ValueError, match=message):
            estimator("precomputed", **params).fit(kernels())
