"""What E4, its ablation, its hypotheses and the Gaussian process come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import e4_protocol as protocol
from experiments._cells import Rows
from experiments._e4_family_report import FUSION
from experiments._e4_family_report import sentences as family_sentences
from experiments._e4_hypotheses_report import verdicts
from experiments._e4_report import nearest_classes
from experiments._ranks import paired, rank_methods
from experiments._tables import distinct, group, values
from experiments.datasets._delft import TARGETS
from experiments.e4_ablation import PAPER
from experiments.e4_gp import findings as gp_findings
from experiments.findings._base import bullet, listed, paragraph, rows_of, state
from experiments.local_and_tasks import CAVEAT
from experiments.local_and_tasks import sentences as answers_of
from experiments.published import DELFT_AUC

__all__ = ["delft", "family"]

MAIN = protocol.MAIN


class Delft:
    """Mean AUC in percent by problem and method."""

    def __init__(self, rows: Rows) -> None:
        self.mean = {
            key: 100 * float(values(part, "auc").mean())
            for key, part in group(rows, "set", "target", "method").items()
        }
        self.every = list(dict.fromkeys((n, t) for n, t, _ in self.mean))
        self.fixed = [(name, target) for name, target in TARGETS.items()]
        self.methods = [*protocol.PAPER_METHODS, *protocol.PEERS]

    def table(self, problems: Any) -> Any:
        """(problems, methods)."""
        return np.array([[self.mean[n, t, m] for m in self.methods] for n, t in problems])

    def average(self, method: str, problems: Any) -> float:
        """Mean over problems."""
        return float(np.mean([self.mean[n, t, method] for n, t in problems]))

    def against(self, method: str, problems: Any) -> tuple[float, int, int, float]:
        """Mean difference of lp MK-FN from a method, wins, losses, p-value."""
        ours = [self.mean[n, t, MAIN] for n, t in problems]
        return paired(ours, [self.mean[n, t, method] for n, t in problems])


def delft(results: Path) -> str:
    """The section of E4."""
    rows, ablation = (rows_of(results, f"{n}/results.csv") for n in ("E4", "E4-ablation"))
    found = Delft(rows)
    return "\n\n".join(
        [
            *_headline(found),
            _printed(found, ablation),
            _ablation(ablation, found, same_cells(ablation, rows)),
            _hypotheses(results),
            _target_classes(found),
            _ranking(found),
            _others(found, rows_of(results, "E4-gp/results.csv")),
        ]
    )


def family(results: Path) -> str:
    """The section of the methods around lp MK-FN."""
    rows = rows_of(results, "E4-family/results.csv")
    answers = rows_of(results, "local-and-tasks/results.csv")
    return "\n\n".join(
        [
            "## The family around lp MK-FN",
            "On the splits and kernels of E4, ten repeats, paired against lp MK-FN "
            "([E4-family](E4-family/page.md)):",
            "\n".join(bullet(sentence) for sentence in family_sentences(rows)),
            paragraph(FUSION),
            "Do localised weights and coupled tasks help where they should? One problem made for "
            "each, and two\nreal ones ([local-and-tasks](local-and-tasks/page.md)):",
            "\n".join(bullet(sentence) for sentence in answers_of(answers)),
            paragraph(CAVEAT),
        ]
    )


def _headline(found: Delft) -> list[str]:
    known = DELFT_AUC[MAIN]
    ours = found.average(MAIN, found.fixed)
    theirs = float(np.mean([known[n][0] for n, _ in found.fixed]))
    off = {n: found.mean[n, t, MAIN] - known[n][0] for n, t in found.fixed}
    near = [n for n in off if abs(off[n]) <= known[n][1]]
    far = [n for n in off if n not in near]
    return [
        f"## E4: lp MK-FN, {ours:.1f} where the paper has {theirs:.1f}",
        paragraph(
            f"Average over the {len(found.fixed)} sets, target classes fixed beforehand, ten "
            f"repeats. {len(near)} of them lie within one published standard deviation; "
            + state(
                [off[n] < 0 for n in far],
                listed(f"{n} ({off[n]:+.1f})" for n in far) + " lie below by more.",
            ),
        ),
    ]


def _printed(found: Delft, ablation: Rows) -> str:
    """What Algorithm 1 as printed comes to, by the number of its updates."""
    known = DELFT_AUC[MAIN]
    by = {k: 100 * values(p, "auc").mean() for k, p in group(ablation, "method", "set").items()}

    def told(auc: dict[str, float]) -> tuple[float, int]:
        near = sum(abs(auc[n] - known[n][0]) <= known[n][1] for n in auc)
        return float(np.mean(list(auc.values()))), near

    own = told({n: found.mean[n, t, protocol.PRINTED] for n, t in found.fixed})
    exact = found.average(MAIN, found.fixed)
    each = {v: told({n: by[v, n] for n, _ in found.fixed}) for v in PAPER}
    first, *others = (
        f"{mean:.1f} and {near} sets after {PAPER[v]}" for v, (mean, near) in each.items()
    )
    means = [mean for mean, _ in each.values()]
    return paragraph(
        f"These are certified optima. **Algorithm 1 as printed** has {own[0]:.1f} and {own[1]} "
        "sets: its last iterate, where its coefficients no longer change or after 200 updates of "
        "the weights.",
        state(
            [own == each["Algorithm 1 as printed"], max(means) - min(means) > 0.5,
             min(means) < exact < max(means)],
            f"Where it cycles the count decides which point is the last: {first}, "
            f"{listed(others)}, around the {exact:.1f} of the optimum.",
        ),
    )  # fmt: skip


def same_cells(ablation: Rows, rows: Rows) -> list[bool]:
    """Whether each cell of the ablation's first line is that of E4, to the last digit."""
    known = {(r["set"], r["target"], r["repeat"]): r["auc"] for r in rows if r["method"] == MAIN}
    base = distinct(ablation, "method")[0]
    return [
        r["auc"] == known[r["set"], r["target"], r["repeat"]]
        for r in ablation
        if r["method"] == base
    ]


