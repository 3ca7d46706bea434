"""``kernull watch``: judge rows as they come, and notice when they change."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from kernull._whole import write_whole
from kernull.cli import _options as o
from kernull.cli._console import DataError, UsageError, note, stdout
from kernull.cli._drift import DriftTest
from kernull.cli._following import Follower
from kernull.cli._judging import Explainer, Judged, Judging, row_names
from kernull.cli._models import Fitted, check_order, load_fitted
from kernull.cli._output import check_writable, finite
from kernull.cli._settings import check_column
from kernull.tables.table import Source, Table


def watch(
    model: o.ModelFile,
    data: Annotated[str, Argument(metavar="DATA", help="A growing CSV file; - for stdin.")],
    *,
    names: o.RowNames = None,
    alarm_every: Annotated[
        float, Option(min=100, help="Drift: at most one false alarm in so many rows on average.")
    ] = 100_000,
    until_end: Annotated[bool, Option("--until-end", help="Stop at the end of the file.")] = False,
    interval: Annotated[float, Option(min=0.01, help="Seconds between looks.")] = 1.0,
    every_row: Annotated[
        bool, Option("--every-row", help="Print all rows, not only flagged ones.")
    ] = False,
    state: Annotated[
        o.Text,
        Option(
            metavar="FILE",
            help="Keep here how far it came and what the drift test knows, and go on from there.",
        ),
    ] = None,
    gaps: o.Gaps,
    form: o.TextForm,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Follow a file that grows, or standard input: print rows that are flagged, as they come.

    An alarm is raised where scores drift from those of normal rows: a sequential test, which is
    wrong at most once in --alarm-every rows on average while nothing changes. Ctrl-C ends it. With
    --state, a later call goes on where this one ended, with the drift test as it was; without, it
    starts at the first row.
    """
    check_order(model, data)
    fitted = load_fitted(model, gaps)
    if data != "-" and not Path(data).is_file():
        raise UsageError(f"{data}: no such file; watch follows a CSV file, or - for stdin.")
    if Path(data).suffix.lower() not in ("", ".csv", ".tsv", ".txt", ".log"):
        raise UsageError(f"{data}: watch follows CSV files only; use score for other formats.")
    watcher = Watcher(fitted, names, alarm_every, every_row, json, gaps.drop or [], quiet)
    follower = Follower(data, form, until_end, interval, quiet)
    keeper = None if state is None else WatchState(state, model, watcher, follower)
    if keeper is not None and keeper.resume():
        note(f"Going on after row {watcher.rows:,}, as {state} says.", quiet)
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to end it
        for rows in follower.tables():
            watcher.see(rows)
            if keeper is not None and time.monotonic() - keeper.saved > EVERY:
                keeper.save()
    if keeper is not None:
        keeper.save()
    said = "once" if watcher.alarms == 1 else f"{watcher.alarms} times"
    drift = f"drift was noticed {said}" if watcher.alarms else "no drift was noticed"
    lost = f" ({watcher.unjudged:,} of them not judged)" if watcher.unjudged else ""
    seen = "1 row" if watcher.rows == 1 else f"{watcher.rows:,} rows"
    note(f"{seen}, {watcher.flagged:,} flagged{lost}; {drift}.", quiet)
    if keeper is not None:
        note(f"Saved {state}: the next call with --state {state} goes on from here.", quiet)


