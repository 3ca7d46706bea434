"""The pages of the image experiments: ours beside the published figures, singles and peers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells import Rows, Settings
from experiments._deep import MAIN, SCALINGS
from experiments._plots import COLOURS, MARKERS, new_figure, save
from experiments._ranks import paired
from experiments._tables import group, markdown, values
from experiments.published import DEEP

__all__ = ["deep_body", "deep_report"]

NAMES = {
    "whiten-raw": "whitened",
    "standard": "standardised",
    "whiten": "standardised, then whitened",
}
KINDS = ("fusion, weights learned", "fusion, weights fixed", "one network", "peers")


def deep_report(name: str, introduction: str) -> Callable[[Rows, Settings, Path], str]:
    """The report function of an image experiment."""

    def report(rows: Rows, settings: Settings, folder: Path) -> str:
        text = f"{introduction} Networks: {', '.join(settings['networks'])}."
        return text + "\n\n" + deep_body(rows, folder, published=DEEP.get(name, {}))

    return report


def kind(method: str) -> str:
    """What a method is, for the table's order and the figure's colours."""
    if method.startswith(("MK-", "Slim-MK", MAIN)):
        return KINDS[0]
    if method.startswith(("FN-", "GP-", "KPCA-")):
        return KINDS[1]
    return KINDS[2] if method.startswith("FN ") else KINDS[3]


def deep_body(
    rows: Rows, folder: Path, *, published: dict[str, Any], figure: str = "methods.png"
) -> str:
    """Tables, a figure, and paired differences from lp MK-FN."""
    auc = _by_target(rows)
    targets = sorted({t for found in auc.values() for t in found}, key=_natural)
    complete = {key: found for key, found in auc.items() if len(found) == len(targets)}
    scalings = [s for s in SCALINGS if any(key[1] == s for key in complete)]
    missing = sorted({key[0] for key in auc} - {key[0] for key in complete})
    methods = sorted(
        {key[0] for key in complete},
        key=lambda m: (KINDS.index(kind(m)), -_best(complete, m)),
    )
    if not methods:
        return "No method is finished on every target yet."
    counts = {
        key: min(len(found[t]) for t in targets) for key, found in complete.items()
    }  # of an unfinished run, some methods have more repeats than others
    uneven = len(set(counts.values())) > 1
    lines = []
    for method in methods:
        known = published.get(method)
        lines.append(
            [
                method,
                kind(method),
                *(_mean(complete, method, s, targets) for s in scalings),
                "" if known is None else _known(known),
                *(
                    [" / ".join(str(counts.get((method, s), 0)) for s in scalings)]
                    if uneven
                    else []
                ),
            ]
        )
    n = sorted({int(row["n"]) for row in rows if "n" in row})
    repeats = max(len(v) for found in auc.values() for v in found.values())
    parts = [
        f"Test AUC in percent, mean over {len(targets)} targets"
        + (f" and {repeats} repeats" if repeats > 1 else "")
        + f"; {n[0] if len(n) == 1 else f'{n[0]} to {n[-1]}'} training images."
        + (f" Not finished and left out: {', '.join(missing)}." if missing else ""),
        markdown(
            [
                "method",
                "kind",
                *(NAMES[s] for s in scalings),
                "published",
                *(["repeats finished on every target"] if uneven else []),
            ],
            lines,
        ),
        _verdict(complete, scalings, targets),
        f"![test AUC by method]({figure})",
    ]
    _figure(complete, methods, scalings, targets, published, folder / figure)
    parts += _paired(complete, methods, scalings, targets)
    parts.append("By target, each method with the scaling of the first column:")
    shown = [m for m in methods if (m, scalings[0]) in complete]
    table = [
        [m, *(f"{100 * np.mean(complete[m, scalings[0]][t]):.2f}" for t in targets)] for m in shown
    ]
    parts.append(markdown(["method", *(str(t) for t in targets)], table))
    return "\n\n".join(parts)


def _by_target(rows: Rows) -> dict[tuple[str, str], dict[str, Any]]:
    """AUC of every method and scaling: target -> values of the repeats."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    for (method, scaling), part in group(rows, "method", "scaling").items():
        by = group(part, "target")
        out[method, scaling] = {str(t): values(found, "auc") for (t,), found in by.items()}
    return out


def _natural(text: str) -> tuple[int, str]:
    return (int(text) if text.isdigit() else 10**9, text)


def _average(found: dict[str, Any], targets: Sequence[str]) -> float:
    return 100 * float(np.mean([found[t].mean() for t in targets]))


def _best(auc: dict[tuple[str, str], dict[str, Any]], method: str) -> float:
    return max(
        float(np.mean([v.mean() for v in found.values()]))
        for (m, _), found in auc.items()
        if m == method
    )


