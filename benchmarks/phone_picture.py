"""The picture of README for a phone: one view below the other."""

from __future__ import annotations

from kernull.demo import picture as p

SIZE = (5.2, 7.5)


def draw_narrow(ax, what: p.Drawn) -> None:
    """Lay `kernull.demo.picture` out on a narrow page; for its ``draw_part``."""
    first, _, second = what.title.partition(": ")
    ax.text(0.2, 0.35, f"{first}:", size=15.5, weight="bold", color=p.INK, va="center")
    ax.text(0.2, 0.68, second, size=12.5, weight="bold", color=p.INK, va="center")
    y = 1.12
    for view, gauges in what.views.items():
        odd = p.draw_view_name(ax, what, view, 0.2, y, 14)
        ax.text(2.9, y, "evidence", size=10.5, color=p.QUIET, va="center", ha="right")
        p.draw_bar(ax, what, view, 3.05, y, 1.45, odd, 11)
        for c, gauge in enumerate(gauges):
            p.draw_gauge(ax, gauge, 0.2 + 1.24 * c, y + 0.42, 1.06, 11)
        y += 1.3
        ax.plot([0.2, 5.0], [y - 0.28, y - 0.28], color=p.PALE, lw=0.8)
    first, _, second = what.callout.partition("; ")
    ax.text(0.2, y + 0.02, f"{first};", size=12, color=p.ODD, weight="bold", va="center")
    ax.text(0.2, y + 0.29, second, size=12, color=p.ODD, weight="bold", va="center")
    p.draw_key(ax, 0.2, y + 0.63, p.PALE, "all good parts", 10.5)
    p.draw_key(ax, 2.15, y + 0.63, p.BAND, "parts like this one", 10.5)
    p.draw_tick_key(ax, 0.2, y + 0.93, 10.5)
