"""What E1, E2, E3, E9-joint and E10 come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import e9_joint, e10
from experiments._cells import Rows
from experiments._models import LOWEST, NEXT
from experiments._tables import distinct, group, values, where
from experiments.e1 import CHOSEN, PS
from experiments.e2 import EXACT, PAPER, TWO
from experiments.findings._base import bullet, listed, paragraph, rows_of, state

__all__ = ["convergence", "joint", "noisy", "synthetic", "times"]


def convergence(results: Path) -> str:
    """The section of E1."""
    rows = [{**row, "p": str(row["p"])} for row in rows_of(results, "E1/results.csv")]
    paper = where(rows, solver="Algorithm 1")
    chosen = where(paper, data=f"class {CHOSEN}")

    def steps(part: Rows) -> list[Any]:
        return [row["iterations_to_gap"] for row in part if row["iterations_to_gap"] != ""]

    starts = len(distinct(chosen, "repeat"))
    by = {p: where(chosen, p=p) for p in PS}
    large = [p for p in PS if PS[p] >= 2]
    small = [p for p in PS if PS[p] < 4 / 3]
    medians = [float(np.median(steps(by[p]))) for p in large]
    third = steps(by["4/3"])
    gaps = [float(np.median(values(by[p], "last_gap"))) for p in small]
    everywhere = [row for p in small for row in where(paper, p=p)]
    default = [
        float(np.median(steps(where(rows, solver="default", data=f"class {CHOSEN}", p=p))))
        for p in PS
    ]
    return "\n\n".join(
        [
            "## E1: on Flowers17 Algorithm 1 converges for p >= 4/3, not below",
            paragraph(
                "The paper reports convergence in about 10 iterations for p <= 4/3 and at most 3 "
                "for p >= 2, on one class and seven published distance matrices. Ours are seven "
                "descriptors of our own (the matrices are not at hand), so values differ, but the "
                "message can be compared:"
            ),
            "\n".join(
                [
                    bullet(
                        state(
                            [len(steps(by[p])) == starts for p in large],
                            f"p >= 2 agrees: {min(medians):.0f} to {max(medians):.0f} iterations "
                            f"in the median to a relative gap of 1e-6, in all {starts} starts.",
                        )
                    ),
                    bullet(
                        state(
                            len(third) == starts,
                            f"p = 4/3 agrees: {np.median(third):.0f} iterations in the median, all "
                            f"{starts} starts.",
                        )
                    ),
                    bullet(
                        state(
                            [not steps(by[p]) for p in small],
                            f"**p = {listed(small[::-1])} do not converge from any of the {starts} "
                            "starts**: the change of a settles at a constant (a jump between the "
                            f"same two points) and the gap ends at {min(gaps):.0e} to "
                            f"{max(gaps):.0e} (medians).",
                        ),
                        f"On all 17 classes, {len(steps(everywhere))} of {len(everywhere)} runs "
                        "reached the gap at these p. A curve cut off after a few iterations, "
                        "or averaged over less extreme kernels, could look convergent; the "
                        "certificate does not.",
                    ),
                    bullet(
                        f"The default solver reaches the gap in {max(default):.0f} iterations or "
                        "fewer (median) for every p."
                    ),
                ]
            ),
        ]
    )


def synthetic(results: Path) -> str:
    """The section of E2."""
    rows = rows_of(results, "E2/results.csv")
    mean = {
        k: 100 * float(values(p, "error").mean()) for k, p in group(rows, "method", "J").items()
    }
    sizes = distinct(rows, "J")
    tiny = {m: min(J for J in sizes if mean[m, J] < 0.05) for m in (EXACT, TWO)}
    one = [mean[PAPER, J] for J in sizes if J >= 10]
    other = [mean[NEXT, J] for J in sizes if J >= 10]
    runs = [row for row in where(rows, method=PAPER) if row["J"] >= 10]
    cycles = 100 * (values(runs, "period") > 1).mean()
    spread = [mean[m, 1] for m in (PAPER, EXACT, TWO)]
    return "\n\n".join(
        [
            "## E2: more kernels help p = 2, and the exact p = 1 as much",
            paragraph(
                f"Full size: 1000 training rows, {len(distinct(rows, 'repeat'))} repeats, "
                f"{len(sizes)} numbers of kernels. The paper prints a figure and no numbers; its "
                f"message is recognisable. The error of p = 2 falls from {mean[TWO, 1]:.1f} "
                f"percent at one kernel to {mean[TWO, 10]:.1f} at ten and below 0.05 from "
                f"{tiny[TWO]} on. That of p = 1 as Algorithm 1 computes it (one kernel) stops at "
                f"{min(one):.1f} to {max(one):.1f} percent, that of the iterate after its last at "
                f"{min(other):.1f} to {max(other):.1f}: {cycles:.0f} percent of the runs from ten "
                "kernels on end in a cycle.",
                f"**The exact p = 1 falls like p = 2** ({mean[EXACT, 10]:.1f} at ten, below 0.05 "
                f"from {tiny[EXACT]} on), with nearly all kernels in use: what does not gain from "
                "more kernels is the one-kernel update, not the norm. At J = 1 the three are one "
                f"model; their errors differ by {max(spread) - min(spread):.1f} because a path "
                "model is solved to a relative gap of 1e-4, which moves ties among the settings "
                "that validation chooses from.",
            ),
        ]
    )


def noisy(results: Path) -> str:
    """The section of E3."""
    rows = rows_of(results, "E3/results.csv")
    mean, grid = (
        {k: 100 * float(values(p, c).mean()) for k, p in group(rows, "method", "noisy").items()}
        for c in ("auc", "grid_auc")
    )
    per = {
        (m, k): np.array([values(r, "auc").mean() for r in group(p, "repeat").values()])
        for (m, k), p in group(rows, "method", "noisy").items()
    }
    ahead = int((per[EXACT, 5] > per[TWO, 5]).sum())
    behind = int((per[EXACT, 5] < per[TWO, 5]).sum())
    one = int((per[PAPER, 5] > per[TWO, 5]).sum())
    own = where(rows, method=PAPER, noisy=4)
    cycles = 100 * (values(own, "period") > 1).mean()
    worst = 100 * float(values(own, "lowest_member_auc").mean())
    return "\n\n".join(
        [
            "## E3: p = 2 is ahead up to three noisy kernels, one validated kernel from four on",
            paragraph(
                f"Full size, {len(distinct(rows, 'repeat'))} repeats.",
                state(
                    [mean[TWO, k] > mean[PAPER, k] for k in range(4)],
                    "With width and delta chosen on validation, p = 2 is ahead of p = 1 as "
                    "Algorithm 1 computes it at 0 to 3 noisy kernels "
                    f"({mean[TWO, 0]:.1f} against {mean[PAPER, 0]:.1f} with none, "
                    f"{mean[TWO, 3]:.1f} against {mean[PAPER, 3]:.1f} with three), as the paper "
                    "says.",
                ),
                state(
                    [mean[PAPER, k] > max(mean[TWO, k], 90) for k in (4, 5)],
                    'With four and five it is behind, and "near chance" does **not** come back: '
                    f"{mean[PAPER, 4]:.1f} and {mean[PAPER, 5]:.1f} against {mean[TWO, 4]:.1f} and "
                    f"{mean[TWO, 5]:.1f} (with five in {one} repeats). Validation finds a width "
                    "and a delta at which the kernel that is returned is no noise.",
                ),
                state(
                    [grid[PAPER, k] < grid[TWO, k] - 5 for k in (4, 5)],
                    "Without tuning (the mean over the grid) the paper's message is there: "
                    f"{grid[PAPER, 4]:.1f} and {grid[PAPER, 5]:.1f} against {grid[TWO, 4]:.1f} and "
                    f"{grid[TWO, 5]:.1f} at p = 2.",
                ),
            ),
            paragraph(
                state(
                    [cycles > 50, worst < mean[PAPER, 4] - 10, mean[NEXT, 4] < mean[PAPER, 4]],
                    "**Which kernel Algorithm 1 returns is a matter of the number of its "
                    f"iterations**: with four noisy kernels {cycles:.0f} percent of the runs end "
                    "in a cycle. At the width and delta chosen for the last of 200 iterations the "
                    f"worst member of the cycle has {worst:.1f} where the last has "
                    f"{mean[PAPER, 4]:.1f}. With width and delta chosen for each of them, the "
                    f"iterate after the last has {mean[NEXT, 4]:.1f}, the member of lowest "
                    f"objective {mean[LOWEST, 4]:.1f}.",
                ),
                state(
                    [mean[EXACT, 5] > mean[TWO, 5], mean[EXACT, 4] < mean[TWO, 4]],
                    f"**The exact p = 1** has {mean[EXACT, 0]:.1f} with no noise and "
                    f"{mean[EXACT, 4]:.1f} with four, and with five it is ahead of p = 2 "
                    f"({mean[EXACT, 5]:.1f} against {mean[TWO, 5]:.1f}, {ahead} repeats to "
                    f"{behind}).",
                ),
            ),
        ]
    )


def times(results: Path) -> str:
    """The section of E10."""
    rows = rows_of(results, "E10/timings.csv")
    settings = e10.settings(False)

    def ratio(method: str, size: str) -> float:
        found = e10.time_ratio(rows, size, method, settings)
        return float("nan") if found is None else found

    few = [f"J={J}, n=100" for J in settings["kernels"]]
    few += [f"J=10, n={n}" for n in settings["samples"] if n <= 100]
    many = [f"J=10, n={n}" for n in settings["samples"] if n >= 1000]

    def span(methods: Any, sizes: Any) -> str:
        found = [ratio(m, s) for m in methods for s in sizes]
        return f"{min(found):.1f} to {max(found):.1f}"

    machines = ("MK-SVDD", "MK-OCSVM", "Slim-MK-SVDD", "Slim-MK-OCSVM")
    plain, of_plain = e10.runs_that_reach(rows, slim=False)
    slim, of_slim = e10.runs_that_reach(rows, slim=True)
    smaller = e10.smaller_in_print(rows, settings)
    capped = sum(row["outcome"] == "over the cap" for row in rows)
    ours = [ratio("lp MK-FN", s) for s in many]
    return "\n\n".join(
        [
            "## E10: lp MK-FN is the fastest, by less than in the paper",
            paragraph(
                "All sizes of the paper's tables, up to J = 500 and n = 10,000, as ratios to "
                f"Algorithm 1 on the same kernels. A relative gap of {settings['gap']:g} was "
                f"reached by {plain} of {of_plain} runs; the slim methods stop by a criterion of "
                f"their own and reach it in {slim} of {of_slim}. Over the cap of ten minutes: "
                f"{capped} runs."
            ),
            "\n".join(
                [
                    bullet(
                        "The order is the paper's at small n: gradient ascent "
                        f"{span(['lp MK-FN-Grad'], few)} times, cvxpy {span(['lp MK-FN-CVX'], few)}"
                        f", the SVM methods {span(machines, few)} times Algorithm 1.",
                        "The published ratios are larger but for "
                        + listed(smaller)
                        + ": our gradient solver stops at a certified gap, and libsvm solves the "
                        "inner programmes.",
                    ),
                    bullet(
                        "From n = 1000 on, MK-SVDD and MK-OCSVM take "
                        f"{span(('MK-SVDD', 'MK-OCSVM'), many)} times Algorithm 1, and Algorithm 1 "
                        f"with cvxpy {span(['lp MK-FN-CVX'], many)} (the n x n system is all that "
                        "counts)."
                    ),
                    bullet(
                        state(
                            [value < 1 for value in ours],
                            "**Our default solver takes "
                            + listed(f"{value:.1f}" for value in ours)
                            + " of Algorithm 1's time at n = 1000, 2000, 5000 and 10,000**, and "
                            f"{span(['lp MK-FN'], few)} of it at n = 100 and below (differences "
                            "of a fraction of a millisecond).",
                        )
                    ),
                ]
            ),
            paragraph(
                "One core, the other busy. The sizes up to n = 5000 were run a second time, after "
                "a first run in which other work had shown; those of n = 10,000 are from the "
                "first."
            ),
        ]
    )


def joint(results: Path) -> str:
    """The section of E9-joint."""
    rows = rows_of(results, "E9-joint/results.csv")
    chosen = where(rows, by="any p")
    times = rows_of(results, "E9-joint/timings.csv")

    def over(part: Rows, other: str) -> Any:
        """Joint minus another method, in points, by repeat."""
        ours, theirs = (values(where(part, method=m), "auc") for m in (e9_joint.JOINT, other))
        return 100 * (ours - theirs)

    sizes = group(chosen, "data", "n")
    gain = {key: over(part, e9_joint.SEPARATE) for key, part in sizes.items()}
    by_p = {
        key: float(over(part, e9_joint.SEPARATE).mean())
        for key, part in group(where(rows, by="p"), "data", "n", "p").items()
    }
    mean = {key: float(found.mean()) for key, found in gain.items()}
    up = {key: int((found > 0).sum()) for key, found in gain.items()}
    features = [key for key in mean if key[0] == "Multiple Features"]
    least, *more = [key for key in mean if key[0] == "MNIST"]
    flowers = [key for key in mean if key[0] == "Flowers17"]
    repeats = len(distinct(chosen, "repeat"))
    enrolled = [float(over(part, e9_joint.ENROLLED).mean()) for part in sizes.values()]
    equal = [float(over(sizes[key], e9_joint.EQUAL).mean()) for key in features]
    one = [by_p[(*key, 1)] for key in more]
    flat = [value for (_, _, p), value in by_p.items() if p >= 2]
    costs = {
        column: [float(np.median(values(p, column))) for p in group(times, "data", "n").values()]
        for column in ("time_kernels", "time_rows")
    }
    small = [row for row in where(rows, by="p", method=e9_joint.PRINTED) if row["p"] < 4 / 3]
    cut = sum(row["iterations"] >= 200 for row in small)
    return "\n\n".join(
        [
            "## E9-joint: sharing weights helps on MNIST, at small p, and not on the other data",
            paragraph(
                "A stand-in for the paper's joint learning of faces: ten digits, or ten kinds of "
                f"flowers, as tasks of {least[1]} to {more[-1][1]} rows each, {repeats} repeats, "
                "p, delta and width by validation. Joint minus separate, mean AUC over the ten "
                "tasks in points:"
            ),
            "\n".join(
                [
                    bullet(
                        state(
                            [min(mean[key] for key in more) > 1, min(up[k] for k in more) >= 9],
                            "**MNIST, ten views of pixels and edges: "
                            + listed(f"{mean[key]:+.2f}" for key in more)
                            + f" at {listed(str(key[1]) for key in more)} rows** (up in "
                            + listed(str(up[key]) for key in more)
                            + f" of {repeats} repeats); at {least[1]} rows {mean[least]:+.2f}.",
                        )
                    ),
                    bullet(
                        state(
                            [abs(value) < 0.1 for value in [*(mean[k] for k in features), *equal]],
                            "Multiple Features: between "
                            f"{min(mean[k] for k in features):+.2f} and "
                            f"{max(mean[k] for k in features):+.2f}, and equal weights do as well "
                            f"(joint minus equal: {min(equal):+.2f} to {max(equal):+.2f}).",
                        )
                    ),
                    bullet(
                        state(
                            [max(abs(mean[key]) for key in flowers) < 0.1],
                            "Flowers17, seven descriptors: between "
                            f"{min(mean[k] for k in flowers):+.2f} and "
                            f"{max(mean[k] for k in flowers):+.2f}; with p = 1 held fixed, "
                            f"{min(by_p[(*k, 1)] for k in flowers):+.2f} to "
                            f"{max(by_p[(*k, 1)] for k in flowers):+.2f}.",
                        )
                    ),
                    bullet(
                        state(
                            [min(one) > 2, max(np.abs(flat)) < 0.2],
                            "The gain is that of small p, where tasks of few rows choose weights "
                            f"badly: at p = 1 {min(one):.1f} to {max(one):.1f} on MNIST from "
                            f"{more[0][1]} rows on, at p >= 2 at most {max(np.abs(flat)):.2f} "
                            "anywhere.",
                        )
                    ),
                    bullet(
                        state(
                            [abs(value) < 0.2 for value in enrolled],
                            "A task that enrols with the weights of the nine others loses at most "
                            f"{max(enrolled):.2f} against learning with them.",
                        ),
                        state(
                            max(costs["time_rows"]) < 0.8,
                            f"It costs {min(costs['time_kernels']):.2f} to "
                            f"{max(costs['time_kernels']):.2f} of learning it alone by Algorithm 1 "
                            f"where kernels are given, and {min(costs['time_rows']):.2f} to "
                            f"{max(costs['time_rows']):.2f} from rows, with kernels and threshold.",
                        ),
                    ),
                    bullet(
                        f"Algorithm 2 as printed does not stop within 200 iterations in {cut} of "
                        f"{len(small)} of the chosen models with p < 4/3."
                    ),
                ]
            ),
        ]
    )