def _ablation(rows: Rows, found: Delft, same: list[bool]) -> str:
    by = {key: 100 * values(p, "auc").mean() for key, p in group(rows, "method", "set").items()}
    sets = distinct(rows, "set")
    variants = distinct(rows, "method")
    base = variants[0]
    mean = {v: float(np.mean([by[v, s] for s in sets])) for v in variants}
    test = "tuned on the test rows"
    up = sum(by[test, s] > by[base, s] for s in sets)
    rest = [v for v in variants if v not in (base, test)]
    lower = {n: max(by[v, n] - DELFT_AUC[MAIN][n][0] for v in [base, *rest]) for n in sets}
    stay = [n for n in sets if lower[n] < -DELFT_AUC[MAIN][n][1]]
    return "\n".join(
        [
            "What [the ablation](E4-ablation/page.md) shows, one thing changed at a time "
            + state(same, "(its first line is E4's own, equal in every cell):"),
            "",
            bullet(
                "**How p, delta and width are chosen matters most.** Chosen on the test rows "
                f"themselves the average is {mean[test]:.1f} ({mean[test] - mean[base]:+.1f}, up "
                f"on {up} of {len(sets)} sets). Choosing on the test rows flatters itself, so this "
                "is an upper bound of what the choice among "
                f"{len(protocol.PS) * len(protocol.DELTAS) * len(protocol.WIDTHS)} models on a few "
                "dozen validation rows costs."
            ),
            bullet(
                "The other changes: "
                + "; ".join(f"{v}: {mean[v] - mean[base]:+.1f}" for v in rest)
                + ". "
                + state(
                    [mean[v] < 79.0 for v in rest], "None of them leads to the published figures."
                )
            ),
            bullet(
                f"The score -|1 - y| gives "
                f"{found.average(MAIN + ' (score -|1 - y|)', found.fixed):.1f}; the choice that "
                "uses no outliers gives "
                f"{found.average(MAIN + ' (chosen without outliers)', found.fixed):.1f}."
            ),
            *(
                [
                    bullet(
                        f"{listed(stay).capitalize()} {'stay' if len(stay) > 1 else 'stays'} below "
                        "by more than one published standard deviation under every variant but the "
                        "choice on test rows."
                    )
                ]
                if stay
                else []
            ),
        ]
    )


def _hypotheses(results: Path) -> str:
    table = rows_of(results, "E4-hypotheses/summary.csv")
    return "\n".join(
        [
            "**Readings of the paper's words**, written down before they were run "
            "([E4-hypotheses](E4-hypotheses/page.md)):",
            "",
            *(bullet(sentence) for sentence in verdicts(table)),
        ]
    )


