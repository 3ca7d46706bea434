"""From what was measured to verdicts, a page and a CSV."""

from __future__ import annotations

import csv
import io

import numpy as np

from benchmarks.decisions import protocol
from benchmarks.decisions.contaminated import FOREST, OURS
from benchmarks.decisions.measures import EXEMPT
from experiments._tables import distinct, group, markdown, where

FIELDS = (
    "what", "table", "kind", "view", "share", "seed", "value", "at", "neighbours", "weight",
    "flagged", "own", "alarms",
)  # fmt: skip


class Verdicts:
    """Lines that pass or miss, in the order in which they were judged."""

    def __init__(self):
        self.lines = []

    def judge(self, what, shown, passed):
        """Note a line; the text comes back bold where it misses."""
        self.lines.append((what, shown, bool(passed)))
        return shown if passed else f"**{shown}**"

    @property
    def missed(self):
        return [line for line in self.lines if not line[2]]

    def table(self):
        return markdown(
            ["line", "found", "verdict"],
            [
                [what if ok else f"**{what}**", shown, "pass" if ok else "**miss**"]
                for what, shown, ok in self.lines
            ],
        )


def page(rows, provenance):
    """The whole report in Markdown, and what missed."""
    verdicts = Verdicts()
    parts = [
        ("Noise views: AUC points lost", _lost(rows, verdicts)),
        ("False alarms at 5%", _alarms(rows, verdicts)),
        ("Broken views: least share flagged", _broken(rows, verdicts)),
        ("Far rows: share flagged", _far(rows, verdicts)),
        ("One broken column that has little say: share flagged", _faint(rows, verdicts)),
        ("Ranks and units", _exact(rows, verdicts)),
        ("Training rows that are not clean", _contamination(rows, verdicts)),
        ("Views that do not belong together", _together(rows)),
    ]
    count = len(verdicts.missed)
    head = [
        "# Decisions of the default model",
        f"{provenance}. Protocol: `benchmarks/decisions/protocol.py`. {len(verdicts.lines)} lines, "
        f"{count} missed (bold).",
        verdicts.table(),
    ]
    body = [text for title, found in parts if found for text in (f"## {title}", found)]
    return "\n\n".join([*head, *body]) + "\n", verdicts.missed


def _mean(rows, key="value"):
    """Mean of what there is: a small table has no outliers at the smallest share."""
    found = [row[key] for row in rows if not np.isnan(row[key])]
    return float(np.mean(found)) if found else float("nan")


def _lost(rows, verdicts):
    rows = where(rows, what="lost")
    if not rows:
        return ""
    kinds, tables = distinct(rows, "kind"), distinct(rows, "table")
    lines = []
    for table in tables:
        line = [table]
        for kind in kinds:
            found = where(rows, table=table, kind=kind)
            most, lost = protocol.LOST[kind][1], _mean(found)
            shown = f"{lost:+.2f}"
            shown = f"**{shown}**" if most is not None and lost > most else shown
            line.append(f"{shown} ({_mean(found, 'neighbours'):+.2f})")
        lines.append(line)
    means = ["mean"]
    for kind in kinds:
        by_table = [_mean(where(rows, table=table, kind=kind)) for table in tables]
        bound, most = protocol.LOST[kind]
        mean, worst = float(np.mean(by_table)), max(by_table)
        peer = _mean(where(rows, kind=kind), "neighbours")
        what = f"AUC lost to {kind}: mean at most {bound:g}"
        means.append(f"{verdicts.judge(what, f'{mean:+.2f}', mean <= bound)} ({peer:+.2f})")
        if most is not None:
            what = f"AUC lost to {kind}: no table above {most:g}"
            verdicts.judge(what, f"{worst:+.2f} ({tables[by_table.index(worst)]})", worst <= most)
    weights = ["share of the weight that the noise takes"]
    weights += [f"{_mean(where(rows, kind=kind), 'weight'):.2f}" for kind in kinds]
    text = "Mean over the seeds; in brackets what five nearest neighbours lose.\n\n"
    return text + markdown(["table", *kinds], [*lines, means, weights])


