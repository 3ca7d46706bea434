"""The plain problem: tests of how it is solved, kept and scored do not rest on the defaults."""

import numpy as np
from sklearn.base import clone

import kernull
from kernull import JointMultiKernelFisherNull, MultiKernelFisherNull, paper

#: One standardised view, one kernel: width half the mean distance, p = 2, ridge 0.01 n.
PLAIN = {"scaling": "standard", "widths": 0.5, "p": 2.0, "delta": 1e-2}
PLAIN |= {"decision": "sum", "normalize": "none"}

#: Views of the wine data.
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}


def plain_fisher(kernels="rbf", views=None, **options):
    """`MultiKernelFisherNull` with the plain setting where no other is given."""
    return MultiKernelFisherNull(kernels, views, **(PLAIN | options))


def row_scores(model, X, **fit_params):
    """Scores of the training rows by which ``fit_predict`` judges them: those of rows left out."""
    return clone(model)._fit(X, **fit_params).row_scores()


def lowered(scores):
    """Left-out scores less the slack by which equal rows tie though their folds' models differ."""
    return scores - 0.01 * np.subtract(*np.quantile(scores, [0.75, 0.25])) - 1e-9


def plain_joint(kernels="rbf", views=None, **options):
    """`JointMultiKernelFisherNull` with the plain setting where no other is given."""
    known = JointMultiKernelFisherNull().get_params()
    plain = {name: value for name, value in PLAIN.items() if name in known}
    return JointMultiKernelFisherNull(kernels, views, **(plain | options))


def named(name):
    """The estimator of a name, of the core or of `kernull.paper`."""
    return getattr(paper if name in paper.__all__ else kernull, name)
