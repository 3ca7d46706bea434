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
from experiments._tables import group, markdown, mean_std, values
from experiments.published import DEEP, LITERATURE

__all__ = ["Table", "deep_body", "deep_report"]

NAMES = {
    "whiten-raw": "whitened",
    "standard": "standardised",
    "whiten": "standardised, then whitened",
}
#: The networks of the paper's E5 to E8.
PAPER_NETWORKS = (
    "googlenet", "resnet50", "vgg16", "alexnet", "nasnetlarge", "mobilenet_v2", "densenet201",
)  # fmt: skip
KINDS = ("fusion, weights learned", "fusion, weights fixed", "one network", "peers")


def deep_report(
    name: str, introduction: str, *, by_target: bool = True
) -> Callable[[Rows, Settings, Path], str]:
    """The report function of an image experiment."""

    def report(rows: Rows, settings: Settings, folder: Path) -> str:
        text = f"{introduction} {networks(settings['networks'])}"
        return text + "\n\n" + deep_body(rows, folder, experiment=name, by_target=by_target)

    return report


def networks(names: Sequence[str]) -> str:
    """Names of networks, and which of the paper's seven they stand in for.

    Examples
    --------
    >>> print(networks(["vgg16", "squeezenet1_1"]).partition(" for")[0])
    Networks: vgg16, squeezenet1_1. 1 of the paper's seven (vgg16); a stand-in
    """
    own = [name for name in names if name in PAPER_NETWORKS]
    text = f"Networks: {', '.join(names)}."
    if len(own) == len(PAPER_NETWORKS):
        return text
    missing = [name for name in PAPER_NETWORKS if name not in own]
    named = f" ({', '.join(own)})" if own else ""
    return f"{text} {len(own)} of the paper's seven{named}; a stand-in for {', '.join(missing)}."


def kind(method: str) -> str:
    """What a method is, for the table's order and the figure's colours."""
    if method.startswith(("MK-", "Slim-MK", MAIN)):
        return KINDS[0]
    if method.startswith(("FN-", "GP-", "KPCA-")):
        return KINDS[1]
    return KINDS[2] if method.startswith("FN ") else KINDS[3]


class Table:
    """AUC in percent by method and scaling, of what is finished on every target.

    Attributes
    ----------
    test, validation : dict of (method, scaling) -> target -> values of the repeats
    targets, scalings, methods : list of str
        Methods by kind, then by what validation says of them.
    missing : list of str
        Methods that are not finished.
    """

    def __init__(self, rows: Rows) -> None:
        test, validation = _by_target(rows, "auc"), _by_target(rows, "validation_auc")
        found = {target for of_method in test.values() for target in of_method}
        self.targets = sorted(found, key=_natural)
        self.test = {k: v for k, v in test.items() if len(v) == len(self.targets)}
        self.validation = {k: validation[k] for k in self.test}
        self.scalings = [s for s in SCALINGS if any(key[1] == s for key in self.test)]
        self.missing = sorted({m for m, _ in test} - {m for m, _ in self.test})
        self.methods = sorted(
            {method for method, _ in self.test},
            key=lambda m: (KINDS.index(kind(m)), -self.mean(m, self.chosen(m), self.validation)),
        )

    def mean(self, method: str, scaling: str, of: Any = None) -> float:
        """Mean over targets of the mean over repeats."""
        return float(self.by_target(method, scaling, of).mean())

    def by_target(self, method: str, scaling: str, of: Any = None) -> Any:
        """Mean over repeats, one entry per target."""
        entry = (self.test if of is None else of)[method, scaling]
        return np.array([entry[t].mean() for t in self.targets])

    def chosen(self, method: str) -> str:
        """The scaling with the best mean validation AUC; the test images have no say."""
        has = [s for s in self.scalings if (method, s) in self.test]
        return max(has, key=lambda s: self.mean(method, s, self.validation))

    def shown(self, method: str, scaling: str) -> str:
        """Mean and spread over targets; bold where validation chose the scaling."""
        if (method, scaling) not in self.test:
            return "–"
        text = mean_std(self.by_target(method, scaling), 2)
        return f"**{text}**" if scaling == self.chosen(method) else text


