"""One-class estimators over kernels: a shell around `kernull.detector.learn` and its model."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from kernull import _removed
from kernull._containers import (
    as_numpy,
    cuda_device_of,
    is_dask,
    is_tensor,
    map_rows,
    match_container,
    tensor_on,
)
from kernull._fields import Checked, Shape, Size
from kernull._runtime import threads_for
from kernull._typing import Array, Mask
from kernull.detector import (
    Calibration,
    Evidence,
    Fitted,
    KernelModel,
    PrecomputedRows,
    Settings,
    Sum,
    TableKernels,
    TableRows,
    learn,
    view_names,
)
from kernull.detector.calibration import check_seed, discoveries, read_calibration, read_groups
from kernull.detector.cautions import are_training_rows, warn_of_training_rows
from kernull.errors import MissingCapabilityError
from kernull.estimators.inputs import check_labels, read_rows, read_weights, rollback_on_error
from kernull.operators import Storage, parse_memory_limit
from kernull.operators.dense import read_precomputed
from kernull.tables import EncodedRows
from kernull.views import KernelSet, check_views, resolve_views
from kernull.views.kernel_set import Recipe


class NamesRemoved:
    """An estimator that names what replaces a parameter of version 0.2."""

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse removed parameters, before ``__init__`` refuses them as unknown."""
        cls._refuse_removed(parameters, TypeError)
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        self._refuse_removed(parameters, ValueError)
        return super().set_params(**parameters)  # type: ignore[misc,no-any-return]

    @classmethod
    def _refuse_removed(cls, parameters: dict[str, Any], error: type[Exception]) -> None:
        taken = signature(cls.__init__).parameters
        for name in parameters:
            if name in _removed.GONE_PARAMETERS and name not in taken:
                raise error(
                    _removed.instead(f"{cls.__name__}: {name}", _removed.GONE_PARAMETERS[name])
                )


