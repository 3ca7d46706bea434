"""From rows to p-values, in plain loops: the whole rule of a model that decides by evidence.

Read from top to bottom:

1. folds, by the content of rows;
2. scalings of a view;
3. width and kernel of scaled rows;
4. scores of a view: projection, and minus the log distance to the nearest row;
5. scores of a precomputed kernel;
6. evidence: how small the p-value of a score is among left-out scores;
7. the rule: left-out scores, gate, weights, the length of evidence, p-value;
8. the paper's sum over kernels.

Kernel weights b come as numbers: they are the solution of another problem. A function whose name
begins with ``fit_`` learns from rows and returns the function that judges others.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from math import inf, log, log1p, nextafter, sqrt

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

# -- 1. folds --------------------------------------------------------------------------------------


def keys_of_rows(rows, seed=0):
    """A 64-bit number for each row, from its values and the seed; copies have the same."""
    secret = int(np.random.RandomState(seed).randint(2**31 - 1)).to_bytes(8, "little")
    keys = []
    for row in rows:
        content = (np.array(row, dtype=float) + 0.0).tobytes()  # + 0.0: there is one zero
        keys.append(int.from_bytes(blake2b(content, digest_size=8, key=secret).digest(), "little"))
    return keys


def keys_of_table(X, seed=0):
    """Keys of rows of a table, by the rank of each value among those of its column.

    Columns of one value take no part.
    """
    columns = [(c, sorted(set(column))) for c, column in enumerate(X.T.tolist())]
    varying = [(c, values) for c, values in columns if len(values) > 1]
    return keys_of_rows([[values.index(row[c]) for c, values in varying] for row in X], seed)


def keys_of_kernels(K, seed=0):
    """Keys of rows of given kernels: least entry and largest entry off the diagonal of each."""
    rows = []
    for i in range(K.shape[1]):
        least = [min(Kj[i]) for Kj in K]
        rows.append(least + [max(np.delete(Kj[i], i)) for Kj in K])
    return keys_of_table(np.array(rows), seed)


def draw_folds(keys, n_folds, groups=None, columns=0):
    """Fold of each row: the rank of its key, or of the sum of its group's, modulo the folds.

    Where no number is given, ten folds, and twenty of up to 200 rows or twice the columns.
    """
    n_folds = n_folds or (20 if len(keys) <= max(200, 2 * columns) else 10)
    groups = list(range(len(keys))) if groups is None else list(groups)
    names = sorted(set(groups))
    total = {
        g: sum(k for k, own in zip(keys, groups, strict=True) if own == g) % 2**64 for g in names
    }
    place = {g: rank for rank, g in enumerate(sorted(names, key=lambda g: total[g]))}
    return np.array([place[g] % min(n_folds, len(names)) for g in groups])


def random_order(keys):
    """Rows by a second hash (splitmix64) of key and number of copies before: a random order."""
    hashes = []
    for i, key in enumerate(keys):
        h = (key + (keys[:i].count(key) + 1) * 0x9E3779B97F4A7C15) % 2**64
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        h = (h ^ (h >> 27)) * 0x94D049BB133111EB % 2**64
        hashes.append(h ^ (h >> 31))
    return sorted(range(len(keys)), key=lambda i: hashes[i])


# -- 2. scalings -----------------------------------------------------------------------------------
# ``w`` are weights of the rows, of mean one; ``step`` is what a value off a column that was
# constant in training becomes.


def is_constant(column):
    """Whether a column holds one value, up to its last digits."""
    return max(column) - min(column) <= 10 * np.finfo(float).eps * max(map(abs, column))


def away(x, value, step):
    """+-step for a value that differs from the only one ever seen, else 0."""
    if abs(x - value) <= 10 * np.finfo(float).eps * abs(value):
        return 0.0
    return step if x > value else -step


def fit_unscaled(X, w, step):
    return lambda rows: rows


def fit_standard(X, w, step):
    """Mean 0 and deviation 1 of every column."""
    constant = [is_constant(column) for column in X.T]
    mean = [np.average(column, weights=w) for column in X.T]
    deviation = [sqrt(np.average((x - m) ** 2, weights=w)) for x, m in zip(X.T, mean, strict=True)]

    def scale(rows):
        out = np.empty(rows.shape)
        for c in range(X.shape[1]):
            for i, x in enumerate(rows[:, c]):
                seen = (x - mean[c]) / deviation[c] if not constant[c] else 0.0
                out[i, c] = away(x, X[0, c], step) if constant[c] else seen
        return out

    return scale


def fit_whiten(X, w, step):
    """Standardised columns times the inverse root of their Ledoit-Wolf covariance.

    S = (1 - s) C + s m I, with the covariance C, its mean variance m, and the shrinkage s of Ledoit
    and Wolf. Directions without variance keep the gain of the smallest variance that there is.
    """
    standard = fit_standard(X, w, step)
    varies = np.array([not is_constant(column) for column in X.T])
    Z = standard(X)[:, varies]
    n, d = Z.shape
    if d == 0:  # a view that is constant in the other folds
        return standard
    C = sum(wi * np.outer(z, z) for wi, z in zip(w, Z, strict=True)) / n
    m = np.trace(C) / d
    distance = ((C - m * np.eye(d)) ** 2).sum() / d
    noise = sum(wi * ((z @ z) ** 2) for wi, z in zip(w, Z, strict=True)) / n - (C**2).sum()
    noise = min(noise / (d * n), distance)
    s = noise / distance if noise > 0 else 0.0
    variance, directions = np.linalg.eigh(C)
    variance = (1 - s) * np.maximum(variance, 0.0) + s * m
    least = min(v for v in variance if v > 1e-10 * max(variance))
    gain = [1 / sqrt(max(v, least)) for v in variance]
    root = directions @ np.diag(gain) @ directions.T

    def scale(rows):
        out = standard(rows)
        out[:, varies] = out[:, varies] @ root
        return out

    return scale


def fit_quantile(X, w, step):
    """Normal scores of mid-ranks, linear between values and beyond the ends.

    The slope beyond an end is that from the end to the first value with a tenth of the weight
    beyond it, half of its own included, or to the next value if that is farther.
    """

    def fit_column(x):
        if is_constant(x):
            return lambda value: away(value, x[0], step)
        values = sorted(set(x.tolist()))
        below = [w[x < v].sum() / w.sum() for v in values]
        at = [w[x == v].sum() / w.sum() for v in values]
        share = [b + a / 2 for b, a in zip(below, at, strict=True)]
        score = ndtri(share).tolist()
        last = len(values) - 1
        low = next((k for k in range(1, last + 1) if share[k] >= 0.1), last)
        high = next((k for k in range(last - 1, -1, -1) if share[k] <= 0.9), 0)
        slope_below = (score[low] - score[0]) / (values[low] - values[0])
        slope_above = (score[last] - score[high]) / (values[last] - values[high])

        def of(value):
            if value <= values[0]:
                return score[0] + slope_below * (value - values[0])
            if value >= values[last]:
                return score[last] + slope_above * (value - values[last])
            k = bisect_right(values, value) - 1
            part = (value - values[k]) / (values[k + 1] - values[k])
            return score[k] + part * (score[k + 1] - score[k])

        return of

    columns = [fit_column(column) for column in X.T]
    return lambda rows: np.array(
        [[of(x) for of, x in zip(columns, row, strict=True)] for row in rows]
    )


SCALINGS = {
    "none": fit_unscaled,
    "standard": fit_standard,
    "whiten": fit_whiten,
    "quantile": fit_quantile,
}


# -- 3. width and kernel ---------------------------------------------------------------------------


def distances(A, B):
    """Euclidean distances between the rows of A and of B."""
    return np.array([np.sqrt(((B - a) ** 2).sum(axis=1)) for a in A]).reshape(len(A), len(B))


def mean_distance(Z, w):
    """Over pairs of different rows; a weight above one stands for copies, which meet each other."""
    total = sum(w)
    pairs = sum(wi * (total - min(wi, 1.0)) for wi in w)
    return (w @ distances(Z, Z) @ w) / pairs if pairs > 0 else 0.0


def weighted_median(values, w):
    """The value at half of the weight, or the mean of two where half lies between them."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(w[order])
    half = share[-1] / 2
    low = next(i for i, s in zip(order, share, strict=True) if s >= half * (1 - 1e-12))
    high = next(i for i, s in zip(order, share, strict=True) if s > half * (1 + 1e-12))
    return (values[low] + values[high]) / 2


