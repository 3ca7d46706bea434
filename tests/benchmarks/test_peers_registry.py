"""The registry by the paper's names, and the comparison."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ParameterGrid

import kernull.estimators
from benchmarks.peers import DELTAS, NUS, PS, WIDTHS, compare, get_method, method_names
from kernull import Solver
from kernull.errors import MissingDependencyError

PAPER_NAMES = [
    "FN-Average", "FN-Product", "GP-Average", "GP-Product", "KPCA-Average", "KPCA-Product",
    "MK-SVDD", "Slim-MK-SVDD", "MK-OCSVM", "Slim-MK-OCSVM",
    "lp MK-FN", "lp MK-FN-Grad", "lp MK-FN-CVX",
]  # fmt: skip
PEERS = ["OneClassSVM", "IsolationForest", "LocalOutlierFactor"]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X_TEST = np.vstack([RNG.normal(size=(20, 3)), RNG.normal(size=(20, 3)) + 3])
Y_TEST = np.repeat([1, -1], 20)


class TestRegistry:
    def test_has_every_method_of_the_paper(self):
        assert set(PAPER_NAMES + PEERS) <= set(method_names())

    def test_grids_are_the_papers(self):
        assert PS == (1, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2, 4, 8, 1e6)
        assert tuple(10.0**k for k in range(-4, 3)) == DELTAS
        assert WIDTHS == (1 / 4, 1 / 2, 1)
        assert NUS == (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
        assert get_method("lp MK-FN").grid == {"widths": WIDTHS, "p": PS, "delta": DELTAS}
        assert get_method("Slim-MK-SVDD").grid["slim_lambda"] == (0, 0.1, 0.3, 1, 3)

    @pytest.mark.parametrize("name", PAPER_NAMES + PEERS)
    def test_every_point_of_a_grid_can_be_set(self, name):
        method = get_method(name)
        for params in ParameterGrid(dict(method.grid)):
            made = method.make(**params).get_params()
            assert {k: made[k] for k in params} == params
        assert method.make() is not method.make()

    def test_detectors_of_tables_leave_kernel_settings_aside(self):
        made = get_method("LocalOutlierFactor").make(views="features", widths=0.5, scaling="none")
        assert made.scaling == "none"
        with pytest.raises(ValueError, match="works on a table"):
            get_method("LocalOutlierFactor").make(kernels="precomputed")

    def test_unknown_name(self):
        with pytest.raises(ValueError, match="method: got 'FN'; expected one of 'FN-Average'"):
            get_method("FN")

    def test_joint_is_of_tasks(self):
        assert "Joint lp MK-FN" in method_names()
        method = get_method("Joint lp MK-FN")
        assert method.build is kernull.JointMultiKernelFisherNull
        assert method.kind == "tasks"


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
class TestCompare:
    def test_all_methods_in_one_table(self):
        pytest.importorskip("cvxpy")
        seen = []
        rows = compare(X, X_TEST, Y_TEST, views="features", callback=seen.append)
        assert seen == rows
        assert [row.method for row in rows] == [
            name for name in method_names() if get_method(name).kind != "tasks"
        ]
        for row in rows:
            assert row.auc > 0.9
            assert row.seconds > 0
            kind = get_method(row.method).kind
            assert (row.gap is not None) == (kind == "weights")

    def test_a_row_is_what_the_estimator_gives(self):
        (row,) = compare(X, X_TEST, Y_TEST, methods=["MK-OCSVM"], views="features", nu=0.3)
        model = get_method("MK-OCSVM").make(views="features", nu=0.3).fit(X)
        assert row.auc == roc_auc_score(Y_TEST, model.score_samples(X_TEST))
        assert (row.gap, row.iterations) == (model.gap_, model.n_iter_)

    def test_kernels_given(self):
        K, K_test = (np.exp(-((A[:, None] - X) ** 2).sum(-1) / 4)[None] for A in (X, X_TEST))
        names = ["FN-Average", "MK-SVDD", "lp MK-FN"]
        rows = compare(K, K_test, Y_TEST, methods=names, kernels="precomputed")
        assert all(row.auc > 0.9 for row in rows)

    def test_not_converged_is_said(self):
        slow = Solver("gradient", 1e-4, max_iter=1)
        (row,) = compare(
            X, X_TEST, Y_TEST, methods=["lp MK-FN-Grad"], views="features", solver=slow
        )
        assert row.note == "not converged"
        assert row.gap > 1e-4

    def test_a_missing_extra_is_said(self, monkeypatch):
        from benchmarks.peers import registry

        def absent(name):
            raise MissingDependencyError("pip install pyod")

        monkeypatch.setattr(registry, "pyod_detector", absent)
        (row,) = compare(X, X_TEST, Y_TEST, methods=["PyOD ECOD"])
        assert row.auc is None
        assert "pip install pyod" in row.note

    def test_slips_of_the_pen(self):
        with pytest.raises(ValueError, match="width: none of the methods has this parameter"):
            compare(X, X_TEST, Y_TEST, methods=["FN-Average"], width=1)
        with pytest.raises(ValueError, match="method: got 'FN'"):
            compare(X, X_TEST, Y_TEST, methods=["FN"])