def _within(rows):
    """Mean rate, its standard error, and whether it is within the rule."""
    values = np.array([row["value"] for row in rows])
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    away = float(values.mean()) - _mean(rows, "at")
    return float(values.mean()), error, abs(away) <= max(protocol.WITHIN, 3 * error)


def _alarms(rows, verdicts):
    rows = where(rows, what="alarms")
    if not rows:
        return ""
    kinds, tables = distinct(rows, "kind"), distinct(rows, "table")
    lines, missed = [], {kind: [] for kind in kinds}
    for table in tables:
        line = [table]
        for kind in kinds:
            mean, error, ok = _within(where(rows, table=table, kind=kind))
            shown = f"{100 * mean:.1f} ± {100 * error:.1f}"
            missed[kind] += [] if ok else [f"{table} {100 * mean:.1f}"]
            line.append(shown if ok else f"**{shown}**")
        lines.append(line)
    means = ["mean"]
    for kind in kinds:
        found = where(rows, kind=kind)
        mean, _, ok = _within(found)
        name = "no noise" if kind == "none" else kind
        means.append(verdicts.judge(f"False alarms, {name}: mean", f"{100 * mean:.1f}%", ok))
        shown = ", ".join(missed[kind]) or "all within"
        verdicts.judge(f"False alarms, {name}: every table", shown, not missed[kind])
    return markdown(["table", *kinds], [*lines, means])


def _broken(rows, verdicts):
    rows = where(rows, what="broken")
    if not rows:
        return ""
    kinds, tables = distinct(rows, "kind"), distinct(rows, "table")
    lines = [[table] for table in tables]
    for kind in kinds:
        worst = (2.0, "")
        for line, table in zip(lines, tables, strict=True):
            found = where(rows, kind=kind, table=table)
            views = {v[0]: _mean(of) for v, of in group(found, "view").items()}
            if not views:
                line.append("–")
                continue
            view = min(views, key=views.__getitem__)
            worst = min(worst, (views[view], f"{table}, {view}"))
            ok = views[view] >= protocol.BROKEN_FLAGGED
            shown = f"{100 * views[view]:.1f} ({view})"
            line.append(shown if ok else f"**{shown}**")
        name = {"none": "no noise"}.get(kind, kind)
        shown = f"{100 * worst[0]:.1f}% ({worst[1]})"
        verdicts.judge(
            f"Broken views, {name}: at least 99%", shown, worst[0] >= protocol.BROKEN_FLAGGED
        )
    return markdown(["table", *kinds], lines)


def _far(rows, verdicts):
    rows = where(rows, what="far")
    if not rows:
        return ""
    lines = []
    for (kind,), found in group(rows, "kind").items():
        share = _mean(found)
        shown = f"{100 * share:.1f}%"
        if kind in EXEMPT:
            lines.append([kind, f"{shown} (cannot see size; not judged)"])
        else:
            lines.append([kind, verdicts.judge(f"Far rows, {kind}: 100%", shown, share == 1.0)])
    return markdown(["kernels", "flagged"], lines)


def _faint(rows, verdicts):
    """By how far off it is; the farthest is judged."""
    rows = where(rows, what="faint")
    if not rows:
        return ""
    kinds, lines = distinct(rows, "kind"), []
    for (name,), found in group(rows, "table").items():
        shares = [_mean(where(found, kind=kind)) for kind in kinds]
        shown = [f"{100 * share:.0f}%" for share in shares]
        what = f"Broken by {protocol.FAINT[-1]:g} standard deviations, {name}: at least 99%"
        shown[-1] = verdicts.judge(what, shown[-1], shares[-1] >= protocol.BROKEN_FLAGGED)
        lines.append([name, *shown, f"{100 * _mean(found, 'alarms'):.1f}%"])
    heads = ["table", *(f"{kind} sd" for kind in kinds), "false alarms"]
    return markdown(heads, lines)