def width_of(Z, w, factor="auto"):
    """A factor of the mean distance.

    ``"auto"``: the median distance to the nearest row that is no copy, from a quarter of the mean
    distance to twice it.
    """
    mean = mean_distance(Z, w)
    if mean == 0.0:
        mean = 1.0
    if factor != "auto":
        return factor * mean
    centred = Z - Z.mean(axis=0)
    copy = 1e-7 * max(np.linalg.norm(z) for z in centred)
    nearest = [min((d for d in row if d > copy), default=inf) for row in distances(Z, Z)]
    usual = weighted_median(np.array(nearest), w) if max(nearest) < inf else 0.0
    return min(max(usual, mean / 4), 2 * mean)


def rbf(A, B, width):
    return np.exp(-(distances(A, B) ** 2) / (2 * width**2))


# -- 4. scores of a view ---------------------------------------------------------------------------


def projection_coef(K, w, ridge=1e-4):
    """a = (K + ridge m W^-1)^-1 1 with weights of mean one."""
    m = len(K)
    return np.linalg.solve(K + np.diag(ridge * m * w.mean() / w), np.ones(m))


def floor_of(Z, w):
    """A millionth of the root mean square distance between two rows."""
    mean = np.average(Z, axis=0, weights=w)
    size = np.average([(z - mean) @ (z - mean) for z in Z], weights=w)
    return 1e-6 * (sqrt(2 * size) or 1.0)


