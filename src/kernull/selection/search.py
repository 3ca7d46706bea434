"""Cross-validated choice of p, delta and width."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array, Indices, Mask
from kernull.errors import EdgeOfGridWarning, MissingCapabilityError
from kernull.estimators import MultiKernelFisherNull
from kernull.estimators.base import KernelEstimator
from kernull.estimators.parameters import documented, parameters
from kernull.models import GivenRows, TableRows
from kernull.paths.grids import DELTAS, PS, WIDTHS, read_deltas, read_norms, read_widths
from kernull.selection.criteria import read_scoring
from kernull.selection.folds import FoldTask, evaluate
from kernull.selection.results import best_index, edges, results_table
from kernull.selection.splitters import one_class_splits, read_labels
from kernull.stacks.given import read_precomputed

#: Parameters that models take as they are.
PASSED: tuple[str, ...] = ("kernels", "scaling", "normalize", "decision", "score_type")
PASSED += ("false_alarm_rate", "storage", "memory_limit", "dtype", "drop_constant")


def _of_best(name: str, text: str) -> Any:
    """A learned attribute of the chosen model."""
    return property(lambda search: getattr(search._best, name), doc=text)


@documented
@parameters
class MultiKernelFisherNullCV(KernelEstimator):
    r"""`MultiKernelFisherNull` with p, delta and width chosen by cross-validation.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a
       \qquad \text{over a grid of } (p, \delta, \text{width})

    All (p, delta) of one width and fold come from one shared subspace (`kernull.selection.path`),
    so that the grid costs a few fits; by evidence, p and delta change the weights alone. The
    defaults of `MultiKernelFisherNull` are in the grid; the paper's search is
    ``MultiKernelFisherNullCV(**PAPER_GRID, decision="sum", normalize="none")`` with
    `kernull.selection.PAPER_GRID`. Rows with y = -1 are outliers: they are validated on and never
    trained on. Without any, a criterion that needs targets only takes their place.

    Parameters
    ----------
    {kernels, views, scaling, normalize, decision, score_type, false_alarm_rate}
    {storage, memory_limit, dtype, drop_constant}
    ps : sequence of float in [1, inf]
        Norms to try; (1, 1.25, 1.5, 2, 4) by default.
    deltas : sequence of float > 0
        Ridges relative to n to try; (0.001, 0.01, 0.1) by default.
    widths : sequence of float > 0, or "auto" among them
        Width factors to try, one at a time for all views; ("auto", 0.25, 0.5, 1) by default.
        Ignored for precomputed kernels.
    cv : None, int, splitter, iterable or "loo", default=None
        Folds, as in scikit-learn; None stands for 5. A number gives `OneClassKFold`. Outliers are
        taken out of every training part. ``"loo"``: one path on all targets, judged by
        closed-form leave-one-out scores at fixed weights; fewer fits, for dense kernels.
    scoring : None, str or callable, default=None
        With outliers: ``"auc"`` (the default), ``"acer"`` (at equal error). Without:
        ``"shift"`` (self-adaptive data shifting; the default), ``"box"`` and ``"sphere"`` (uniform
        pseudo-outliers by Tax and Duin), ``"mixed"`` (columns permuted, rows jittered, pairs
        extrapolated), the mean of several such as ``"shift+box"``, or
        ``"consistency"`` (target rejection by Tax and Müller). Or any scorer of scikit-learn,
        which is slower.
    tol : float, default=1e-4
        Certified relative gap of every model of the grid.
    refit_tol : float, default=1e-6
        That of the final model.
    n_jobs : int, optional
        Processes for the pairs of width and fold, as in joblib.
    random_state : int, RandomState or None, default=0
        Seed of the folds and pseudo-outliers.
    verbose : int, default=0
        1 shows a progress bar.
    model_params : dict, optional
        Further parameters of `MultiKernelFisherNull`.

    Attributes
    ----------
    best_estimator_ : MultiKernelFisherNull
        The chosen model, fitted to all targets.
    best_params_ : dict
        Its ``p``, ``delta`` and ``widths``.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays
        One row per model, as in ``GridSearchCV``; ``pandas.DataFrame(cv_results_)`` is a table. The
        column ``max_gap`` holds the largest certified gap over the folds.
    scores_ : array of shape (widths, ps, deltas)
        Mean scores as a grid.
    ps_, deltas_, widths_ : tuple
        The grid, in increasing order, with the automatic width first.
    scoring_ : str
        Name of the criterion used.
    n_splits_ : int
        Number of folds.
    weights_, coef_, gap_, threshold_, offset_, kernel_names_
        Those of ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, label = load_wine(return_X_y=True)
    >>> y = (label == 0) * 2 - 1  # +1 for the first wine, -1 for the others
    >>> search = MultiKernelFisherNullCV(
    ...     views="features", ps=[1, 2, 4, 8], deltas=[1e-2, 1e-1, 1.0], widths=[0.25]
    ... ).fit(X, y)
    >>> sorted(search.best_params_)
    ['delta', 'p', 'widths']
    >>> search.best_score_ > 0.95
    True
    >>> len(search.coef_) == (y == 1).sum()  # trained on the targets alone
    np.True_
    """

    ps: Any = PS
    deltas: Any = DELTAS
    widths: Any = WIDTHS
    cv: Any = None
    scoring: Any = None
    normalize: Any = "offdiagonal"
    decision: str = "evidence"
    tol: float = 1e-4
    refit_tol: float = 1e-6
    score_type: str = "projection"
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0
    model_params: dict[str, Any] | None = None

    # -- choosing ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose p, delta and width, then fit the chosen model to all targets.

        Parameters
        ----------
        X : table of shape (n, d), or kernels of shape (J, n, n)
            Targets, and outliers where y says so.
        y : array of shape (n,), optional
            +1 for targets, -1 for outliers, which models are judged by and never learn from (other
            estimators ignore y); None when all rows are targets.
        """
        self.ps_, self.deltas_ = read_norms(self.ps), read_deltas(self.deltas)
        self.widths_ = (np.nan,) if self._pairwise else read_widths(self.widths)
        model = self._model(self.widths_[0], self.views)
        model.learning_method()  # refused now, if ever
        rows = self._rows(X)
        labels = read_labels(y, rows.n)
        self.scoring_, criterion = read_scoring(self.scoring, has_outliers=bool((labels < 0).any()))
        if criterion.needs_table and self._pairwise:
            raise ValueError(
                f"scoring={self.scoring_!r} draws pseudo-outliers in the table of features, which "
                "precomputed kernels do not have; use scoring='consistency' with decision='sum', "
                "or give outliers."
            )
        if self.scoring_ == "consistency" and model.decision == "evidence":
            raise MissingCapabilityError(
                "scoring: 'consistency' compares rows held out with rows trained on, which find "
                "themselves at distance zero by evidence; use decision='sum' or another scoring."
            )
        splits = self._splits(labels, criterion.needs_outliers)
        self.n_splits_ = len(splits)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(splits))
        views = rows.views if isinstance(rows, TableRows) else None  # by position, as folds are cut
        grid = (self.ps_, self.deltas_, self.tol, self._leave_one_out, self.n_features_in_)
        tasks = [
            FoldTask(self._model(width, views), train, test, labels, int(seed), *grid)
            for width in self.widths_
            for (train, test), seed in zip(splits, seeds, strict=True)
        ]
        folds, gaps = zip(*self._run(tasks, rows, criterion), strict=True)
        shape = (len(self.widths_), len(splits), len(self.ps_), len(self.deltas_))
        by_width = [folds[i * len(splits) : (i + 1) * len(splits)] for i in range(shape[0])]
        scores = np.stack([criterion.finish(list(part)) for part in by_width], axis=1)
        self._set_results(scores, np.stack(gaps).reshape(shape).max(axis=1))
        best = self._model(self.best_params_["widths"], self.views, refit=True)
        self.target_rows_, self.n_rows_ = np.flatnonzero(labels == 1), len(labels)
        named = isinstance(rows, TableRows) and hasattr(X, "columns")
        targets = rows.against(self.target_rows_, self.target_rows_)
        self.best_estimator_ = best.fit(_safe_indexing(X, self.target_rows_) if named else targets)
        return self

    def _set_results(self, scores: Array, gaps: Array) -> None:
        """Table, grid and choice from scores of shape (folds, widths, ps, deltas)."""
        self.scores_ = scores.mean(axis=0)
        index = best_index(self.scores_)
        grid = list(product(self.widths_, self.ps_, self.deltas_))
        self.cv_results_ = results_table(grid, scores, gaps)
        self.best_index_ = int(np.ravel_multi_index(index, self.scores_.shape))
        self.best_score_ = float(self.scores_[index])
        width, p, delta = grid[self.best_index_]
        self.best_params_ = {"p": p, "delta": delta, "widths": width}
        numbers = [w for w in self.widths_ if not isinstance(w, str)]
        axes = {"delta": (delta, self.deltas_), "width": (width, numbers), "p": (p, self.ps_)}
        for axis in edges(self.scores_, index, self.widths_, self.ps_):
            chosen, values = axes[axis]
            warnings.warn(
                f"the best {axis} = {chosen:g} lies on the edge of its grid "
                f"({values[0]:g} to {values[-1]:g}); a better one may lie beyond: extend the grid.",
                EdgeOfGridWarning,
                stacklevel=3,
            )

    def _splits(self, labels: Indices, need_outliers: bool) -> list[tuple[Indices, Indices]]:
        if self._leave_one_out:
            targets, outliers = np.flatnonzero(labels == 1), np.flatnonzero(labels == -1)
            if len(targets) < 2:
                raise ValueError(f"X: got {len(targets)} target(s); expected at least 2.")
            return [(targets, outliers)]
        return one_class_splits(
            self.cv, labels, need_outliers=need_outliers, random_state=self.random_state
        )

    def _run(
        self, tasks: list[FoldTask], rows: TableRows | GivenRows, criterion: Any
    ) -> Iterator[Any]:
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results = parallel(delayed(evaluate)(task, rows, criterion) for task in tasks)
        if not self.verbose:
            return iter(results)
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        return iter(track(results, "choosing p, delta, width", len(tasks), console=console))

    def _model(self, width: Any, views: Any, *, refit: bool = False) -> MultiKernelFisherNull:
        params: dict[str, Any] = {name: getattr(self, name) for name in PASSED} | {"views": views}
        if isinstance(width, str) or not np.isnan(width):
            params["widths"] = width
        model = MultiKernelFisherNull(**params)
        if self.model_params:
            model.set_params(**self.model_params)
        if refit:
            chosen = self.best_params_
            model.set_params(p=chosen["p"], delta=chosen["delta"], tol=self.refit_tol)
        return model

    # -- the chosen model --------------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """Score rows by the chosen model; higher is more normal.

        Precomputed kernels are those against all rows given to ``fit``, of shape (J, m, n).
        """
        return self._best.score_samples(self._reach(X))

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold of the chosen model."""
        return self._best.decision_function(self._reach(X))

    def predict(self, X: Any) -> Array:
        """+1 for normal rows, -1 for flagged ones, by the chosen model."""
        return self._best.predict(self._reach(X))

    def p_values(self, X: Any, **options: Any) -> Array:
        """P-values of the best model; see `MultiKernelFisherNull.p_values`."""
        return self._best.p_values(self._reach(X), **options)

    def detect(self, X: Any, fdr: float = 0.1, **options: Any) -> Mask:
        """Rows that the best model flags together; see `MultiKernelFisherNull.detect`."""
        return self._best.detect(self._reach(X), fdr, **options)

    def explain(self, X: Any, **options: Any) -> Any:
        """Scores of the best model, taken apart; see `MultiKernelFisherNull.explain`."""
        return self._best.explain(self._reach(X), **options)

    def contributions(self, X: Any) -> Array:
        """Contribution of each kernel to the projection of each row by the chosen model."""
        return self._best.contributions(self._reach(X))

    @property
    def _best(self) -> MultiKernelFisherNull:
        check_is_fitted(self)
        return self.best_estimator_

    def _reach(self, X: Any) -> Any:
        """Kernels against the rows that were trained on, out of those against all rows."""
        check_is_fitted(self)
        if not self._pairwise or len(self.target_rows_) == self.n_rows_:
            return X
        stack = read_precomputed(X, n=self.n_rows_, J=len(self.weights_))
        return stack.columns(self.target_rows_)

    weights_ = _of_best("weights_", "Kernel weights of the chosen model.")
    coef_ = _of_best("coef_", "Coefficients of the targets in the chosen model.")
    gap_ = _of_best("gap_", "Certified gap of the chosen model.")
    threshold_ = _of_best("threshold_", "Threshold of the chosen model.")
    offset_ = _of_best("offset_", "Threshold of the chosen model.")
    kernel_names_ = _of_best("kernel_names_", "Names of the kernels.")

    @property
    def _leave_one_out(self) -> bool:
        if isinstance(self.cv, str) and self.cv != "loo":
            raise ValueError(
                f"cv: got {self.cv!r}; expected 'loo', a number of folds, a splitter, or splits."
            )
        return isinstance(self.cv, str)
