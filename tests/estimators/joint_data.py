"""Digits as tasks, for the tests of joint models."""

import numpy as np

from kernull.datasets import load_digits_views
from kernull.views import join_views
from tests.plain import plain_joint

DATA = load_digits_views()
X, VIEWS = join_views(DATA.views)
Y = DATA.y
NAMES = np.array(["zero", "one", "two", "three"])


def some(digits, rows, start=0):
    """A few rows of each of some digits, and their names."""
    index = np.concatenate([np.flatnonzero(d == Y)[start : start + rows] for d in digits])
    return X[index], NAMES[Y[index]]


def fitted(rows=20, digits=(0, 1, 2), **options):
    table, groups = some(digits, rows)
    model = plain_joint(views=VIEWS, widths=0.5, **options)
    return model.fit(table, groups=groups)


def precomputed(table, J=3, seed=0):
    """Kernels between all rows of a table, as a stack."""
    views = list(VIEWS.values())
    out = []
    for j in range(J):
        part = table[:, views[j]]
        distances = ((part[:, None] - part[None]) ** 2).sum(axis=-1)
        out.append(np.exp(-distances / distances.mean()))
    return np.array(out)