def fit_part(X, w, part, floor=None):
    """Scores of one view in one scaling: projections of its kernels, and the nearest row.

    ``floor`` is that of all rows, where X are the rows of some folds.
    """
    w = w / w.mean()
    scale = SCALINGS[part.scaling](X[:, part.columns], w, part.step)
    Z = scale(X[:, part.columns])
    widths = [width_of(Z, w, factor) for factor in part.widths]
    coefs = [projection_coef(rbf(Z, Z, width), w) for width in widths]
    floor = floor_of(Z, w) if floor is None else floor
    neighbours = Z[w >= 0.1]  # rows that are hardly trusted vouch for nobody

    def score(rows):
        out, rows = [], scale(rows[:, part.columns])
        if "projection" in part.scores:
            D = distances(rows, Z)
            out += [np.exp(-(D**2) / (2 * s**2)) @ a for s, a in zip(widths, coefs, strict=True)]
        if "nearest" in part.scores:
            nearest = distances(rows, neighbours).min(axis=1)
            out.append(np.array([-log(d + floor) for d in nearest]))
        return np.array(out).T

    return score, floor


@dataclass
class Part:
    """A view in one scaling: which columns, how wide its kernels are, which scores it has."""

    columns: list
    scaling: str
    step: float
    widths: tuple = ("auto",)
    scores: tuple = ("projection", "nearest")


# -- 5. scores of a precomputed kernel -------------------------------------------------------------


def fit_given(K, w, rows, whole=True):
    """Scores of given kernels (J, n, n), and of their product, learned from some of their rows.

    Kernels are divided by the mean of their diagonals. Where that is constant they tell distances,
    d^2 = 2 - 2k; elsewhere -|1 - y(x)| stands for the distance. The product is judged where all
    tell distances. What is "usual" is that of all rows.
    """
    diagonals = [np.diag(Kj) for Kj in K]
    constant = [np.ptp(d) <= 1e-6 * d.mean() for d in diagonals]
    with_whole = whole and all(constant) and len(K) > 1

    def divided(K):
        each = [Kj / d.mean() for Kj, d in zip(K, diagonals, strict=True)]
        return [*each, np.prod(each, axis=0)] if with_whole else each

    own = w[rows]
    coefs = [projection_coef(Kj[np.ix_(rows, rows)], own) for Kj in divided(K)]
    floors = [1e-6 * (sqrt(max(2 - 2 * Kj.mean(), 0.0)) or 1.0) for Kj in divided(K)]
    neighbours = rows[own >= 0.1 * own.mean()]

    def score(new):
        out = []
        for j, Kj in enumerate(divided(new)):
            y = Kj[:, rows] @ coefs[j]
            out.append(y)
            if j < len(K) and not constant[j]:
                out.append(-np.abs(1 - y))
            else:
                nearest = np.sqrt(np.maximum(2 - 2 * Kj[:, neighbours].max(axis=1), 0.0))
                out.append(-np.log(nearest + floors[j]))
        return np.array(out).T

    return score


# -- 6. evidence -----------------------------------------------------------------------------------


