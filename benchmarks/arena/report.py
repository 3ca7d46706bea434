"""From finished cells to tables, figures and the page."""

from __future__ import annotations

import platform
import shlex
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from scipy.stats import rankdata

from benchmarks.arena import figures, halves, protocol
from benchmarks.arena.entrants import DEFAULT, PAPER, entrants
from benchmarks.arena.experiment import ORACLE
from benchmarks.arena.peers import PEERS
from experiments._ranks import paired, rank_methods
from experiments._reproduce import machine
from experiments._store import write_atomically
from experiments._tables import _write_csv, distinct, group, markdown, write_results
from kernull._version import __version__

NOTES = """\
- Nothing is tuned on labels. `OneClassSVM, tuned` chooses by pseudo-outliers.
- Our methods get the views; the fused ones one rbf kernel a view (half the mean distance), those \
that learn weights three widths a view. Peers get all columns in one standardised table.
- PyOD's ECOD and COPOD rank new rows among training and new rows taken together, which fails \
where most new rows are outliers; here they score rows one by one, which suits them far better.
- Time is processor time with one BLAS thread, so other work on the machine hardly counts.
- "Best peer, by the test labels" is an oracle's choice for each problem: no method reaches it."""
PACKAGES = ("numpy", "scipy", "scikit-learn", "pyod")


class Table:
    """Means over repeats: one row a problem, one column an entrant.

    Only problems on which every entrant is finished are ranked; entrants with nothing finished are
    left out and named.
    """

    def __init__(self, rows, measure="auc", names=None):
        found = {
            key: 100 * float(np.mean([row[measure] for row in cell]))
            for key, cell in group(rows, "entrant", "data").items()
        }
        ranked = [n for n, e in entrants().items() if e.group != "views"]
        self.names = names or [n for n in ranked if any(key[0] == n for key in found)]
        problems = distinct(rows, "data")
        self.problems = [p for p in problems if all((n, p) in found for n in self.names)]
        self.unfinished = [p for p in problems if p not in self.problems]
        family = {row["data"]: row["family"] for row in rows}
        self.family = np.array([family[p] for p in self.problems])
        # Rounded, so that values which differ by rounding errors alone tie.
        values = [[round(found[n, p], 8) for n in self.names] for p in self.problems]
        self.values = np.array(values)
        self.ranks = np.apply_along_axis(rankdata, 1, -self.values)

    @property
    def families(self):
        return [f for f in protocol.FAMILIES if (self.family == f).any()]

    def mean(self, of, family=None):
        """Column means of values or ranks over a family; None: every family with equal weight."""
        if family is not None:
            return of[self.family == family].mean(axis=0)
        return np.mean([self.mean(of, f) for f in self.families], axis=0)

    @property
    def wins(self):
        best = np.isclose(self.ranks, self.ranks.min(axis=1, keepdims=True))
        return (best / best.sum(axis=1, keepdims=True)).sum(axis=0)


PROBLEMS = """\
# The arena: every problem

AUC in percent; what all of it comes to is on [the page](page.md)."""


def write(rows, folder, cells, left_out, arguments):
    """Write page, tables and figures; returns a short summary."""
    write_results(rows, folder)
    main = Table([r for r in rows if "view" not in r])
    summary = _summary(rows, main)
    columns = list(summary[0])
    _write_csv(folder / "summary.csv", columns, summary, lambda row: True)
    head = _head(cells, rows, arguments)
    page = "\n\n".join([head, body(rows, folder), _left_out(main, left_out)])
    write_atomically(folder / "page.md", page.rstrip() + "\n")
    if len(main.problems):
        write_atomically(folder / "problems.md", f"{PROBLEMS}\n\n{_problems(main)}\n")
    return f"{_overall(main, summary)}\n\n{_verdicts(rows, main)}\n\n{folder / 'page.md'}"


def body(rows, folder):
    """Tables and verdicts; figures go to the folder."""
    main = Table([r for r in rows if "view" not in r])
    if not len(main.problems):
        return "No problem is finished for all entrants."
    summary = _summary(rows, main)
    drawn = figures.draw(main, summary, folder)
    pictures = "\n\n".join(f"![{text}]({name})" for name, text in drawn)
    return "\n\n".join(
        [
            "## Verdicts",
            _verdicts(rows, main),
            "## The judging half",
            halves.verdict(rows),
            "## Overall",
            _overall(main, summary),
            "## By family: mean AUC (mean rank)",
            _families(main),
            "## Single views",
            _views(rows, main),
            "## AUPRC, time and memory",
            _costs(summary),
            "## Notes",
            NOTES,
            "## Figures",
            pictures,
            "Every problem by itself: [its AUC](problems.md).",
        ]
    )


