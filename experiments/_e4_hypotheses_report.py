"""The page of E4's hypotheses: choices made from stored grids, and what they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import e4_protocol as protocol
from experiments._cells import Rows, Settings
from experiments._ranks import paired
from experiments._tables import distinct, group, markdown, mean_std, write_table
from experiments.published import DELFT_AUC

__all__ = ["averages", "choices", "report", "summary", "verdicts"]

SCORES = ("response", "distance")
CHOICES = ("per repeat", "H1", "mean test (a bound)")
#: A hypothesis explains the published figures if it comes this close, on so many sets.
CLOSE, ENOUGH = 0.5, 7


class Variant(NamedTuple):
    """What a line of the page stands for."""

    method: str
    kernels: str
    score: str
    choice: str


def choices(validation: Any, test: Any) -> dict[str, list[float]]:
    """Test AUC of every repeat under each way to choose; arrays of shape (repeats, points).

    Examples
    --------
    >>> found = choices([[0.9, 0.8], [0.5, 0.9]], [[0.7, 0.6], [0.5, 0.8]])
    >>> found["per repeat"], found["H1"]
    ([0.7, 0.8], [0.6, 0.8])
    """
    V, T = np.asarray(validation, dtype=float), np.asarray(test, dtype=float)
    # Means of equal numbers may differ in the last bit; the first of equal ones is meant.
    one = int(np.argmax(np.round(V.mean(axis=0), 12)))
    bound = int(np.argmax(np.round(T.mean(axis=0), 12)))
    each = T[np.arange(len(T)), np.argmax(V, axis=1)]
    return {
        "per repeat": each.tolist(),
        "H1": T[:, one].tolist(),
        "mean test (a bound)": T[:, bound].tolist(),
    }


def summary(rows: Rows) -> Rows:
    """One row per variant, set and repeat."""
    out: Rows = []
    for (method, kernels, name), part in group(rows, "base", "kernels", "set").items():
        for score in SCORES:
            V = np.array([np.ravel(row[f"_validation_{score}"]) for row in part])
            T = np.array([np.ravel(row[f"_test_{score}"]) for row in part])
            for choice, found in choices(V, T).items():
                out += [
                    {"method": method, "kernels": kernels, "score": score, "choice": choice,
                     "set": name, "repeat": row["repeat"], "auc": auc}
                    for row, auc in zip(part, found, strict=True)
                ]  # fmt: skip
    return out


def averages(table: Rows) -> dict[Variant, dict[str, Any]]:
    """AUCs in percent by variant and set, for variants that have every set in every repeat."""
    sets = distinct(table, "set")
    by: dict[Variant, dict[str, Any]] = {}
    for (m, k, s, c, name), part in group(
        table, "method", "kernels", "score", "choice", "set"
    ).items():
        found = 100 * np.array([float(row["auc"]) for row in part])
        by.setdefault(Variant(m, k, s, c), {})[name] = found
    repeats = max(len(found) for line in by.values() for found in line.values())
    return {
        v: line
        for v, line in by.items()
        if list(line) == sets and all(len(found) == repeats for found in line.values())
    }


def mean_of(line: dict[str, Any]) -> float:
    """Mean over sets of the mean over repeats."""
    return float(np.mean([found.mean() for found in line.values()]))


def published(method: str) -> dict[str, tuple[float, float]]:
    """The published figures of a method, however it is solved here."""
    return DELFT_AUC[protocol.MAIN if method == protocol.PRINTED else method]


def within(method: str, line: dict[str, Any]) -> int:
    """Sets whose mean lies within one published standard deviation."""
    known = published(method)
    return sum(abs(found.mean() - known[s][0]) <= known[s][1] for s, found in line.items())


def verdicts(table: Rows) -> list[str]:
    """One sentence per hypothesis, from the table alone."""
    by = averages(table)
    main = protocol.MAIN
    base = by[Variant(main, "E4", "response", "per repeat")]
    theirs = np.mean([DELFT_AUC[main][s][0] for s in base])
    out = [
        f"E4 as it stands: {mean_of(base):.1f} on average, published {theirs:.1f}; "
        f"{within(main, base)} of {len(base)} sets lie within one published standard deviation."
    ]
    asked = [("H1", Variant(main, "E4", "response", "H1"))]
    asked += [
        (k, Variant(main, k, "response", "per repeat")) for k in protocol.HYPOTHESES if k != "E4"
    ]
    asked.append(("H4, Algorithm 1", Variant(protocol.PRINTED, "E4", "response", "per repeat")))
    asked += [(f"{k} with H1", v._replace(choice="H1")) for k, v in asked[1:]]
    explained = []
    for name, variant in asked:
        if variant not in by:
            continue
        line = by[variant]
        shift, up, down, p_value = paired(
            [line[s].mean() for s in base], [base[s].mean() for s in base]
        )
        near = within(main, line)
        out.append(
            f"{name}: {mean_of(line):.1f} ({shift:+.1f} from E4; {up} sets up, {down} down, "
            f"p = {p_value:.2g}); {near} of {len(line)} sets within one standard deviation."
        )
        if abs(mean_of(line) - theirs) <= CLOSE and near >= ENOUGH:
            explained.append(name)
    said = ", ".join(explained) if explained else "none of them does"
    out.append(
        f"A hypothesis was to count as an explanation with an average within {CLOSE} of "
        f"{theirs:.1f} and {ENOUGH} sets within one standard deviation: {said}."
    )
    return out


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """Tables of lp MK-FN under every hypothesis, and of every method by both scores."""
    table = summary(rows)
    write_table(table, folder / "summary.csv")
    return body(table)


def body(table: Rows) -> str:
    """The page from the summary alone."""
    by = averages(table)
    sets = distinct(table, "set")
    known = DELFT_AUC[protocol.MAIN]
    header = ["kernels", "choice", *sets, "mean"]
    theirs = [f"{known[s][0]} ± {known[s][1]}" for s in sets]
    lines = [["published", "", *theirs, f"{np.mean([known[s][0] for s in sets]):.1f}"]]
    named = [(kernels, protocol.MAIN, kernels) for kernels in protocol.HYPOTHESES]
    named.append(("H4, Algorithm 1", protocol.PRINTED, "E4"))
    for name, method, kernels in named:
        for choice in CHOICES:
            v = Variant(method, kernels, "response", choice)
            if v in by:
                cells = [mean_std(by[v][s]) for s in sets]
                lines.append([name, choice, *cells, f"{mean_of(by[v]):.1f}"])
    return "\n\n".join(
        [
            "AUC in percent on the target classes fixed beforehand, mean ± std over the repeats "
            "of E4. Hypotheses and the rule by which they are judged stand in "
            "`experiments.e4_protocol` and were committed before the run.",
            "\n".join(f"- {sentence}" for sentence in verdicts(table)),
            "## lp MK-FN",
            markdown(header, lines),
            "## Every method: its response, and the null-space distance",
            "Mean over the sets. The distance is taken from 1 where the method regresses on 1, "
            "otherwise from the mean response of the training rows.",
            _scores(by),
        ]
    )


def _scores(by: dict[Variant, dict[str, Any]]) -> str:
    lines = []
    for method in (*protocol.PAPER_METHODS, protocol.PRINTED):
        found = [
            by.get(Variant(method, "E4", score, choice))
            for score in SCORES
            for choice in ("per repeat", "H1")
        ]
        if found[0] is None:
            continue
        theirs = np.mean([published(method)[s][0] for s in found[0]])
        near = [within(method, line) for line in found if line is not None]
        cells = [
            f"{mean_of(line):.1f} ({k})"
            for line, k in zip([x for x in found if x is not None], near, strict=True)
        ]
        lines.append([method, f"{theirs:.1f}", *cells])
    header = ["method", "published", "response", "response, H1", "distance", "distance, H1"]
    return (
        markdown(header, lines) + "\n\nIn brackets: sets within one published standard deviation."
    )
