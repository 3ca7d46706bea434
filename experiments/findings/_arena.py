"""What the arena comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from experiments._cells import Rows
from experiments._ranks import rank_methods
from experiments._tables import distinct, group
from experiments.findings._base import bullet, paragraph, rows_of, state

__all__ = ["arena"]

DEFAULT, NEXT = "MultiKernelFisherNull()", "KPCA-Average"
#: Entrants that are not ours.
PEERS = ("OneClassSVM", "IsolationForest", "LocalOutlierFactor", "PyOD", "Mahalanobis", "nearest")


def is_peer(name: str) -> bool:
    """True for detectors of other libraries and plain ones."""
    return name.startswith(PEERS) or "neighbour" in name


def after_the_first(rows: Rows) -> tuple[dict[str, float], dict[str, float], int, list[str]]:
    """Mean rank and mean AUC over repeats 1 and up, by entrant.

    Problems with a single split have no such repeats and drop out.

    Returns
    -------
    ranks, aucs, number of problems, sets that drop out
    """
    names = ranked(rows)
    plain = [row for row in rows if row["view"] == "" and row["entrant"] in names]
    later = [row for row in plain if row["repeat"] >= 1]
    problems = distinct(later, "data")
    gone = [p for p in distinct(plain, "data") if p not in problems]
    mean = {
        key: round(100 * float(np.mean([row["auc"] for row in part])), 8)
        for key, part in group(later, "entrant", "data").items()
    }
    table = np.array([[mean[n, p] for n in names] for p in problems])
    ranks = np.apply_along_axis(rankdata, 1, -table).mean(axis=0)
    sets = list(dict.fromkeys(p.rpartition(" ")[0] for p in gone))
    return (
        dict(zip(names, ranks, strict=True)),
        dict(zip(names, table.mean(axis=0), strict=True)),
        len(problems),
        sets,
    )


def ranked(rows: Rows) -> list[str]:
    """Entrants that are ranked: those with a result on every problem and no single view."""
    plain = [row for row in rows if row["view"] == ""]
    problems = set(distinct(plain, "data"))
    by = group(plain, "entrant")
    full = [name for (name,), part in by.items() if set(distinct(part, "data")) == problems]
    return [name for name in full if "labels" not in name and "oracle" not in name.lower()]


def arena(results: Path) -> str:
    """The section of the arena."""
    summary = {row["entrant"]: row for row in rows_of(results, "arena/summary.csv")}
    rows = rows_of(results, "arena/results.csv")
    ours, following = summary[DEFAULT], summary[NEXT]
    families = ("tables", "multi-view", "images")
    peers = [name for name in summary if is_peer(name)]
    best_peer = min(peers, key=lambda name: summary[name]["mean_rank"])
    by_auc = max(peers, key=lambda name: summary[name]["mean_auc"])
    plain = [row for row in rows if row["view"] == "" and row["entrant"] in summary]
    mean = {k: np.mean([r["auc"] for r in p]) for k, p in group(plain, "entrant", "data").items()}
    problems = distinct(plain, "data")
    table: Any = np.array([[100 * mean[n, p] for n in summary] for p in problems])
    difference = rank_methods(list(summary), table).critical_difference
    family = {row["data"]: row["family"] for row in plain}
    counts = [sum(family[p] == f for p in problems) for f in families]
    auprc = sorted(summary.values(), key=lambda row: -row["mean_auprc"])
    ranks, aucs, n_later, gone = after_the_first(
        [row for row in rows if row["view"] == "" and row["entrant"] in summary]
    )
    second = min((n for n in ranks if n != DEFAULT), key=lambda n: ranks[n])
    fn = summary["FN-Average"]["seconds_median"]
    return "\n\n".join(
        [
            f"## The arena: the default is first of {len(summary)} entrants, by a little among "
            "our own, by much over peers",
            paragraph(
                f"{len(problems)} problems ({counts[0]} tables, {counts[1]} with six views, "
                f"{counts[2]} of images), nothing tuned on labels. The rules of [the defaults]"
                "(../explanations/defaults.md) were chosen with the first split in sight; [the "
                "table of candidates](arena/rules.md) shows what each family gets when only the "
                "others choose."
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
                            f"`{DEFAULT}` has the best mean rank ({ours['mean_rank']:.2f}; {NEXT}, "
                            f"also ours, {following['mean_rank']:.2f}; the best peer, {best_peer}, "
                            f"{summary[best_peer]['mean_rank']:.2f}) and the best mean AUC "
                            f"({ours['mean_auc']:.2f}; {following['mean_auc']:.2f}; best peer "
                            f"{summary[by_auc]['mean_auc']:.2f}), and is ahead of every peer in "
                            "every family.",
                        ),
                        state(
                            [
                                following["mean_rank"] - ours["mean_rank"] < difference,
                                all(
                                    summary[p]["mean_rank"] - ours["mean_rank"] > difference
                                    for p in peers
                                ),
                            ],
                            f"The lead over {NEXT} is far inside the critical difference "
                            f"({difference:.2f}); that over every peer is outside it.",
                        ),
                    ),
                    bullet(
                        state(
                            auprc[0]["entrant"] != DEFAULT,
                            f"By AUPRC it is not first: {ours['mean_auprc']:.2f}, against "
                            f"{auprc[0]['mean_auprc']:.2f} for {auprc[0]['entrant']} and "
                            f"{auprc[1]['mean_auprc']:.2f} for {auprc[1]['entrant']}.",
                        )
                    ),
                    bullet(
                        state(
                            [min(ranks, key=lambda n: ranks[n]) == DEFAULT, second == NEXT],
                            "On repeats 1 and up, which the table of candidates does not use "
                            f"({n_later} problems; {', '.join(gone)} has a single split "
                            "and drops out), it is first, too: mean rank "
                            f"{ranks[DEFAULT]:.2f} before {NEXT} with {ranks[NEXT]:.2f}, mean AUC "
                            f"{aucs[DEFAULT]:.2f} before {aucs[NEXT]:.2f}.",
                        ),
                        "These are rows of the same sets, of which other splits were tried while "
                        "the rules were made, so this is no test on new data.",
                    ),
                    bullet(
                        f"Its price: a median of {ours['seconds_median']:.2f} s per problem, "
                        f"{ours['seconds_median'] / fn:.0f} times FN-Average."
                    ),
                ]
            ),
        ]
    )