def lowered(scores):
    """Left-out scores less a hundredth of their interquartile range: equal rows tie."""
    low, high = np.quantile(scores, [0.25, 0.75])
    return scores - (0.01 * (high - low) + 1e-9)


def fit_evidence(scores, weight, extrapolates, total=None, predictive=False):
    """e(s) = -log p(s), p(s) = (1 + R{s_i <= s}) / (R + 1) with the weight R of the rows.

    Below the lowest score an exponential tail with the mean excess of the lowest tenth, for scores
    that extrapolate and have enough different values. ``total`` is what the weights are brought to
    sum to. ``predictive``: the tail that k rows predict, k log(1 + x / (k tau)).
    """
    n, total = len(scores), sum(weight) if total is None else total
    order = sorted(range(n), key=lambda i: (round(scores[i], 9), weight[i]))  # ties by weight
    values = sorted(lowered(scores).tolist())
    factor = total / sum(weight)
    weight = [weight[i] * factor for i in order]
    scale, size, different = inf, 1.0, 1 + sum(b - a > 1e-9 for a, b in pairwise(values))
    if extrapolates and n > 1 and different >= min(20, n / 2):
        tenth = sum(up_to <= 0.1 * total * (1 + 1e-9) for up_to in accumulate(weight))
        k = min(max(tenth, min(5, n - 1)), n - 1)
        size = sum(weight[:k])
        excess = sum(weight[i] * (values[k] - values[i]) for i in range(k)) / size
        scale = max(excess, 1e-3 * (values[-1] - values[0]), 1e-300)

    def evidence(s):
        if s >= values[-1]:
            return 0.0
        # Sums of the same weights in another order are the same, so that their evidence ties.
        count = round(sum(w for v, w in zip(values, weight, strict=True) if v <= s), 9)
        beyond = (values[0] - s) / scale if s < values[0] else 0.0
        beyond = size * log1p(beyond / size) if predictive else beyond
        return min(-log((1 + count) / (total + 1)) + beyond, 1e12)

    return evidence


def left_out_evidence(scores, weight, extrapolates, fold):
    """Evidence against each row, by the left-out scores of the rows of the other folds."""
    out = np.empty(len(scores))
    for k in set(fold):
        others = np.flatnonzero(fold != k)
        evidence = fit_evidence(scores[others], weight[others], extrapolates, sum(weight), True)
        for i in np.flatnonzero(fold == k):
            out[i] = evidence(scores[i])
    # Scores that tie with one of another fold are judged as a new one is.
    as_new = fit_evidence(scores, weight, extrapolates)
    for i in np.flatnonzero(copied(np.round(scores, 9)[:, None], fold)):
        out[i] = as_new(scores[i])
    return out


def copied(rows, fold):
    """Which rows have a copy in another fold."""
    contents, n = [tuple(row) for row in rows], len(rows)
    return np.array([
        any(contents[k] == contents[i] and fold[k] != fold[i] for k in range(n)) for i in range(n)
    ])  # fmt: skip


def common(rows):
    """Which rows have more than ten copies, themselves counted, and more than 2% of the rows."""
    contents = [tuple(row) for row in rows]
    return np.array([contents.count(content) > max(10, 0.02 * len(rows)) for content in contents])


def aligned(scores, fold):
    """Scores (n,); a fold whose median is beyond 98% of the others' gets their middle and width."""
    out = scores.copy()
    for k in set(fold):
        own, others = scores[fold == k], scores[fold != k]
        low, first, middle, third, high = np.quantile(others, [0.01, 0.25, 0.5, 0.75, 0.99])
        own_first, centre, own_third = np.quantile(own, [0.25, 0.5, 0.75])
        if len(own) >= 5 and not low <= centre <= high and own_third > own_first:
            stretch = (third - first) / (own_third - own_first)
            out[fold == k] = middle + (own - centre) * stretch
    return out


# -- 7. the rule -----------------------------------------------------------------------------------


@dataclass
class Column:
    """What one score belongs to: a view, or the whole (None), and some of the kernels."""

    view: int | None
    kernels: list
    extrapolates: bool


