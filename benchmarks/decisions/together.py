"""Views that are each normal and do not belong together: what a view of the whole row sees."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.decisions.measures import fitted
from benchmarks.decisions.tables import halves, split
from experiments._cells import generator

PLAIN, WHOLE = "two views", 'two views and "all"'


def of_table(name, seed):
    """AUC against outliers, and against rows whose second view is another row's."""
    rows = split(name, seed)
    d = rows.train.shape[1]
    views = halves(d)
    mixed = rows.normal.copy()
    other = generator("decisions", "together", name, seed).permutation(len(mixed))
    mixed[:, views["second"]] = mixed[np.ix_(other, views["second"])]
    out = []
    for kind, made in ((PLAIN, views), (WHOLE, {**views, "all": list(range(d))})):
        model = fitted(rows.train, made)
        normal = model.score_samples(rows.normal)
        outliers, other = (_auc(normal, model.score_samples(X)) for X in (rows.outliers, mixed))
        alarms = float((normal < model.threshold_).mean())
        row = {"what": "together", "table": name, "seed": seed, "kind": kind}
        out.append({**row, "value": outliers, "own": other, "alarms": alarms})
    return out


def _auc(normal, odd):
    labels = np.r_[np.ones(len(normal)), -np.ones(len(odd))]
    return 100 * float(roc_auc_score(labels, np.r_[normal, odd]))
