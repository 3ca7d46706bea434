"""The protocol of the arena, fixed before its final run: problems, splits, seeds, measures.

- Families. *tables*: every class of the nine Delft sets and of scikit-learn's wine, breast cancer
  and digits as target, and the normal rows of twenty tables of ADBench, one view of all columns.
  *multi-view*: every digit of Multiple Features, six
  views. *images*: every digit of MNIST and every flower of Flowers17, one view a network.
  Each set belongs to one family only, so that a rule chosen without a family has not seen its sets.
  (Some sets hold rows of others, such as the three of wine; they are all in *tables*.)
- Classes with fewer than ten training targets are left out, and named in the report.
- Split: a random half of the targets for training; the other half and all other classes for the
  test. MNIST keeps its published halves: 400 random ones of 500 training images of the digit, and
  the first 2,000 test images. ADBench: half of the normal rows, at most 2,000 of them, to train;
  of the other half and the anomalies at most 3,000 rows to test: up to 1,500 anomalies, the rest
  normal rows. The figures published on them for other splits (Livernoche et al. 2024) are printed
  beside, and judge nothing.
- Seeds depend on the problem and the repeat alone: every entrant sees the same rows, whatever is
  run beside it and in whichever order.
- Entrants run with what `benchmarks.arena.entrants` fixes and the views, nothing is tuned on
  labels; peers get all columns in one standardised table. Oracles that see the test labels are
  shown apart and never ranked.
- Measures: AUC and AUPRC (outliers are the positives) of the test rows, mean over the repeats of a
  problem; then mean AUC, mean rank by AUC (ties share) and wins (shared ones count in parts) over
  the problems of a family, over all problems, and over families with equal weight; share of the
  test targets below the threshold at 5%, where an entrant has one. Seconds are
  processor seconds of fit and scoring with one BLAS thread; memory is the largest growth of the
  resident set meanwhile.

Choosing the default, and judging it
- Halves. Tables: sets that hold rows of one another are kin (`KIN`); all kin in alphabetical order
  go to the choosing half and to the judging half by turns. Multi-view and images, where a family
  has one or two sets: classes of even number choose, classes of odd number judge.
- Candidates: those of `benchmarks.arena.rules`, q fixed at 2: decision by evidence with or without
  whitened and quantile kernels, widths "auto" or half the mean distance, p in {1.25, 1.5, 2}; and
  the sum as it was the default before.
- The say of views (then `kernull.detector.structure`), of problems of several views alone:
  candidates were the learned weights as they are (p 1.5, 2), equal views, and the learned share of
  a view to the power 0, 1/2 or 1 times its structure to the power 1/2 or 1, floored at 0.1 to 0.3;
  chosen on the choosing half and on seeds 0 to 3 of the decision bench, where at least the bench's
  means must hold and no family lose, and judged by the other half and the other seeds.
- Rule: the candidate with the highest mean AUC on the choosing half (mean over the problems of a
  family, then over families) is chosen, unless the incumbent, "evidence", is behind it by less than
  the 95% paired interval over the problems of that half: ties favour the incumbent.
- Verdict, on the judging half alone: the default is first by mean AUC in at least two of the three
  families, and nowhere behind any entrant by more than the 95% paired interval (Student's t over
  the problems of the family).
"""

from __future__ import annotations

FAMILIES = ("tables", "multi-view", "images")
#: Repeats by set; small sets are cheap and noisy.
REPEATS = {
    "delft": 5,
    "sklearn": 3,
    "digits": 2,
    "adbench": 1,
    "mfeat": 2,
    "mnist": 1,
    "flowers17": 2,
}
MIN_TRAINING = 10

MNIST_DRAWN = 500  # training images a digit with features
MNIST_TRAINING = 400  # of which a repeat takes
MNIST_TEST = 2000
ADBENCH_TRAINING, ADBENCH_TEST, ADBENCH_ANOMALIES = 2000, 3000, 1500

#: Tables that hold rows of one another, by the name they share.
KIN = {
    "delft/wine": "wine",
    "sklearn/wine": "wine",
    "adbench/45_wine": "wine",
    "delft/breast": "breast",
    "adbench/4_breastw": "breast",
    "adbench/42_WBC": "breast",
    "sklearn/breast cancer": "wdbc",
    "adbench/43_WDBC": "wdbc",
    "adbench/46_WPBC": "wdbc",
    "delft/glass": "glass",
    "adbench/14_glass": "glass",
    "delft/diabetes": "diabetes",
    "adbench/29_Pima": "diabetes",
}

#: Networks of the image family: the small ones, which a laptop runs.
NETWORKS = ("alexnet", "squeezenet1_1", "mobilenet_v2", "efficientnet_lite0")

#: What decides a cell besides its key; another version makes all stored cells stale.
SETTINGS = {
    "protocol": 2,
    "min_training": MIN_TRAINING,
    "mnist": [MNIST_TRAINING, MNIST_TEST],
    "adbench": [ADBENCH_TRAINING, ADBENCH_TEST, ADBENCH_ANOMALIES],
}
