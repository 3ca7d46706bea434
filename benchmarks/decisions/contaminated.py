"""Training rows that are not clean: ours and peers on the same rows."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import StandardScaler

from benchmarks.arena.peers import RowByRow
from benchmarks.decisions import protocol
from benchmarks.decisions.measures import auc, fitted, neighbours
from benchmarks.decisions.tables import halves, split
from kernull import MultiKernelFisherNull

OURS, DEFAULT, FOREST = "contamination=0.1", "default", "IsolationForest"


def of_table(name, seed, shares=protocol.CONTAMINATION):
    """AUC of new rows and of training rows, and alarms, of each method at each share."""
    rows, out = split(name, seed), []
    new, m = np.vstack([rows.normal, rows.outliers]), len(rows.normal)
    for share in shares:
        count = round(share * len(rows.train) / (1 - share))
        if count > len(rows.spare):
            continue
        X, n = np.vstack([rows.train, rows.spare[:count]]), len(rows.train)
        for method, scores, own, threshold in _methods(X, new, seed):
            line = {"what": "contamination", "table": name, "seed": seed, "kind": method}
            line |= {"share": share, "value": auc(scores[:m], scores[m:])}
            line["own"] = auc(own[:n], own[n:]) if count else float("nan")
            line["alarms"] = float((scores[:m] < threshold).mean())
            out.append(line)
    return out


def _methods(X, new, seed):
    """Method, scores of new rows, of training rows, and threshold."""
    views = halves(X.shape[1])
    known = MultiKernelFisherNull().get_params()
    if "contamination" in known:
        yield (OURS, *_ours(X, new, views=views, contamination=protocol.GUESS))
    yield (DEFAULT, *_ours(X, new, views=views))
    scaler = StandardScaler().fit(X)
    Z, Z_new = scaler.transform(X), scaler.transform(new)
    for name, peer in (
        (FOREST, IsolationForest(random_state=seed)),
        ("ECOD", RowByRow("ECOD")),
    ):
        peer.fit(Z)
        own = peer.score_samples(Z)
        yield name, peer.score_samples(Z_new), own, _threshold(own)
    own = neighbours(X, X, k=6)[0]  # itself, and five others
    yield "five neighbours", neighbours(X, new)[0], own, _threshold(own * 6 / 5)


def _ours(X, new, **settings):
    model = fitted(X, **settings)
    # Each row left out: what fit_predict compares with the threshold.
    own = np.asarray(model._fit(X).row_scores())
    return np.asarray(model.score_samples(new)), own, model.threshold_


def _threshold(scores):
    return float(np.quantile(scores, protocol.RATE))
