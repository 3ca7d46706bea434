"""Figures of the arena."""

from __future__ import annotations

from benchmarks.arena.entrants import DEFAULT
from benchmarks.arena.peers import PEERS
from experiments._plots import COLOURS, MARKERS, critical_difference, new_figure, save
from experiments._ranks import rank_methods


def draw(table, summary, folder):
    """All figures; returns (file, what it shows)."""
    out = []
    if len(table.names) < 2:
        return out
    scopes = [("all", None), *((family, family) for family in table.families)]
    for label, family in scopes:
        inside = slice(None) if family is None else table.family == family
        values = table.values[inside]
        if len(values) < 2 or (label != "all" and len(table.families) == 1):
            continue
        name = f"ranks_{label}.png"
        title = f"Mean rank by AUC over {len(values)} problems ({label})"
        critical_difference(rank_methods(table.names, values), folder / name, title, DEFAULT)
        out.append((name, f"{title}; bars join entrants that cannot be told apart"))
    _means(table, summary, folder / "auc.png")
    out.append(("auc.png", "Mean AUC by family"))
    _times(summary, folder / "time.png")
    out.append(("time.png", "Mean AUC, families equal, against the median time of fit and scoring"))
    return out


def _colour(name):
    if name == DEFAULT:
        return COLOURS[1]
    return COLOURS[7] if name in PEERS else COLOURS[0]


def _means(table, summary, path):
    """One row an entrant, one marker a family."""
    names = [line["entrant"] for line in summary][::-1]
    figure, axes = new_figure(figsize=(7.5, 1.2 + 0.27 * len(names)))
    for f, family in enumerate(table.families):
        means = dict(zip(table.names, table.mean(table.values, family), strict=True))
        axes.plot(
            [means[name] for name in names],
            range(len(names)),
            MARKERS[f],
            color=COLOURS[(2, 3, 6)[f]],  # other colours than those of the names
            alpha=0.85,
            label=family,
        )
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_color(_colour(label.get_text()))
    axes.set(xlabel="mean AUC in percent", ylim=(-0.7, len(names) - 0.3))
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    axes.set_title(
        "From best mean rank (top) to worst; orange: our default, grey: peers", fontsize=9
    )
    save(figure, path)


def _times(summary, path):
    """Dots are numbered by mean rank: names would cover each other."""
    figure, axes = new_figure(figsize=(8.4, 5.2))
    for number, line in enumerate(summary, start=1):
        colour = _colour(line["entrant"])
        x, y = 1000 * line["seconds_median"], line["mean_auc_balanced"]
        label = f"{number}  {line['entrant']}"
        top = 6 if line["entrant"] == DEFAULT else 2
        axes.plot(x, y, "o", color=colour, ms=13, alpha=0.85, label=label, zorder=top)
        style = {"ha": "center", "va": "center", "fontsize": 7, "color": "white"}
        axes.annotate(str(number), (x, y), zorder=top + 1, **style)
    axes.set(
        xscale="log",
        xlabel="median milliseconds of fit and scoring",
        ylabel="mean AUC in percent, families equal",
    )
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=7, markerscale=0.4, frameon=False)
    save(figure, path)
