"""lp-norm multiple kernel one-class Fisher null-space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernull._containers import frame_library, match_container, row_names
from kernull._fields import stored
from kernull._typing import Array
from kernull.detector import Evidence, Fitted, Settings, Sum, TableKernels, TableRows, view_names
from kernull.detector.cautions import warn_of_suspects
from kernull.detector.contamination import WIDE, learn_contaminated
from kernull.detector.fisher import FisherMethod
from kernull.errors import MissingCapabilityError
from kernull.estimators.base import Certified, OneClassKernelEstimator
from kernull.estimators.inputs import check_labels, check_number
from kernull.explain.explanation import Explanation, explain_rows
from kernull.mkl.balls import is_ball
from kernull.mkl.solvers import Solver

#: The paper's setting: ``MultiKernelFisherNull(**kernull.PAPER)``, and the same for
#: `JointMultiKernelFisherNull`; another p is ``**kernull.PAPER | {"p": 4}``. The paper chooses p,
#: delta and width on a validation set (`kernull.paper.choose`); these stand in its grids' middle.
PAPER: dict[str, Any] = {
    "decision": "sum", "kernels": "rbf", "scaling": "standard", "widths": 0.5, "normalize": "none",
    "p": 2.0, "delta": 1e-3, "solver": "paper",
}  # fmt: skip
#: The norm of the weights of a sum under ``p="auto"``; docs/explanations/defaults.md has what it
#: was compared with.
SUM_P = 1.5


def _decides_by_evidence(estimator: Any) -> bool:
    """Whether the model decides, or once fitted will decide, by evidence."""
    model = vars(estimator).get("model_")
    if model is None:
        return estimator.decision == "evidence" or isinstance(estimator.decision, Evidence)
    if estimator.contamination is not None and not model.decides_by_evidence:
        raise AttributeError("with contamination, the sum of the kernels decides: no evidence.")
    return bool(model.decides_by_evidence)


def _has_reasons(estimator: Any) -> bool:
    """Whether the fitted model, which a file may lack parts of, has what is usual by kernel."""
    model = vars(estimator).get("model_")
    return model is None or bool(model.can_explain)


class FisherParameters(Certified):
    """The parameters of lp MK-FN, of one task or of several."""

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "auto",
        widths: Any = "auto",
        normalize: Any = "offdiagonal",
        p: Any = "auto",
        delta: float = 0.01,
        solver: Any = "auto",
        decision: Any = "evidence",
        false_alarm_rate: float = 0.05,
        calibration: Any = "cross",
        contamination: float | None = None,
        storage: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.normalize = normalize
        self.p = p
        self.delta = delta
        self.solver = solver
        self.decision = decision
        self.contamination = contamination
        self.storage = storage

    def _method(self) -> FisherMethod:
        """How weights are learned, from checked parameters."""
        p, decision = self.p, self.decision
        automatic = isinstance(p, str) and p == "auto"
        is_number = isinstance(p, int | float | np.number) and not isinstance(p, bool)
        if not (automatic or is_number or is_ball(p)):
            raise ValueError(f"p: got {p!r}; expected a number of at least 1, a ball, or 'auto'.")
        by_sum = isinstance(decision, Sum) or decision == "sum"
        solver = Solver(self.solver) if isinstance(self.solver, str) else self.solver
        if not isinstance(solver, Solver) and not callable(getattr(solver, "solve", None)):
            solver = Solver(solver)  # says what is expected, when the problem is known
        return FisherMethod(
            p=SUM_P if automatic and by_sum else p,
            delta=check_number("delta", self.delta, "a positive number (relative to n)", 0.0),
            solver=solver,
            score_type=decision.score if isinstance(decision, Sum) else "projection",
        )


@stored
class MultiKernelFisherNull(FisherParameters, OneClassKernelEstimator):
    r"""One-class learning from several views with learned kernel weights (lp MK-FN).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    The model projects rows by :math:`y(x) = \sum_j b_j k_j(x)'a`: training rows land near 1, what
    is unlike them near 0. Each fit reports its relative duality gap: how far its weights can be
    from optimal at most.

    Parameters
    ----------
    kernels : str, kernel, callable, list or mapping of these, or "precomputed", default="rbf"
        ``"rbf"``, ``"laplacian"``, ``"linear"``, ``"polynomial"``, ``"cosine"``, a function
        f(X, Y) -> (len(X), len(Y)), an object with ``fit`` and ``__call__``, or a list: each view
        gets each of them. A mapping has any of these by view. With ``"precomputed"``, `fit` takes
        kernels of shape (J, n, n) and scoring (J, m, n).
    views : None, "features" or mapping of name -> columns, default=None
        Groups of columns that describe one aspect each. None: one view of all columns;
        ``"features"``: one view per column; a mapping gives columns by position, name or slice.
    scaling : str, transformer, list of these, mapping of view -> these, or "auto", default="auto"
        Scaling of each view by its training rows: ``"standard"``, ``"whiten"``, ``"whiten-raw"``
        (not standardised first, for a network's activations), ``"quantile"``, ``"none"``, or a
        scikit-learn transformer such as ``PCA(50)``. Several give several kernels per view;
        ``"auto"`` is ``("whiten", "quantile")``. A mapping scales views by name; views that it does
        not name get ``"auto"``.
    widths : float, sequence of float or "auto", default="auto"
        Width of rbf and laplacian kernels as a factor of the view's mean pairwise distance;
        several give several kernels per view. ``"auto"``: the median distance to the nearest
        neighbour, by view and scaling.
    normalize : {"none", "offdiagonal"} or float in [0, 1], default="offdiagonal"
        Power of the mean off-diagonal entry that each kernel is divided by: 0 is ``"none"``, 1 is
        ``"offdiagonal"``, with which weights do not drift to the widest kernel.
    p : float in [1, inf], ball or "auto", default="auto"
        Norm of the kernel weights: 1 is sparse, inf is uniform. ``MixedBall(p, r)`` has the norm p
        between views and r within one. ``"auto"``: ``MixedBall(4, 1.5)``; 1.5 for ``"sum"``.
    delta : float, default=0.01
        Ridge relative to the number of rows, > 0. Larger is smoother.
    solver : str, Solver, or object with a method ``solve(run)``, default="auto"
        ``"auto"``, ``"newton"``, ``"subspace"``, ``"paper"``, ``"kloft"``, ``"frank-wolfe"``,
        ``"gradient"`` or ``"paper-cvx"``; `kernull.Solver` has a tolerance too, as
        ``Solver("newton", tol=1e-8, max_iter=50)``.
    decision : {"evidence", "sum"}, Evidence or Sum, default="evidence"
        ``"evidence"``: each view is calibrated by itself, and its evidence against a row, in nats,
        is combined with the learned weights (`kernull.Evidence`). ``"sum"``: the paper's
        projection, a sum over kernels (`kernull.Sum`).
    false_alarm_rate : float, default=0.05
        Share of normal rows that may be flagged. The threshold comes from the scores of
        calibration rows, never from training scores.
    calibration : {"cross", "split"}, Cross or Split, default="cross"
        Scores that give the threshold. ``"cross"``: of all rows, each by a model fitted without its
        fold (`kernull.Cross`). ``"split"``: of rows held out (`kernull.Split`); the rate then holds
        in any finite sample, as does the bound of `detect`, at the price of learning from fewer
        rows.
    contamination : float in (0, 0.5], optional
        Share of the training rows that may be outliers; None (the default): all are normal. As many
        rows, those with the lowest left-out scores, lose their weight in a second fit. Both decide
        by the sum, with wide kernels and a large ridge, which outliers cannot bend to themselves
        (``kernull.detector.contamination.WIDE``, in place of arguments left at their defaults). On
        clean rows a model without it is better: with 0.1, from 4.5% of new normal rows (Gaussian)
        to 13% (breast cancer) were flagged at 5%.
    storage : str, Storage or callable, default="auto"
        How kernels are kept: ``"dense"``; ``"tiled"``, evaluated on the fly; ``"nystroem"``,
        approximated from landmark rows; ``"dask"``, by the workers of a cluster. ``"auto"`` learns
        weights from at most 4,000 rows where it decides by evidence, and is the first that fits
        memory and time elsewhere; it warns before it approximates. `kernull.Storage` has a memory
        limit, a type and the number of landmarks too.
    random_state : int, RandomState or None, default=0
        Seed of the folds, or of the draw of the rows held out. Both are drawn from the content of
        each row in the order of its columns, not from its position: permuting rows changes nothing
        else, while columns in another order change scores as another seed does.

    Attributes
    ----------
    weights_ : array of shape (J,)
        Kernel weights b.
    coef_ : array of shape (n,)
        Coefficients a of the training rows of positive weight. Under ``storage="nystroem"``, of
        shape (J, landmarks): those of the landmark rows, by kernel.
    p_ : float
        The norm of the weights.
    ridge_ : float
        The absolute ridge, delta times the number of rows.
    scale_ : array of shape (J,)
        The factor of each kernel: that of ``normalize``, times that of kernels given with one.
    gap_ : float
        Relative duality gap of the weights, in [0, 1].
    n_iter_ : int
        Iterations of the solver.
    history_ : tuple of Record
        Value, gap and change of the coefficients by iteration.
    solver_ : str
        The solver that was used.
    threshold_, offset_ : float
        Score below which rows are flagged.
    false_alarm_rate_ : float
        The rate that the threshold stands for (above ``false_alarm_rate`` only where there are
        too few rows for it).
    calibration_ : Calibration
        The calibration scores, sorted.
    kernel_names_ : array of shape (J,)
        Names of the kernels.
    kernel_set_ : KernelSet or None
        Views with their scaling, widths and training rows; None for given kernels.
    scaling_, widths_ : dict of str to list
        The scalings of each view, and the width factors of its kernels (tables only).
    suspects_ : array
        Positions of the training rows that stand apart from all others (of tables); with
        ``contamination``, of those that lost their weight. Files do not keep it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``"auto"`` is a rule, not a search: it looks at the training rows alone, costs no extra fit and
    gives the same for the same rows. The guide's page on defaults says what it was compared with.

    ``MultiKernelFisherNull(**kernull.PAPER)`` is the paper's setting: lp MK-FN as printed, with
    Algorithm 1. ``**kernull.PAPER | {"p": 4}`` is the same with another norm. It needs ``views``,
    or several kernels: of one kernel there is nothing to weigh, and a fit warns of that.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> views = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}
    >>> model = MultiKernelFisherNull(views=views).fit(X[y == 0])
    >>> bool(model.gap_ <= 1e-6)
    True
    >>> model.weights_.shape  # three views, each whitened and by ranks
    (6,)
    >>> bool((model.predict(X[y == 2]) == -1).all())
    True

    The paper's setting with p = 4, one kernel a column:

    >>> from kernull import PAPER
    >>> model = MultiKernelFisherNull(**PAPER | {"p": 4}, views="features").fit(X[y == 0])
    >>> model.p_, model.solver_, model.weights_.shape
    (4.0, 'paper', (13,))
    """

    _matrix_free = True

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        client: Any = None,
    ) -> Self:
        """Learn what normal looks like.

        Parameters
        ----------
        X : table of shape (n, d), or kernels of shape (J, n, n)
            Training rows, all taken to be normal; a stack of kernels when
            ``kernels="precomputed"``. Torch tensors on a GPU are solved on that GPU.
        y : ignored
            For scikit-learn's pipelines. Rows with ``y = -1`` are learned from like all others,
            with a warning: pass ``X[y == 1]``.
        sample_weight : array of shape (n,), optional
            Weight of each row, against the others: only ratios matter. A row of less weight may be
            missed by the model and counts less in ranks; rows of weight zero take no part.
        groups : array of shape (n,), optional
            Label of each row's group: rows of one group are left out, or held out, together. For
            rows that are near copies of each other, such as readings of one sensor that follow
            closely, or pictures of one thing.
        client : dask.distributed.Client, optional
            The cluster of ``storage="dask"``; the active client by default.

        Notes
        -----
        The logger ``kernull`` gets each iteration of the solver at level INFO.
        """
        if y is not None:
            check_labels(X, y, stacklevel=2)
        self._fit(X, sample_weight, groups, client)
        return self

    def _learn(
        self, rows: Any, weight: Any, settings: Settings, groups: Any, client: Any
    ) -> Fitted:
        """Learn; of unclean rows again without those that stand out, with `WIDE` for defaults."""
        if self.contamination is None:
            fitted = super()._learn(rows, weight, settings, groups, client)
            if isinstance(rows, TableRows):
                self.suspects_ = warn_of_suspects(rows, weight)
            return fitted
        if groups is not None:
            raise MissingCapabilityError(
                f"contamination: got {self.contamination!r}, and groups= takes rows to be normal; "
                "use fit without it, or contamination=None."
            )
        usual, given = MultiKernelFisherNull(), self.get_params(deep=False)
        wide = {k: v for k, v in WIDE.items() if repr(given[k]) == repr(getattr(usual, k))}
        own, share = MultiKernelFisherNull(**given | wide), self.contamination
        method, settings = own._method(), own._settings(client)
        if isinstance(rows, TableRows):
            recipe = replace(rows.recipe, widths=own.widths, scaling=own.scaling)
            rows = replace(rows, recipe=recipe)
        fitted, self.suspects_ = learn_contaminated(method, rows, weight, settings, share)
        return fitted

    # -- reasons -----------------------------------------------------------------------------

    def contributions(self, X: Any) -> Array:
        """Contribution of each kernel to the projection of each row of X, of shape (m, J).

        They add up to the projection y(x), which is the score under ``decision="sum"``.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        """
        check_is_fitted(self)
        cross, _ = self._cross(self.model_, X)
        return match_container(self.model_.rule.contributions(cross), X)  # type: ignore[no-any-return]

    @available_if(_has_reasons)  # type: ignore[untyped-decorator]
    def explain(self, X: Any, *, missing_views: Any = None) -> Explanation:
        """Which views and columns make each row stand out, in words, as a table or a plot.

        Reasons by column take the columns as they were passed to `fit`; they are computed when
        they are first asked for. `Judge` names the columns of a table of text, dates and gaps.

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.
        """
        check_is_fitted(self)
        missing = view_names(missing_views)
        cross, rows = self._cross(self.model_, X, missing)
        names = getattr(self, "feature_names_in_", None)
        explanation = explain_rows(self._without(missing), cross, rows, names)
        return replace(explanation, frame=frame_library(X), row_names=row_names(X))

    @available_if(_decides_by_evidence)  # type: ignore[untyped-decorator]
    def evidence(self, X: Any, *, by: str = "kernel", missing_views: Any = None) -> Array:
        """Evidence of each view against each row, in nats, weighted as the score weighs it.

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.
        by : {"kernel", "view"}, default="kernel"
            One column per kernel (m, J), or per view (m, V) in the order of ``views``.
        """
        model = self._without(missing_views)
        cross = self._cross(model, X, view_names(missing_views))[0]
        return match_container(model.evidence(cross, by), X)  # type: ignore[no-any-return]

    @available_if(_decides_by_evidence)  # type: ignore[untyped-decorator]
    def rarity(self, X: Any, *, missing_views: Any = None) -> Array:
        """How rare each row is, (m,), at least 1: one in so many normal rows scores as low.

        Below the lowest left-out score it is extrapolated by a tail, up to 100 times the rows that
        set the threshold. That number stands for all rarer rows; scores tell them apart.

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.
        """
        return self._judge(X, missing_views, lambda model, s: model.calibration.rarity(s))

    # -- what was learned --------------------------------------------------------------------

    @property
    def weights_(self) -> Any:
        """Kernel weights b, shape (J,)."""
        check_is_fitted(self)
        return self._shown(self.model_.rule.weights)

    @property
    def ridge_(self) -> float:
        """The absolute ridge, delta times the number of rows."""
        check_is_fitted(self)
        assert self.model_.system is not None
        return self.model_.system.ridge

    @property
    def scale_(self) -> Array:
        """The factor of each kernel, shape (J,)."""
        check_is_fitted(self)
        return np.asarray(self.model_.kernels.scale)

    @property
    def scaling_(self) -> dict[str, list[str]]:
        """The scalings of each view."""
        return self._by_view("scaling_", lambda view: [view.scaling])

    @property
    def widths_(self) -> dict[str, list[float]]:
        """The width factors of each view's kernels."""
        return self._by_view(
            "widths_", lambda view: [k.factor for k in view.kernels if k.factor is not None]
        )

    def _by_view(self, name: str, read: Any) -> dict[str, list[Any]]:
        check_is_fitted(self)
        kernels = self.model_.kernels
        if not isinstance(kernels, TableKernels):
            raise AttributeError(f"{name}: precomputed kernels have no scaling and no widths.")
        out: dict[str, list[Any]] = {}
        for view in kernels.set.views:
            out.setdefault(view.name, []).extend(read(view))
        return out
