"""Joint one-class learning of related tasks that share their kernel weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._containers import as_numpy, match_container
from kernull._fields import stored
from kernull._typing import Array, Indices
from kernull.detector import (
    Calibration,
    GivenRows,
    Settings,
    Split,
    TableKernels,
    TableRows,
)
from kernull.detector.calibration import discoveries, trust, trusted
from kernull.detector.joint import (
    JointModel,
    Task,
    check_sizes,
    enrolled,
    group_rows,
    learn_tasks,
    read_task_labels,
    varying_views,
)
from kernull.errors import InvalidKernelError, MissingCapabilityError
from kernull.estimators.base import progress_shown
from kernull.estimators.fisher import FisherParameters, decides_by_evidence
from kernull.estimators.inputs import check_labels, read_table, read_weights, rollback_on_error
from kernull.explain.explanation import Explanation, explain_rows
from kernull.operators import DenseStack, Storage, check_memory, parse_memory_limit
from kernull.operators.dense import check_names, read_precomputed
from kernull.operators.normalise import read_normalisation
from kernull.views import check_views, knows_unseen, resolve_views
from kernull.views.kernel_set import Recipe


@stored
class JointMultiKernelFisherNull(FisherParameters):
    r"""Related one-class tasks that share kernel weights (the paper's joint lp MK-FN).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \sum_c \max_{a_c} \;
       2 a_c'1 - \delta n_c\, a_c'a_c - a_c' \Big(\sum_j b_j K^c_j\Big) a_c

    One task per person, a machine, a camera: each has its own rows, coefficients and threshold;
    which views matter is learned from all of them together. Each decides by the evidence of its own
    rows. A new task enrols by one linear solve.

    Parameters
    ----------
    kernels, views, scaling, widths, normalize, p, solver, decision, false_alarm_rate, random_state
        As in `MultiKernelFisherNull`; scalings and widths are those of each task's rows.
    delta : float, default=0.01
        Ridge relative to the number of rows of each task.
    calibration : "cross" or Cross, default="cross"
        As in `MultiKernelFisherNull`; no rows are held out.
    contamination : None
        Not for tasks: their rows are taken to be normal.
    storage : {"auto", "dense"} or Storage, default="auto"
        Kernels of all tasks are stored.

    Attributes
    ----------
    weights_, gap_, n_iter_, history_, solver_, kernel_names_, kernel_set_
        As in `MultiKernelFisherNull`; ``gap_`` is that of the joint problem, ``kernel_set_`` that
        of the first task.
    tasks_ : list
        Names of the tasks.
    coef_ : dict of name -> array of shape (n_c,)
        Coefficients of each task.
    threshold_ : dict of name -> float
        Score below which rows of a task are flagged.
    offset_ : dict of name -> float, or float
        The same; the number itself where there is one task, as in scikit-learn.
    false_alarm_rate_ : dict of name -> float
        The rate that each threshold stands for.
    calibration_ : dict of name -> Calibration
        Left-out scores of each task.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``JointMultiKernelFisherNull(**kernull.PAPER)`` is the paper's setting: joint lp MK-FN as
    printed, with Algorithm 2. Its delta is relative to the rows of each task, where the paper has
    one for all; with tasks of equal size that is the same.

    Methods take ``groups``, the task of each row. `fit`, `predict` and `decision_function`
    request it from scikit-learn's metadata routing by default. Tasks are solved side by side
    within ``joblib.parallel_config(n_jobs=4)``.

    With ``kernels="precomputed"``, `fit` takes a mapping of name -> kernels (J, n_c, n_c), or one
    stack (J, n, n) with ``groups``; scoring takes a mapping of name -> (J, m, n_c) and gives a
    mapping of scores, or one array of rows (J, m, n_c) for one task, or, where one stack was
    fitted, (J, m, n) with ``groups``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.datasets import load_wine_views
    >>> from kernull.views import join_views
    >>> data = load_wine_views()
    >>> X, views = join_views(data.views)
    >>> known = data.y < 2
    >>> model = JointMultiKernelFisherNull(views=views)
    >>> model = model.fit(X[known], groups=data.y[known])
    >>> sorted(model.tasks_)
    [0, 1]
    >>> model = model.enroll(X[data.y == 2], 2)
    >>> scores = model.score_samples(X, groups=2)
    >>> bool(scores[data.y == 2].mean() > scores[data.y != 2].mean())
    True

    The paper's setting with p = 4:

    >>> from kernull import PAPER
    >>> model = JointMultiKernelFisherNull(**PAPER | {"p": 4}, views=views)
    >>> model = model.fit(X[known], groups=data.y[known])
    >>> model.solver_, bool(model.gap_ <= 1e-6)
    ('paper', True)
    """

    model_: JointModel

    # Rows are nothing without their task: ask meta-estimators for it by default.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"groups": True}

    # -- fitting -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        progress: bool = False,
    ) -> Self:
        """Learn the shared weights and all tasks.

        Parameters
        ----------
        X : table of shape (n, d), or precomputed kernels (see the notes of the class)
            Training rows of all tasks, all taken to be normal for their task.
        y : ignored
            Rows with ``y = -1`` are learned from like all others: pass ``X[y == 1]``.
        sample_weight : array of shape (n,), optional
            Weight of each row, as in `MultiKernelFisherNull`; for tables.
        groups : array of shape (n,), optional
            The task of each row; None: one task.
        progress : bool, default=False
            Show the iterations of the solver on stderr.
        """
        if y is not None:
            check_labels(X, y, stacklevel=2)
        labels: Any = () if y is None else np.asarray(as_numpy(y)).flat
        if groups is None and not {1, -1}.issuperset(labels):
            warnings.warn(
                "y: it is ignored, and all rows are one task; tasks of rows come as groups=.",
                UserWarning,
                stacklevel=2,
            )
        self._fit_tasks(X, sample_weight, groups, progress)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and judge each training row by a model without its fold."""
        rows, scores = self._fit_tasks(X, **fit_params)
        weight = None if self._pairwise else read_weights(fit_params.get("sample_weight"), X)
        out = np.empty(sum(len(index) for index in rows.values()), dtype=int)
        for name, index in rows.items():
            task = self.model_.tasks[name]
            kept = index if weight is None else index[weight[index] > 0]
            out[kept] = np.where(scores[name] >= task.threshold, 1, -1)
            new = np.setdiff1d(index, kept)
            if len(new):  # rows of weight zero
                table = read_table(self, as_numpy(X), reset=False)
                out[new] = self.predict(table[new], groups=name)
        return out

    def _fit_tasks(
        self, X: Any, sample_weight: Any = None, groups: Any = None, progress: bool = False
    ) -> tuple[dict[Hashable, Indices], dict[Hashable, Array]]:
        """Fit; the rows of each task, and the scores of those that were learned from."""
        with rollback_on_error(self), progress_shown() if progress else nullcontext():
            method, settings, views = self._method(), self._settings(), None
            X, sample_weight, groups = as_numpy(X), as_numpy(sample_weight), as_numpy(groups)
            if self._pairwise:
                tasks, rows = self._given_tasks(X, sample_weight, groups)
            else:
                tasks, rows, views = self._table_tasks(X, sample_weight, groups)
            self.model_, scores = learn_tasks(tasks, method, settings, views=views)
        return rows, scores

    def _settings(self, client: Any = None) -> Settings:
        settings = super()._settings(client)
        read_normalisation(self.normalize)
        if settings.storage not in ("auto", "dense"):
            raise ValueError(f"storage: got {self.storage!r}; expected 'auto' or 'dense'.")
        if isinstance(settings.calibrator, Split):
            raise MissingCapabilityError(
                f"calibration: got {self.calibration!r}; tasks hold no rows out, use 'cross'."
            )
        if self.contamination is not None:
            raise MissingCapabilityError(
                f"contamination: got {self.contamination!r}; rows of tasks are taken to be normal, "
                "leave it None."
            )
        return settings

    def _table_tasks(self, X: Any, sample_weight: Any, groups: Any) -> Any:
        """Tasks of a table, the rows of each, and the views that they share."""
        table = read_table(self, X, reset=True)
        weight = read_weights(sample_weight, X)
        rows = group_rows(read_task_labels(groups, len(table)))
        kept = rows if weight is None else {c: i[weight[i] > 0] for c, i in rows.items()}
        weight = None if weight is None else trusted(weight, kept.values())
        check_sizes({name: len(index) for name, index in kept.items()})
        names = getattr(self, "feature_names_in_", None)
        views = resolve_views(self.views, table.shape[1], names)
        check_views(views, self.scaling, self.kernels)
        hosts = [view for view in views if knows_unseen(self.scaling, view)]
        index = list(kept.values())
        views = dict(varying_views(table, index, views, hosts))
        recipe = self._recipe(views, [len(rows) for rows in index])
        tasks = {
            name: Task(
                TableRows(table[of_task], recipe), None if weight is None else weight[of_task]
            )
            for name, of_task in kept.items()
        }
        return tasks, rows, views

    def _recipe(self, views: Mapping[str, Indices], sizes: list[int]) -> Recipe:
        """How views and kernels are made of rows; refuses stacks of all tasks that do not fit."""
        recipe = Recipe(views, self.kernels, self.widths, self.scaling)
        storage = Storage.of(self.storage)
        side = math.ceil(math.sqrt(sum(size * size for size in sizes)))
        limit = parse_memory_limit(storage.memory_limit)
        check_memory(recipe.J, side, np.dtype(storage.dtype).itemsize, limit)
        return recipe

    def _given_tasks(self, X: Any, sample_weight: Any, groups: Any) -> Any:
        """Tasks of kernels that the user computed, and the rows of each."""
        _refuse_weights(sample_weight)
        places: dict[Hashable, Any]
        if isinstance(X, Mapping):
            if groups is not None:
                raise ValueError("groups: got groups next to a mapping, which names its tasks.")
            stacks = {name: self._task_stack(name, K) for name, K in X.items()}
            if not stacks:
                raise ValueError("X: got an empty mapping; expected kernels of at least one task.")
            places = dict.fromkeys(stacks)
            rows = group_rows([name for name, stack in stacks.items() for _ in range(stack.n)])
        else:
            whole = read_precomputed(X, dtype=self._dtype)
            places = rows = group_rows(read_task_labels(groups, whole.n))
            check_sizes({name: len(index) for name, index in rows.items()})
            stacks = dict.fromkeys(rows, whole)
            self.n_features_in_ = whole.n
        names = next((stack.names for stack in stacks.values() if stack.names is not None), None)
        tasks = {c: Task(GivenRows(_named(K, names), places[c])) for c, K in stacks.items()}
        return tasks, rows

    def _task_stack(self, name: Hashable, X: Any) -> DenseStack:
        """A task's square kernels, or an error that names the task."""
        try:
            return read_precomputed(X, dtype=self._dtype)
        except InvalidKernelError as error:
            raise InvalidKernelError(f"task {name!r}: {error}") from None

    @property
    def _dtype(self) -> Any:
        return np.dtype(Storage.of(self.storage).dtype).type

    # -- tasks that come and go -----------------------------------------------------------------

    def enroll(self, X: Any, group: Hashable, sample_weight: Any = None) -> Self:
        """Add a task with the shared weights: one linear solve, no learning.

        Scaling and widths are those of its own rows; delta is relative to these.

        Parameters
        ----------
        X : table of shape (n_new, d), or kernels of shape (J, n_new, n_new)
            Rows of the new task.
        group : hashable
            Its name; must be new.
        sample_weight : array of shape (n_new,), optional
            Weight of each row; for tables.
        """
        check_is_fitted(self)
        model, name = self.model_, read_task_labels([group], 1)[0]
        if name in model.tasks:
            raise ValueError(
                f"group: the model already has a task {name!r}; forget({name!r}) first, or choose "
                "another name."
            )
        task = self._new_task(name, as_numpy(X), as_numpy(sample_weight))
        learned = enrolled(model, task, self._method(), self._settings())
        self.model_ = replace(model, tasks={**model.tasks, name: learned})
        return self

    def _new_task(self, name: Hashable, X: Any, sample_weight: Any) -> Task:
        shared, weights = self.model_.kernels, self.model_.weights
        if not isinstance(shared, TableKernels):
            _refuse_weights(sample_weight)
            stack = self._task_stack(name, X)
            check_names(stack.validate(stack.n, len(weights)), shared.names)
            return Task(GivenRows(_named(stack, shared.names)))
        size = _num_samples(X)
        if size < 3:
            raise ValueError(f"X: got {size} row(s) for the task {name!r}; expected at least 3.")
        table = read_table(self, X, reset=False)
        weight = read_weights(sample_weight, X)
        if weight is not None:
            table, weight = table[weight > 0], trust(weight[weight > 0], int((weight > 0).sum()))
        views = self.model_.views
        assert views is not None
        return Task(TableRows(table, self._recipe(views, [len(table)])), weight)

    def forget(self, group: Hashable) -> Self:
        """Remove a task; the shared weights stay."""
        check_is_fitted(self)
        name = read_task_labels([group], 1, self.model_.tasks)[0]
        if len(self.model_.tasks) == 1:
            raise ValueError(f"group: {name!r} is the only task; a model needs at least one.")
        rest = {other: task for other, task in self.model_.tasks.items() if other != name}
        self.model_ = replace(self.model_, tasks=rest)
        return self

    # -- scoring -----------------------------------------------------------------------------

    def score_samples(self, X: Any, groups: Any = None) -> Any:
        """Scores of rows by their own task, (m,) or a mapping as X is; higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or precomputed kernels (see the notes of the class)
        groups : array of shape (m,) or one label for all rows, optional
            The task that each row claims to belong to; may be left out where there is only one.
        """
        return self._by_task(X, groups, lambda task, cross: task.score(cross))

    def decision_function(self, X: Any, groups: Any = None) -> Any:
        """Score minus the threshold of the row's task: negative where a row is flagged."""
        return self._by_task(X, groups, lambda task, cross: task.score(cross) - task.threshold)

    def predict(self, X: Any, groups: Any = None) -> Any:
        """+1 for rows that are normal for their task, -1 for flagged ones."""
        values = self.decision_function(X, groups)
        if isinstance(values, Mapping):
            return {name: np.where(part >= 0, 1, -1) for name, part in values.items()}
        return match_container(np.where(as_numpy(values) >= 0, 1, -1), X)

    def contributions(self, X: Any, groups: Any = None) -> Any:
        """Contribution of each kernel to the projection of each row, of shape (m, J)."""
        return self._by_task(X, groups, lambda task, cross: task.rule.contributions(cross))

    @available_if(decides_by_evidence)  # type: ignore[untyped-decorator]
    def evidence(self, X: Any, groups: Any = None, *, by: str = "kernel") -> Any:
        """Evidence against each row by its task, in nats; see `MultiKernelFisherNull.evidence`."""
        return self._by_task(X, groups, lambda task, cross: task.evidence(cross, by))

    @available_if(decides_by_evidence)  # type: ignore[untyped-decorator]
    def rarity(self, X: Any, groups: Any = None) -> Any:
        """One in so many normal rows of its task is as unusual; at most 100 times these rows.

        Parameters
        ----------
        X : array of shape (m, d)
        groups : array of shape (m,) or label
            Task of each row.

        Returns
        -------
        array of shape (m,)
        """
        return self._by_task(
            X, groups, lambda task, cross: task.calibration.rarity(task.score(cross))
        )

    def p_values(self, X: Any, groups: Any = None) -> Any:
        """Conformal p-value of each row among the left-out scores of its task."""
        return self._by_task(
            X, groups, lambda task, cross: task.calibration.p_values(task.score(cross))
        )

    def detect(self, X: Any, fdr: float = 0.1, groups: Any = None) -> Any:
        """Flag rows of one batch, whatever their tasks; see `MultiKernelFisherNull.detect`."""
        values = self.p_values(X, groups)
        if not isinstance(values, Mapping):
            return match_container(discoveries(as_numpy(values), fdr), X)
        together = discoveries(np.concatenate(list(values.values())), fdr)
        ends = np.cumsum([len(part) for part in values.values()])[:-1]
        return dict(zip(values, np.split(together, ends), strict=True))

    def explain(self, X: Any, groups: Any = None) -> dict[Hashable, Explanation]:
        """Scores of rows, taken apart: the explanation of each task, its rows in their order."""
        return {
            name: explain_rows(task, cross, table, getattr(self, "feature_names_in_", None))
            for name, (task, cross, table, _) in self._rows_by_task(X, groups).items()
        }

    def _by_task(self, X: Any, groups: Any, call: Any) -> Any:
        """``call(task, cross)`` of each row, in the order of the rows."""
        asked = self._rows_by_task(X, groups)
        parts = {name: call(task, cross) for name, (task, cross, _, _) in asked.items()}
        if isinstance(X, Mapping) and not hasattr(X, "shape"):
            return parts
        if not parts:
            return match_container(np.empty(0), X)
        first = next(iter(parts.values()))
        out = np.empty((sum(len(part) for part in parts.values()), *first.shape[1:]))
        for name, part in parts.items():
            out[asked[name][3]] = part
        return match_container(out, X)

    def _rows_by_task(self, X: Any, groups: Any) -> dict[Hashable, Any]:
        """For each task: its model, kernels of its rows, these rows, and their places."""
        check_is_fitted(self)
        X, groups, tasks, dtype = as_numpy(X), as_numpy(groups), self.model_.tasks, self._dtype
        is_table = isinstance(self.model_.kernels, TableKernels)
        if isinstance(X, Mapping):
            if is_table or groups is not None:
                raise ValueError(
                    "X: a mapping of name -> kernels is for models of precomputed kernels, and "
                    "names its tasks itself (no groups)."
                )
            read_task_labels(list(X), len(X), tasks)
            crosses = {name: tasks[name].kernels.cross(K, dtype) for name, K in X.items()}
            return {name: (tasks[name], cross, None, None) for name, cross in crosses.items()}
        if is_table:
            source: Any = read_table(self, X, reset=False)
        else:
            source = X if isinstance(X, DenseStack) else DenseStack(np.asarray(X))
        rows = group_rows(read_task_labels(groups, len(source), tasks))
        out: dict[Hashable, Any] = {}
        for name, index in rows.items():
            part, task = source[index], tasks[name]
            out[name] = task, task.kernels.cross(part, dtype), part if is_table else None, index
        return out

    # -- what was learned ------------------------------------------------------------------------

    @property
    def tasks_(self) -> list[Hashable]:
        """Names of the tasks."""
        return list(self._tasks)

    @property
    def _tasks(self) -> Mapping[Hashable, Any]:
        check_is_fitted(self)
        return self.model_.tasks

    @property
    def weights_(self) -> Array:
        """The shared kernel weights, shape (J,)."""
        check_is_fitted(self)
        return self.model_.weights

    @property
    def coef_(self) -> dict[Hashable, Array]:
        """Coefficients of each task."""
        return {name: task.rule.coef for name, task in self._tasks.items()}

    @property
    def calibration_(self) -> dict[Hashable, Calibration]:
        """Left-out scores of each task."""
        return {name: task.calibration for name, task in self._tasks.items()}

    @property
    def threshold_(self) -> dict[Hashable, float]:
        """Score below which rows of a task are flagged."""
        return {name: task.threshold for name, task in self._tasks.items()}

    @property
    def offset_(self) -> Any:
        """The same; scikit-learn's number where there is but one task."""
        thresholds = self.threshold_
        return thresholds if len(thresholds) > 1 else next(iter(thresholds.values()))

    @property
    def false_alarm_rate_(self) -> dict[Hashable, float]:
        """The rate that each threshold stands for."""
        return {name: task.false_alarm_rate for name, task in self._tasks.items()}


def _refuse_weights(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")


def _named(stack: DenseStack, names: Sequence[str] | None) -> DenseStack:
    """The stack with the names that some task has; an error where it has others."""
    if names is None:
        return stack
    check_names(stack, names)
    return DenseStack(stack.kernels, stack.scale, stack.own_diagonal, tuple(names))
