"""
Looking at a model
==================

Weights, convergence, scores and the boundary, in scikit-learn's manner: each display has
``from_estimator`` and keeps its axes.
"""

# %%
# Kernel weights: uneven at p = 1, where some may vanish, and nearly uniform for large p.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning

from kernull import (
    BoundaryDisplay,
    ConvergenceDisplay,
    MultiKernelFisherNull,
    ScoresDisplay,
    WeightsDisplay,
)

wine = load_wine(as_frame=True)
X, y = wine.data, np.where(wine.target == 0, 1, -1)
_, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="tight")
for p, ax in zip((1, 4), axes, strict=True):
    model = MultiKernelFisherNull(views="features", p=p).fit(X[y == 1])
    WeightsDisplay.from_estimator(model, ax=ax)

# %%
# The certified gap by iteration. For p = 2 the paper's steps are as good as Newton's, which takes
# the same ones; for p near 1 they do not converge.
_, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="tight", sharey=True)
for p, ax in zip((2, 32 / 31), axes, strict=True):
    for solver in ("newton", "paper", "kloft"):
        model = MultiKernelFisherNull(views="features", p=p, solver=solver, max_iter=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[y == 1])
        ConvergenceDisplay.from_estimator(model, ax=ax)
    ax.set_title(f"p = {p:.3g}", loc="left", fontsize="medium")

# %%
# Scores of calibration rows and of new ones, with the threshold.
model = MultiKernelFisherNull(views="features").fit(X[y == 1][:40])
rest = np.r_[np.flatnonzero(y == 1)[40:], np.flatnonzero(y == -1)]
ScoresDisplay.from_estimator(model, X.iloc[rest], y[rest])

# %%
# The boundary of a model of two columns.
moons, half = make_moons(300, noise=0.08, random_state=0)
model = MultiKernelFisherNull(scaling="standard", widths=0.25).fit(moons[half == 0][:100])
shown = np.r_[np.flatnonzero(half == 0)[100:], np.flatnonzero(half == 1)[:40]]
BoundaryDisplay.from_estimator(model, moons[shown], np.where(half[shown] == 0, 1, -1))
plt.show()
