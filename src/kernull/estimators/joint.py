"""Joint one-class learning of related tasks that share their kernel weights."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernull._containers import as_numpy, host, match_container
from kernull._fields import stored
from kernull._typing import Array, Indices
from kernull.detector import Settings
from kernull.detector.calibration import Cross, discoveries
from kernull.detector.fisher import FisherMethod
from kernull.detector.joint import JointModel, enrolled, learn_tasks, read_task_labels
from kernull.estimators.base import KernelEstimator
from kernull.estimators.inputs import (
    by_evidence,
    check_labels,
    read_decision,
    read_dtype,
    read_method,
    read_table,
    read_weights,
    rollback_on_error,
)
from kernull.estimators.parameters import (
    FisherParameters,
    Learned,
    LearnedByTask,
    documented,
    parameters,
)
from kernull.estimators.tasks import (
    read_given_tasks,
    read_new_task,
    read_table_tasks,
    tasks_asked,
)
from kernull.explain.explanation import Explanation, explain_rows
from kernull.operators import parse_memory_limit
from kernull.operators.normalise import read_normalisation


@stored
@documented
@parameters
class JointMultiKernelFisherNull(FisherParameters, KernelEstimator):
    r"""Related one-class tasks that share kernel weights (the paper's joint lp MK-FN).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \sum_c \max_{a_c} \;
       2 a_c'1 - \delta n_c\, a_c'a_c - a_c' \Big(\sum_j b_j K^c_j\Big) a_c

    One task per person, a machine, a camera: each has its own rows, coefficients and threshold;
    which views matter is learned from all of them together. Each decides by the evidence of its own
    rows; ``delta`` is relative to them. A new task enrols by one linear solve.

    Parameters
    ----------
    {kernels, views, scaling, widths, normalize, p, r, kernel_groups, delta, solver, tol, max_iter}
    {decision, score_type, false_alarm_rate}
    storage : {"auto", "dense"}, default="auto"
        Kernels of all tasks are stored.
    {memory_limit, dtype, drop_constant}
    n_jobs : int, optional
        Threads that solve tasks side by side; None: one after the other, -1: all cores.

    Attributes
    ----------
    {weights_, n_iter_, history_, solver_, kernel_names_}
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
        Leave-one-out scores of each task.
    gap_ : float
        Relative duality gap of the weights for the joint problem.

    Notes
    -----
    ``JointMultiKernelFisherNull(**kernull.PAPER)`` is the paper's setting: joint lp MK-FN as
    printed, with Algorithm 2. Its delta is relative to the rows of each task, where the paper has
    one for all; with tasks of equal size that is the same.

    Methods take ``groups``, the task of each row. `fit`, `predict` and `decision_function`
    request it from scikit-learn's metadata routing without being told.

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

    n_jobs: int | None = None

    model_: JointModel = field(init=False)

    weights_ = Learned("weights")
    coef_ = LearnedByTask("rule.coef")
    calibration_ = LearnedByTask("calibration")
    threshold_ = LearnedByTask("threshold")
    false_alarm_rate_ = LearnedByTask("false_alarm_rate")

    # Rows are nothing without their task: ask meta-estimators for it by default.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__decision_function: ClassVar[dict[str, bool]] = {"groups": True}

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn the shared weights and every task.

        Parameters
        ----------
        X : table of shape (n, d), or precomputed kernels (see the notes of the class)
            Training rows of all tasks, all taken to be normal for their task.
        y : ignored
            Rows with ``y = -1`` are learned from like all others: pass ``X[y == 1]``.
        sample_weight : array of shape (n,), optional
            Trust in each row, as in `MultiKernelFisherNull`.
        groups : array of shape (n,), optional
            The task of each row; None: one task.
        """
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
                table = read_table(self, as_numpy(X), reset=False)
                out[new] = self.predict(table[new], groups=name)
        return out

    def _fit_tasks(
        self, X: Any, sample_weight: Any = None, groups: Any = None
    ) -> tuple[dict[Hashable, Indices], dict[Hashable, Array]]:
        """Fit; the rows of each task, and the scores of those that were learned from."""
        with rollback_on_error(self):
            method, settings, views = self.learning_method(), self._settings(), None
            if self._pairwise:
                tasks, rows = read_given_tasks(self, host(X), sample_weight, as_numpy(groups))
            else:
                tasks, rows, views = read_table_tasks(
                    self, host(X), as_numpy(sample_weight), as_numpy(groups)
                )
            self.model_, scores = learn_tasks(
                tasks, method, settings, views=views, n_jobs=self.n_jobs
            )
        return rows, scores

    def _settings(self) -> Settings:
        """The parameters that all methods share, checked."""
        read_normalisation(self.normalize)
        return Settings(
            calibrator=Cross(),
            false_alarm_rate=self.false_alarm_rate,
            memory_limit=parse_memory_limit(self.memory_limit),
            decision=read_decision(self),
            normalize=self.normalize,
            dtype=read_dtype(self.dtype),
        )

    def learning_method(self) -> FisherMethod:
        """The method with its parameters, checked."""
        if self.storage not in ("auto", "dense"):
            raise ValueError(f"storage: got {self.storage!r}; expected 'auto' or 'dense'.")
        return read_method(self)

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
            Trust in each row; for tables.
        """
        check_is_fitted(self)
        model, name = self.model_, read_task_labels([group], 1)[0]
        if name in model.tasks:
            raise ValueError(
                f"group: the model already has a task {name!r}; forget({name!r}) first, or choose "
                "another name."
            )
        method, settings = self.learning_method(), self._settings()
        task = read_new_task(self, name, as_numpy(X), as_numpy(sample_weight))
        learned = enrolled(model, task, method, settings)
        self.model_ = replace(model, tasks={**model.tasks, name: learned})
        return self

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

    @available_if(by_evidence)  # type: ignore[untyped-decorator]
    def evidence(self, X: Any, groups: Any = None, *, by: str = "kernel") -> Any:
        """Evidence against each row by its task, in nats; see `MultiKernelFisherNull.evidence`."""
        return self._by_task(X, groups, lambda task, cross: task.evidence(cross, by))

    @available_if(by_evidence)  # type: ignore[untyped-decorator]
    def rarity(self, X: Any, groups: Any = None) -> Any:
        """One in so many normal rows of its task is as unusual; at most 100 times these rows."""
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
            for name, (task, cross, table, _) in tasks_asked(self, X, groups).items()
        }

    def _by_task(self, X: Any, groups: Any, call: Any) -> Any:
        """What ``call(task, cross)`` gives for each row, in the order of the rows."""
        asked = tasks_asked(self, X, groups)
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

    # -- what was learned ------------------------------------------------------------------------

    @property
    def tasks_(self) -> list[Hashable]:
        """Names of the tasks."""
        return list(self._fitted_model.tasks)

    @property
    def offset_(self) -> Any:
        """The same; scikit-learn's number where there is but one task."""
        found = self.threshold_
        return found if len(found) > 1 else next(iter(found.values()))