def provenance(arguments):
    """Command, versions, date and machine."""
    command = shlex.join(["python", "-m", "benchmarks.arena", *arguments])
    return (
        f"`{command}`, kernull {__version__}, {datetime.now(UTC):%Y-%m-%d}, {machine()}, "
        f"Python {platform.python_version()}, {', '.join(_versions())}"
    )


def _head(cells, rows, arguments):
    seconds = sum(row.get("time_cell", 0.0) for row in rows)
    done = len({(r["data"], r["method"], r["repeat"]) for r in rows})
    state = f"{len(cells)} cells" if done == len(cells) else f"**{done} of {len(cells)} cells**"
    return (
        "# The arena: our methods and their peers\n\n"
        f"{provenance(arguments)}; {state}, {seconds / 60:.1f} minutes of processor time.\n\n"
        "The protocol stands in `benchmarks/arena/protocol.py`. "
        "AUC and AUPRC in percent; ranks by AUC, 1 is best."
    )


def _versions():
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def _summary(rows, table):
    """One line an entrant, best mean rank first."""
    auprc = Table([r for r in rows if "view" not in r], "auprc", table.names)
    timed = group([r for r in rows if "time_fit" in r and "view" not in r], "entrant")
    out = []
    for k, name in enumerate(table.names):
        cells = timed[(name,)]
        line = {
            "entrant": name,
            "mean_rank": float(table.ranks[:, k].mean()),
            "mean_rank_balanced": float(table.mean(table.ranks)[k]),
            "mean_auc": float(table.values[:, k].mean()),
            "mean_auc_balanced": float(table.mean(table.values)[k]),
            "mean_auprc": float(auprc.values[:, k].mean()),
            "mean_auprc_balanced": float(auprc.mean(auprc.values)[k]),
            "wins": float(table.wins[k]),
        }
        for family in table.families:
            line[f"auc_{family}"] = float(table.mean(table.values, family)[k])
            line[f"rank_{family}"] = float(table.mean(table.ranks, family)[k])
        seconds = [row["time_fit"] + row["time_score"] for row in cells]
        line["seconds_median"] = float(np.median(seconds))
        line["seconds_total"] = float(np.sum(seconds))
        line["memory_max_mb"] = max((row.get("memory_mb", np.nan) for row in cells), default=np.nan)
        out.append(line)
    return sorted(out, key=lambda line: line["mean_rank"])


def _bold(name, text):
    return f"**{text}**" if name == DEFAULT else text


def _overall(table, summary):
    several = min(table.values.shape) > 1
    ranking = rank_methods(table.names, table.values) if several else None
    text = markdown(
        ["entrant", "mean rank", "mean AUC", "wins", "rank, families equal", "AUC, families equal"],
        [
            [
                _bold(line["entrant"], line["entrant"]),
                f"{line['mean_rank']:.2f}",
                f"{line['mean_auc']:.2f}",
                f"{line['wins']:.1f}",
                f"{line['mean_rank_balanced']:.2f}",
                f"{line['mean_auc_balanced']:.2f}",
            ]
            for line in summary
        ],
    )
    if ranking is None:
        return text
    return (
        f"{text}\n\n{len(table.problems)} problems, Friedman's p = {ranking.p_value:.1g}, critical "
        f"difference {ranking.critical_difference:.2f}. The problems of one set are not "
        "independent, so the test flatters."
    )


def _families(table):
    order = np.argsort(table.ranks.mean(axis=0), kind="stable")
    counts = [int((table.family == f).sum()) for f in table.families]
    return markdown(
        ["entrant", *(f"{f} ({n})" for f, n in zip(table.families, counts, strict=True))],
        [
            [
                _bold(table.names[k], table.names[k]),
                *(
                    f"{table.mean(table.values, f)[k]:.2f} ({table.mean(table.ranks, f)[k]:.1f})"
                    for f in table.families
                ),
            ]
            for k in order
        ],
    )


def best_views(rows, entrant):
    """By set: the single view with the best mean AUC, that AUC, and the mean over all views."""
    out = {}
    found = [
        {**r, "source": r["data"].rpartition(" ")[0]}
        for r in rows
        if r["entrant"] == entrant and "view" in r
    ]
    for (source,), of_source in group(found, "source").items():
        means = {
            view: 100 * np.mean([r["auc"] for r in of_view])
            for (view,), of_view in group(of_source, "view").items()
        }
        best = max(means, key=means.__getitem__)
        out[source] = best, float(means[best]), float(np.mean(list(means.values())))
    return out


def _views(rows, table):
    plain, auto = best_views(rows, "FN by view"), best_views(rows, "default by view")
    lines = []
    for source in plain:
        inside = [i for i, p in enumerate(table.problems) if p.rpartition(" ")[0] == source]
        if not inside:
            continue
        means = dict(zip(table.names, table.values[inside].mean(axis=0), strict=True))
        best, value, mean = plain[source]
        line = [source, f"{best} {value:.2f}", f"{mean:.2f}"]
        line += [f"{auto[source][0]} {auto[source][1]:.2f}" if source in auto else "–"]
        line += [f"{means[n]:.2f}" if n in means else "–" for n in ("FN-Average", DEFAULT)]
        lines.append(line)
    if not lines:
        return "Not run."
    header = ["set", "best single view, FN", "all single views, FN"]
    header += ["best single view, default rule", "FN-Average", "default rule, all views"]
    return markdown(header, lines)


