"""From cells to verdicts, a table, a CSV and a picture."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np

from benchmarks.alarms import protocol

FIELDS = (
    "case", "calibration", "seeds", "n", "d", "discrete",
    *(f"{kind}_{100 * rate:g}" for rate in protocol.RATES for kind in ("rate", "se", "attainable")),
    "fdp", "fdp_se", "rare", "rare_se", "power", "seconds", "misses", "warnings",
)  # fmt: skip


def summarise(rows):
    """One line for each case and calibration, in the order of the rows."""
    groups = {}
    for row in rows:
        groups.setdefault((row["data"], row["method"]), []).append(row)
    return [_line(case, method, found) for (case, method), found in groups.items()]


def _line(case, method, found):
    def mean(key):
        return float(np.mean([row[key] for row in found]))

    def error(key):
        values = [row[key] for row in found]
        return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

    line = {
        "case": case,
        "calibration": method,
        "seeds": len(found),
        **{key: found[0][key] for key in ("n", "d", "discrete")},
        "fdp": mean("fdp"),
        "fdp_se": error("fdp"),
        "rare": mean("rare"),
        "rare_se": error("rare"),
        "power": mean("power"),
        "seconds": float(np.median([row["time_fit"] for row in found])),
    }
    for rate in protocol.RATES:
        name = f"{100 * rate:g}"
        line[f"rate_{name}"], line[f"se_{name}"] = mean(f"rate_{name}"), error(f"rate_{name}")
        line[f"attainable_{name}"] = mean(f"attainable_{name}")
    counted = Counter(name for row in found for name in row["warnings"])
    line["warnings"] = ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))
    line["misses"] = misses(line)
    return line


def misses(line):
    """What of the bounds a line breaks: names of its columns."""
    slack = 3 if line["calibration"].startswith("split") else 0  # standard errors
    if line["n"] < protocol.SMALL_ROWS:
        low, high = protocol.SMALL
    else:
        low, high = protocol.DISCRETE if line["discrete"] else protocol.CONTINUOUS
    away, spare, out = line["rate_5"] - line["attainable_5"], slack * line["se_5"], []
    if away > high - 0.05 + spare or (away < low - 0.05 - spare and not line["discrete"]):
        out.append("5")
    enough = line["attainable_1"] <= 0.01 * (1 + 1e-9)
    if enough and line["rate_1"] > protocol.AT_ONE + slack * line["se_1"]:
        out.append("1")
    for name, most in (("fdp", protocol.FDP), ("rare", protocol.RARE_SHARE)):
        if line[name] > most + slack * line[f"{name}_se"]:
            out.append(name)
    return out


def page(rows, shifts, provenance="", title="Realised false alarms"):
    """The whole report in Markdown."""
    lines = summarise(rows)
    failed = [line for line in lines if line["misses"]]
    text = [
        f"# {title}",
        "",
        *([provenance, ""] if provenance else []),
        f"{len(lines)} cells, {len(failed)} miss a bound (bold). Rates in percent, mean over "
        "the seeds with its standard error; FDP is the share of false discoveries of "
        "`detect(fdr=0.1)`; rare the percentage of normal rows with a rarity of 1,000 or more; "
        "power the share of planted outliers flagged at 5%. Bounds: `benchmarks/alarms/protocol.py`"
        ".",
        "",
        *_by_calibration(lines),
        "| case | calibration | seeds | at 10% | at 5% | at 1% | FDP | rare | power | warnings |",
        "| --- " * 10 + "|",
    ]
    text += [_markdown(line) for line in lines]
    text += ["", *_shifts(shifts)]
    return "\n".join(text).rstrip() + "\n"


def _by_calibration(lines):
    """Mean, root mean square distance from 5% and range of the rates of each calibration."""
    out = []
    for method in dict.fromkeys(line["calibration"] for line in lines):
        mine = [line for line in lines if line["calibration"] == method and not line["discrete"]]
        rates = 100 * np.array([line["rate_5"] for line in mine])
        if len(rates) < 2:
            continue
        away = np.sqrt(np.mean((rates - 5.0) ** 2))
        out += [
            f"Calibration {method!r}, continuous tables: mean {rates.mean():.1f}%, from "
            f"{rates.min():.1f} to {rates.max():.1f}%, root mean square distance from 5: "
            f"{away:.1f}.",
            "",
        ]
    return out


def _markdown(line):
    def bold(name, shown):
        return f"**{shown}**" if name in line["misses"] else shown

    rates = [
        bold(name, f"{100 * line[f'rate_{name}']:.1f} ± {100 * line[f'se_{name}']:.1f}")
        for name in (f"{100 * rate:g}" for rate in protocol.RATES)
    ]
    name = bold(line["misses"][0], line["case"]) if line["misses"] else line["case"]
    cells = [
        name,
        line["calibration"],
        str(line["seeds"]),
        *rates,
        bold("fdp", f"{line['fdp']:.2f}"),
        "" if np.isnan(line["rare"]) else bold("rare", f"{100 * line['rare']:.2f}"),
        f"{100 * line['power']:.0f}",
        line["warnings"],
    ]
    return "| " + " | ".join(cells) + " |"


def _shifts(shifts):
    if not shifts:
        return []
    spread = max(s["flagged"] for s in shifts) - min(s["flagged"] for s in shifts)
    out = ["## A constant column, one percent off in new rows", "",
           "Share flagged at 5%, by the unit of the column; it must not depend on it.", "",
           "| unit | flagged |", "| --- | --- |"]  # fmt: skip
    for shift in shifts:
        shown = f"{100 * shift['flagged']:.1f}%"
        out.append(f"| {shift['unit']:g} | {f'**{shown}**' if spread > 0.01 else shown} |")
    return [*out, ""]


def table(rows):
    """The same as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for line in summarise(rows):
        writer.writerow({**line, "misses": " ".join(line["misses"])})
    return out.getvalue()


def draw(rows, path):
    """Realised rate at 5% of every cell, with its allowed band."""
    from experiments._plots import COLOURS, MARKERS, new_figure, save

    lines = summarise(rows)
    names = list(dict.fromkeys(line["case"] for line in lines))[::-1]
    methods = list(dict.fromkeys(line["calibration"] for line in lines))
    figure, axes = new_figure(figsize=(7.5, 1.2 + 0.24 * len(names)))
    low, high = (100 * bound for bound in protocol.CONTINUOUS)
    axes.axvspan(low, high, color="0.9", zorder=0, label=f"{low:g} to {high:g}%")
    axes.axvline(5, color="0.6", linewidth=1, zorder=0)
    for m, method in enumerate(methods):
        mine = [line for line in lines if line["calibration"] == method]
        axes.errorbar(
            [100 * line["rate_5"] for line in mine],
            [names.index(line["case"]) for line in mine],
            xerr=[300 * line["se_5"] for line in mine],
            fmt=MARKERS[m],
            color=COLOURS[m],
            markersize=4,
            linewidth=1,
            label=f"calibration {method!r}, three standard errors",
        )
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    axes.set_xticks([0, 2, 5, 8, 20, 50, 100], ["0", "2", "5", "8", "20", "50", "100"])
    axes.set_xlabel("new normal rows flagged at a nominal 5%, in percent")
    figure.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    save(figure, path)
