"""The demo: ``kernull demo``, ``python -m kernull.demo`` or ``make demo``.

One story. A production line has 400 parts that were found good and 300 new ones: which stand out,
how rare are they, and which column says so? Then the same model and what people would pick instead
on data that ship with scikit-learn, and a report. Needs no file and no network.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table as Grid

from kernull._typing import Mask
from kernull.calibration.evidence import MOST_TIMES
from kernull.datasets import make_line
from kernull.demo.comparison import comparison, comparison_grid
from kernull.demo.picture import draw_part
from kernull.estimators import MultiKernelFisherNull
from kernull.inspection import TableReason, table_reasons
from kernull.inspection.findings import plain_number
from kernull.io import save
from kernull.models.explanation import Explanation, one_in
from kernull.report import save_report
from kernull.tables import Table, TableViews, attach_views, read_table

__all__ = ["Findings", "main"]

OUT = Path("demo")
#: Findings that are printed; the report has all.
SHOWN = 8


class Findings:
    """Tables of a line, written into a folder, and what is found among its new parts."""

    def __init__(self, folder: Path) -> None:
        self.line = make_line()
        self.line.write(folder)
        started = time.perf_counter()
        good, self.rows = _table(folder / "good.csv"), _table(folder / "new.csv")
        self.table = TableViews(views=self.line.views).fit(good)
        X = self.table.transform(good)
        self.model = MultiKernelFisherNull(views=self.table.views_, false_alarm_rate=0.05).fit(X)
        self.seconds = time.perf_counter() - started
        self.reading = self.table.read(self.rows)
        scores = np.asarray(self.model.score_samples(self.reading.X))
        self.flagged = scores < self.model.threshold_
        order = np.argsort(scores, kind="stable")
        self.order = order[self.flagged[order]]
        self.why: Explanation = self.model.explain(self.reading.X[self.order])
        self.reasons: list[list[TableReason]] = table_reasons(
            self.model, self.table, self.reading, self.rows, self.order.tolist()
        )

    @property
    def faulty(self) -> Mask:
        """Which of the new parts the inspector found faulty."""
        return np.asarray(self.line.verdict != "ok")

    def grid(self, most: int = SHOWN) -> Grid:
        """The first findings as a table."""
        title = f"The {most} parts that stand out most"
        grid = Grid(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in ("part", "1 good part in", "view", "column (usual for such)", "inspector"):
            grid.add_column(name)
        grid.columns[1].justify, grid.columns[1].no_wrap = "right", True
        shares, rarity = self.why.shares, self.why.rarity
        assert rarity is not None
        limit = MOST_TIMES * len(self.line.good)
        for k, i in enumerate(self.order[:most].tolist()):
            v = int(np.argmax(shares[k]))
            grid.add_row(
                self.line.parts[i],
                ("over " if rarity[k] >= limit else "") + one_in(rarity[k]),
                self.why.view_names[v],
                in_range(self.reasons[k][0]) if self.reasons[k] else "",
                str(self.line.verdict[i]),
            )
        return grid

    def words(self) -> str:
        """How it went, in two sentences."""
        odd, flagged = self.faulty, self.flagged
        rate = flagged[~odd].mean()
        return (
            f"A line: learned from {len(self.line.good)} good parts in {self.seconds:.1f} s, "
            f"flagged {flagged.sum()} of {len(flagged)} new ones.\n"
            f"The inspector later found {odd.sum()} faulty: {flagged[odd].sum()} of these were "
            f"flagged,\nand {flagged[~odd].sum()} of the {(~odd).sum()} good ones "
            f"({rate:.1%}; asked for: 5%)."
        )


def in_range(reason: TableReason) -> str:
    """A reason in a cell of a table: column, value and usual range."""
    if reason.low is None or reason.high is None:
        return f"{reason.column} {reason.value}"
    usual = f"{plain_number(reason.low)} to {plain_number(reason.high)}"
    return f"{reason.column} {reason.value} ({usual})"


def _table(path: Path) -> Table:
    """A table as the model may see it: what the inspector found comes later."""
    table = read_table(path)
    columns = {name: cells for name, cells in table.columns.items() if name != "verdict"}
    return replace(table, columns=columns)


def _write_report(found: Findings, folder: Path) -> Path:
    """The model and the report page on the new parts."""
    path = folder / "line.kernull"
    save(found.model, path)
    attach_views(found.table, path)
    return save_report(
        found.model,
        found.rows,
        folder / "report.html",
        y=np.where(found.faulty, -1, 1),
        table=found.table,
        row_names=found.line.parts,
        title="kernull demo: one day of a production line",
        subtitle="400 good parts to learn from, 300 new ones to judge.",
        model_path=str(path),
    )


def main(folder: str | Path = OUT, *, quiet: bool = False) -> int:
    """Run the demo: tables, model, picture and report go into a folder; gives the exit status."""
    console, out = Console(), Path(folder)
    with warnings.catch_warnings(), Progress(console=console, transient=True, disable=quiet) as bar:
        warnings.simplefilter("ignore")
        found = Findings(out)
        bar.console.print(found.words(), found.grid(), "")
        task = bar.add_task("Comparing on data of scikit-learn", total=None)
        results = comparison(lambda done, of: bar.update(task, completed=done, total=of))
        console.print(comparison_grid(results))
        page, picture = _write_report(found, out), "pip install 'kernull[plot]'"
        with contextlib.suppress(ImportError):
            picture = str(draw_part(found, out / "part.png"))
    console.print(f"Picture: {picture}", markup=False)
    console.print(f"Report: {page}", markup=False, soft_wrap=True)
    go_on = f"Go on: kernull explain {out}/line.kernull {out}/new.csv --id part --flagged"
    console.print(go_on, markup=False, soft_wrap=True)
    return 0
