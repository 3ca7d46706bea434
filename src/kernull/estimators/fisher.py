"""lp-norm multiple kernel one-class Fisher null-space."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from kernull._containers import match_container
from kernull._fields import stored
from kernull._typing import Array
from kernull.detector import TableKernels, view_names
from kernull.detector.contamination import WIDE
from kernull.errors import MissingCapabilityError
from kernull.estimators.base import AdditiveEstimator
from kernull.estimators.inputs import by_evidence, check_labels, read_decision, read_method
from kernull.estimators.parameters import FisherParameters, Learned, documented, parameters


@stored
@documented
@parameters
class MultiKernelFisherNull(FisherParameters, AdditiveEstimator):
    r"""One-class learning from several views with learned kernel weights (lp MK-FN).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \;
       2 a'1 - \delta n\, a'a - a' \Big(\sum_j b_j K_j\Big) a

    The model projects rows by :math:`y(x) = \sum_j b_j k_j(x)'a`: training rows land near 1, what
    is unlike them near 0. Every fit reports its relative duality gap: how far its weights can be
    from optimal at most.

    Parameters
    ----------
    {kernels, views, scaling, widths, normalize}
    {p, r, kernel_groups, delta, solver, tol, max_iter, decision, score_type, false_alarm_rate}
    {calibration, random_state, storage}
    landmarks : int, default=1000
        Rows that stand for all under ``storage="nystroem"``.
    {memory_limit, dtype, drop_constant}
    verbose : int, default=0
        1 shows the iterations of the solver on stderr as they happen; whatever it is, the logger
        ``kernull`` hears of them at level INFO.
    contamination : float in (0, 0.5], optional
        Share of the training rows that may be outliers; None (the default): all are normal. So many
        rows, those that a first model finds least normal, lose their weight in a second one. Both
        decide by the sum, with wide kernels and a large ridge, which outliers cannot bend to
        themselves (``kernull.detector.contamination.WIDE``, in place of arguments left at their
        defaults). On clean rows a model without it is better.

    Attributes
    ----------
    {weights_}
    coef_ : array of shape (n,)
        Coefficients a of the training rows of positive weight. Under ``storage="nystroem"``, of
        shape (J, landmarks): those of the landmark rows, by kernel.
    scaling_ : dict of str to list of str
        The scalings of each view (tables only).
    widths_ : dict of str to list of float
        The width factors of each view's kernels (tables only).
    delta_, p_ : float
        The relative ridge and the norm that were used.
    scale_ : array of shape (J,)
        The factor of each kernel: that of ``normalize``, times that of kernels given with one.
    calibration_contributions_ : array of shape (m, J)
        Contributions of the kernels to the calibration scores, of models that decide by the sum.
    typical_contributions_ : array of shape (J,)
        Mean contribution of each kernel to a normal row left out of the fit (of a sum).
    ridge_ : float
        The absolute ridge, delta times the number of rows of the last learning.
    suspects_ : array
        With ``contamination``: positions of the training rows that lost their weight. Files do not
        keep it.
    {gap_, n_iter_, history_, solver_, threshold_, false_alarm_rate_, calibration_, kernel_names_}
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

    landmarks: int = 1000
    verbose: int = 0
    contamination: float | None = None

    _matrix_free = True

    weights_ = Learned("rule.weights", tensor=True)
    coef_ = Learned("rule.coef", tensor=True)
    delta_ = Learned("system.delta")
    p_ = Learned("system.p")
    ridge_ = Learned("system.ridge")
    scale_ = Learned("kernels.scale")

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

    def _by_view(self, asked: str, read: Any) -> dict[str, list[Any]]:
        kernels = self._fitted_model.kernels
        if not isinstance(kernels, TableKernels):
            raise AttributeError(f"{asked}: precomputed kernels have no scaling and no widths.")
        out: dict[str, list[Any]] = {}
        for view in kernels.set.views:
            out.setdefault(view.name, []).extend(read(view))
        return out

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
            Trust in each row, against the others: only ratios matter, so a constant weight changes
            nothing. A row that is trusted less may be missed by the model and counts less in ranks.
            Rows of weight zero take no part. For training data that is not clean.
        groups : array of shape (n,), optional
            Label of each row's group: rows of one group are left out, or held out, together when
            the threshold is found. For rows that are near copies of each other, such as readings
            of one sensor that follow closely, or pictures of one thing. Every row needs one.
        client : dask.distributed.Client, optional
            The cluster of ``storage="dask"``; the active client by default.
        """
        check_labels(X, y, stacklevel=2)
        self._fit(X, sample_weight, client, groups)
        return self

    def _for_unclean_rows(self, groups: Any) -> MultiKernelFisherNull:
        """The estimator with what serves unclean rows in place of arguments left at defaults."""
        if groups is not None:
            raise MissingCapabilityError(
                f"contamination: got {self.contamination!r}, and groups= takes rows to be normal; "
                "use fit without it, or contamination=None."
            )
        usual, own = MultiKernelFisherNull(), self.get_params(deep=False)
        left = [name for name in WIDE if repr(own[name]) == repr(getattr(usual, name))]
        return MultiKernelFisherNull(**{**own, **{name: WIDE[name] for name in left}})

    learning_method = read_method
    learning_decision = read_decision

    @available_if(by_evidence)  # type: ignore[untyped-decorator]
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

    @available_if(by_evidence)  # type: ignore[untyped-decorator]
    def rarity(self, X: Any, *, missing_views: Any = None) -> Array:
        """How rare each row is, at least 1: one in so many normal rows scores as low.

        Below the lowest left-out score it is extrapolated by a tail, up to 100 times the rows that
        set the threshold. That number stands for all rarer rows; scores tell them apart.

        Parameters
        ----------
        X, missing_views
            Rows, and views to do without, as in `score_samples`.
        """
        return self._judge(X, missing_views, lambda model, s: model.calibration.rarity(s))
