"""
First steps: views, weights, reasons
====================================

Benign tumours are what we know; everything else should be flagged. Each case is described three
ways: means, errors and worst values of ten measurements.
"""

# %%
# Learn from normal rows
# ----------------------
import matplotlib.pyplot as plt
import numpy as np

from kernull import MultiKernelFisherNull, ScoresDisplay, WeightsDisplay
from kernull.datasets import load_breast_cancer_views
from kernull.views import join_views

data = load_breast_cancer_views()
X, views = join_views(data.views)
y = data.one_class(target=1)
normal = np.flatnonzero(y == 1)
model = MultiKernelFisherNull(views=views, false_alarm_rate=0.05).fit(X[normal[:200]])
print(f"duality gap {model.gap_:.1e} after {model.n_iter_} iterations")

# %%
# The weight of each view, and how scores of new rows fall against the threshold:
new = np.concatenate([normal[200:], np.flatnonzero(y == -1)])
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
WeightsDisplay.from_estimator(model, ax=axes[0])
ScoresDisplay.from_estimator(model, X[new], y[new], ax=axes[1])
plt.show()

# %%
# Why was a row flagged?
# ----------------------
# The score is a sum over views, so the answer is exact.
flagged = new[(model.predict(X[new]) == -1) & (y[new] == -1)]
why = model.explain(X[flagged])
print(why.words(0))
why.plot(0)
plt.show()
