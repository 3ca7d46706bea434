"""The text of ``docs/results/README.md``."""

from __future__ import annotations

from pathlib import Path

from experiments._e4_hypotheses_report import averages
from experiments._tables import distinct, markdown
from experiments.e4_protocol import PRINTED
from experiments.findings._arena import arena
from experiments.findings._base import paragraph, rows_of
from experiments.findings._deep import flowers, mnist
from experiments.findings._delft import delft, family
from experiments.findings._others import convergence, joint, noisy, synthetic, times

__all__ = ["family_page", "overview"]


def _state(results: Path) -> str:
    """What was run, counted in the tables."""

    def count(table: str, column: str) -> int:
        return len(distinct(rows_of(results, table), column))

    e1, e2, e3, e4 = (f"{name}/results.csv" for name in ("E1", "E2", "E3", "E4"))
    rows = rows_of(results, e4)
    classes = len({(row["set"], row["target"]) for row in rows})
    finished = list(averages(rows_of(results, "E4-hypotheses/summary.csv")))
    methods = {v.method for v in finished} - {PRINTED}
    tested = rows_of(results, "E4-hypotheses/summary.csv")
    lines = [
        [
            "E1",
            f"stand-in: seven descriptors of our own for the paper's distance matrices; "
            f"{count(e1, 'repeat')} starts, all {count(e1, 'data')} classes",
            "E1",
        ],
        ["E2", f"full: {count(e2, 'repeat')} repeats, 1 to 50 kernels", "E2"],
        ["E3", f"full: ten digits, 0 to 6 noisy kernels, {count(e3, 'repeat')} repeats", "E3"],
        [
            "E4",
            f"full: all {classes} classes, {count(e4, 'repeat')} repeats, eleven methods and five "
            "peers",
            "E4",
        ],
        [
            "E4-ablation",
            f"full: {count('E4-ablation/results.csv', 'method') - 1} variants of lp MK-FN on the "
            f"fixed classes, {count('E4-ablation/results.csv', 'repeat')} repeats",
            "E4-ablation",
        ],
        [
            "E4-hypotheses",
            f"{'full: ' if len(methods) == 11 else ''}{len({v.kernels for v in finished}) - 1} "
            "kernels, Algorithm 1 as printed and H1 for lp MK-FN, both scores of "
            f"{'all' if len(methods) == 11 else f'{len(methods)} of'} eleven methods, "
            f"{len(distinct(tested, 'repeat'))} repeats",
            "E4-hypotheses",
        ],
        [
            "E4-gp",
            f"full: {count('E4-gp/results.csv', 'score')} scores of the Gaussian process, "
            f"{count('E4-gp/results.csv', 'repeat')} repeats",
            "E4-gp",
        ],
        [
            "E4-family",
            f"{count('E4-family/results.csv', 'method')} methods and settings on the fixed "
            f"classes, {count('E4-family/results.csv', 'repeat')} repeats",
            "E4-family",
        ],
        [
            "local-and-tasks",
            f"{count('local-and-tasks/results.csv', 'data')} problems, up to "
            f"{count('local-and-tasks/results.csv', 'repeat')} repeats",
            "local-and-tasks",
        ],
        [
            "E5, E6, E7, E9",
            "not run: the data are not at hand; tested on small files of the published layouts",
            "",
        ],
        [
            "E8",
            "stand-in: three of the paper's seven networks and three others; every training image, "
            "all methods of the paper and peers, on a GPU; and a thousand images per digit, four "
            "networks, on two cores",
            "E8",
        ],
        [
            "E8-flowers",
            "stand-in for E6 and E7: "
            f"{count('E8-flowers/results.csv', 'target')} classes of Flowers17, "
            f"{count('E8-flowers/results.csv', 'repeat')} repeats, six networks, all methods, "
            "peers and scalings",
            "E8-flowers",
        ],
        [
            "E9-joint",
            "stand-in for the joint learning of E9: digits and kinds of flowers as tasks, "
            f"{count('E9-joint/results.csv', 'repeat')} repeats",
            "E9-joint",
        ],
        [
            "E10",
            f"full: seven timed methods and our default, {count('E10/timings.csv', 'data')} "
            f"sizes, {count('E10/timings.csv', 'repeat')} repeats",
            "E10",
        ],
        [
            "arena",
            f"{count('arena/summary.csv', 'entrant')} entrants on "
            f"{count('arena/results.csv', 'data')} problems, each class of each set as target",
            "arena",
        ],
    ]
    return markdown(
        ["experiment", "state", "page"],
        [[name, text, f"[{page}]({page}/page.md)" if page else ""] for name, text, page in lines],
    )


def overview(results: Path) -> str:
    """The overview of a folder of results.

    Parameters
    ----------
    results : path
        Folder that holds one folder per experiment, each with its tables.
    """
    parts = [
        "# Results",
        paragraph(
            "How they are made: [the paper, reproduced](reproduce.md). Each folder holds the "
            "page of one experiment with its command, version, date and machine, the tidy table "
            "and the figures. This page is written from these tables (`python -m "
            "experiments.pages docs/results`) and not edited by hand."
        ),
        _state(results),
        arena(results),
        mnist(results),
        flowers(results),
        joint(results),
        convergence(results),
        delft(results),
        "Methods around lp MK-FN, localised weights and coupled tasks: [the family](family.md).",
        noisy(results),
        synthetic(results),
        times(results),
    ]
    return "\n\n".join(parts) + "\n"


def family_page(results: Path) -> str:
    """The page on methods around lp MK-FN, from the tables of a folder of results."""
    return family(results).removeprefix("#") + "\n"
