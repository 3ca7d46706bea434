"""One half of the sets chooses the default, the other judges it; see the protocol."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import t as student

from benchmarks.arena import adbench, protocol
from benchmarks.arena.entrants import DEFAULT
from benchmarks.arena.problems import named, table_sources
from benchmarks.arena.rules import INCUMBENT
from experiments._tables import distinct, group, markdown

CHOOSING, JUDGING = "choosing", "judging"


@lru_cache(maxsize=1)
def _kin():
    """Kin of tables in alphabetical order: even positions choose."""
    return sorted({protocol.KIN.get(source, source) for source in table_sources()})


def half(name):
    """The half that a problem belongs to."""
    problem = named(name)
    if problem.family == "tables":
        kin = protocol.KIN.get(problem.source, problem.source)
        return (CHOOSING, JUDGING)[_kin().index(kin) % 2]
    return (CHOOSING, JUDGING)[problem.target % 2]


def interval(a, b):
    """Mean of the paired differences a - b, and half the width of its 95% interval."""
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    n = len(difference)
    if n < 2:
        return float(difference.mean()), np.inf
    error = float(difference.std(ddof=1)) / np.sqrt(n)
    return float(difference.mean()), float(student.ppf(0.975, n - 1)) * error


class Half:
    """Mean AUCs in percent of the problems of a half that every entrant has finished."""

    def __init__(self, rows, which, measure="auc"):
        rows = [row for row in rows if "view" not in row and half(row["data"]) == which]
        self.found = {
            key: 100 * float(np.mean([row[measure] for row in cell]))
            for key, cell in group(rows, "entrant", "data").items()
            if all(measure in row for row in cell)
        }
        self.names = [n for n in distinct(rows, "entrant") if any(k[0] == n for k in self.found)]
        problems = distinct(rows, "data")
        self.problems = [p for p in problems if all((n, p) in self.found for n in self.names)]
        self.families = [
            f for f in protocol.FAMILIES if any(named(p).family == f for p in self.problems)
        ]

    def values(self, name, family=None):
        """AUC of an entrant on the problems, or on those of a family."""
        return np.array(
            [
                self.found[name, p]
                for p in self.problems
                if family is None or named(p).family == family
            ]
        )

    def mean(self, name, family=None):
        """Mean over the problems of a family; None: over the families."""
        if family is not None:
            return float(self.values(name, family).mean())
        return float(np.mean([self.mean(name, f) for f in self.families]))


def chosen(of):
    """The candidate that the rule of the protocol chooses, and how far ahead it is."""
    best = max(of.names, key=of.mean)
    incumbent = next((n for n in of.names if n.removeprefix("rule: ") == INCUMBENT), best)
    ahead, within = interval(of.values(best), of.values(incumbent))
    return (best if ahead > within else incumbent), best, ahead, within


def choice(rows):
    """Markdown: every candidate on both halves, and which is chosen."""
    parts = {which: Half(rows, which) for which in (CHOOSING, JUDGING)}
    parts = {which: of for which, of in parts.items() if of.problems}
    if CHOOSING not in parts:
        return "No problem of the choosing half is finished by all candidates."
    winner, best, ahead, within = chosen(parts[CHOOSING])
    header, lines = ["candidate"], {name: [] for name in parts[CHOOSING].names}
    for which, of in parts.items():
        counts = {f: len(of.values(of.names[0], f)) for f in of.families}
        header += [f"{which}: {f} ({counts[f]})" for f in of.families] + [f"{which}: mean"]
        for name in lines:
            if name in of.names:
                lines[name] += [f"{of.mean(name, f):.2f}" for f in of.families]
                lines[name] += [f"{of.mean(name):.2f}"]
    order = sorted(lines, key=lambda n: -parts[CHOOSING].mean(n))
    table = markdown(header, [[n.removeprefix("rule: "), *lines[n]] for n in order])
    return (
        f"{table}\n\nHighest on the choosing half: **{best.removeprefix('rule: ')}**, ahead of the "
        f"incumbent by {ahead:+.2f} ± {within:.2f} (95%, paired). Chosen: "
        f"**{winner.removeprefix('rule: ')}**."
    )


def verdict(rows):
    """Markdown: the default against every entrant on the judging half."""
    of = Half(rows, JUDGING)
    if DEFAULT not in of.names or not of.problems:
        return "The default has finished no problem of the judging half."
    first, behind, blocks = [], [], []
    auprc = Half(rows, JUDGING, "auprc")
    alarms = Half([row for row in rows if row["entrant"] == DEFAULT], JUDGING, "false_alarms")
    for family in of.families:
        order = sorted(of.names, key=lambda n: -of.mean(n, family))
        first += [family] if order[0] == DEFAULT else []
        lines = []
        for name in order:
            ahead, within = interval(of.values(DEFAULT, family), of.values(name, family))
            lost = name != DEFAULT and ahead < -within
            behind += [f"{name} ({family})"] if lost else []
            shown = f"{ahead:+.2f} ± {within:.2f}" if name != DEFAULT else ""
            shown = f"**{shown}**" if lost else shown
            label = f"**{name}**" if name == DEFAULT else name
            rank = _mean_rank(of, name, family)
            line = [label, f"{of.mean(name, family):.2f}", shown]
            lines.append([*line, f"{auprc.mean(name, family):.2f}", f"{rank:.1f}"])
        header = [f"{family}", "mean AUC", "default ahead by", "AUPRC", "mean rank"]
        blocks.append(markdown(header, lines))
        if alarms.problems:
            rate = alarms.mean(DEFAULT, family)
            blocks.append(f"False alarms of the default at 5%, {family}: {rate:.1f}%.")
    need = min(2, len(of.families))
    lines = [
        f"- First by mean AUC in {len(first)} of {len(of.families)} families "
        f"({', '.join(first) or 'none'}): {'met' if len(first) >= need else '**missed**'}.",
        "- Behind an entrant by more than the 95% paired interval: "
        + (f"**{', '.join(behind)}**." if behind else "none: met."),
    ]
    return "\n\n".join(["\n".join(lines), *blocks, _published(rows)])


def _mean_rank(of, name, family):
    ahead = [of.values(other, family) > of.values(name, family) + 1e-9 for other in of.names]
    return 1 + float(np.mean(np.sum(ahead, axis=0)))


def _published(rows):
    """The default on ADBench beside the figures published for other splits."""
    known = adbench.published()
    found = {
        key[1].split("/")[1].split(" ")[0]: 100 * float(np.mean([row["auc"] for row in cell]))
        for key, cell in group(rows, "entrant", "data").items()
        if key[0] == DEFAULT and key[1].startswith("adbench/")
    }
    lines = []
    for name, value in found.items():
        if name in known:
            best = max(known[name], key=known[name].__getitem__)
            line = [name, f"{value:.2f}", f"{known[name]['KNN']:.2f}", f"{known[name]['IForest']}"]
            lines.append([*line, f"{known[name]['DTE-NP']:.2f}", f"{known[name][best]} ({best})"])
    if not lines:
        return ""
    mean = ["mean", *(f"{np.mean([float(line[k]) for line in lines]):.2f}" for k in range(1, 5))]
    header = ["ADBench, both halves", "default, here", "published: KNN", "IForest", "DTE-NP"]
    return markdown([*header, "best of 26"], [*lines, [*mean, ""]])