class Watcher:
    """What is said of rows that come in pieces."""

    def __init__(
        self, fitted: Fitted, names: str | None, alarm_every: float, every_row: bool, json: bool,
        drop: Sequence[str] = (), quiet: bool = False,
    ) -> None:  # fmt: skip

        self.fitted, self.names, self.drop = fitted, names, list(drop)
        self.every_row, self.json, self.quiet = every_row, json, quiet
        self.rows = self.flagged = self.alarms = self.unjudged = 0
        self.test = DriftTest(fitted.model.calibration_.scores, alarm_every)
        self.ready = False

    def see(self, rows: Table) -> None:
        """Judge some rows, and print what there is to say."""
        if not self.ready:
            check_column(self.names, rows.names, rows.source, "--id")
            source = Source(rows.source, tuple(rows.names), iter(()))  # of its columns
            self.fitted, self.ready = self.fitted.for_source(source, self.drop), True
        why = Explainer(Judging(self.fitted, self.quiet), [], self.names, True, None)
        judged = why.see(replace(rows, start=self.rows))
        self.unjudged += int(judged.lost.sum())
        named = row_names(judged.rows, self.names)
        reasons = {record["row"]: record for record in why.found(rows.source)}
        for i, score in enumerate(judged.scores.tolist()):
            self.rows += 1
            self.flagged += int(judged.flagged[i])
            if judged.flagged[i] or self.every_row:
                self._say_row(judged, i, named[i], reasons.get(self.rows))
            if self.test.see(score):
                self.alarms += 1
                self._say(
                    {"event": "drift", "row": self.rows, "alarm_every": self.test.rows},
                    f"DRIFT at row {self.rows:,}: scores are no longer those of normal rows (false "
                    f"at most once in {self.test.rows:,.0f} rows).",
                )
        sys.stdout.flush()

    def _say_row(self, judged: Judged, i: int, name: str, why: dict[str, Any] | None) -> None:
        score, p, flag = float(judged.scores[i]), float(judged.p_values[i]), judged.flagged[i]
        columns = why["columns"] if why else []
        row = {"row": self.rows, "name": name, "score": score, "p_value": p, "flag": int(flag)}
        record: dict[str, Any] = {"event": "row", **row, "columns": columns}
        text = f"row {name}: normal, score {score:.3f}, p = {p:.2g}"
        if why:  # as explain says it, with the first reason
            text = " ".join([f"row {name}: {why['words']}", *(c["words"] for c in columns[:1])])
        if judged.lost[i]:
            record["not_judged"] = judged.notes[i].removeprefix("not judged: ")
            text = f"row {name}: {judged.notes[i]}"
        self._say(record, text)

    def _say(self, record: dict[str, Any], text: str) -> None:
        if self.json:
            sys.stdout.write(json.dumps(finite(record)) + "\n")
        else:
            stdout().print(text, markup=False, soft_wrap=True)


#: Seconds between two times that the file is written while rows come.
EVERY = 5.0
LARGEST = 2**26
#: What a watcher counts; states of 0.1 have no rows that were not judged.
COUNTS = ("rows", "flagged", "alarms", "unjudged")


class WatchState:
    """The file of ``--state``: how far the rows were read, counts, and the drift test.

    It is written every few seconds while rows come, and at the end; whatever stops the command,
    place, counts and test are those of one moment, so no row is counted twice. Another model file
    needs another state.
    """

    def __init__(self, path: str, model: str, watcher: Watcher, follower: Follower) -> None:
        check_writable(path, inputs=[model, follower.path])
        self.path, self.watcher, self.follower = Path(path), watcher, follower
        self.model = hashlib.sha256(Path(model).read_bytes()).hexdigest()
        self.saved = time.monotonic()

    def resume(self) -> bool:
        """Take up what an earlier call left; False where there is nothing."""
        if not self.path.exists():
            return False
        try:
            if self.path.stat().st_size > LARGEST:
                raise ValueError
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or found["kernull-watch"] != 1:
                raise ValueError
            same = found["model"] == self.model
            if same:
                self._restore(found)
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise DataError(f"--state: {self.path}: is no state that watch wrote.") from None
        if not same:
            raise UsageError(
                f"--state: {self.path} was written with another model; name another file, or "
                "remove this one to start anew."
            )
        return True

    def save(self) -> None:
        """Write the file."""
        watcher, follower = self.watcher, self.follower
        header = base64.b64encode(follower.header).decode()
        place = {"data": follower.path, "header": header, "place": follower.place}
        counts = {name: getattr(watcher, name) for name in COUNTS}
        state = {"kernull-watch": 1, "model": self.model, **place, **counts}
        write_whole(json.dumps(state | {"drift": watcher.test.state()}).encode(), self.path)
        self.saved = time.monotonic()

    def _restore(self, found: dict[str, Any]) -> None:
        watcher, follower = self.watcher, self.follower
        for name in COUNTS:
            setattr(watcher, name, int(({"unjudged": 0} | found)[name]))
        watcher.test.restore(found["drift"])
        header = base64.b64decode(found["header"], validate=True)
        if follower.path == "-" or found["data"] != follower.path or not header:
            return  # other rows, of the same kind
        with open(follower.path, "rb") as file:
            if file.read(len(header)) == header:
                follower.header, follower.place = header, int(found["place"])
                file.seek(0)
                follower.count_lines(file)
