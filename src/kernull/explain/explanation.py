"""What is reported about rows: how rare each is, and which views and columns make it so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from kernull._containers import as_frame
from kernull._text import visible
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import MOST_TIMES
from kernull.errors import need
from kernull.explain.columns import ColumnReason, NumberColumns, column_reasons

#: Contributions below this share of the typical one count as none.
FLOOR = 1e-12
TINY = np.finfo(float).tiny
#: A view with a smaller part in the evidence is no reason.
LEAST_SHARE = 0.05
#: Of cube roots of misfits, which are about 1 to 10.
LEAST_SPREAD = 1e-6
#: Rows that a notebook shows.
SHOWN_ROWS = 10
#: Names of what `Explanation.table` gives of a column.
COLUMN_FIELDS = (
    "column", "value", "usual", "expected", "low", "high", "share", "score", "without", "words",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""Scores of rows, taken apart.

    .. math:: y(x) = \sum_j c_j(x), \qquad c_j(x) = b_j k_j(x)'a

    A view's contribution is the sum over its kernels. Its difference is that contribution less the
    typical one (the mean over normal rows that the model did not see): differences add up to how
    far the row lies above or below a typical normal row.

    Views are ranked by surprise: how many standard deviations of normal rows a view's misfit lies
    from the usual (in cube roots, which spread evenly). Misfit is the distance of the view from
    what the other views of the row predict (`kernull.detector.usual`): a view may
    contribute as much as it should and yet be that of something else. With one view only, and for
    precomputed kernels, contributions take its place (in logarithms, where they are positive).

    Reasons by column (`kernull.explain.columns`) are there where the model is on a table of numbers
    or on one that `TableViews` reads. They are computed when they are first asked for.

    Attributes
    ----------
    contributions : array of shape (m, J)
        Contribution of each kernel; rows add up to the projection.
    typical : array of shape (J,)
        Mean contribution of each kernel to normal rows left out of the fit.
    reference : array of shape (rows, J)
        Contributions to the calibration scores, which show how much is usual.
    kernel_names, kernel_views : tuple of str
        Name of each kernel, and of its view.
    scores, p_values : array of shape (m,)
        Score and p-value of each row.
    threshold : float or array of shape (m,)
        Score below which rows are flagged.
    out_of_line : array of shape (m, V), optional
        Standard deviations by which the misfit of each view exceeds the usual, as negative numbers.
    rarity : array of shape (m,), optional
        Of models that decide by evidence: one in so many normal rows has as much against it; at
        most 100 times the rows learned from.
        Contributions are then minus the squared weighted evidence of each kernel.
    extrapolated, beyond_all : boolean array of shape (m,), optional
        Where no normal row had as much, so that the rarity rests on the tail; and where that ends.
    together : boolean array of shape (m,), optional
        Flagged rows of which each view is usual: together they are not.
    frame : str, optional
        The library of the data frame that was explained, which `table` makes its answer in.
    row_names : sequence, optional
        Names of the rows, such as the index of that data frame.
    columns_of : callable, optional
        Reasons by column of the rows at these positions, a list of `ColumnReason` for each.
    remarks : sequence of str, optional
        What was done to each row before it was judged: empty cells, views left out. The score of
        a row that could not be judged is NaN, and its remark is the verdict.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernull import MultiKernelFisherNull
    >>> X, y = load_wine(return_X_y=True)
    >>> views = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}
    >>> model = MultiKernelFisherNull(views=views).fit(X[y == 0])
    >>> why = model.explain(X[y == 2])
    >>> why.by_view.shape
    (48, 3)
    >>> print(why.words(0, most=1))
    flagged: far more unusual than any of the 59 normal rows learned from.
    look gives 52% of the evidence (6.7 standard deviations out of line with the others).
    x11 is 1.29; 2.99 to 4 is usual for rows like this; none of 59 normal rows has a value so low.
    """

    contributions: Array
    typical: Array
    reference: Array
    kernel_names: tuple[str, ...]
    kernel_views: tuple[str, ...]
    scores: Array
    p_values: Array
    threshold: Any
    out_of_line: Array | None = None
    rarity: Array | None = None
    extrapolated: Mask | None = None
    beyond_all: Mask | None = None
    together: Mask | None = None
    frame: str | None = None
    row_names: Sequence[Any] | None = None
    columns_of: Callable[[Sequence[int]], list[list[ColumnReason]]] | None = None
    remarks: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        flagged = int(self.flagged.sum())
        views = visible(", ".join(self.view_names[:6])) + ", ..." * (len(self.view_names) > 6)
        rows = f"{len(self)} row{'s' * (len(self) != 1)}"
        return f"Explanation({rows}, {flagged} flagged; views: {views})"

    @property
    def flagged(self) -> Mask:
        """Rows that are flagged, of shape (m,)."""
        return np.asarray(~(self.scores >= self.threshold))

    @cached_property
    def columns(self) -> list[list[ColumnReason]]:
        """Reasons by column of each row; those of rows not flagged are new values alone."""
        return self.columns_of_rows(range(len(self)))

    def columns_of_rows(self, rows: Sequence[int]) -> list[list[ColumnReason]]:
        """Reasons by column of the rows at these positions, a list for each.

        Parameters
        ----------
        rows : sequence of int
            Positions of rows.

        Returns
        -------
        list of lists of ColumnReason
        """
        return [[] for _ in rows] if self.columns_of is None else self.columns_of(rows)

    @property
    def view_names(self) -> tuple[str, ...]:
        """Names of the views, in the order of their kernels."""
        return tuple(dict.fromkeys(self.kernel_views))

    @property
    def by_view(self) -> Array:
        """Contribution of each view, of shape (m, V)."""
        return self._sum_views(self.contributions)

    @property
    def typical_by_view(self) -> Array:
        """Typical contribution of each view, of shape (V,)."""
        return np.asarray(self._sum_views(self.typical[None])[0])

    @property
    def differences(self) -> Array:
        """Contribution of each view less its typical one, of shape (m, V)."""
        return np.asarray(self.by_view - self.typical_by_view)

    @property
    def surprise(self) -> Array:
        """How far out of line each view is, of shape (m, V); very negative is suspect."""
        if self.out_of_line is not None:
            return self.out_of_line
        return _shortfall(self.by_view, self._sum_views(self.reference))

    @property
    def shares(self) -> Array:
        """Part of each view in the squared evidence, of shape (m, V); rows add up to one."""
        total = self.by_view.sum(axis=1, keepdims=True)
        out = np.zeros_like(self.by_view)
        return np.asarray(np.divide(self.by_view, total, out=out, where=total != 0))

    def words(self, row: int = 0, most: int = 3) -> str:
        """The row at a position in words: the verdict, its views, and a line for each column.

        At most so many views and columns are named. Views by evidence are those with a share of 5%
        or more, the largest first, otherwise those most out of line. Standard deviations are those
        of normal rows; "in line with the others" is a view that fits them as well as it usually
        does, or better. A single view is not named.

        Parameters
        ----------
        row : int
            Position of the row.
        most : int
            Number of views and of columns, at most.
        """
        columns = [reason.words for reason in self.columns_of_rows([row])[0][:most]]
        return "\n".join([self.verdict(row), *self.words_of_views(row, most), *columns])

    def verdict(self, row: int = 0) -> str:
        """Whether a row is flagged, and how rare it is, in a sentence.

        Parameters
        ----------
        row : int
            Position of the row.
        """
        if not self._is_judged(row):
            return f"flagged, {self.remarks[row] if self.remarks else 'not judged'}."
        flagged, rare = self.flagged[row], self.how_rare(row)
        if self.rarity is None:
            score, p = self.scores[row], self.p_values[row]
            apart = score - np.broadcast_to(self.threshold, len(self))[row]
            share = f"{p:.0%} of" if p >= 0.1 else f"1 in {one_in(1 / p)}"
            rare = f"score {score:.3f} is {abs(apart):.3f} {'below' if flagged else 'above'}"
            rare += f" the threshold, as low as {share} normal rows"
        return f"{'flagged' if flagged else 'normal'}: {rare}."

    def words_of_views(self, row: int = 0, most: int = 3) -> list[str]:
        """The views with most evidence against a row, in a sentence; none where there is one view.

        Parameters
        ----------
        row : int
            Position of the row.
        most : int
            Number of views, at most.
        """
        if len(self.view_names) < 2 or not self._is_judged(row):
            return []
        if self.together is not None and self.together[row]:
            pair = " and ".join(
                visible(self.view_names[v]) for v in np.argsort(self.surprise[row])[:2]
            )
            return [f"each view is usual, together they are not: {pair} fit the others least."]
        return [f"{', '.join(f'{visible(v)} {how}' for v, how in self.reasons([row], most)[0])}."]

    @property
    def top_views(self) -> list[str]:
        """The view of each row that `words` names first; empty of rows without score or rarity."""
        if not self.view_names:
            return [""] * len(self)
        first = np.argmin(self.surprise if self.rarity is None else -self.shares, axis=1)
        named = [self._is_judged(i) for i in range(len(self))]
        return [self.view_names[v] if ok else "" for v, ok in zip(first, named, strict=True)]

    def reasons(self, rows: Any = None, most: int = 3) -> list[list[tuple[str, str]]]:
        """The views that `words` names of these rows, or of all, each with its words.

        Parameters
        ----------
        rows : sequence of int, optional
            Positions of rows; all by default.
        most : int
            Number of views, at most.

        Returns
        -------
        list of lists of (str, str)
            Name of a view, and its words.
        """
        by_evidence = self.rarity is not None
        surprise, sizes = self.surprise, self.shares if by_evidence else self.differences
        rank = -sizes if by_evidence else surprise
        whom = "" if self.out_of_line is None else " with the others"
        out = []
        for i in range(len(self)) if rows is None else rows:
            order = np.argsort(rank[i], kind="stable")[:most]
            named = []
            for k, v in enumerate(order):
                part = f"{abs(sizes[i, v]):.3f} {'below' if sizes[i, v] < 0 else 'above'} normal"
                if by_evidence:
                    if k and sizes[i, v] < LEAST_SHARE:
                        break
                    part = f"gives {sizes[i, v]:.0%} of the evidence"
                named.append((self.view_names[v], f"{part} ({_out_of_line(surprise[i, v], whom)})"))
            out.append(named)
        return out

    def how_rare(self, row: int = 0, rows: str = "normal rows") -> str:
        """How unusual a row is, in words that claim no more than the rows learned from can bear.

        Empty for models that do not know. ``rows`` is what normal rows are called.

        Parameters
        ----------
        row : int
            Position of the row.
        rows : str
            What normal rows are called.
        """
        if self.rarity is None or self.extrapolated is None or self.beyond_all is None:
            return ""
        rarity = self.rarity[row]
        if self.beyond_all[row]:
            return f"far more unusual than any of the {len(self.reference):,} {rows} learned from"
        if rarity < 2:
            return f"most {rows} are as unusual" if self.flagged[row] else "nothing unusual"
        about = "about " if self.extrapolated[row] else ""
        return f"{about}1 in {one_in(rarity)} {rows} is as unusual"

    def table(self, row: int | None = None, by: str = "view") -> Any:
        """A data frame of the kind that was explained (pandas, polars); records for an array.

        Of one row, or of all by default, ``by`` "view": row, view, contribution, typical,
        difference, surprise, and the share of calibration rows whose contribution is as low
        (``tail``); by surprise, the most suspect first. ``by`` "column": a line for each
        `ColumnReason`, which flagged rows have.

        Parameters
        ----------
        row : int, optional
            Position of the row; all rows by default.
        by : {"view", "column"}
            What a line of the table stands for.

        Returns
        -------
        data frame or list of dict
        """
        picked = list(range(len(self))) if row is None else [row]
        if by == "column":
            columns = zip(picked, self.columns_of_rows(picked), strict=True)
            fields = ("row", *COLUMN_FIELDS)
            records = [
                {"row": self.name(i)} | r.record() for i, reasons in columns for r in reasons
            ]
            lines = [{name: record[name] for name in fields} for record in records]
            return as_frame(lines, self.frame, fields)
        if by != "view":
            raise ValueError(f"by: got {by!r}; expected 'view' or 'column'.")
        reference = self._sum_views(self.reference)
        tails = np.array([(reference <= values).sum(axis=0) for values in self.by_view[picked]])
        numbers = {
            "contribution": self.by_view[picked],
            "typical": np.tile(self.typical_by_view, (len(picked), 1)),
            "difference": self.differences[picked],
            "surprise": self.surprise[picked],
            "tail": (1 + tails) / (1 + len(reference)),
        }
        lines = [
            {"row": self.name(i), "view": self.view_names[v]}
            | {name: float(values[k, v]) for name, values in numbers.items()}
            for k, i in enumerate(picked)
            for v in np.argsort(numbers["surprise"][k], kind="stable")
        ]
        return as_frame(lines, self.frame, ("row", "view", *numbers))

    def name(self, row: int) -> Any:
        """Name of the row at a position: in `row_names`, else the position.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        str or int
        """
        return int(row) if self.row_names is None else self.row_names[row]

    def _repr_html_(self) -> str:
        """The rows with the lowest scores, for notebooks."""
        order = np.argsort(np.nan_to_num(self.scores, nan=-np.inf), kind="stable")[
            :SHOWN_ROWS
        ].tolist()
        left = (
            ' style="text-align: left; vertical-align: top"'  # notebooks align cells to the right
        )
        cells = "".join(
            f"<tr><th{left}>{escape(str(self.name(i)))}</th><td{left}>"
            + "<br>".join(escape(line) for line in self.words(i).split("\n"))
            + "</td></tr>"
            for i in order
        )
        more = f"<caption{left}>{escape(repr(self))}</caption>"
        return f"<table>{more}{cells}</table>"

    def plot(self, row: int = 0, ax: Any = None) -> Any:
        """Bars of one row by view, with normal rows as marks; returns the axes.

        Bars are the evidence of each view, of models that decide by it, else its contribution. In a
        new figure, the columns that make the row stand out are drawn below, each value on
        the range that is usual for rows like this.

        Parameters
        ----------
        row : int
            Position of the row.
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
        """
        plt = need("matplotlib.pyplot", "plots need matplotlib: pip install kernull[plot].")
        if ax is not None:
            self._plot_views(row, ax)
            ax.legend(loc="best", fontsize="small", framealpha=0.9, edgecolor="none")
            return ax
        numbers = [r for r in self.columns_of_rows([row])[0] if r.number is not None]
        heights = [0.5 + 0.36 * len(self.view_names), 0.4 + 0.42 * len(numbers)][
            : 1 + bool(numbers)
        ]
        figure, axes = plt.subplots(
            len(heights), figsize=(7.2, 1.6 + sum(heights)), height_ratios=heights,
            layout="constrained", squeeze=False,
        )  # fmt: skip
        self._plot_views(row, axes[0, 0])
        if numbers:
            self._plot_columns(numbers, axes[1, 0])
        marks = axes[0, 0].get_legend_handles_labels()  # below the axes, which bars fill
        figure.legend(*marks, loc="outside lower left", ncols=3, fontsize="small", frameon=False)
        return axes[0, 0]

    def _plot_columns(self, reasons: Sequence[ColumnReason], ax: Any) -> None:
        """Each value on its usual range, which goes from 0 to 1; the first reason on top."""
        for place, r in enumerate(reversed(reasons)):
            assert r.number is not None
            low, high = r.low or 0.0, r.high or 0.0
            at = (r.number - low) / ((high - low) or 1.0)
            at = 0.5 + 2.0 * np.tanh((at - 0.5) / 2.0)  # what is far off stays in the picture
            ax.barh(place, 1.0, height=0.5, color="#9dc3e6")
            ax.plot(at, place, "o", color="#c0392b", markersize=8)
            ax.annotate(f"usual {r.usual}", (0.5, place), ha="center", va="center", size="small")
        names = [f"{visible(r.column)} {r.value}" for r in reversed(reasons)]
        ax.set_yticks(range(len(reasons)), names)
        ax.set_xticks([])
        ax.set_xlim(-1.7, 2.7)
        ax.set_ylim(-0.6, len(reasons) - 0.4)
        ax.spines[["top", "right", "bottom"]].set_visible(False)

    def _plot_views(self, row: int, ax: Any) -> None:
        by_evidence = self.rarity is not None
        rank = self.shares if by_evidence else -self.surprise  # the first, as in words, on top
        order = np.argsort(rank[row], kind="stable")
        names, places = [self.view_names[v] for v in order], np.arange(len(order))
        values, reference = self.by_view[row, order], self._sum_views(self.reference)[:, order]
        what = "contribution to the score (lower is more unusual)"
        if by_evidence:
            values, reference = np.sqrt(-values), np.sqrt(-reference)
            what = "evidence against the row (higher is more unusual)"
        (low, high), mean = np.quantile(reference, [0.05, 0.95], axis=0), reference.mean(axis=0)
        unusual = values > high if by_evidence else values < low
        for mask, colour, label in (
            (~unusual, "#4878a8", "this row"),
            (unusual, "#c0392b", "this row, more unusual than 95% of normal rows"),
        ):
            if mask.any():
                ax.barh(places[mask], values[mask], height=0.62, color=colour, label=label)
        style = {"fmt": "o", "color": "black", "markersize": 4, "capsize": 3, "linewidth": 1}
        ends = np.maximum([mean - low, high - mean], 0.0)
        ax.errorbar(mean, places, xerr=ends, label="normal rows: mean, 5% to 95%", **style)
        ax.set_yticks(places, names)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.axvline(0.0, color="0.6", linewidth=0.8)
        ax.set_xlabel(what)
        ax.set_title(self.verdict(row), fontsize="medium", loc="left")

    def _is_judged(self, row: int) -> bool:
        return bool(np.isfinite(self.scores[row]))

    def _sum_views(self, values: Array) -> Array:
        index = {name: v for v, name in enumerate(self.view_names)}
        member = np.zeros((len(self.kernel_views), len(index)))
        member[np.arange(len(self.kernel_views)), [index[v] for v in self.kernel_views]] = 1.0
        return np.asarray(values @ member)