def _exact(rows, verdicts):
    ranks, units = where(rows, what="ranks"), where(rows, what="units")
    lines = []
    for (table,), found in group(ranks, "table").items():
        ties = int(sum(row["value"] for row in found))
        most = max(row["value"] for row in where(units, table=table))
        total = sum(row["flagged"] for row in found)
        shown = [str(ties), f"{most:.1e}"]
        shown = [shown[0] if ties == 0 else f"**{shown[0]}**", shown[1]]
        shown[1] = shown[1] if most <= protocol.UNITS else f"**{shown[1]}**"
        lines.append([table, str(total), *shown])
    if not lines:
        return ""
    ties = int(sum(row["value"] for row in ranks))
    flagged = sum(row["flagged"] for row in ranks)
    verdicts.judge(
        "Different scores of different flagged rows", f"{ties} ties among {flagged}", ties == 0
    )
    most = max(row["value"] for row in units)
    verdicts.judge("Units: relative change at most 1e-8", f"{most:.1e}", most <= protocol.UNITS)
    return markdown(["table", "flagged rows", "ties", "largest relative change"], lines)


def _contamination(rows, verdicts):
    rows = where(rows, what="contamination")
    if not rows:
        return ""
    shares, methods = sorted(distinct(rows, "share")), distinct(rows, "kind")
    # Tables without enough outliers for the largest share would change the mean between shares.
    full = [t for t in distinct(rows, "table") if where(rows, table=t, share=shares[-1])]
    rows = [row for row in rows if row["table"] in full]
    lines = []
    for method in methods:
        line = [method]
        for share in shares:
            found = where(rows, kind=method, share=share)
            own = f" / {_mean(found, 'own'):.1f}" if share else ""
            line.append(f"{_mean(found):.1f}{own}; {100 * _mean(found, 'alarms'):.1f}%")
        lines.append(line)
    if OURS in methods:
        _judge_contamination([row for row in rows if row["share"] > 0], verdicts)
        clean = [{**r, "value": r["alarms"]} for r in where(rows, kind=OURS, share=0.0)]
        mean, _, ok = _within([{**row, "at": protocol.RATE} for row in clean])
        verdicts.judge("contamination=0.1, clean rows: false alarms", f"{100 * mean:.1f}%", ok)
    else:
        verdicts.judge("contamination: the parameter exists", "no", False)
    text = (
        "AUC of new rows / of the training rows themselves; share of new normal rows flagged, "
        f"by share of outliers among the training rows. Tables: {', '.join(full)}.\n\n"
    )
    return text + markdown(["method", *(f"{100 * share:g}%" for share in shares)], lines)


def _judge_contamination(dirty, verdicts):
    for key, name in (("value", "new rows"), ("own", "training rows")):
        ours = _mean(where(dirty, kind=OURS), key)
        forest = _mean(where(dirty, kind=FOREST), key)
        what = f"contamination=0.1: mean AUC of {name} no lower than IsolationForest's"
        verdicts.judge(what, f"{ours:.2f} against {forest:.2f}", ours >= forest)


def _together(rows):
    """What a view of all columns beside the two gains, and costs."""
    rows = where(rows, what="together")
    if not rows:
        return ""
    kinds = distinct(rows, "kind")
    lines = []
    for name in [*distinct(rows, "table"), None]:
        found = rows if name is None else where(rows, table=name)
        line = ["mean" if name is None else name]
        for kind in kinds:
            some = where(found, kind=kind)
            line.append(f"{_mean(some):.1f} / {_mean(some, 'own'):.1f}")
        lines.append(line)
    text = (
        "AUC against outliers / against normal rows whose second view is another row's: each view "
        "is normal, the row is not. Measured, not judged: users add the view of all columns.\n\n"
    )
    return text + markdown(["table", *kinds], lines)


def table(rows):
    """Everything measured, as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, extrasaction="raise", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        shown = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
        writer.writerow(shown)
    return out.getvalue()
