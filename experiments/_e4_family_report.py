"""The page of E4's family: every member paired against lp MK-FN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import e4_protocol as protocol
from experiments._cells import Rows, Settings
from experiments._ranks import paired
from experiments._tables import distinct, group, markdown, mean_std, values

#: What the reader must know of a member.
FUSION = (
    "lp fusion of scores weighs scores where lp MK-FN weighs kernels: the nearest published "
    "relative of deciding by evidence, in our reading of its abstract (arXiv:2312.15769; "
    "`experiments.family.fusion`)."
)

__all__ = ["FUSION", "finished", "report", "sentences"]


def finished(rows: Rows) -> dict[str, dict[str, Any]]:
    """AUCs in percent by method and set, of methods that have every set in every repeat."""
    sets = distinct(rows, "set")
    by: dict[str, dict[str, Any]] = {}
    for (method, name), part in group(rows, "method", "set").items():
        by.setdefault(method, {})[name] = 100 * values(part, "auc")
    most = max(len(found) for line in by.values() for found in line.values())
    return {
        m: line
        for m, line in by.items()
        if set(line) == set(sets) and all(len(found) == most for found in line.values())
    }


def compare(line: dict[str, Any], base: dict[str, Any]) -> tuple[float, int, int, float]:
    """Mean difference, wins and losses over sets, and Wilcoxon's p-value over sets."""
    return paired([line[s].mean() for s in base], [base[s].mean() for s in base])


def mean_of(line: dict[str, Any]) -> float:
    """Mean over sets of the mean over repeats."""
    return float(np.mean([found.mean() for found in line.values()]))


def sentences(rows: Rows) -> list[str]:
    """One sentence per member of the family, from the table alone."""
    by = finished(rows)
    base = by[protocol.MAIN]
    out = [f"lp MK-FN: {mean_of(base):.1f} on average over {len(base)} sets."]
    for method, line in by.items():
        if method == protocol.MAIN or method.endswith("contaminated"):
            continue
        shift, up, down, p_value = compare(line, base)
        out.append(
            f"{method}: {mean_of(line):.1f} ({shift:+.1f}; {up} sets up, {down} down, "
            f"p = {p_value:.2g})."
        )
    for method, line in by.items():
        if not (method.startswith("robust, ") and method.endswith("contaminated")):
            continue
        other = by.get(method.replace("robust, ", "plain, "))
        if other is not None:
            shift, up, down, p_value = compare(line, other)
            share = method.removeprefix("robust, ").removesuffix(" contaminated")
            out.append(
                f"With {share} of the training rows outliers: plain {mean_of(other):.1f}, robust "
                f"{mean_of(line):.1f} ({shift:+.1f}; {up} sets up, {down} down, p = {p_value:.2g})."
            )
    return out


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """A table of all finished methods, and what it comes to."""
    by = finished(rows)
    sets = distinct(rows, "set")
    missing = [m for m in distinct(rows, "method") if m not in by]
    lines = [[m, *(mean_std(by[m][s]) for s in sets), f"{mean_of(by[m]):.1f}"] for m in by]
    repeats = len(next(iter(next(iter(by.values())).values())))
    gaps = {
        m: max(float(row["largest_gap"]) for row in rows if row["method"] == m)
        for m in by
        if any(row["method"] == m and row.get("largest_gap", "") != "" for row in rows)
    }
    certified = "".join(
        f" Every model of {m} has a certified relative gap of at most {gap:.1e}."
        for m, gap in gaps.items()
    )
    left = f" Not finished and left out: {', '.join(missing)}." if missing else ""
    return "\n\n".join(
        [
            "AUC in percent on the target classes fixed beforehand, mean ± std over "
            f"{repeats} repeats; splits and kernels of E4; every method tuned by validation AUC "
            f"over a grid fixed before the run (`experiments.e4_family`).{certified}{left}",
            markdown(["method", *sets, "mean"], lines),
            FUSION,
            "Paired against lp MK-FN over the sets (Wilcoxon's signed-rank test):",
            "\n".join(f"- {sentence}" for sentence in sentences(rows)),
        ]
    )
