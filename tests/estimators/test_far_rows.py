"""A row unlike anything seen has the lowest p-value there is, whatever the estimator."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from tests.plain import named

ESTIMATORS = [
    "MultiKernelFisherNull",
    "FisherNull",
    "GaussianProcessOneClass",
    "KernelPCANovelty",
    "MultiKernelSVDD",
    "MultiKernelOneClassSVM",
]


@pytest.mark.parametrize("calibration", ["cross", "split"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_row_at_infinity_is_flagged(name, calibration):
    X, y = load_breast_cancer(return_X_y=True)
    model = named(name)(calibration=calibration).fit(X[y == 1][:150])
    far = np.full((1, X.shape[1]), 1e6)
    assert model.predict(far) == -1
    if name != "KernelPCANovelty":  # held-out rows like no other lie at the same floor there
        rows = len(model.calibration_.scores)
        np.testing.assert_allclose(model.p_values(far), 1 / (rows + 1))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_dir_does_not_raise(name):
    model = named(name)().fit(np.random.default_rng(0).normal(size=(40, 3)))
    assert "score_samples" in dir(model)