class KernelEstimator(NamesRemoved, Checked, OutlierMixin, BaseEstimator):
    """Base of estimators over kernels, with the parameters that all of them have."""

    model_: Any
    n_features_in_: Annotated[int | None, Size("d")]
    feature_names_in_: Annotated[NDArray[np.object_] | None, Shape("d")]
    # Parameters of some.
    decision = cast("Any", Sum())
    normalize = cast("Any", "none")
    storage = cast("Any", "auto")
    suspects_ = cast("Any", ())
    _matrix_free = False
    """Whether stacks may come that never form an n x n matrix."""

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "auto",
        widths: Any = "auto",
        false_alarm_rate: float = 0.05,
        calibration: Any = "cross",
        random_state: Any = 0,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.scaling = scaling
        self.widths = widths
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.random_state = random_state

    def restored(self) -> Self:
        """Compute what files leave out."""
        self.model_ = self.model_.restored()
        return self

    @property
    def kernel_names_(self) -> Any:
        """Names of the kernels, shape (J,)."""
        check_is_fitted(self)
        return np.array(self.model_.kernels.names, dtype=object)

    @property
    def kernel_set_(self) -> KernelSet | None:
        """The kernels of the views, with the training rows (of the first task); None if given."""
        check_is_fitted(self)
        kernels = self.model_.kernels
        return kernels.set if isinstance(kernels, TableKernels) else None

    def _settings(self, client: Any = None) -> Settings:
        """The shared parameters, checked, as `kernull.detector.learn` takes them."""
        seed, storage = self.random_state, self.storage
        storage = storage if isinstance(storage, Storage) else Storage(storage)
        decision = self.decision
        if not isinstance(decision, Evidence):
            if not (isinstance(decision, Sum) or decision in ("evidence", "sum")):
                raise ValueError(
                    f"decision: got {decision!r}; expected 'evidence' (each view calibrated by "
                    "itself), 'sum' (the paper's projection), Evidence(...) or Sum(...)."
                )
            decision = Evidence() if decision == "evidence" else None
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
            seed = check_seed(seed).randint(2**31 - 1)
        return Settings(
            calibrator=read_calibration(self.calibration),
            decision=decision,
            normalize=self.normalize,
            false_alarm_rate=self.false_alarm_rate,
            seed=int(seed),
            storage=storage.name,
            memory_limit=parse_memory_limit(storage.memory_limit),
            dtype=np.dtype(storage.dtype).type,
            landmarks=storage.landmarks,
            matrix_free=self._matrix_free,
            client=client,
        )

    @property
    def _pairwise(self) -> bool:
        """Whether ``fit`` takes kernels rather than a table."""
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        """Input as `fit` takes it: scikit-learn slices precomputed stacks on both sides."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags


class OneClassKernelEstimator(KernelEstimator):
    """Base of estimators of one task.

    A subclass has ``_method()``, which reads its parameters into a
    `kernull.detector.learning.Method`.
    """

    model_: KernelModel
    #: Names of the classes of rules that a fit learns.
    rules: ClassVar[tuple[str, ...]] = ("FisherRule", "EvidenceRule")

    def _method(self) -> Any:
        raise NotImplementedError

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        known = type(self.model_.rule).__name__ in self.rules
        return None if known else "a rule of another method"

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what normal looks like.

        Parameters
        ----------
        X : table of shape (n, d), or kernels of shape (J, n, n)
            Training rows, all taken to be normal.
        y : ignored
            Rows with ``y = -1`` are learned from like all others, with a warning: pass
            ``X[y == 1]``.
        """
        if y is not None:
            check_labels(X, y, stacklevel=2)
        self._fit(X)
        return self

    def _fit(
        self, X: Any, sample_weight: Any = None, groups: Any = None, client: Any = None
    ) -> Fitted:
        with rollback_on_error(self):
            weight = None if sample_weight is None else read_weights(as_numpy(sample_weight), X)
            rows = self._rows(X)
            together = None if groups is None else read_groups(as_numpy(groups), rows.n)
            settings = self._settings(client)
            self.__dict__.pop("suspects_", None)  # of another fit
            # Landmarks leave much of the work to the host, wherever their kernels are.
            on_gpu = isinstance(rows, TableRows) and rows.on_device is not None
            with (
                threads_for(rows.n, beside_gpu=on_gpu and settings.storage != "nystroem") as limit,
                limit,
            ):
                fitted = self._learn(rows, weight, settings, together, client)
            device = str(X.device) if is_tensor(X) else None
            self.model_ = replace(fitted.model, device=device)
        return fitted

    def _learn(
        self, rows: Any, weight: Any, settings: Settings, groups: Any, client: Any
    ) -> Fitted:
        return learn(self._method(), rows, weight, settings, groups)

    def _rows(self, X: Any) -> TableRows | PrecomputedRows:
        """What to learn from; notes the columns."""
        if self._pairwise:
            stack = read_precomputed(as_numpy(X), dtype=Storage.of(self.storage).dtype)
            self.n_features_in_ = stack.n
            return PrecomputedRows(stack)
        table = read_rows(self, as_numpy(X), reset=True)
        on_device = X if self._matrix_free and cuda_device_of(X) is not None else None
        names = getattr(self, "feature_names_in_", None)
        # Those that `TableViews` hands on in a pipeline, where this estimator has none.
        views = X.table_views if self.views is None and isinstance(X, EncodedRows) else self.views
        views = resolve_views(views, table.shape[1], names)
        check_views(views, self.scaling, self.kernels)
        recipe = Recipe(views, self.kernels, self.widths, self.scaling)
        table = X.like(table) if isinstance(X, EncodedRows) else table
        return TableRows(table, recipe, None if on_device is None else on_device.detach())

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and judge each training row by a model that did not see it.

        That is a model without its fold or, for rows held out, the model itself.

        Parameters
        ----------
        X, y, **fit_params
            As in `fit`.
        """
        signature(self.fit).bind(X, y, **fit_params)  # refuses what `fit` does not take
        fitted = self._fit(X, **fit_params)
        return np.where(fitted.row_scores() >= fitted.model.threshold, 1, -1)

    # -- scoring -----------------------------------------------------------------------------

    def score_samples(self, X: Any, *, missing_views: Any = None) -> Array:
        """Scores of rows, of shape (m,); higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        missing_views : str or list of str, optional
            Views to do without, for all of these rows (a sensor that is dead): the score is then
            that of the remaining views, and so are thresholds and p-values. Columns that only
            missing views read may hold anything, NaN included; in a table with column names they
            may be absent.
        """
        return self._judge(X, missing_views, lambda model, scores: scores)

    def decision_function(self, X: Any, *, missing_views: Any = None) -> Array:
        """Score minus threshold, of shape (m,): negative where a row is flagged."""
        return self._judge(X, missing_views, lambda model, scores: scores - model.threshold)

    def predict(self, X: Any, *, missing_views: Any = None) -> Array:
        """+1 for normal rows, -1 for flagged ones, of shape (m,).

        A row is flagged exactly where its p-value is at most ``false_alarm_rate_``. Training rows
        look more normal to a model that has seen them: `fit_predict` is for them.
        """
        out = self._judge(
            X, missing_views, lambda model, s: np.where(s >= model.threshold, 1, -1), int
        )
        kernels, learned = self.model_.kernels, self.model_.learned
        same_size = not (missing_views or is_dask(X)) and len(out) == self.model_.n_given
        if isinstance(kernels, TableKernels) and same_size and (as_numpy(out) > 0).all():
            table = read_rows(self, as_numpy(X), reset=False)
            if are_training_rows(kernels.set, table if learned is None else table[learned]):
                warn_of_training_rows(stacklevel=3)
        return out

    def p_values(self, X: Any, *, missing_views: Any = None) -> Array:
        r"""Conformal p-value of each row, (m,): small where few calibration rows score as low.

        .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{m + 1}

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.

        Notes
        -----
        With ``calibration="split"`` a new normal row has :math:`P(p \le \alpha) \le \alpha` for
        each :math:`\alpha`, whatever the data (split conformal). With ``"cross"`` all rows are
        learned from, each scored without its fold; the same holds in practice, but is no theorem.
        p then interpolates between the ranks, so that rates are not rounded down.
        """
        return self._judge(X, missing_views, lambda model, s: model.calibration.p_values(s))

    def detect(self, X: Any, fdr: float = 0.1, *, missing_views: Any = None) -> Mask:
        """Flag rows of one batch, a mask (m,), with at most this share of false alarms among them.

        The p-values of the batch go through Benjamini and Hochberg's procedure
        (``scipy.stats.false_discovery_control``).

        Parameters
        ----------
        X, missing_views
            Rows to judge together, and views to do without, as in `score_samples`.
        fdr : float in (0, 1), default=0.1
            Bound of the expected share of normal rows among those flagged.

        Notes
        -----
        The bound is proved for ``calibration="split"`` alone (Bates, Candès, Lei, Romano and Sesia
        2023). p-values of m calibration rows are at least 1/(m + 1), so a batch of which fewer
        than 1 in fdr (m + 1) rows are outliers cannot yield a discovery.
        """
        p_values = as_numpy(self.p_values(X, missing_views=missing_views))
        return match_container(discoveries(np.asarray(p_values), fdr), X)  # type: ignore[no-any-return]

    def _judge(self, X: Any, missing_views: Any, call: Any, dtype: Any = float) -> Array:
        """``call(model, scores)`` of rows, in their container, block by block of Dask."""
        check_is_fitted(self)
        if is_dask(X):
            return map_rows(lambda part: self._judge(part, missing_views, call), X, dtype)  # type: ignore[no-any-return]
        model, missing = self._without(missing_views), view_names(missing_views)
        scores = model.score(self._cross(model, X, missing)[0])
        return match_container(call(model, scores), X)  # type: ignore[no-any-return]

    def _without(self, missing_views: Any) -> KernelModel:
        missing = view_names(missing_views)
        if missing and not self.model_.can_explain:
            raise MissingCapabilityError(
                f"missing_views: scores of this {type(self).__name__} are no sums over kernels, so "
                "it cannot do without some. Use an estimator that has contributions(), such as "
                "MultiKernelFisherNull."
            )
        model: KernelModel = self.model_.without(missing)
        return model

    def _cross(
        self, model: KernelModel, X: Any, missing: tuple[str, ...] = ()
    ) -> tuple[Any, Array | None]:
        """Kernels between new rows and those of the model; and the rows, checked, of a table."""
        device = cuda_device_of(X) if self._matrix_free else None
        X, kernels = as_numpy(X), model.kernels
        dtype = self.storage.dtype if isinstance(self.storage, Storage) else "float64"
        if isinstance(kernels, TableKernels):
            ignore = kernels.columns_of(missing) if missing else None
            table = read_rows(self, X, reset=False, ignore=ignore)
            table = X.like(table) if isinstance(X, EncodedRows) and ignore is None else table
            return kernels.cross(table, dtype, device), table
        if missing:
            X = kernels.silenced(X, model.kept_kernels(missing))
        return kernels.cross(X, dtype), None

    # -- what was learned --------------------------------------------------------------------

    @property
    def coef_(self) -> Any:
        """Coefficients of the training rows, a tensor where these were one."""
        check_is_fitted(self)
        return self._shown(self.model_.rule.coef)

    def _shown(self, values: Array) -> Any:
        """Values as a tensor where the training rows were one."""
        device = self.model_.device
        return values if device is None else tensor_on(values, device)

    @property
    def calibration_(self) -> Calibration:
        """The calibration scores, sorted."""
        check_is_fitted(self)
        return self.model_.calibration

    @property
    def threshold_(self) -> float:
        """Score below which rows are flagged."""
        check_is_fitted(self)
        return self.model_.threshold

    @property
    def offset_(self) -> float:
        """The threshold, by scikit-learn's name."""
        return self.threshold_

    @property
    def false_alarm_rate_(self) -> float:
        """The rate that the threshold stands for."""
        check_is_fitted(self)
        return self.model_.false_alarm_rate


class Certified(KernelEstimator):
    """Base of estimators whose weights are learned, with a certificate."""

    solver = cast("Any", "auto")
    _usual_tol = 1e-6

    @property
    def tol_(self) -> float:
        """Relative duality gap that the solver stops at."""
        return float(getattr(self.solver, "tol", self._usual_tol))

    @property
    def gap_(self) -> float:
        """Relative duality gap of the weights, in [0, 1]."""
        return float(self._certificate.gap)

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return int(self._certificate.n_iter)

    @property
    def history_(self) -> Any:
        """Value, gap and change of the coefficients by iteration."""
        return self._certificate.history

    @property
    def p_(self) -> float | None:
        """The norm of the weights; None where they have none."""
        check_is_fitted(self)
        return None if self.model_.system is None else float(self.model_.system.p)

    @property
    def solver_(self) -> str:
        """The solver that was used."""
        return str(self._certificate.solver)

    @property
    def _certificate(self) -> Any:
        check_is_fitted(self)
        return self.model_.certificate
