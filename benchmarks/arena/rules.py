"""Candidate defaults, and which of them each family would get from the others."""

from __future__ import annotations

import numpy as np

from benchmarks.arena.entrants import FORMER, fisher
from experiments._tables import group, markdown
from kernull import MultiKernelFisherNull

ALL = ("standard", "whiten", "quantile")
EVIDENCE = {
    "decision": "evidence",
    "scaling": ALL,
    "widths": "auto",
    "normalize": "offdiagonal",
    "p": 1.5,
    "delta": 1e-2,
}
INCUMBENT = "evidence"

#: Candidates by name: arguments of `MultiKernelFisherNull`; each differs from the incumbent by
#: what its name says.
RULES = {
    INCUMBENT: EVIDENCE,
    "evidence, not whitened": {**EVIDENCE, "scaling": ("standard", "quantile")},
    "evidence, no quantiles": {**EVIDENCE, "scaling": ("standard", "whiten")},
    "evidence, standardised alone": {**EVIDENCE, "scaling": "standard"},
    "evidence, width 1/2": {**EVIDENCE, "widths": 0.5},
    "evidence, p = 1.25": {**EVIDENCE, "p": 1.25},
    "evidence, p = 2": {**EVIDENCE, "p": 2.0},
    "the sum": FORMER,
}


def candidates():
    """The candidates that this version's estimator understands, as entrants."""
    known = MultiKernelFisherNull().get_params()
    return {
        name: fisher(f"rule: {name}", "rule", rule)
        for name, rule in RULES.items()
        if set(rule) <= set(known)
    }


def family_means(rows):
    """Mean AUC in percent by family and rule: over repeats, then over problems."""
    by_problem = {
        key: np.mean([row["auc"] for row in found])
        for key, found in group(rows, "family", "entrant", "data").items()
    }
    out = {}
    for (family, rule, _), value in by_problem.items():
        out.setdefault(family, {}).setdefault(rule.removeprefix("rule: "), []).append(100 * value)
    return {f: {rule: float(np.mean(v)) for rule, v in found.items()} for f, found in out.items()}


def leave_one_out(means):
    """For each family: the rule that the others choose, its AUC there, and the best rule's.

    The others choose by the mean of their mean AUCs, every family with equal weight.
    """
    rules = set.intersection(*(set(found) for found in means.values()))
    # Sorted, so that a tie does not depend on the order of a set.
    rules = sorted(rules)
    out = []
    for family in means:
        others = [other for other in means if other != family] or [family]
        chosen = max(rules, key=lambda r: np.mean([means[f][r] for f in others]))
        best = max(rules, key=lambda r: means[family][r])
        out.append((family, chosen, means[family][chosen], best, means[family][best]))
    overall = max(rules, key=lambda r: np.mean([means[f][r] for f in means]))
    return out, overall


def page(means):
    """Markdown: every rule in every family, and the choice without each."""
    families = list(means)
    table, overall = leave_one_out(means)
    rules = sorted(
        set.intersection(*(set(found) for found in means.values())),
        key=lambda r: -np.mean([means[f][r] for f in families]),
    )
    every = markdown(
        ["rule", *families, "mean of families"],
        [
            [r, *(f"{value:.2f}" for value in (*of, np.mean(of)))]
            for r in rules
            if (of := [means[f][r] for f in families])
        ],
    )
    choice = markdown(
        ["family", "the other families choose", "its AUC there", "best rule there", "its AUC"],
        [[f, c, f"{a:.2f}", b, f"{v:.2f}"] for f, c, a, b, v in table],
    )
    return (
        "Mean AUC in percent over the problems of a family. A rule that is tuned on what it is "
        "judged on flatters itself, so each family is judged by the rule that the other families "
        f"choose (by the mean of their mean AUCs):\n\n{choice}\n\n"
        f"All families together choose **{overall}**.\n\n{every}\n"
    )