@dataclass(frozen=True, eq=False)
class ColumnsOfModel:
    """Reasons by column of rows that a `KernelModel` judges, learned when they are asked for."""

    model: Any
    rows: Array
    names: Sequence[str] | None

    def __call__(self, index: Sequence[int]) -> list[list[ColumnReason]]:
        """Reasons of the rows at these positions; none where training rows cannot be had."""
        model, usual = self.model, self.model.usual_values
        if usual is None:
            return [[] for _ in index]
        kept = set(np.array(model.kernels.views, dtype=object)[model.kept])
        views = model.kernels.set.views
        places = sorted({int(j) for view in views for j in view.columns})
        there = {int(j) for view in views if view.name in kept for j in view.columns}
        names = [f"x{j}" if self.names is None else str(self.names[j]) for j in places]
        rows = self.rows[np.asarray(index, dtype=np.intp), : len(usual.mean)]
        return column_reasons(
            lambda X: np.asarray(model.score(model.kernels.cross(X))),
            rows,
            NumberColumns(names, usual, [[j] for j in places]),
            threshold=model.threshold,
            gaps=np.tile([j not in there for j in places], (len(rows), 1)),
        )


def explain_rows(
    model: Any, cross: Any, rows: Array | None, names: Sequence[str] | None = None
) -> Explanation:
    """The `Explanation` of rows by a `KernelModel`.

    Parameters
    ----------
    model : KernelModel
    cross : stack of kernels
        Between the rows and those of the model.
    rows : array of shape (m, d), optional
        The rows, where kernels are on a table.
    names : sequence of str, optional
        Names of its columns; ``x0``, ``x1``, ... by default.
    """
    rule, kept = model.rule, model.kept
    evidence: dict[str, Any] = {}
    if model.decides_by_evidence:
        of_scores = rule.evidence(cross)
        contributions, reference = (
            -rule.by_kernel(of_scores),
            -rule.by_kernel(rule.left_out_evidence),
        )
        typical = np.average(reference, axis=0, weights=rule.rank_weight)
        scores = rule.of_evidence(of_scores)
        rarity = model.calibration.rarity(scores)
        evidence = {
            "rarity": rarity,
            "extrapolated": scores < model.calibration.scores[0],
            "beyond_all": rarity >= MOST_TIMES * model.calibration.total,
            "together": (scores < model.threshold)
            & rule.usual_by_views(of_scores, model.false_alarm_rate),
        }
    else:
        contributions = rule.contributions(cross)
        scores = rule.of_contributions(contributions)
        reference, typical = model.left_out, model.typical_contributions
    misfit = None if rows is None or model.view_misfit is None else model.view_misfit(rows)
    return Explanation(
        contributions=contributions[:, kept],
        typical=typical[kept],
        reference=reference[:, kept],
        kernel_names=tuple(np.array(model.kernels.names, dtype=object)[kept]),
        kernel_views=tuple(np.array(model.kernels.views, dtype=object)[kept]),
        scores=scores,
        p_values=model.calibration.p_values(scores),
        threshold=model.threshold,
        out_of_line=None if misfit is None else _standardised(*misfit),
        columns_of=None if rows is None else ColumnsOfModel(model, rows, names),
        **evidence,
    )