def _target_classes(found: Delft) -> str:
    nearest = nearest_classes(found.mean, found.every)
    other = [n for n, t in found.fixed if nearest[n] != t]
    reached = found.average(MAIN, list(nearest.items()))
    exact = found.average(MAIN, found.fixed)
    theirs = float(np.mean([DELFT_AUC[MAIN][n][0] for n, _ in found.fixed]))
    return paragraph(
        "**Other target classes do not explain it.** The paper names none. By the mean difference "
        "of all eleven methods from the whole published table the classes fixed beforehand are the "
        f"nearest on {len(found.fixed) - len(other)} of {len(found.fixed)} sets",
        state(
            [len(other) == 1, reached < exact < theirs - 2],
            f"(not on {listed(other)}), and lp MK-FN has {reached:.1f} over the nearest classes, "
            f"no more than the {exact:.1f} over the fixed ones.",
        ),
    )


def _ranking(found: Delft) -> str:
    fixed = rank_methods(found.methods, found.table(found.fixed))
    every = rank_methods(found.methods, found.table(found.every))
    place = fixed.methods.index(MAIN) + 1
    place_every = every.methods.index(MAIN) + 1

    def rank(ranking: Any, method: str) -> str:
        return f"{ranking.ranks[ranking.methods.index(method)]:.2f}"

    def versus(method: str, problems: Any) -> str:
        difference, wins, losses, p_value = found.against(method, problems)
        return f"{method} ({difference:+.1f}, {wins} to {losses}, p = {p_value:.2g})"

    ahead = fixed.methods[: place - 1]
    top = every.methods[0]
    machines = ("MK-SVDD", "MK-OCSVM")
    slim = ("Slim-MK-SVDD", "Slim-MK-OCSVM")
    return paragraph(
        "**The paper's ranking does not come back.**",
        f"On the {len(found.fixed)} fixed classes lp MK-FN is number {place} of "
        f"{len(found.methods)} by average rank ({rank(fixed, MAIN)}), behind "
        + listed(f"{m} ({rank(fixed, m)})" for m in ahead)
        + ".",
        state(
            found.against(top, found.every)[3] < 0.05,
            f"Over all {len(found.every)} classes {top} is first "
            f"({found.average(top, found.every):.1f}, rank {rank(every, top)}) and significantly "
            f"above lp MK-FN ({found.average(MAIN, found.every):.1f}, rank {rank(every, MAIN)}, "
            f"number {place_every}). Differences of lp MK-FN from others there: "
            + listed(versus(m, found.every) for m in (top, *machines, *slim))
            + ".",
        ),
        state(
            [found.against(m, found.every)[3] < 0.05 for m in machines]
            + [found.against(m, found.every)[3] > 0.05 for m in slim],
            "So it is ahead of MK-SVDD and MK-OCSVM as published, and not significantly ahead of "
            "the slim variants, which are our own reading of them.",
        ),
    )


def _others(found: Delft, gp: Rows) -> str:
    def above(method: str) -> dict[str, float]:
        return {n: found.mean[n, t, method] - DELFT_AUC[method][n][0] for n, t in found.fixed}

    kpca, product = above("KPCA-Average"), above("GP-Product")
    much = {n: v for n, v in kpca.items() if v >= 10}
    gains = {n: v for n, v in product.items() if v >= 10}
    imports = found.mean["imports", 1, "MK-SVDD"]
    ecod = min(found.mean[n, t, "PyOD ECOD"] for n, t in found.fixed)
    where_ecod = next(n for n, t in found.fixed if found.mean[n, t, "PyOD ECOD"] == ecod)
    return "\n\n".join(
        [
            paragraph(
                "What differs from the paper is mostly the others: our KPCA-Average is "
                f"{min(much.values()):.0f} to {max(much.values()):.0f} points above the published "
                f"one on {listed(much)}, and GP-Product {min(gains.values()):.0f} to "
                f"{max(gains.values()):.0f} points above its published figures on {len(gains)} "
                "sets. We tuned the number of components and the noise by the same validation AUC "
                "as everything else; the paper does not say how it chose them. MK-SVDD on imports "
                f"is {imports:.1f} because the constant column is dropped; kept, it takes all the "
                f"weight (published {DELFT_AUC['MK-SVDD']['imports'][0]}). One kernel per column, "
                "as here, is also not how `MultiKernelFisherNull()` sees a table: see [the "
                "defaults](../explanations/defaults.md)."
            ),
            "Which score of the Gaussian process comes below chance ([E4-gp](E4-gp/page.md)):",
            "\n".join(bullet(sentence) for sentence in gp_findings(gp)),
            paragraph(
                "PyOD's ECOD ranks new rows together with one another, so its score of a row "
                "depends on the batch: on test sets that are mostly outliers it falls below "
                f"chance ({ecod:.1f} on {where_ecod}). It is scored here as PyOD scores."
            ),
        ]
    )