def _mean(auc: Any, method: str, scaling: str, targets: Sequence[str]) -> str:
    if (method, scaling) not in auc:
        return "–"
    return f"{_average(auc[method, scaling], targets):.2f}"


def _known(known: tuple[float, float | None]) -> str:
    return f"{known[0]}" if known[1] is None else f"{known[0]} ± {known[1]}"


def _verdict(auc: Any, scalings: Sequence[str], targets: Sequence[str]) -> str:
    """What the issue of fusion comes to, in one paragraph that follows from the table."""
    tops: dict[str, tuple[float, str, str]] = {}
    for (method, scaling), found in auc.items():
        entry = (_average(found, targets), method, scaling)
        label = MAIN if method == MAIN else kind(method)
        tops[label] = max(tops.get(label, (0.0, "", "")), entry)
    parts = [
        f"{label}: **{score:.2f}**" + ("" if label == MAIN else f" ({method})") + f", {NAMES[s]}"
        for label, (score, method, s) in sorted(tops.items(), key=lambda item: -item[1][0])
        if s in scalings
    ]
    return "Best of each kind: " + "; ".join(parts) + "."


#: Ticks of an axis of AUC, and where it ends short of 100.
TICKS = (50, 70, 80, 90, 95, 97, 98, 99, 99.5, 99.9)
SHORT_OF_100 = 0.02


def _stretched(auc: Any) -> Any:
    return -np.log(np.maximum(100.0 - np.asarray(auc), SHORT_OF_100))


def _figure(
    auc: Any,
    methods: Sequence[str],
    scalings: Sequence[str],
    targets: Sequence[str],
    published: dict[str, Any],
    path: Path,
) -> None:
    figure, axes = new_figure(figsize=(8.5, 1.2 + 0.27 * len(methods)))
    places = np.arange(len(methods))[::-1]
    shown: list[float] = []
    for i, scaling in enumerate(scalings):
        ys, xs = [], []
        for y, method in zip(places, methods, strict=True):
            if (method, scaling) in auc:
                xs.append(_average(auc[method, scaling], targets))
                ys.append(y)
        axes.plot(xs, ys, MARKERS[i], color=COLOURS[i], ms=6, label=f"ours, {NAMES[scaling]}")
        shown += xs
    known = [(published[m][0], y) for y, m in zip(places, methods, strict=True) if m in published]
    if known:
        shown += [value for value, _ in known]
        axes.plot(
            *zip(*known, strict=True), "D", mfc="white", color="black", ms=5, label="published"
        )
    for y, (above, below) in zip(places, itertools.pairwise(methods), strict=False):
        if kind(above) != kind(below):
            axes.axhline(y - 0.5, color="grey", lw=0.6)
    axes.set_yticks(places, methods, fontsize=8)
    axes.set(
        xlabel=f"test AUC, %, mean over {len(targets)} targets", ylim=(-0.7, len(methods) - 0.3)
    )
    # What is missing to 100, in logarithms: 98 to 99 is as long as 96 to 98.
    axes.set_xscale("function", functions=(_stretched, lambda z: 100.0 - np.exp(-np.asarray(z))))
    low, high = _stretched(min(shown)), _stretched(max(shown))
    margin = 0.04 * (high - low) + 0.02
    low, high = 100.0 - np.exp(margin - low), 100.0 - np.exp(-margin - high)
    axes.set_xlim(low, high)
    axes.set_xticks([tick for tick in TICKS if low <= tick <= high], minor=False)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.3)
    figure.legend(fontsize=8, ncols=4, loc="outside lower center")
    save(figure, path)


def _paired(
    auc: Any, methods: Sequence[str], scalings: Sequence[str], targets: Sequence[str]
) -> list[str]:
    """Differences of lp MK-FN from every other method, each at its best scaling."""
    if len(targets) < 3:
        return []

    def at_best(method: str) -> dict[str, Any]:
        found = [auc[method, s] for s in scalings if (method, s) in auc]
        return max(found, key=lambda entry: _average(entry, targets))

    def means(found: dict[str, Any], repeats: int) -> Any:
        return 100 * np.array([found[t][:repeats].mean() for t in targets])

    out = []
    for ours in [m for m in methods if m.startswith(MAIN)]:
        lines = []
        for method in methods:
            if method == ours:
                continue
            mine, other = at_best(ours), at_best(method)
            # Of an unfinished run: the repeats, hence the splits, that both have.
            common = min(len(found[t]) for found in (mine, other) for t in targets)
            difference, wins, losses, p_value = paired(means(mine, common), means(other, common))
            lines.append([method, f"{difference:+.2f}", f"{wins} / {losses}", f"{p_value:.2g}"])
        out += [
            f"{ours} minus each other method, target by target, each with its best scaling, over "
            "the repeats that both have (Wilcoxon's signed-rank test):",
            markdown(["method", "mean difference", "wins / losses", "p-value"], lines),
        ]
    return out