def deep_body(
    rows: Rows,
    folder: Path,
    *,
    experiment: str = "",
    figure: str = "methods.png",
    by_target: bool = True,
) -> str:
    """Tables, a figure, and paired differences from lp MK-FN; the last table is by target."""
    published = DEEP.get(experiment, {})
    table = Table(rows)
    if not table.methods:
        return "No method is finished on every target yet."
    counts = {
        key: min(len(found[t]) for t in table.targets) for key, found in table.test.items()
    }  # of an unfinished run, some methods have more repeats than others
    uneven = len(set(counts.values())) > 1
    lines = []
    for method in table.methods:
        known = published.get(method)
        line = [method, kind(method), *(table.shown(method, s) for s in table.scalings)]
        line.append("" if known is None else _known(known))
        if uneven:
            line.append(" / ".join(str(counts.get((method, s), 0)) for s in table.scalings))
        lines.append(line)
    for method, known in LITERATURE.get(experiment, {}).items():
        blank = [""] * len(table.scalings)
        tail = [""] if uneven else []
        lines.append([method, "literature, as published", *blank, _known(known), *tail])
    header = ["method", "kind", *(NAMES[s] for s in table.scalings), "published"]
    header += ["repeats finished on every target"] if uneven else []
    n = sorted({int(row["n"]) for row in rows if "n" in row})
    repeats = max(counts.values())
    _figure(table, published, folder / figure)
    shown = [m for m in table.methods if (m, table.scalings[0]) in table.test]
    of_target = [[m, *(f"{v:.2f}" for v in table.by_target(m, table.scalings[0]))] for m in shown]
    parts = [
        f"Test AUC in percent, mean ± standard deviation over {len(table.targets)} targets"
        + (f" of the mean over {repeats} repeats" if repeats > 1 else "")
        + f"; {n[0] if len(n) == 1 else f'{n[0]} to {n[-1]}'} training images. Bold: the scaling "
        "that validation chooses for the method."
        + (f" Not finished and left out: {', '.join(table.missing)}." if table.missing else ""),
        markdown(header, lines),
        _verdict(table),
        f"![test AUC by method]({figure})",
        *_paired(table),
    ]
    if by_target:
        parts += [
            "By target, each method with the scaling of the first column:",
            markdown(["method", *(str(t) for t in table.targets)], of_target),
        ]
    return "\n\n".join(parts)


def _by_target(rows: Rows, column: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Percent of every method and scaling: target -> values of the repeats."""
    out: dict[tuple[str, str], dict[str, Any]] = {}
    for (method, scaling), part in group(rows, "method", "scaling").items():
        by = group(part, "target")
        out[method, scaling] = {str(t): 100 * values(found, column) for (t,), found in by.items()}
    return out


def _natural(text: str) -> tuple[int, str]:
    return (int(text) if text.isdigit() else 10**9, text)


def _known(known: tuple[float, float | None]) -> str:
    return f"{known[0]}" if known[1] is None else f"{known[0]} ± {known[1]}"


def _verdict(table: Table) -> str:
    """What the issue of fusion comes to, in one paragraph that follows from the table."""
    tops: dict[str, str] = {}
    for method in table.methods:  # by kind, best on validation first
        tops.setdefault(MAIN if method == MAIN else kind(method), method)
    found = {label: (m, table.chosen(m)) for label, m in tops.items()}
    parts = [
        f"{label}: {table.mean(m, s):.2f}" + ("" if label == MAIN else f" ({m})") + f", {NAMES[s]}"
        for label, (m, s) in sorted(found.items(), key=lambda item: -table.mean(*item[1]))
    ]
    return "Best of each kind, method and scaling by validation: " + "; ".join(parts) + "."


#: Ticks of an axis of AUC, and where it ends short of 100.
TICKS = (50, 70, 80, 90, 95, 97, 98, 99, 99.5, 99.9)
SHORT_OF_100 = 0.02


def _stretched(auc: Any) -> Any:
    return -np.log(np.maximum(100.0 - np.asarray(auc), SHORT_OF_100))


def _figure(table: Table, published: dict[str, Any], path: Path) -> None:
    methods = table.methods
    figure, axes = new_figure(figsize=(8.5, 1.2 + 0.27 * len(methods)))
    places = np.arange(len(methods))[::-1]
    shown: list[float] = []
    for i, scaling in enumerate(table.scalings):
        ys, xs = [], []
        for y, method in zip(places, methods, strict=True):
            if (method, scaling) in table.test:
                xs.append(table.mean(method, scaling))
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
        xlabel=f"test AUC, %, mean over {len(table.targets)} targets",
        ylim=(-0.7, len(methods) - 0.3),
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


def _paired(table: Table) -> list[str]:
    """Differences of lp MK-FN from every other method, each at the scaling of its validation."""
    if len(table.targets) < 3:
        return []

    def means(method: str, repeats: int) -> Any:
        entry = table.test[method, table.chosen(method)]
        return np.array([entry[t][:repeats].mean() for t in table.targets])

    def count(method: str) -> int:
        return min(len(found) for found in table.test[method, table.chosen(method)].values())

    out = []
    for ours in [m for m in table.methods if m.startswith(MAIN)]:
        lines = []
        for method in table.methods:
            if method == ours:
                continue
            # Of an unfinished run: the repeats, hence the splits, that both have.
            common = min(count(ours), count(method))
            difference, wins, losses, p_value = paired(means(ours, common), means(method, common))
            lines.append([method, f"{difference:+.2f}", f"{wins} / {losses}", f"{p_value:.2g}"])
        out += [
            f"{ours} minus each other method, target by target, each with the scaling that "
            "validation chooses, over the repeats that both have (Wilcoxon's signed-rank test):",
            markdown(["method", "mean difference", "wins / losses", "p-value"], lines),
        ]
    return out
