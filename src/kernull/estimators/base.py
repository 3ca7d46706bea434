"""What every one-class estimator over kernels shares: a shell around a fitted `KernelModel`."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernull._containers import (
    as_numpy,
    cuda_device_of,
    frame_library,
    is_dask,
    is_tensor,
    map_rows,
    match_container,
    row_names,
)
from kernull._fields import Checked, Shape, Size
from kernull._runtime import threads_for
from kernull._typing import Array, Mask
from kernull.detector import (
    Fitted,
    GivenRows,
    KernelModel,
    Settings,
    TableKernels,
    TableRows,
    learn,
    view_names,
)
from kernull.detector.calibration import check_seed, discoveries, read_calibration, read_groups
from kernull.detector.cautions import warn_of_training_rows
from kernull.detector.contamination import learn_contaminated
from kernull.errors import MissingCapabilityError
from kernull.estimators.inputs import (
    check_labels,
    read_dtype,
    read_partial_table,
    read_table,
    read_weights,
    rollback_on_error,
)
from kernull.estimators.parameters import Learned, parameters
from kernull.explain.explanation import Explanation, explain_rows
from kernull.operators import parse_memory_limit
from kernull.operators.dense import read_precomputed
from kernull.views import check_views, resolve_views
from kernull.views.kernel_set import Recipe

#: Parameters that settings take as they are, from estimators that have them.
SHARED = ("drop_constant", "normalize", "storage", "landmarks", "false_alarm_rate")


@parameters
class KernelEstimator(Checked, OutlierMixin, BaseEstimator):
    """An estimator over kernels, of one task or of several, as scikit-learn sees it."""

    kernels: Any = field(default="rbf", kw_only=False)
    views: Any = field(default=None, kw_only=False)
    scaling: Any = "auto"
    widths: Any = "auto"
    false_alarm_rate: float = 0.05
    storage: str = "auto"
    memory_limit: Any = None
    dtype: Any = "float64"
    drop_constant: bool = True

    model_: Any = field(init=False)
    n_features_in_: Annotated[int | None, Size("d")] = field(init=False)
    feature_names_in_: Annotated[NDArray[np.object_] | None, Shape("d")] = field(init=False)

    _matrix_free = False

    def restored(self) -> Self:
        """Compute what files leave out."""
        self.model_ = self.model_.restored()
        return self

    @property
    def kernel_names_(self) -> Any:
        """Names of the kernels."""
        return np.array(self._fitted_model.kernels.names, dtype=object)

    @property
    def kernel_set_(self) -> Any:
        """The kernels of the views, with the training rows (of the first task); None if given."""
        kernels = self._fitted_model.kernels
        return kernels.set if isinstance(kernels, TableKernels) else None

    @property
    def bank_(self) -> Any:
        """The name of ``kernel_set_`` in version 0.1."""
        return self.kernel_set_

    @property
    def _fitted_model(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _rows(self, X: Any) -> TableRows | GivenRows:
        """What to learn from; notes the columns."""
        if self._pairwise:
            stack = read_precomputed(as_numpy(X), dtype=read_dtype(self.dtype))
            self.n_features_in_ = stack.n
            return GivenRows(stack)
        table = read_table(self, as_numpy(X), reset=True)
        names = getattr(self, "feature_names_in_", None)
        on_device = X if self._matrix_free and cuda_device_of(X) is not None else None
        # Those that `TableViews` hands on in a pipeline, where this estimator has none.
        views = getattr(X, "table_views", None) if self.views is None else self.views
        views = resolve_views(views, table.shape[1], names)
        check_views(views, self.scaling, self.kernels)
        recipe = Recipe(views, self.kernels, self.widths, self.scaling)
        return TableRows(table, recipe, None if on_device is None else on_device.detach())

    @property
    def _pairwise(self) -> bool:
        """Whether ``fit`` takes kernels rather than a table."""
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that precomputed stacks are sliced on both sides."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags


@parameters
class OneClassKernelEstimator(KernelEstimator):
    """Base of all one-class estimators over a stack of kernels.

    A subclass implements ``learning_method()``, which reads parameters of its own into a
    `kernull.detector.learning.Method`. One that sets ``_matrix_free`` may be given stacks that
    never form an n x n matrix.
    """

    calibration: Any = "cross"
    random_state: Any = 0

    model_: KernelModel = field(init=False)
    #: Names of the classes of rules that a fit learns.
    rules: ClassVar[tuple[str, ...]] = ("FisherRule", "EvidenceRule")

    def contradiction(self) -> str | None:
        """What does not fit together in a file."""
        known = type(self.model_.rule).__name__ in self.rules
        return None if known else "a rule of another method"

    calibration_ = Learned("calibration")
    threshold_ = Learned("threshold")
    offset_ = Learned("threshold")
    false_alarm_rate_ = Learned("false_alarm_rate")

    def learning_method(self) -> Any:
        """The method with its parameters, checked, as `kernull.detector.learn` takes it."""
        raise NotImplementedError

    def learning_decision(self) -> Any:
        """Evidence to decide by; None: the scores of the method."""
        return None

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what normal looks like from rows (n, d), or their kernels (J, n, n).

        y is ignored: rows with ``y = -1`` are learned from like all others. Pass ``X[y == 1]``.
        ``sample_weight`` is the trust in each row, as in `MultiKernelFisherNull.fit`.
        """
        check_labels(X, y, stacklevel=2)
        self._fit(X, sample_weight)
        return self

    def _fit(
        self,
        X: Any,
        sample_weight: Any = None,
        client: Any = None,
        groups: Any = None,
    ) -> Fitted:
        with rollback_on_error(self):  # never the columns of one fit with the kernels of another
            weight = None if sample_weight is None else read_weights(as_numpy(sample_weight), X)
            rows = self._rows(X)
            together = None if groups is None else read_groups(as_numpy(groups), rows.n)
            # Landmarks leave much of the work to the host, in whichever place their kernels are.
            there = (
                isinstance(rows, TableRows)
                and rows.on_device is not None
                and self.storage != "nystroem"
            )
            share = getattr(self, "contamination", None)
            own = self if share is None else self._for_unclean_rows(groups)
            if isinstance(rows, TableRows):  # with what serves unclean rows
                recipe = replace(rows.recipe, widths=own.widths, scaling=own.scaling)
                rows = replace(rows, recipe=recipe)
            self.__dict__.pop("suspects_", None)  # of another fit
            with threads_for(rows.n, beside_gpu=there) as limit, limit:
                settings, method = own.learning_settings(client), own.learning_method()
                if share is None:
                    fitted = learn(method, rows, weight, settings, together)
                else:
                    fitted, self.suspects_ = learn_contaminated(
                        method, rows, weight, settings, share
                    )
            device = str(X.device) if is_tensor(X) else None
            self.model_ = replace(fitted.model, device=device)
        return fitted

    def learning_settings(self, client: Any = None) -> Settings:
        """The parameters that all methods share, checked, as `detector.learn` takes them."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
            seed = check_seed(seed).randint(2**31 - 1)
        landmarks = getattr(self, "landmarks", 1)  # checked, whether or not they will be needed
        whole = isinstance(landmarks, int | np.integer) and not isinstance(landmarks, bool)
        if not whole or landmarks < 1:
            raise ValueError(f"landmarks: got {landmarks!r}; expected a whole number, at least 1.")
        return Settings(
            calibrator=read_calibration(self.calibration),
            decision=self.learning_decision(),
            seed=int(seed),
            memory_limit=parse_memory_limit(self.memory_limit),
            dtype=read_dtype(self.dtype),
            matrix_free=self._matrix_free,
            client=client,
            **{name: getattr(self, name) for name in SHARED if hasattr(self, name)},
        )

    # -- scoring -----------------------------------------------------------------------------

    def score_samples(self, X: Any, *, missing_views: Any = None) -> Array:
        """Scores of rows, of shape (m,); higher is more normal.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        missing_views : str or list of str, optional
            Views to do without, for all of these rows (a sensor that is dead): the score is then
            the sum over the remaining views, and thresholds and p-values are those of the same
            sum. Columns that only missing views read may hold anything, NaN included; in a table
            with column names they may be absent.
        """
        return self._judge(X, missing_views, lambda model, scores: scores)

    def decision_function(self, X: Any, *, missing_views: Any = None) -> Array:
        """Score minus threshold: negative where a row is flagged."""
        scores = self.score_samples(X, missing_views=missing_views)
        return scores - self._without(missing_views).threshold

    def predict(self, X: Any, *, missing_views: Any = None) -> Array:
        """+1 for normal rows, -1 for flagged ones.

        A row is flagged exactly where its p-value is at most ``false_alarm_rate_``. Rows that
        the model learned from vouch for themselves: `fit_predict` is for them.
        """
        out = self._judge(
            X, missing_views, lambda model, s: np.where(s - model.threshold >= 0, 1, -1), int
        )
        kernels = self.model_.kernels
        same_size = not (missing_views or is_dask(X)) and len(out) == kernels.n
        if isinstance(kernels, TableKernels) and same_size and (as_numpy(out) > 0).all():
            warn_of_training_rows(kernels.set, read_table(self, as_numpy(X), reset=False))
        return out

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and judge each training row by a model that did not see it.

        That is a model without its fold or, for rows held out, the model itself.
        """
        fitted = self._fit(X, **fit_params)
        return np.where(fitted.row_scores() >= fitted.model.threshold, 1, -1)

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
        every :math:`\alpha`, whatever the data (split conformal). With ``"cross"`` all rows are
        learned from, each scored without its fold; the same holds in practice, but is no theorem.
        Having no bound to lose, p then interpolates between the ranks
        (`kernull.detector.calibration.Calibration`), so that rates are not rounded down.
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
        """What ``call(model, scores)`` says of rows, in their container, block by block of Dask."""
        check_is_fitted(self)
        if is_dask(X):
            return map_rows(lambda part: self._judge(part, missing_views, call), X, dtype)  # type: ignore[no-any-return]
        model = self._without(missing_views)
        scores = model.score(self._cross(model, X, view_names(missing_views))[0])
        return match_container(call(model, scores), X)  # type: ignore[no-any-return]

    def _without(self, missing_views: Any) -> KernelModel:
        missing = view_names(missing_views)
        if missing and not self.model_.can_explain:
            raise MissingCapabilityError(
                f"missing_views: this {type(self).__name__} does not know its scores as sums over "
                "kernels, so it cannot do without some. Use an estimator that has "
                "contributions(), such as MultiKernelFisherNull, fitted at once."
            )
        return self.model_.without(missing)

    def _cross(
        self, model: KernelModel, X: Any, missing: tuple[str, ...] = ()
    ) -> tuple[Any, Array | None]:
        """Kernels between new rows and those of the model; and the rows, checked, of a table."""
        device = cuda_device_of(X) if self._matrix_free else None
        X, kernels = as_numpy(X), model.kernels
        dtype = read_dtype(self.dtype)
        if isinstance(kernels, TableKernels):
            if missing:
                table = read_partial_table(self, X, kernels.columns_of(missing))
            else:
                table = read_table(self, X, reset=False)
            return kernels.cross(table, dtype, device), table
        if missing:
            X = kernels.silenced(X, model.kept_kernels(missing))
        return kernels.cross(X, dtype), None


