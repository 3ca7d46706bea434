"""A fit that fails leaves the model as it was."""

import numpy as np
import pytest

from kernull.paper import (
    FisherNull,
    GaussianProcessOneClass,
    KernelPCANovelty,
    MultiKernelOneClassSVM,
    MultiKernelSVDD,
)
from tests.plain import plain_fisher

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("estimator", "bad"),
    [
        (plain_fisher(), {"delta": -1}),
        (FisherNull(), {"delta": -1}),
        (GaussianProcessOneClass(), {"score_type": "none such"}),
        (KernelPCANovelty(), {"components": -1}),
        (MultiKernelSVDD(), {"nu": -1}),
        (MultiKernelOneClassSVM(), {"nu": -1}),
        (plain_fisher(), {"false_alarm_rate": 7}),
    ],
)
def test_nothing_changes(estimator, bad):
    estimator.fit(X)
    before, scores = dict(vars(estimator)), estimator.score_samples(X)
    good = {name: getattr(estimator, name) for name in bad}
    with pytest.raises(ValueError, match=next(iter(bad))):
        estimator.set_params(**bad).fit(np.column_stack([3.0 * X + 5.0, X[:, 0]]))
    estimator.set_params(**good)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    np.testing.assert_array_equal(estimator.score_samples(X), scores)


def test_a_first_fit_that_fails_leaves_it_unfitted():
    estimator = plain_fisher(delta=-1)
    with pytest.raises(ValueError, match="delta"):
        estimator.fit(X)
    assert vars(estimator) == estimator.get_params()
