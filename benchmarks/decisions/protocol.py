"""The protocol of the decision bench, fixed before any final run.

- Seeds 0 to 3 served, with the choosing half of the arena, to choose how a view's structure enters
  its say (then `kernull.detector.structure`: exponent, floor, and how the learned share counts);
  the report is of seeds 4 to 33, which had no part in it. (Ten of them were too few: wine has 29
  new normal rows, of which one seed flags one or none.)
- Data of its own: benign rows of breast cancer, two classes of wine and two of digits
  (scikit-learn), and three synthetic tables (factors, clusters, lognormal). For each of thirty
  seeds a random half of the normal rows is learned from; the other half and at most 300 outliers
  are new.
  Two views: the first and the second half of the columns.
- The model is ``MultiKernelFisherNull(views=...)`` and nothing else, but where a line says so.
- Noise views, a third view beside the two: a random category of three values in one column; one
  column that is constant but for three training rows (new rows leave it as often); two switches
  that are on in 0.5% of the rows; four Gaussian columns; four columns of Student's t with two
  degrees of freedom. *AUC lost* is the mean over seeds of AUC without less AUC with it, in points;
  beside it what five nearest neighbours on the standardised columns lose. Categories and
  near-constant columns: mean over tables at most 0.5. Gaussian and heavy-tailed: mean at most 1.0,
  no table above 2.5.
- False alarms: share of new normal rows flagged at the default rate of 5%, for every table without
  and with every noise view: mean over seeds within the larger of 1.5 points and three standard
  errors of the attainable rate (the alarm bench's rule), of the mean over tables, and of each
  table.
- Broken views: every view in turn, noise views included, set to +1e8 and to -1e8 in new normal
  rows: at least 99% flagged, for every table, kind and view (a view that is constant on the
  training rows has no kernel, and is not judged here: a test asks for 100%). The same with one
  view per column (``views="features"``) on the synthetic tables, every column in turn.
- Far rows: 1e4 times every sign pattern, every axis both ways, and forty random directions of a
  table of four columns, for every kernel and list of kernels: 100% flagged. A cosine kernel alone
  cannot see size; it is printed and not judged.
- One broken column in a view of little say, or one view among ten: by 6, 10, 100, 1e4 and 1e8
  standard deviations, from 30, 100 and 300 training rows; printed, and judged at 1e8 (99% flagged).
- Ranks: among new rows that are flagged (outliers, broken rows, far rows), as many different scores
  as different rows.
- Units: columns multiplied by 10^u, u uniform in [-3, 3]: the largest relative change of a score,
  at most 1e-8.
- Together: rows whose second view is another normal row's, with the two views and with a third of
  all columns beside them: AUC against these and against the outliers, printed and not judged.
- Contamination: 0, 1, 5, 10 and 20% of the training rows are outliers (never those of the test;
  tables with enough of them). AUC of new rows, AUC of the training rows themselves (ours: left
  out), and the share of new normal rows flagged at 5%, of ``contamination=0.1`` whatever the truth,
  of the default, and of IsolationForest, five neighbours and ECOD with the 5% quantile of their
  training scores as threshold. Judged: mean AUC of new and of training rows over the contaminated
  cells no lower than IsolationForest's; on clean rows the mean share flagged within the alarm rule.
"""

from __future__ import annotations

SEEDS = 30
FIRST_SEED = 4
RATE = 0.05
OUTLIERS = 300
#: Most AUC points lost to a noise view: mean over tables, and any table.
LOST = {
    "category": (0.5, None),
    "three rows": (0.5, None),
    "rare switches": (0.5, None),
    "Gaussian": (1.0, 2.5),
    "heavy-tailed": (1.0, 2.5),
}
#: Distance from the attainable rate, or three standard errors if that is more.
WITHIN = 0.015
BROKEN, BROKEN_FLAGGED = 1e8, 0.99
#: One broken column of little say: by so many standard deviations, learned from so many rows.
FAINT, FAINT_ROWS = (6, 10, 100, 1e4, 1e8), (30, 100, 300)
FAR, FAR_DIRECTIONS, FAR_ROWS, FAR_COLUMNS = 1e4, 40, 150, 4
UNITS = 1e-8
CONTAMINATION = (0.0, 0.01, 0.05, 0.10, 0.20)
GUESS = 0.1
