"""
First steps: a production line
==============================

Good parts are what we know; everything else should be flagged. Each part is measured four ways: by
the drive, by heat and vibration sensors, and by a camera.
"""

# %%
# Learn from good parts
# ---------------------
import matplotlib.pyplot as plt
import numpy as np

from kernull import MultiKernelFisherNull, ScoresDisplay, WeightsDisplay
from kernull.datasets import make_line

line = make_line()
model = MultiKernelFisherNull(views=line.slices, false_alarm_rate=0.05).fit(line.good)
flagged = model.predict(line.new) == -1
faulty = line.verdict != "ok"
print(f"{flagged[faulty].sum()} of {faulty.sum()} faulty parts flagged")
print(f"{flagged[~faulty].sum()} of {(~faulty).sum()} good ones")

# %%
# The weight of each view, and how scores of new parts fall against the threshold:
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
WeightsDisplay.from_estimator(model, ax=axes[0])
ScoresDisplay.from_estimator(model, line.new, np.where(faulty, -1, 1), ax=axes[1])
plt.show()

# %%
# Why was a part flagged?
# -----------------------
# The evidence of the views adds up, in squares, to that of the part: each view's share is exact.
worst = np.argsort(model.score_samples(line.new))[:3]
why = model.explain(line.new[worst])
for i, part in enumerate(worst):
    print(f"{line.parts[part]} ({line.verdict[part]})\n{why.words(i)}\n")
why.plot(0)
plt.show()