def _costs(summary):
    return markdown(
        ["entrant", "AUPRC", "AUPRC, families equal", "median s", "total s", "most MB"],
        [
            [
                line["entrant"],
                f"{line['mean_auprc']:.2f}",
                f"{line['mean_auprc_balanced']:.2f}",
                f"{line['seconds_median']:.3f}",
                f"{line['seconds_total']:.0f}",
                f"{line['memory_max_mb']:.0f}",
            ]
            for line in summary
        ],
    )


def _problems(table):
    peers = [k for k, n in enumerate(table.names) if n in PEERS]
    shown = [n for n in (DEFAULT, PAPER, "FN-Average") if n in table.names]
    lines = []
    for i, problem in enumerate(table.problems):
        line = [problem, *(f"{table.values[i, table.names.index(n)]:.2f}" for n in shown)]
        if peers:
            best = max(peers, key=lambda k: table.values[i, k])
            line.append(f"{table.values[i, best]:.2f} ({table.names[best]})")
        lines.append(line)
    header = ["problem", *shown, *(["best peer, by the test labels"] if peers else [])]
    return markdown(header, lines)


def _verdicts(rows, table):
    """The issue's criteria, each with its number."""
    if DEFAULT not in table.names or len(table.names) < 2:
        return "The default did not run."
    k = table.names.index(DEFAULT)
    others = [i for i in range(len(table.names)) if i != k]
    peers = [i for i in others if table.names[i] in PEERS]
    lines = []

    def against(what, values, higher=True):
        sign = 1 if higher else -1
        best = max(others, key=lambda i: sign * values[i])
        state = "met" if sign * (values[k] - values[best]) >= 0 else "missed"
        lines.append(
            f"- {what}: {values[k]:.2f}; best other: {table.names[best]} {values[best]:.2f}: "
            f"{state}."
        )

    against("Mean rank over all problems", table.ranks.mean(axis=0), higher=False)
    against("Mean rank, families equal", table.mean(table.ranks), higher=False)
    against("Mean AUC over all problems", table.values.mean(axis=0))
    against("Mean AUC, families equal", table.mean(table.values))
    for family in table.families if peers else []:
        means = table.mean(table.values, family)
        best = max(peers, key=lambda i: means[i])
        behind = means[best] - means[k]
        state = "met" if behind <= 1 else "missed"
        lines.append(
            f"- {family}: {means[k]:.2f}; best peer: {table.names[best]} {means[best]:.2f}; at "
            f"most one point behind it: {state}."
        )
    lines += _fusion_verdicts(rows, table, k)
    if peers:
        best = min(peers, key=lambda i: table.ranks[:, i].mean())
        gain, won, lost, p = paired(table.values[:, k], table.values[:, best])
        lines.append(
            f"- Against the best-ranked peer ({table.names[best]}): {gain:+.2f} points on average, "
            f"{won} problems won, {lost} lost, Wilcoxon p = {p:.1g}."
        )
    oracle = [row for row in rows if row["entrant"] == ORACLE and row["data"] in table.problems]
    if oracle:
        means = [
            100 * np.mean([r["auc"] for r in found]) for found in group(oracle, "data").values()
        ]
        lines.append(
            f"- Not ranked: OneClassSVM with nu and gamma chosen on the test labels, a mean AUC of "
            f"{np.mean(means):.2f}."
        )
    return "\n".join(lines)


def _fusion_verdicts(rows, table, k):
    lines = []
    averages = table.names.index("FN-Average") if "FN-Average" in table.names else None
    for source in ("mfeat", "mnist", "flowers17"):
        inside = [i for i, p in enumerate(table.problems) if p.rpartition(" ")[0] == source]
        if not inside:
            continue
        means = table.values[inside].mean(axis=0)
        rivals = [] if averages is None else [("FN-Average", means[averages])]
        for entrant, label in (("FN by view", "FN"), ("default by view", "the default rule")):
            if source in (found := best_views(rows, entrant)):
                view, value, _ = found[source]
                rivals.append((f"best single view by {label} ({view})", value))
        for label, value in rivals:
            state = "met" if means[k] > value else "missed"
            lines.append(f"- {source}: {means[k]:.2f} above {label} {value:.2f}: {state}.")
    return lines


def _left_out(table, left_out):
    lines = [f"- {line}" for line in left_out]
    lines += [f"- {p}: not finished by all entrants" for p in table.unfinished]
    return "## Left out\n\n" + ("\n".join(lines) if lines else "Nothing.")
