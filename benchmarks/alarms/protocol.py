"""The protocol of the alarm bench, fixed before any run of the final code.

- A *case* is a generator of normal rows at one size, and how a model is fitted to it (default
  arguments but for what the case is about). For each seed a population is drawn, and from it the
  training rows, 1,000 normal test rows and 100 planted outliers. Seeds depend on the case and the
  repeat alone: every calibration and every decision sees the same rows.
- Tables with categories or gaps are learned and judged through TableViews, fitted to the training
  rows. Gaps are drawn at random, after outliers are planted: one may lie where a value was moved.
  Outliers have numbers moved; their categories stay.
- Calibrations: "cross" and "split". The joint estimator has one of its own.
- Realised rate at 10, 5 and 1%: share of the normal test rows whose p-value is at most the rate,
  or at most the lowest p-value that there is where that is larger (as ``threshold_`` has it).
- Attainable rate: with p-values that interpolate between ranks the rate itself; where they are
  counted, the largest multiple of 1/(m + 1) that does not exceed it.
- A cell (case, calibration) passes when its mean realised rate over the seeds is within the larger
  of 1.5 points and three standard errors of the attainable rate at 5%, of 2.5 points or three
  standard errors at 10%, and between 0.4 and 2.0% at 1% where there are 300 training rows or more.
  Discrete cases, where many rows tie, may stay below.
- False discoveries: ``detect(fdr=0.1)`` on 900 of the normal test rows and the 100 outliers; the
  mean share of normal rows among the flagged is at most 0.1 plus three standard errors.
- Power, the share of outliers flagged at 5%, is printed and not judged.
- Cost: time of a fit against the same fit with one row held out and nothing left out; the excess is
  at most 0.3 of the latter.
- Shifted constant columns are reported apart: a value never seen is no false alarm.

Quick: n <= 1000, d <= 300, 50 seeds. (With 20 the mean of some cells of a hundred rows or fewer is
uncertain by 0.6 points and more, and a cell was judged by its luck: 30 more of the same kind are
added to the 20, none taken away.) Full: quick, and n = 2000 and 5000, d = 200 to 2000, five seeds.
"""

from __future__ import annotations

RATES = (0.10, 0.05, 0.01)
CALIBRATIONS = ("cross", "split")
SEEDS, FULL_SEEDS = 50, 5
TEST_ROWS, OUTLIERS, FDR_NORMAL, FDR = 1000, 100, 900, 0.1
#: Allowed distance from the attainable rate, or three standard errors if that is more.
WITHIN = {0.10: 0.025, 0.05: 0.015}
#: Allowed range at 1%, for so many training rows or more.
RANGE, RANGE_ROWS = (0.004, 0.020), 300
COST = 0.3

#: What decides a cell besides its key; another version makes all stored cells stale.
SETTINGS = {"protocol": 1, "test": [TEST_ROWS, OUTLIERS, FDR_NORMAL], "rates": list(RATES)}
