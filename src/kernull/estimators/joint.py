"""Joint one-class learning of related tasks that share their kernel weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernull._containers import as_numpy, match_container
from kernull._fields import stored
from kernull._typing import Array, Indices
from kernull.detector import (
    KernelModel,
    PrecomputedRows,
    Settings,
    Split,
    TableKernels,
    TableRows,
)
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
from kernull.estimators.fisher import FisherParameters, MultiKernelFisherNull
from kernull.estimators.inputs import check_labels, read_rows, read_weights, rollback_on_error
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

    One task per person, a machine, a camera: each has its rows, coefficients and threshold;
    which views matter is learned from all of them together. Each decides by the evidence of its
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
    offset_ : dict of name -> float, or float
        Score below which rows of a task are flagged; the number itself where there is one task, as
        in scikit-learn.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``JointMultiKernelFisherNull(**kernull.PAPER)`` is the paper's setting: joint lp MK-FN as
    printed, with Algorithm 2. Its delta is relative to the rows of each task, where the paper has
    one for all; with tasks of equal size that is the same.

    Methods take ``groups``, the task of each row. `fit`, `predict` and `decision_function`
    request it from scikit-learn's metadata routing by default. Tasks are solved side by side
    within ``joblib.parallel_config(n_jobs=4)``. What one task has learned, its reasons and rarities
    are those of the estimator that `task` gives.

    With ``kernels="precomputed"``, `fit` takes a mapping of name -> kernels (J, n_c, n_c), and
    scoring one of name -> (J, m, n_c), which gives a mapping of scores; there are no ``groups``.

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
    >>> model.task(2).rarity(X).shape  # one task as an estimator
    (178,)

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
        self._fit_tasks(X, sample_weight, groups)
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
                table = read_rows(self, as_numpy(X), reset=False)
                out[new] = self.predict(table[new], groups=name)
        return out

    def _fit_tasks(
        self, X: Any, sample_weight: Any = None, groups: Any = None
    ) -> tuple[dict[Hashable, Indices], dict[Hashable, Array]]:
        """Fit; the rows of each task, and the scores of those that were learned from."""
        with rollback_on_error(self):
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
        table = read_rows(self, X, reset=True)
        weight = read_weights(sample_weight, X)
        rows = group_rows(read_task_labels(groups, len(table)))
        kept = rows if weight is None else {c: i[weight[i] > 0] for c, i in rows.items()}
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
        if not isinstance(X, Mapping) or groups is not None:
            raise ValueError(
                f"X: got {type(X).__name__}, groups {'missing' if groups is None else 'passed'}; "
                "precomputed kernels of tasks come as a mapping of name -> kernels (J, n, n), "
                "without groups."
            )
        stacks = {name: self._task_stack(name, K) for name, K in X.items()}
        if not stacks:
            raise ValueError("X: got an empty mapping; expected kernels of at least one task.")
        rows = group_rows([name for name, stack in stacks.items() for _ in range(stack.n)])
        names = next((stack.names for stack in stacks.values() if stack.names is not None), None)
        return {name: Task(PrecomputedRows(_named(K, names))) for name, K in stacks.items()}, rows

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

        Scaling and widths are those of its rows; delta is relative to these.

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
            return Task(PrecomputedRows(_named(stack, shared.names)))
        size = _num_samples(X)
        if size < 3:
            raise ValueError(f"X: got {size} row(s) for the task {name!r}; expected at least 3.")
        table = read_rows(self, X, reset=False)
        weight = read_weights(sample_weight, X)
        if weight is not None:
            table, weight = table[weight > 0], weight[weight > 0]
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

    def task(self, group: Hashable = None) -> MultiKernelFisherNull:
        """One task by itself: an estimator with its rows, coefficients and threshold.

        It has all that this one lacks, such as `explain`, `evidence`, `rarity`, `detect`,
        ``missing_views`` and ``threshold_``.

        Parameters
        ----------
        group : hashable, optional
            Name of the task; may be left out where there is only one.

        Returns
        -------
        MultiKernelFisherNull
            Fitted, with the shared weights.
        """
        check_is_fitted(self)
        name = read_task_labels(None if group is None else [group], 1, self.model_.tasks)[0]
        alone = MultiKernelFisherNull(**self.get_params(deep=False))
        for attribute, value in vars(self).items():
            if attribute.endswith("in_"):
                setattr(alone, attribute, value)
        alone.model_ = self.model_.tasks[name]
        return alone

    def score_samples(self, X: Any, groups: Any = None) -> Any:
        """Scores of rows by their task, (m,) or a mapping as X is; higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or mapping of name -> kernels of shape (J, m, n_c)
        groups : array of shape (m,) or one label for all rows, optional
            The task that each row claims to belong to; may be left out where there is only one.
        """
        return self._by_task(X, groups, lambda task, scores: scores)

    def decision_function(self, X: Any, groups: Any = None) -> Any:
        """Score minus the threshold of the row's task: negative where a row is flagged."""
        return self._by_task(X, groups, lambda task, scores: scores - task.threshold)

    def predict(self, X: Any, groups: Any = None) -> Any:
        """+1 for rows that are normal for their task, -1 for flagged ones."""
        return self._by_task(
            X, groups, lambda task, scores: np.where(scores >= task.threshold, 1, -1), int
        )

    def p_values(self, X: Any, groups: Any = None) -> Any:
        """Conformal p-value of each row among the left-out scores of its task."""
        return self._by_task(X, groups, lambda task, scores: task.calibration.p_values(scores))

    def _by_task(self, X: Any, groups: Any, call: Any, dtype: Any = float) -> Any:
        """``call(task, scores)`` of each row, in the order of the rows."""
        check_is_fitted(self)
        source, groups, tasks = as_numpy(X), as_numpy(groups), self.model_.tasks
        if not isinstance(self.model_.kernels, TableKernels):
            if not isinstance(source, Mapping) or groups is not None:
                raise ValueError(
                    "X: kernels of rows come as a mapping of name -> kernels (J, m, n), without "
                    "groups; score those of one task by task(name)."
                )
            read_task_labels(list(source), len(source), tasks)
            return {name: self._of_task(tasks[name], K, call) for name, K in source.items()}
        table = read_rows(self, source, reset=False)
        out = np.empty(len(table), dtype)
        for name, rows in group_rows(read_task_labels(groups, len(table), tasks)).items():
            out[rows] = self._of_task(tasks[name], table[rows], call)
        return match_container(out, X)

    def _of_task(self, task: KernelModel, X: Any, call: Any) -> Array:
        return call(task, task.score(task.kernels.cross(X, self._dtype)))  # type: ignore[no-any-return]

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
    def p_(self) -> float | None:
        """The norm of the weights."""
        return self.task(self.tasks_[0]).p_

    @property
    def offset_(self) -> Any:
        """Threshold of each task; scikit-learn's number where there is but one."""
        offsets = {name: task.threshold for name, task in self._tasks.items()}
        return offsets if len(offsets) > 1 else next(iter(offsets.values()))


def _refuse_weights(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight: not supported with precomputed kernels of tasks.")


def _named(stack: DenseStack, names: Sequence[str] | None) -> DenseStack:
    """The stack with the names that some task has; an error where it has others."""
    if names is None:
        return stack
    check_names(stack, names)
    return DenseStack(stack.kernels, stack.scale, stack.own_diagonal, tuple(names))
