"""
Thresholds that hold
====================

How many normal rows will be flagged? With training scores nobody knows; with scores of rows that
were left out, or held out, it is the rate you asked for.
"""

# %%
# Fit on half of the benign tumours of the breast cancer data, three views of ten features each.
# The other benign rows are new and normal, the malignant ones are outliers.
import matplotlib.pyplot as plt
import numpy as np

from kernull import MultiKernelFisherNull, ScoresDisplay, join_views
from kernull.datasets import load_breast_cancer_views
from kernull.detector.calibration import Split

data = load_breast_cancer_views()
X, views = join_views(data.views)
y = data.one_class(target=1)
targets = np.random.default_rng(0).permutation(np.flatnonzero(y == 1))
train, fresh = X[targets[:180]], X[targets[180:]]
new = np.vstack([fresh, X[y == -1]])
truth = np.repeat([1, -1], [len(fresh), (y == -1).sum()])

model = MultiKernelFisherNull(views=views, false_alarm_rate=0.05).fit(train)

# %%
# The threshold stands at 5% of the calibration scores, and new normal rows follow them. Training
# scores are higher: a threshold taken from those would flag far more.
_, axes = plt.subplots(2, 1, figsize=(7.0, 6.4), layout="tight")
ScoresDisplay.from_estimator(model, new, truth, ax=axes[0])
axes[0].set_title("Left-out scores calibrate", loc="left", fontsize="medium")

training = model.score_samples(train)
naive = np.quantile(training, 0.05)
ScoresDisplay(
    {"training": training, "normal": model.score_samples(fresh)}, naive, false_alarm_rate=0.05
).plot(ax=axes[1])
axes[1].set_title("Training scores do not", loc="left", fontsize="medium")

for name, threshold in (("left out", model.threshold_), ("training scores", naive)):
    share = (model.score_samples(fresh) < threshold).mean()
    print(f"{name}: {share:.1%} of new normal rows flagged")

# %%
# With rows held out (``calibration="split"``) the rate is a theorem, and so is the false discovery
# rate of ``detect``: among the rows flagged, at most 10% are expected to be normal.
split = MultiKernelFisherNull(views=views, calibration=Split(0.4))
split.fit(train)
found = split.detect(new, fdr=0.1)
print(f"{found.sum()} discoveries, {(truth[found] == 1).mean():.1%} of them false")
print(f"{found[truth == -1].mean():.1%} of the outliers found")

# %%
# Every realised false-alarm rate over 40 random halves, for three ways to set the threshold.
realised: dict[str, list[float]] = {"split": [], "cross": [], "training scores": []}
for seed in range(40):
    rows = np.random.default_rng(seed).permutation(targets)
    train, fresh = X[rows[:180]], X[rows[180:]]
    for calibration in ("split", "cross"):
        model = MultiKernelFisherNull(views=views, calibration=calibration, random_state=seed)
        flagged = model.fit(train).predict(fresh) == -1
        realised[calibration].append(100 * flagged.mean())
    naive = np.quantile(model.score_samples(train), 0.05)
    realised["training scores"].append(100 * (model.score_samples(fresh) < naive).mean())

_, ax = plt.subplots(figsize=(6.4, 2.6), layout="tight")
ax.boxplot(list(realised.values()), orientation="horizontal", tick_labels=list(realised))
ax.axvline(5, color="black", linewidth=1, linestyle="--")
ax.set_xlabel("new normal rows flagged, %, at a nominal 5%")
plt.show()