@dataclass
class Judgement:
    """All that the rule says of the rows learned from, and of new ones."""

    left_out: np.ndarray
    """Scores (n, C) of the rows by fits without their fold."""
    left_out_evidence: np.ndarray
    calibration_scores: np.ndarray
    """Scores (n,) that calibrate."""
    evidence: np.ndarray
    """Against new rows (m, C)."""
    scores: np.ndarray
    """Of new rows (m,)."""
    rank_weight: np.ndarray
    """What each row counts in ranks."""

    def p_values(self):
        return np.array(
            [p_value(self.calibration_scores, self.rank_weight, s) for s in self.scores]
        )

    def threshold(self, rate=0.05):
        return threshold(self.calibration_scores, self.rank_weight, rate)


def judge_table(
    X,
    new,
    b,
    *,
    views,
    scalings,
    steps,
    widths=("auto",),
    scores=("projection", "nearest"),
    whole=True,
    folds=None,
    seed=0,
    weight=None,
    groups=None,
):
    """From rows of a table to scores of new ones.

    ``views`` are lists of columns, ``scalings`` has a tuple of names for each view and, where there
    are several views, one for the whole, and ``steps`` what `away` makes of a value, by scaling.
    """
    keys = keys_of_table(X, seed)
    columns = len(set().union(*views))
    fold, order = draw_folds(keys, folds, groups, columns), random_order(keys)
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    judged = list(enumerate(views))
    if whole and len(views) > 1:
        judged.append((None, sorted(set().union(*views))))
    parts, columns, kernels = [], [], 0
    for (view, own), kinds in zip(judged, scalings, strict=False):
        for kind in kinds:
            parts.append(Part(own, kind, steps.get(kind), widths, scores))
            of_part = list(range(kernels, kernels + len(widths))) if view is not None else []
            kernels += len(of_part)
            if "projection" in scores:
                each = [[j] for j in of_part] or [[] for _ in widths]
                columns += [Column(view, own, False) for own in each]
            if "nearest" in scores:
                columns.append(Column(view, of_part, True))
    full = [fit_part(X, w, part) for part in parts]

    def fit(rows):
        fitted = [
            fit_part(X[rows], w[rows], part, floor)[0]
            for part, (_, floor) in zip(parts, full, strict=True)
        ]
        return lambda left: np.hstack([score(X[left]) for score in fitted])

    left_out = cross_fit(fit, fold)
    if groups is None:
        left_out = np.array([aligned(column, fold) for column in left_out.T]).T
    start = 0
    for part, (score, _) in zip(parts, full, strict=True):
        end = start + score(X).shape[1]
        as_new = common(X[:, part.columns])
        left_out[as_new, start:end] = score(X)[as_new]
        start = end
    cells = together = np.empty((0, X.shape[1]))
    if len(views) > 1:  # each cell, or each view, from another row; rows in random order
        m = min(max(len(X), 500), 1000)
        drawn = np.random.default_rng(0).integers(len(X), size=(m, X.shape[1]))
        cells = np.array([[X[order[i], c] for c, i in enumerate(row)] for row in drawn])
        first = [min((min(own) for own in views if c in own), default=c) for c in range(X.shape[1])]
        together = np.array([[X[order[row[f]], c] for c, f in enumerate(first)] for row in drawn])

    def of(rows):
        return np.hstack([score(rows) for score, _ in full])

    varying = [sum(len(set(X[:, c])) > 1 for c in own) for own in views]
    gated = [count > 1 and len(views) > 1 for count in varying]
    mixed = [
        of(together if column.view is None else cells)[:, c] for c, column in enumerate(columns)
    ]
    return judge(left_out, of(new), columns, b, fold, rank_weights(w, groups), gated, mixed)


def judge_kernels(K, new, b, *, whole=True, folds=None, seed=0, weight=None, groups=None):
    """The same from given kernels (J, n, n), and those of new rows (J, m, n)."""
    n = K.shape[1]
    fold = draw_folds(keys_of_kernels(K, seed), folds, groups)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)

    def fit(rows):
        score = fit_given(K, w, rows, whole)
        return lambda left: score(K[:, left])

    left_out = cross_fit(fit, fold)
    columns = [Column(j, [j], far) for j in range(len(K)) for far in (False, True)]
    columns += [Column(None, [], far) for far in (False, True)][: left_out.shape[1] - len(columns)]
    full = fit_given(K, w, np.arange(n), whole)
    order = random_order(keys_of_kernels(K, seed))
    drawn = np.random.default_rng(0).integers(n, size=(min(max(n, 500), 1000), len(K)))
    rows = [[K[j][order[i]] for i in drawn[:, j]] for j in range(len(K))]  # each view another row
    mixed, gated = full(np.array(rows)).T, [False] * len(K)
    return judge(left_out, full(new), columns, b, fold, rank_weights(w, groups), gated, mixed)


