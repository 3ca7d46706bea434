"""What the arena comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._ranks import rank_methods
from experiments._tables import distinct, group
from experiments.findings._base import bullet, paragraph, rows_of, state

__all__ = ["arena"]

DEFAULT = "MultiKernelFisherNull()"
#: Entrants that are not ours.
PEERS = ("OneClassSVM", "IsolationForest", "LocalOutlierFactor", "PyOD", "Mahalanobis", "nearest")


def is_peer(name: str) -> bool:
    """True for detectors of other libraries and plain ones."""
    return name.startswith(PEERS) or "neighbour" in name


def arena(results: Path) -> str:
    """The section of the arena."""
    summary = {row["entrant"]: row for row in rows_of(results, "arena/summary.csv")}
    rows = rows_of(results, "arena/results.csv")
    ours = summary[DEFAULT]
    families = ("tables", "multi-view", "images")
    peers = [name for name in summary if is_peer(name)]
    following = min((n for n in summary if n != DEFAULT), key=lambda n: summary[n]["mean_rank"])
    best_peer = min(peers, key=lambda name: summary[name]["mean_rank"])
    by_auc = max(peers, key=lambda name: summary[name]["mean_auc"])
    plain = [row for row in rows if row.get("view", "") == "" and row["entrant"] in summary]
    mean = {k: np.mean([r["auc"] for r in p]) for k, p in group(plain, "entrant", "data").items()}
    problems = distinct(plain, "data")
    table: Any = np.array([[100 * mean[n, p] for n in summary] for p in problems])
    difference = rank_methods(list(summary), table).critical_difference
    family = {row["data"]: row["family"] for row in plain}
    counts = [sum(family[p] == f for p in problems) for f in families]
    fn = summary["FN-Average"]["seconds_median"]
    return "\n\n".join(
        [
            f"## The arena: the default is first of {len(summary)} entrants",
            paragraph(
                f"{len(problems)} problems ({counts[0]} tables, {counts[1]} with six views, "
                f"{counts[2]} of images), nothing tuned on labels. Which half of the problems had "
                "a part in choosing [the defaults](../explanations/defaults.md), and which judges, "
                "is on [the page](arena/page.md)."
            ),
            "\n".join(
                [
                    bullet(
                        state(
                            [
                                min(r["mean_rank"] for r in summary.values()) == ours["mean_rank"],
                                max(r["mean_auc"] for r in summary.values()) == ours["mean_auc"],
                                all(
                                    ours[f"auc_{f}"] > summary[p][f"auc_{f}"]
                                    for f in families
                                    for p in peers
                                ),
                            ],
                            f"`{DEFAULT}` has the best mean rank ({ours['mean_rank']:.2f}; next "
                            f"{following}, {summary[following]['mean_rank']:.2f}; the best peer, "
                            f"{best_peer}, {summary[best_peer]['mean_rank']:.2f}) and the best "
                            f"mean AUC ({ours['mean_auc']:.2f}; "
                            f"{summary[following]['mean_auc']:.2f}; best peer, {by_auc}, "
                            f"{summary[by_auc]['mean_auc']:.2f}), and is ahead of every peer in "
                            "every family.",
                        ),
                        _lead(summary, following, best_peer, difference),
                    ),
                    bullet(_auprc(summary)),
                    bullet(
                        f"Its price: a median of {ours['seconds_median']:.2f} s per problem, "
                        f"{ours['seconds_median'] / fn:.0f} times FN-Average."
                    ),
                ]
            ),
        ]
    )


def _lead(summary: dict[str, Any], following: str, best_peer: str, difference: float) -> str:
    """Whether the lead in ranks is one."""
    ahead = {
        name: summary[name]["mean_rank"] - summary[DEFAULT]["mean_rank"]
        for name in (following, best_peer)
    }
    said = " and ".join(
        f"{'outside' if lead > difference else 'inside'} for {name}" for name, lead in ahead.items()
    )
    return f"The lead in ranks against the critical difference ({difference:.2f}): {said}."


def _auprc(summary: dict[str, Any]) -> str:
    """Where the default stands by AUPRC."""
    order = sorted(summary, key=lambda name: -summary[name]["mean_auprc"])
    value = {name: f"{summary[name]['mean_auprc']:.2f}" for name in order}
    if order[0] == DEFAULT:
        return f"By AUPRC it is first, too: {value[DEFAULT]}; next {order[1]}, {value[order[1]]}."
    return (
        f"By AUPRC it is not first: {value[DEFAULT]}, against {value[order[0]]} for {order[0]} "
        f"and {value[order[1]]} for {order[1]}."
    )
