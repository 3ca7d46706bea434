"""scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernull import PAPER, MultiKernelFisherNull

ESTIMATORS = [
    MultiKernelFisherNull(),
    MultiKernelFisherNull(kernels=["rbf", "polynomial"], p=1.0, scaling="whiten"),
    MultiKernelFisherNull(**PAPER),
]

EXPECTED_FAILURES = {
    "check_outliers_fit_predict": (
        "demands fit(X).predict(X) == fit_predict(X); here fit_predict judges each training row "
        "by its honest leave-one-out score, and predict takes the same row as a new one"
    ),
}


# scikit-learn checks with a dozen rows.
@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