def cross_fit(fit, fold):
    """Scores of every row by what is fitted to the rows of the other folds."""
    out = {}
    for k in set(fold):
        left = np.flatnonzero(fold == k)
        for i, scores in zip(left, fit(np.flatnonzero(fold != k))(left), strict=True):
            out[i] = scores
    return np.array([out[i] for i in range(len(fold))])


def rank_weights(weight, groups=None):
    """What rows count in ranks: together (sum w)^2 / sum w^2, and the rows of a group one row."""
    groups = list(range(len(weight))) if groups is None else list(groups)
    each = np.array([w / groups.count(g) for w, g in zip(weight, groups, strict=True)])
    of_group = [
        sum(w for w, own in zip(each, groups, strict=True) if own == g) for g in set(groups)
    ]
    return each * sum(of_group) / sum(w**2 for w in of_group)


def judge(left_out, new, columns, b, fold, rank_weight, gated, mixed):
    """From scores to a decision: left-out ones (n, C), those of new rows, and of mixed rows."""

    def by_column(call):
        return np.array([call(c, column) for c, column in enumerate(columns)]).T

    own = by_column(
        lambda c, column: left_out_evidence(left_out[:, c], rank_weight, column.extrapolates, fold)
    )
    judges = [
        fit_evidence(left_out[:, c], rank_weight, column.extrapolates)
        for c, column in enumerate(columns)
    ]
    evidence = by_column(lambda c, _: [judges[c](s) for s in new[:, c]])

    # Views, and the whole, count by the odds that mixed rows are told from rows.
    factor = dict.fromkeys(range(len(gated)), 2.0) | {None: 1.0}
    for view in factor:
        if len(gated) > 1 and (view is None or gated[view]):
            each = [
                area(own[:, c], [judges[c](s) for s in mixed[c]])
                for c, column in enumerate(columns)
                if column.view == view
            ]
            odds = [a / (1 - a) if a < 1 else inf for a in each]
            factor[view] = min(max(sqrt(max(odds, default=1.0)), 0.5), 2.0)

    # Weights of scores: of their largest kernel, the largest of all kernels being one.
    view_of = {j: column.view for column in columns for j in column.kernels}
    b = [bj * factor[view_of[j]] for j, bj in enumerate(b)]
    weight = [
        factor[None] if column.view is None else max(b[j] for j in column.kernels) / max(b)
        for column in columns
    ]
    inside = [c for c, column in enumerate(columns) if column.view is not None]
    together = [c for c, column in enumerate(columns) if column.view is None]

    def score(e):
        views = sum((weight[c] * e[c]) ** 2 for c in inside)
        return -sqrt(views + sum((weight[c] * e[c]) ** 2 for c in together))

    return Judgement(
        left_out,
        own,
        np.array([score(e) for e in own]),
        evidence,
        np.array([score(e) for e in evidence]),
        rank_weight,
    )


def area(left_out, mixed):
    """The share of pairs in which the mixed row has more evidence against it; half of the ties.

    Evidence that differs by rounding alone is equal.
    """
    n, m = len(left_out), len(mixed)
    ranks = rankdata(np.round([*left_out, *mixed], 9))
    return (ranks[n:].sum() - m * (m + 1) / 2) / (n * m)


def p_value(left_out, weight, s):
    """(k + f) / (R + 1) with the weight k of left-out scores at or below s.

    Of the last of them counts the part f alone by which s has come to the next one.
    """
    total = sum(weight)
    at_or_below = [v for v in left_out if v <= s]
    above = [v for v in left_out if v > s]
    k = sum(w for v, w in zip(left_out, weight, strict=True) if v <= s)
    if not at_or_below or not above:
        return (1 + k) / (total + 1)
    low, high = max(at_or_below), min(above)
    part = max((s - low) / (high - low), 1e-6)
    last = min(sum(w for v, w in zip(left_out, weight, strict=True) if v == low), 1.0)
    return (1 + k - last * (1 - part)) / (total + 1)


def interpolated(scores, x):
    """`p_value` where all rows count one."""
    return p_value(scores, np.ones(len(scores)), x)


