r"""What estimators share: parameters, the text on them, and what they show of ``model_``.

Parameters and learned attributes that mean the same wherever they are found, in numpydoc's form:

kernels : str, kernel, callable, list of these, or "precomputed", default="rbf"
    ``"rbf"``, ``"laplacian"``, ``"linear"``, ``"polynomial"``, ``"cosine"``, a function
    f(X, Y) -> (len(X), len(Y)), or a list: each view gets each of them. A callable object with
    ``fit(X, sample_weight=None)`` is fitted to the scaled rows of each view; one may have
    ``diagonal(X)``. A mapping has any of these by view. With ``"precomputed"``, ``fit`` takes
    kernels of shape (J, n, n) and scoring (J, m, n).
views : None, "features" or mapping of name -> columns, default=None
    Groups of columns that describe one aspect each. None: one view of all columns;
    ``"features"``: one view per column; a mapping gives columns by position, name or slice.
scaling : str, transformer, list of these, mapping of view -> these, or "auto", default="auto"
    Scaling of each view by its own training statistics: ``"standard"``, ``"whiten"``,
    ``"whiten-raw"``, ``"quantile"``, ``"none"``, or a scikit-learn transformer such as
    ``PCA(50)``. ``"whiten"`` decorrelates with a shrunk covariance; use it for embeddings, and
    ``"whiten-raw"``, which does not standardise first, for a network's activations;
    ``"quantile"`` gives each column normal scores by its ranks. Several give several kernels per
    view; ``"auto"`` is ``("whiten", "quantile")``. A mapping, such as ``{"camera": PCA(50),
    "heat": "standard"}``, scales views by name; views that it does not name get ``"auto"``.
widths : float, sequence of float or "auto", default="auto"
    Width of rbf and laplacian kernels as a factor of the view's mean pairwise distance;
    several give several kernels per view. ``"auto"``: the median distance to the nearest
    neighbour, view by view and scaling by scaling.
normalize : {"none", "offdiagonal"} or float in [0, 1], default="offdiagonal"
    ``"offdiagonal"`` divides each kernel by the mean of its off-diagonal entries, so that
    learned weights do not drift to the widest kernel; use it where several widths of a view
    compete. A number is the power of that mean to divide by: 0 is none, 1 is offdiagonal.
p : float in [1, inf], "auto" or Ball, default="auto"
    Norm of the kernel weights: 1 is sparse, inf is uniform. With ``r``, the norm between
    groups of kernels. ``"auto"``: 4 between views and 1.5 within one; 1.5 for ``"sum"``.
r : float in [1, inf], optional
    Norm within a group of kernels; None (the default): no groups. r = 1 with p > 1 lets the
    widths of a view compete while every view stays in play.
kernel_groups : sequence of length J, optional
    Group of each kernel, used with ``r``; by default kernels of one view form a group.
delta : float, default=0.01
    Ridge relative to the number of rows, > 0. Larger is smoother. (``"auto"`` is 0.01.)
solver : str, default="auto"
    ``"auto"``, ``"newton"``, ``"subspace"``, ``"paper"``, ``"kloft"``, ``"frank-wolfe"``,
    ``"gradient"``, ``"paper-cvx"`` or ``"cvxpy"``.
tol : float, default=1e-6
    Relative duality gap to stop at; with ``solver="paper"`` the relative change of the
    coefficients, as in Algorithm 1.
max_iter : int, optional
    Limit of the solver's iterations; its own by default.
decision : {"evidence", "sum"}, Evidence or Sum, default="evidence"
    ``"evidence"``: each view is calibrated by itself, and what it says against a row, in nats, is
    combined with the learned weights (`kernull.Evidence`). ``"sum"``: the paper's projection, a
    sum over kernels.
score_type : {"projection", "distance"}, default="projection"
    ``y(x)``, or ``-|1 - y(x)|``, the score of the null-space papers. They agree where
    y <= 1.
false_alarm_rate : float, default=0.05
    Share of normal rows that may be flagged. The threshold comes from the scores of
    calibration rows, never from training scores.
random_state : int, RandomState or None, default=0
    Seed of the folds, or of the draw of the rows held out. A row's fold depends on its content,
    not on its position.
storage : {"auto", "dense", "tiled", "nystroem", "dask"}, default="auto"
    How kernels are kept: stored; evaluated on the fly, tile by tile; approximated from
    ``landmarks`` rows; or evaluated by the workers of a Dask cluster. ``"auto"`` learns weights
    from at most 4,000 rows where it decides by evidence, and is the first that fits memory and
    time elsewhere; it warns before it approximates.
memory_limit : int or str, optional
    Bytes, or text such as ``"2GB"``; half of the available memory by default.
dtype : {"float64", "float32"}, default="float64"
    Type in which kernels are kept; ``"float32"`` halves memory.
drop_constant : bool, default=True
    Drop views that are constant on the training rows, with a warning; another view reads their
    columns, where values are scaled, so that a value never seen there is evidence.
calibration : {"cross", "split"}, Cross or Split, default="cross"
    Scores that give the threshold. ``"cross"``: of every row, by a model fitted without its fold
    (`kernull.Cross`). ``"split"``: of rows held out (`kernull.Split`); the rate then holds in any
    finite sample, as does the bound of ``detect``, at the price of learning from fewer rows.
fusion : {"average", "product"}, default="average"
    Arithmetic mean of the kernels, or their element-wise geometric mean. The latter is positive
    semidefinite for rbf kernels but not in general; a product that is not one is refused.
weights_ : array of shape (J,)
    Kernel weights b.
gap_ : float
    Relative duality gap of the weights, in [0, 1].
n_iter_ : int
    Iterations of the solver.
history_ : tuple of Record
    Value, gap and change of the coefficients by iteration.
threshold_, offset_ : float
    Score below which rows are flagged.
false_alarm_rate_ : float
    The rate that the threshold stands for (above ``false_alarm_rate`` only where there are
    too few rows for it).
calibration_ : Calibration
    The calibration scores, sorted.
kernel_names_ : array of shape (J,)
    Names of the kernels.
solver_ : str
    The solver that was used.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

from sklearn.exceptions import NotFittedError

from kernull._containers import tensor_on
from kernull._text import with_shared

#: The paper's setting: ``MultiKernelFisherNull(**kernull.PAPER)``, and the same for
#: `JointMultiKernelFisherNull`; another p is ``**kernull.PAPER | {"p": 4}``. The paper chooses p,
#: delta and width on a validation set (`kernull.paper.choose`); these stand in its grids' middle.
PAPER: dict[str, Any] = {
    "decision": "sum", "kernels": "rbf", "scaling": "standard", "widths": 0.5, "normalize": "none",
    "p": 2.0, "delta": 1e-3, "solver": "paper", "score_type": "projection",
}  # fmt: skip
#: Fills them in where a docstring names them.
documented = with_shared(__doc__ or "")


T = TypeVar("T")


@dataclass_transform(eq_default=False, kw_only_default=True)
def parameters(cls: type[T]) -> type[T]:
    """Make the fields parameters, by keyword, that ``__init__`` keeps as they are.

    That is scikit-learn's rule. Those of base classes are parameters too.
    """
    return dataclass(eq=False, repr=False, kw_only=True)(cls)


class Learned:
    """A learned attribute, read from the fitted model; absent where the model has none.

    ``path`` is where it is in ``model_``, such as ``"rule.weights"``; ``tensor`` asks for a tensor
    where the model was fitted on tensors.
    """

    def __init__(self, path: str, *, tensor: bool = False) -> None:
        self.path, self.tensor = path, tensor

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        value: Any = vars(estimator).get("model_")
        if value is None:
            raise NotFittedError(
                f"This {type(estimator).__name__} is not fitted yet, so it has no {self.name!r}; "
                "call fit first."
            )
        device = value.device
        for part in self.path.split("."):
            value = getattr(value, part, None)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__} has no {self.name!r} here.")
        return tensor_on(value, device) if self.tensor and device is not None else value


class Certified:
    """Estimators whose weights are learned, with a certificate."""

    gap_ = Learned("certificate.gap")
    n_iter_ = Learned("certificate.n_iter")
    history_ = Learned("certificate.history")
    solver_ = Learned("certificate.solver")


@parameters
class FisherParameters(Certified):
    """Parameters of lp MK-FN, of one task or of several."""

    normalize: Any = "offdiagonal"
    p: Any = "auto"
    delta: Any = 0.01
    solver: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    decision: Any = "evidence"
    score_type: str = "projection"
    r: float | None = None
    kernel_groups: Any = None


class LearnedByTask(Learned):
    """A learned attribute that each task has its own of: a dict of name -> value."""

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        read = attrgetter(self.path)
        return {name: read(task) for name, task in estimator._fitted_model.tasks.items()}
