"""One object that judges the rows of a table: flags, how rare each row is, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from kernull._containers import as_frame, frame_library, row_names
from kernull._runtime import write_whole
from kernull._text import listed
from kernull._typing import Array, Mask
from kernull.detector import KernelModel
from kernull.detector.calibration import discoveries
from kernull.detector.joint import JointModel
from kernull.detector.usual import UsualValues
from kernull.errors import MissingCapabilityError, ModelFileError
from kernull.estimators import Calibrated, JointMultiKernelFisherNull, MultiKernelFisherNull
from kernull.estimators.base import KernelEstimator
from kernull.estimators.inputs import check_labels
from kernull.explain import Explanation
from kernull.explain.drift import DriftCheck
from kernull.explain.evaluation import checked_labels, evaluation
from kernull.files import load_parts, save
from kernull.files.codec import Packer, Unpacker
from kernull.judge.verdicts import MOST_REASONS, NUMBERED, Verdicts
from kernull.report import render_report
from kernull.tables import Reading, Table, TableViews, as_table
from kernull.tables.kinds import did_you_mean, match_columns
from kernull.views import KernelSet

#: Parameters that a file holds with the model and its table.
SETTINGS = ("false_alarm_rate", "id", "group", "task")


class Judge(OutlierMixin, BaseEstimator):
    r"""Learn from a table of normal rows, and judge new ones.

    The table may hold numbers, text, dates and gaps (`TableViews`). Rows come back with a flag, a
    p-value, how rare they are, and the views and columns that make them stand out.

    Parameters
    ----------
    model : estimator, default=None
        ``MultiKernelFisherNull()`` by default, or ``JointMultiKernelFisherNull()`` with a ``task``.
        Any detector of scikit-learn, which is fitted as ``Calibrated(model)``: reasons are then by
        column only.
    views : None, "auto", "features", mapping or TableViews, default=None
        Groups of columns, such as ``{"vibration": ["vib_*"]}``. ``"auto"``: columns whose names
        begin alike, or that correlate. A `TableViews` sets more: kinds of columns, dates, texts for
        empty cells.
    false_alarm_rate : float in (0, 1), default=0.05
        Share of new normal rows that is flagged. It takes the place of the model's.
    id : str, optional
        Column that names the rows. It is not learned from.
    group : str, optional
        Column whose equal values are left out together, such as the patient or the day. It is not
        learned from.
    task : str, optional
        Column of the tasks of a `JointMultiKernelFisherNull`, each judged by its rows.
    missing : {"impute", "error"}, default="impute"
        Empty cells, as in `TableViews`; where ``views`` is one, its setting counts.

    Attributes
    ----------
    table_ : TableViews
        How the table is read: kinds of columns, and ``views_``.
    model_ : estimator
        The fitted model, on what ``table_`` gives.
    n_features_in_, feature_names_in_
        Columns of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernull import Judge
    >>> rng = np.random.default_rng(0)
    >>> load = rng.normal(size=200)
    >>> good = pd.DataFrame({"force": 100 + 5 * load, "power": 40 + load})
    >>> good["power"] += 0.1 * rng.normal(size=200)
    >>> judge = Judge().fit(good)
    >>> new = pd.DataFrame({"force": [100.0, 104.0], "power": [41.5, 40.8]})
    >>> judge.judge(new)[["flag", "reason_1", "value_1", "usual_1"]]
        flag reason_1 value_1       usual_1
    0   True    power    41.5  39.8 to 40.2
    1  False
    >>> print(judge.explain(new).words(0).split("\n")[-1])
    power is 41.5; 39.8 to 40.2 is usual for rows like this; none of 200 normal rows is as far off.
    """

    _output: str | None = None
    _usual: UsualValues | None = None

    def __init__(
        self,
        model: Any = None,
        views: Any = None,
        false_alarm_rate: float = 0.05,
        id: str | None = None,
        group: str | None = None,
        task: str | None = None,
        missing: str = "impute",
    ) -> None:
        self.model = model
        self.views = views
        self.false_alarm_rate = false_alarm_rate
        self.id = id
        self.group = group
        self.task = task
        self.missing = missing

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Learn from a table of normal rows.

        Parameters
        ----------
        X : data frame, Table, mapping of columns, or array of shape (n, d)
        y : ignored
            Rows with ``y = -1`` are learned from like all others, with a warning: pass the normal
            rows alone.
        groups : array of shape (n,), optional
            Group of each row, where no column has it.
        """
        if y is not None:
            check_labels(X, y)
        return self.fit_table(X).fit_model(X, groups)

    def fit_table(self, X: Any) -> Self:
        """Decide what each column is: the first step of `fit`, which sets ``table_``."""
        self._new_model()  # what cannot be is refused before the table is read
        table = as_table(X)
        reader, learned = self._reader(table)
        self.table_ = reader.fit(learned)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)
        return self

    def fit_model(self, X: Any, groups: Any = None) -> Self:
        """Learn from the rows as ``table_`` reads them: the second step of `fit`."""
        table = as_table(X)
        reading = self.table_.read(self._reader(table)[1])
        passed = self._groups(table, groups)
        self.model_ = self._new_model().fit(reading.X, **passed)  # rows hand their views on
        self._usual = None
        self._learn_usual(reading, passed.get("groups"))
        return self

    def _reader(self, table: Table) -> tuple[TableViews, Table]:
        """How to read the table, and the columns that are learned from."""
        for name in ("id", "group", "task"):
            column = getattr(self, name)
            if column is not None and column not in table.columns:
                near = did_you_mean(column, table.names)
                raise ValueError(
                    f"{name}: {table.source} has no column {column!r}{near}; it has "
                    f"{listed(table.names)}."
                )
        aside = {self.id, self.group, self.task}
        kept = {name: cells for name, cells in table.columns.items() if name not in aside}
        learned = replace(table, columns=kept)
        reader = TableViews(views=self.views, missing=self.missing)
        reader = clone(self.views) if isinstance(self.views, TableViews) else reader
        return reader, learned

    def _groups(self, table: Table, groups: Any) -> dict[str, Any]:
        """What ``fit`` of the model takes for groups: a column of groups, or of tasks."""
        column = self.group or self.task
        if column is not None and groups is not None:
            name = "group" if self.task is None else "task"
            raise ValueError(
                f"groups: got an array and {name}={column!r}; expected one of them. Drop groups=, "
                f"or fit with {name}=None."
            )
        if column is not None:
            return {"groups": np.array(table.text(column))}
        return {} if groups is None else {"groups": groups}

    def _new_model(self) -> Any:
        _check_rate(self.false_alarm_rate)
        default = MultiKernelFisherNull if self.task is None else JointMultiKernelFisherNull
        model = default() if self.model is None else clone(self.model)
        if not isinstance(model, KernelEstimator | Calibrated):
            model = Calibrated(model)
        joint = isinstance(model, JointMultiKernelFisherNull)
        if joint != (self.task is not None):
            raise ValueError(
                f"task: got {self.task!r} with {type(model).__name__}; a column of tasks goes with "
                "JointMultiKernelFisherNull."
            )
        if self.group is not None and joint:
            raise ValueError("group: a joint model leaves out rows of a task one by one; drop it.")
        return model.set_params(false_alarm_rate=self.false_alarm_rate)

    def _learn_usual(self, reading: Reading, tasks: Any) -> None:
        """Learn the regressions of the columns, for each task, and keep them with the model."""
        measured = np.ones(reading.X.shape, dtype=bool)
        for c, block in enumerate(self.table_.blocks_):
            measured[:, block] = ~reading.missing[:, [c]]
        X, model = np.asarray(reading.X), self.model_
        kept = np.ones(len(X), dtype=bool)
        kept[list(self.suspects)] = False
        if self.task is not None:
            joint = model.model_
            usual = {n: UsualValues.fit(X[tasks == n], measured[tasks == n]) for n in joint.tasks}
            learned = {n: replace(task, usual=usual[n]) for n, task in joint.tasks.items()}
            model.model_ = replace(joint, tasks=learned)
        elif not isinstance(model, Calibrated):
            model.model_ = replace(model.model_, usual=UsualValues.fit(X[kept], measured[kept]))

    def usual_values(self, task: str = "") -> UsualValues | None:
        """Regressions of the columns of what ``table_`` gives (of a task); None of over 400.

        Parameters
        ----------
        task : str
            Task of a joint model.
        """
        if isinstance(self.model_, Calibrated):
            if self._usual is None:
                self._usual = UsualValues.fit(np.asarray(self.model_.rows_))
            return self._usual
        return self.fitted_model(task or None).usual_values

    # -- judging -----------------------------------------------------------------------------

    def judge(self, X: Any, false_alarm_rate: float | None = None, *, absent: Any = ()) -> Any:
        """Judge rows: a table of the kind that came (pandas, polars, Arrow; a dict otherwise).

        Parameters
        ----------
        X : data frame, Table, mapping of columns, or array of shape (m, d)
            Columns are matched by name; those that are not learned from may be absent.
        false_alarm_rate : float in (0, 1), optional
            Another rate than that of the fit.
        absent : sequence of str, default=()
            Columns to do without, or patterns of their names: they may lack, are filled in from
            the other columns, and are not judged.

        Returns
        -------
        table of m rows
            The column ``id``, if there is one; ``flag``, ``p`` (the p-value), ``rarity`` (one in
            so many normal rows is as unusual), ``score``, ``view`` (the first to name);
            ``reasons`` in words, and by column ``reason_1``, ``value_1``, ``usual_1`` to
            ``reason_3``, ``value_3``, ``usual_3``, empty where a row is not flagged; ``remarks``
            on empty cells, new values, and rows that could not be judged.
        """
        table = as_table(X)
        verdicts = self.verdicts(table, false_alarm_rate, absent=absent)
        verdicts.check_unseen()
        columns = verdicts.columns_of_output()
        library = self._output or frame_library(X)
        if library is None:
            return columns
        out = as_frame(columns, library)
        if library == "pandas" and frame_library(X) == "pandas":
            out.index = X.index
        return out

    @property
    def suspects(self) -> Any:
        """Positions of the training rows that stand apart, as ``suspects_`` of the model."""
        return self.model_.suspects_ if isinstance(self.model_, KernelEstimator) else ()

    @property
    def output_names(self) -> list[str]:
        """Names of the columns that `judge` gives."""
        numbers = [f"{what}_{k + 1}" for k in range(MOST_REASONS) for what in NUMBERED]
        model = self.model_
        by_evidence = isinstance(model, Calibrated) or model.model_.decides_by_evidence
        evidence = [f"evidence_{name}" for name in self.view_names] if by_evidence else []
        return [
            *([] if self.id is None else [self.id]), "score", "p", "flag",
            *(["rarity"] if by_evidence else []), *evidence, *(["view"] if self.view_names else []),
            "reasons", *numbers, "remarks",
        ]  # fmt: skip

    def explain(
        self, X: Any, false_alarm_rate: float | None = None, *, absent: Sequence[str] = ()
    ) -> Explanation:
        """Which views and columns make each row stand out: words, tables and plots.

        Parameters
        ----------
        X, false_alarm_rate, absent
            As in `judge`.
        """
        table = as_table(X)
        why = self.verdicts(table, false_alarm_rate, absent=absent).why
        names: Any = row_names(X)
        if self.id is not None and self.id in table.columns:
            names = table.text(self.id)
        return replace(why, frame=frame_library(X), row_names=names)

    def verdicts(
        self,
        X: Any,
        false_alarm_rate: float | None = None,
        *,
        missing_views: Sequence[str] = (),
        absent: Sequence[str] = (),
        strict: bool | None = None,
    ) -> Verdicts:
        """The rows of a table with everything that was done to judge them.

        Parameters
        ----------
        X, false_alarm_rate, absent
            As in `judge`.
        missing_views : sequence of str
            Views to do without. A view of which more than half of a row's cells are empty is left
            out in that row by itself.
        strict : bool, optional
            Whether a cell that cannot be read is an error, or its row is flagged without a score;
            by default an error with ``missing="error"``.
        """
        check_is_fitted(self, "model_")
        rate = self.false_alarm_rate if false_alarm_rate is None else false_alarm_rate
        _check_rate(rate)
        for view in missing_views:
            if view not in self.view_names:
                raise ValueError(
                    f"missing_views: no view {view!r}{did_you_mean(view, self.view_names)}; the "
                    f"model has {', '.join(self.view_names)}."
                )
        rows = as_table(X).emptied(tuple(self.table_.empty))
        strict = self.table_.missing == "error" if strict is None else strict
        rows = rows.check_whole() if strict else rows
        known = list(dict.fromkeys([*rows.names, *self.table_.used_]))
        absent = match_columns([absent] if isinstance(absent, str) else absent, known, "absent")
        gone = [*absent, *self.columns_of_views(missing_views)]
        if set(gone) >= set(self.table_.used_):
            name = "missing_views" if missing_views else "absent"
            raise ValueError(f"{name}: got {listed(gone)}; leave at least one column of the model.")
        reading = self.table_.read(rows, gone, strict)
        reading.unreadable[list(rows.broken)] = True
        return Verdicts(self, rows, reading, rate, tuple(missing_views))

    def columns_of_views(self, views: Sequence[str]) -> list[str]:
        """Columns of the table that only these views read.

        Parameters
        ----------
        views : sequence of str

        Returns
        -------
        list of str
        """
        if not views:
            return []
        names = [column.name for column in self.table_.columns_]
        of = self.table_.view_columns() | (self.table_._groups(names) or {})
        kept = {name for view, names in of.items() if view not in views for name in names}
        return [n for view in views for n in of.get(view, ()) if n not in kept]

    @property
    def view_names(self) -> list[str]:
        """Names of the views that rows are judged by; none of a detector from outside."""
        if isinstance(self.model_, Calibrated):
            return []
        return list(dict.fromkeys(map(str, self.fitted_model().kernels.views)))

    def at_rate(self, rate: float) -> Self:
        """The same with the threshold of another false-alarm rate.

        Parameters
        ----------
        rate : float in (0, 1)
            Share of new normal rows to be flagged.
        """
        judge = type(self)()  # no copy, which packs models as pickles do
        judge.__dict__.update(vars(self))
        if rate == self.false_alarm_rate:
            return judge
        judge.false_alarm_rate = rate
        if isinstance(self.model_, Calibrated):
            judge.model_ = self.model_.at_rate(rate)
            return judge
        judge.model_, fitted = copy(self.model_), self.model_.model_
        if isinstance(fitted, JointModel):
            tasks = {name: task.at_rate(rate) for name, task in fitted.tasks.items()}
            judge.model_.model_ = replace(fitted, tasks=tasks)
        else:
            judge.model_.model_ = fitted.at_rate(rate)
        return judge

    @property
    def n_learned(self) -> int:
        """Number of rows that were learned from, of all tasks."""
        if isinstance(self.model_, Calibrated):
            return len(self.model_.left_out_scores_)
        models = [self.fitted_model(task or None) for task in self.tasks or [""]]
        return sum(max(model.learned_from.values()) for model in models)

    @property
    def kernel_set(self) -> KernelSet | None:
        """Kernels with the training rows; None of a detector from outside, and of several tasks."""
        outside = self.task is not None or isinstance(self.model_, Calibrated)
        return None if outside else cast(KernelSet, self.model_.kernel_set_)

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks; none without a column of tasks."""
        return [] if self.task is None else list(map(str, self.model_.tasks_))

    def fitted_model(self, task: str | None = None) -> KernelModel:
        """The `KernelModel` that judges rows (of a task; of the first by default)."""
        model = self.model_.model_
        if not isinstance(model, JointModel):
            return cast(KernelModel, model)
        return model.tasks[next(iter(model.tasks)) if task is None else task]

    # -- files, reports and tests of whole tables ---------------------------------------------

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write to a file that is safe to share, whole or not at all; it holds the training rows.

        Parameters
        ----------
        path : path-like
        note : str, default=""
            A text for whoever reads the header; ``kernull info`` shows it.
        """
        check_is_fitted(self, "model_")
        model = copy(self.model_)
        if isinstance(model, KernelEstimator):
            fitted = model.model_
            if isinstance(fitted, JointModel):
                tasks = {name: task.with_usual() for name, task in fitted.tasks.items()}
                model.model_ = replace(fitted, tasks=tasks)
            else:
                model.model_ = fitted.with_usual()
        settings = {name: getattr(self, name) for name in SETTINGS}
        save(model, path, table=self.table_, settings=settings, note=note)

    @staticmethod
    def load(path: str | os.PathLike[str], *, trusted: Sequence[Any] = ()) -> Judge:
        """Read what `save` or ``kernull fit`` wrote, or a saved pipeline of `TableViews`.

        Parameters
        ----------
        path : path-like
        trusted : sequence of classes, default=()
            Those from outside kernull that the file may name; see `kernull.load`.
        """
        model, table, settings = load_parts(path, trusted=trusted)
        if table is None:
            raise ModelFileError(
                f"{os.fspath(path)!r}: the model was fitted on an array, without a table; fit a "
                "Judge on the table and save that."
            )
        if not set(settings) <= set(SETTINGS) or int(model.n_features_in_) != len(
            table.get_feature_names_out()
        ):
            raise ModelFileError(f"{os.fspath(path)!r}: its table does not fit its model.")
        settings = {"false_alarm_rate": model.false_alarm_rate} | settings
        return Judge._fitted(model, table, settings)

    @staticmethod
    def _fitted(model: Any, table: TableViews, settings: dict[str, Any]) -> Judge:
        judge = Judge(clone(model), clone(table), **settings)
        judge.model_, judge.table_ = model, table
        judge.n_features_in_ = len(table.columns_)
        judge.feature_names_in_ = table.feature_names_in_
        return judge

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: what a file holds; whole with a detector, or objects, from outside."""
        state, packer = dict(super().__getstate__()), Packer()
        if isinstance(state.get("model_"), KernelEstimator):
            tree = packer.encode(state["model_"], "model")
            state |= {} if packer.outside else {"model_": (tree, packer.tensors)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(packed := state.get("model_"), tuple):
            model = Unpacker(packed[1]).decode(packed[0])
            model.restored()
            state = state | {"model_": model}
        super().__setstate__(state)

    def of_task(self, task: str) -> Judge:
        """The judge of one task, by a `MultiKernelFisherNull`; its rows need no column of tasks."""
        if task not in self.tasks:
            raise ValueError(f"task: got {task!r}; expected one of {listed(self.tasks)}.")
        settings = {"false_alarm_rate": self.false_alarm_rate, "id": self.id}
        return Judge._fitted(self.model_.task(task), self.table_, settings)

    def report(self, X: Any, path: str | os.PathLike[str], y: Any = None, **options: Any) -> Path:
        """Write a report on rows, one HTML page, and give its path.

        Parameters
        ----------
        X : data frame, Table, mapping of columns, or array of shape (m, d)
        path : path-like
            The HTML file to write.
        y : array of shape (m,), optional
            Labels, +1 for normal rows and -1 for others.
        **options
            ``absent``, as in `judge`, and those of `kernull.report.render_report`.
        """
        verdicts = self.verdicts(X, absent=options.pop("absent", ()))
        write_whole(render_report(verdicts, y, **options).encode(), file := Path(path))
        return file

    def evaluate(
        self, X: Any, y: Any, false_alarm_rate: float | None = None, **asked: Any
    ) -> dict[str, Any]:
        """AUC, average precision of the rows that are not normal, and the four counts.

        Parameters
        ----------
        X, false_alarm_rate, **asked
            As in `verdicts`.
        y : array of shape (m,)
            +1 for normal rows and -1 for others.
        """
        rows = as_table(X)
        y = checked_labels(y, len(rows))
        if (y == y[0]).all():
            raise ValueError("y: all rows have the same label; judging needs both kinds.")
        verdicts = self.verdicts(rows, false_alarm_rate, **asked)
        counts = evaluation(verdicts.why.scores, y, verdicts.why.flagged)
        return counts | {"not_judged": int(verdicts.lost.sum())}

    def drift(self, X: Any) -> dict[str, Any]:
        """Whether rows, taken together, rank as new normal rows would, and which columns moved.

        Parameters
        ----------
        X : data frame, Table, mapping of columns, or array of shape (m, d)

        Returns
        -------
        dict
            ``drifted``, ``p_value``, ``columns`` (each with ``column``, ``distance`` and
            ``words``), the counts behind them, and ``words``.
        """
        verdicts = self.verdicts(X)
        check = self.drift_check()
        check.see(verdicts.rows, *verdicts.ranks())
        return check.result()

    def drift_check(
        self, absent: Sequence[str] = (), missing_views: Sequence[str] = ()
    ) -> DriftCheck:
        """What `drift` asks of rows that come in chunks."""
        if self.task is not None:
            raise MissingCapabilityError(
                "task: rows of several tasks have no ranks in common; ask judge.of_task(name)."
            )
        model, usual = self.model_, self.usual_values()
        suspects = usual if len(self.suspects) else None
        calibration = model.calibration_
        if missing_views:
            calibration = self.fitted_model().without(missing_views).calibration
        gone = [*absent, *self.columns_of_views(missing_views)]
        return DriftCheck(self.table_, calibration, gone, suspects)

    # -- as an estimator of scikit-learn -----------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """Scores of rows, of shape (m,); higher is more normal, NaN for rows not judged."""
        return self.verdicts(X).why.scores

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold, of shape (m,): negative where a row is flagged."""
        why = self.verdicts(X).why
        return np.asarray(np.nan_to_num(why.scores - why.threshold, nan=-np.inf))

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones, of shape (m,)."""
        verdicts = self.verdicts(X)
        verdicts.check_unseen()
        return np.where(verdicts.why.flagged, -1, 1)

    def p_values(self, X: Any) -> Array:
        """P-value of each row, of shape (m,): small where unusual; NaN where not judged."""
        return self.verdicts(X).why.p_values

    def rarity(self, X: Any) -> Array:
        """One in so many normal rows is as unusual, of shape (m,)."""
        return np.asarray(self.verdicts(X).why.rarity)

    def detect(self, X: Any, fdr: float = 0.1) -> Mask:
        """Flags of rows together, (m,): at most this share of them false; as the estimators do."""
        p_values = self.p_values(X)
        judged = np.isfinite(p_values)
        out = ~judged
        out[judged] = discoveries(p_values[judged], fdr)
        return out

    def set_output(self, *, transform: str | None = None) -> Self:
        """Library of the tables that `judge` gives, such as ``"pandas"`` or ``"polars"``."""
        self._output = None if transform == "default" else transform
        return self

    def fit_predict(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:
        """Fit, and judge each training row by a model that did not see it: +1 normal, -1 flagged.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        """
        self.fit(X, groups=groups)
        table = as_table(X)
        learned = self._reader(table)[1]
        passed = self._groups(table, groups)
        rows = self.table_.transform(learned)
        return np.asarray(clone(self.model_).fit_predict(rows, **passed))

    def __sklearn_tags__(self) -> Any:
        """Tables of text and gaps are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _check_rate(rate: Any) -> None:
    if not isinstance(rate, Real) or not 0 < float(rate) < 1:
        hint = f"; {rate}% is {float(rate) / 100:g}" if isinstance(rate, int | float) else ""
        raise ValueError(f"false_alarm_rate: got {rate!r}; expected a number in (0, 1){hint}.")
