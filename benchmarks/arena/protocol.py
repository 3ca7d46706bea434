"""The protocol of the arena, fixed before its final run: problems, splits, seeds, measures.

- Families. *tables*: every class of the nine Delft sets and of scikit-learn's wine, breast cancer
  and digits as target, one view of all columns. *multi-view*: every digit of Multiple Features, six
  views. *images*: every digit of MNIST and every flower of Flowers17, one view a network.
  Each set belongs to one family only, so that a rule chosen without a family has not seen its sets.
  (scikit-learn's wine holds the rows of Delft's; both are in *tables*.)
- Classes with fewer than ten training targets are left out, and named in the report.
- Split: a random half of the targets for training; the other half and all other classes for the
  test. MNIST keeps its published halves: 400 random ones of 500 training images of the digit, and
  the first 2,000 test images.
- Seeds depend on the problem and the repeat alone: every entrant sees the same rows, whatever is
  run beside it and in whichever order.
- Entrants run with what `benchmarks.arena.entrants` fixes and the views, nothing is tuned on
  labels; peers get all columns in one standardised table. Oracles that see the test labels are
  shown apart and never ranked.
- Measures: AUC and AUPRC (outliers are the positives) of the test rows, mean over the repeats of a
  problem; then mean AUC, mean rank by AUC (ties share) and wins (shared ones count in parts) over
  the problems of a family, over all problems, and over families with equal weight. Seconds are
  processor seconds of fit and scoring with one BLAS thread; memory is the largest growth of the
  resident set meanwhile.
"""

from __future__ import annotations

FAMILIES = ("tables", "multi-view", "images")
#: Repeats by set; small sets are cheap and noisy.
REPEATS = {"delft": 5, "sklearn": 3, "digits": 2, "mfeat": 2, "mnist": 1, "flowers17": 2}
MIN_TRAINING = 10

MNIST_DRAWN = 500  # training images a digit with features
MNIST_TRAINING = 400  # of which a repeat takes
MNIST_TEST = 2000
#: Networks of the image family: the small ones, which a laptop runs.
NETWORKS = ("alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0")

#: What decides a cell besides its key; another version makes all stored cells stale.
SETTINGS = {"protocol": 1, "min_training": MIN_TRAINING, "mnist": [MNIST_TRAINING, MNIST_TEST]}