def counted(scores, weight, s):
    """The p-value of rows held out, which counts."""
    k = sum(w for v, w in zip(scores, weight, strict=True) if v <= s)
    return (1 + k) / (sum(weight) + 1)


def threshold(left_out, weight, rate, p=p_value):
    """The lowest number whose p-value is above the rate, by bisection.

    A rate below 1 / (R + 1), which no p-value reaches, counts as that.
    """
    rate = max(rate, 1 / (sum(weight) + 1)) * (1 + 1e-12)
    low, high = nextafter(min(left_out), -inf), max(left_out)
    while nextafter(low, inf) < high:
        middle = low + (high - low) / 2
        middle = middle if low < middle < high else nextafter(low, inf)
        low, high = (low, middle) if p(left_out, weight, middle) > rate else (middle, high)
    return high


def held_out(X, share, seed=0):
    """Rows that a fit does not see: the first ones of a random order, which content draws."""
    return sorted(random_order(keys_of_table(X, seed))[: max(1, round(share * len(X)))])


# -- 8. the paper's sum ----------------------------------------------------------------------------


def sum_of_kernels(K, new, b, *, ridge, folds=None, seed=0, weight=None):
    """The same as `sum_of_table` for given kernels."""
    w = np.ones(K.shape[1]) if weight is None else np.asarray(weight, dtype=float)

    def fit(rows):
        part, w_rows = K[:, rows][:, :, rows], w[rows] / w[rows].mean()
        each = [bj / off_diagonal_mean(Kj, w_rows) for bj, Kj in zip(b, part, strict=True)]
        A = np.tensordot(each, part, 1) + np.diag(ridge * len(rows) / w_rows)
        a = np.linalg.solve(A, np.ones(len(rows)))
        return lambda new: np.tensordot(each, new[:, :, rows], 1) @ a

    def fit_fold(rows):
        score = fit(rows)
        return lambda left: score(K[:, left])

    fold = draw_folds(keys_of_kernels(K, seed), folds)
    return cross_fit(fit_fold, fold), fit(np.arange(len(w)))(new)


def sum_of_table(X, new, b, *, views, scalings, steps, ridge, folds=None, seed=0, weight=None):
    """Left-out scores (n,), and scores of new rows (m,), of y(x) = sum_j b_j k_j(x)'a.

    Kernels are divided by their mean off-diagonal entry. A fold refits all but b: scaling, widths,
    and a = (K_b + ridge n W^-1)^-1 1 on its own n rows.
    """
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)

    def fit(rows):
        own, kernels, w_rows = X[rows], [], w[rows] / w[rows].mean()
        for columns, kinds in zip(views, scalings, strict=False):
            for kind in kinds:
                scale = SCALINGS[kind](own[:, columns], w_rows, steps.get(kind))
                Z = scale(own[:, columns])
                kernels.append((columns, scale, Z, width_of(Z, w_rows)))
        K = [rbf(Z, Z, width) for _, _, Z, width in kernels]
        each = [bj / off_diagonal_mean(Kj, w_rows) for bj, Kj in zip(b, K, strict=True)]
        K = sum(bj * Kj for bj, Kj in zip(each, K, strict=True))
        a = np.linalg.solve(K + np.diag(ridge * len(rows) / w_rows), np.ones(len(rows)))
        return lambda new: sum(
            bj * rbf(scale(new[:, columns]), Z, width) @ a
            for bj, (columns, scale, Z, width) in zip(each, kernels, strict=True)
        )

    def fit_fold(rows):
        score = fit(rows)
        return lambda left: score(X[left])

    columns = len(set().union(*views))
    fold = draw_folds(keys_of_table(X, seed), folds, columns=columns)
    full = fit(np.arange(len(X)))
    left_out, as_new = cross_fit(fit_fold, fold), common(X[:, sorted(set().union(*views))])
    left_out[as_new] = full(X)[as_new]
    return left_out, full(new)


def off_diagonal_mean(K, w):
    """Of pairs of different rows; a weight above one stands for copies, which meet each other."""
    own = np.minimum(w, 1.0)
    return (w @ K @ w - sum(own * w * np.diag(K))) / sum(w * (w.sum() - own))


def left_out_of_ridge_system(K, ridge):
    """y_i^{-i} = 1 - a_i / [(ridge I + K)^-1]_ii: leaving one row out, at fixed K and ridge."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
    return 1 - inverse.sum(axis=1) / np.diag(inverse)