class UnweightedEstimator(OneClassKernelEstimator):
    """Estimators whose method has no place for weights of rows.

    scikit-learn reads the signature of ``fit`` to find out, so refusing the argument would not do.
    """

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Learn from a table (n, d) of normal rows, or their kernels (J, n, n).

        y is ignored: rows with ``y = -1`` are learned from like all others. Pass ``X[y == 1]``.
        """
        check_labels(X, y, stacklevel=2)
        self._fit(X)
        return self

    def _fit(self, X: Any) -> Fitted:  # type: ignore[override]
        return super()._fit(X)


def _can_explain(estimator: Any) -> bool:
    """Whether the fitted model knows what kernels usually contribute."""
    model = vars(estimator).get("model_")
    return model is None or model.can_explain


class AdditiveEstimator(OneClassKernelEstimator):
    """Estimators whose scores are sums over kernels, so that they can be taken apart."""

    typical_contributions_ = Learned("typical_contributions")
    calibration_contributions_ = Learned("left_out")

    def contributions(self, X: Any) -> Array:
        """Contribution of each kernel to the projection of each row of X, of shape (m, J).

        Rows add up to the projection y(x), which is the score when ``score_type="projection"``.
        """
        check_is_fitted(self)
        cross, _ = self._cross(self.model_, X)
        return match_container(self.model_.rule.contributions(cross), X)  # type: ignore[no-any-return]

    @available_if(_can_explain)  # type: ignore[untyped-decorator]
    def explain(self, X: Any, *, missing_views: Any = None) -> Explanation:
        """Which views and columns make each row stand out, in words, as a table or a plot.

        Reasons by column take the columns as they were passed to `fit`; they are computed when
        they are first asked for. `Judge` names the columns of a table of text, dates and gaps.

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        missing = view_names(missing_views)
        cross, rows = self._cross(self.model_, X, missing)
        names = getattr(self, "feature_names_in_", None)
        found = explain_rows(self._without(missing), cross, rows, names)
        return replace(found, frame=frame_library(X), row_names=row_names(X))