def one_in(rarity: float) -> str:
    """A rarity for people: two digits, and whole numbers below ten."""
    unit = 10.0 ** max(0, int(np.floor(np.log10(max(rarity, 1.0)))) - 1)
    return f"{round(rarity / unit) * unit:,.0f}"


def _standardised(misfit: Array, usual: Array) -> Array:
    """Standard scores of misfits (m, V) among those of left-out rows (w, V): higher is better."""
    left_out = np.cbrt(usual)
    # Where left-out rows do not vary at all, any difference is out of line.
    spread = np.maximum(left_out.std(axis=0), LEAST_SPREAD)
    return np.asarray((left_out.mean(axis=0) - np.cbrt(misfit)) / spread)


def merged(whole: Explanation, parts: Sequence[tuple[Indices, Explanation]], m: int) -> Explanation:
    """One explanation of m rows from those of groups of rows, which may lack views.

    Parameters
    ----------
    whole : Explanation
        Of any row, by the model with all views.
    parts : sequence of (positions, Explanation)
        Rows in no part are not judged.
    m : int
        Number of rows.
    """

    def by_row(name: str, fill: Any) -> Any:
        if getattr(whole, name) is None:
            return None
        out = np.full(m, fill)
        for index, why in parts:
            out[index] = getattr(why, name)
        return out

    def by_name(name: str, names: str) -> Array:
        place = {label: j for j, label in enumerate(getattr(whole, names))}
        out = np.zeros((m, len(place)))
        for index, why in parts:
            columns = np.array([place[label] for label in getattr(why, names)], dtype=np.intp)
            out[np.ix_(index, columns)] = getattr(why, name)
        return out

    def columns_of(index: Sequence[int]) -> list[list[ColumnReason]]:
        out: dict[int, list[ColumnReason]] = {}
        for rows, why in parts:
            picked = np.flatnonzero(np.isin(rows, list(index))).tolist()
            out |= zip(rows[picked].tolist(), why.columns_of_rows(picked), strict=True)
        return [out.get(i, []) for i in index]

    return replace(
        whole,
        contributions=by_name("contributions", "kernel_names"),
        out_of_line=None if whole.out_of_line is None else by_name("surprise", "view_names"),
        columns_of=columns_of,
        **{name: by_row(name, np.nan) for name in ("scores", "p_values", "threshold", "rarity")},
        **{name: by_row(name, False) for name in ("extrapolated", "beyond_all", "together")},
    )


def _out_of_line(surprise: float, whom: str) -> str:
    """A surprise as a number of standard deviations, or that there is none to speak of."""
    if surprise > -0.05:
        return f"in line{whom}"
    # Beyond a hundred the number means nothing more: nothing among normal rows is like it.
    size = f"{-surprise:.1f}" if surprise > -100 else "over 100"
    return f"{size} standard deviations out of line{whom}"


def _shortfall(values: Array, reference: Array) -> Array:
    """Standard scores of contributions (m, V) among those to normal rows (rows, V)."""
    # They are sums of kernel values: they spread over orders of magnitude, evenly in logarithms.
    # What lies below the floor is equally absent.
    floor = FLOOR * np.abs(reference).mean(axis=0)
    positive = (reference > 0).all(axis=0)
    shown = np.where(positive, np.log(np.maximum(values, floor + TINY)), values)
    usual = np.where(positive, np.log(np.maximum(reference, floor + TINY)), reference)
    apart, spread = shown - usual.mean(axis=0), usual.std(axis=0)
    return np.asarray(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0))
