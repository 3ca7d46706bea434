"""The sections of a model file, one for each class that a fitted model is made of.

What the methods compared in the paper add is in `kernull.files.compared`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernull import detector
from kernull.detector import KernelModel
from kernull.detector.calibration import Calibration, Cross, Split
from kernull.detector.evidence import EvidenceRule
from kernull.detector.given import GivenScores
from kernull.detector.scores import (
    Evidence,
    Nearest,
    NearestFit,
    Part,
    Projection,
    ProjectionFit,
    TableScores,
)
from kernull.detector.sum import Sum
from kernull.errors import ModelFileError
from kernull.files.schema import (
    POSITIVE,
    Arrays,
    Count,
    Number,
    Section,
    Sections,
    Sizes,
    Text,
    flag,
)
from kernull.kernels import (
    KERNELS,
    Cosine,
    DistanceKernel,
    Laplacian,
    Linear,
    Polynomial,
    Rbf,
)
from kernull.mkl.balls import LpBall
from kernull.mkl.solvers import Record
from kernull.views import SCALINGS, KernelSet, Quantile, Standard, Unscaled, Whiten, WhitenRaw
from kernull.views.kernel_set import ScaledView
from kernull.views.quantile import Knots
from kernull.views.scaling import LARGEST, UnseenScaling

#: Of values that a fit takes (up to 1e-140), in directions of a hundred-thousandth of them, the
#: gain is 1e145; times the largest value, this is still a number.
LARGEST_GAIN = 1e150


def floats(
    *shape: str | int, finite: bool = True, low: float = -np.inf, high: float = np.inf
) -> Arrays:
    """An array of floating-point numbers."""
    return Arrays("f", (shape,), finite, low, high)


def whole(*shape: str | int) -> Arrays:
    """An array of whole numbers."""
    return Arrays("i", (shape,))


def flags(*shape: str | int) -> Arrays:
    """An array of true and false."""
    return Arrays("b", (shape,))


@dataclass(frozen=True)
class Names:
    """A tuple of text, as many as a size says."""

    size: str

    def __call__(self, value: Any, sizes: Sizes) -> tuple[str, ...]:
        """The names."""
        if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
            raise ModelFileError("are no names")
        if sizes.setdefault(self.size, len(value)) != len(value):
            raise ModelFileError(f"are {len(value)}, which does not fit the rest")
        return value


def share_or_count(value: Any, sizes: Sizes) -> float | int:
    """A share as a float, or a number of rows as an int."""
    return Count()(value, sizes) if isinstance(value, int) else Number(0.0, 1.0)(value, sizes)


class History:
    """Lines of a solver's history, kept as an array of three columns."""

    def __call__(self, value: Any, sizes: Sizes) -> tuple[Record, ...]:
        """The lines."""
        lines = floats("_lines", 3, finite=False)(value, {})
        return tuple(Record(*line) for line in lines.tolist())

    def write(self, value: tuple[Record, ...]) -> Any:
        """As an array: a history is long and regular."""
        return np.array(value, dtype=float).reshape(-1, 3)


def _kernel_set(kernels: KernelSet, sizes: Sizes) -> str | None:
    count = sum(len(view.kernels) for view in kernels.views)
    if count != len(kernels.kernel_names):
        return f"{count} kernels for {len(kernels.kernel_names)} names"
    if len({len(view.train) for view in kernels.views}) != 1:
        return "views of different numbers of rows"
    return None


def _view(view: ScaledView, sizes: Sizes) -> str | None:
    if not view.kernels:
        return f"the view {view.name[:40]!r} has no kernels"
    if not view.train.size:
        return f"the view {view.name[:40]!r} has no rows or no columns"
    if (view.columns < 0).any() or len(np.unique(view.columns)) < len(view.columns):
        return "columns that cannot be"
    if isinstance(view.scaler, UnseenScaling) and len(view.scaler.mean_) != len(view.columns):
        return "a scaling of other columns"
    with np.errstate(all="ignore"):  # explanations ask for the rows as they were given
        given = view.scaler.inverse_transform(view.train)
    size = np.maximum(np.abs(view.train).max(initial=0.0), np.abs(given).max(initial=0.0))
    # A fit takes none that is larger; twice that leaves room for rounding. False for NaN.
    return None if size <= 2 * LARGEST else "rows that are too large to be squared"


def _whiten(scaler: Whiten, sizes: Sizes) -> str | None:
    turned = not (scaler.base_gain_ + scaler.gains_ > 0).all()
    return "gains that turn directions round" if turned else None


def _quantile(scaler: Quantile, sizes: Sizes) -> str | None:
    values, scores, starts, _ = scaler.knots_
    fits = len(starts) == len(scaler.mean_) + 1 and starts[0] == 0 and starts[-1] == len(values)
    if not fits or not (np.diff(starts) > 0).all():
        return "knots that do not fit its columns"
    within = np.ones(len(values), bool)
    within[starts[:-1]] = False  # where a column begins, nothing comes before
    rises = (np.diff(values, prepend=0.0) > 0) & (np.diff(scores, prepend=0.0) >= 0)
    return None if rises[within].all() else "knots that do not rise"


def _distance_kernel(kernel: DistanceKernel, sizes: Sizes) -> str | None:
    return "no width" if kernel.width is None or kernel.centre is None else None


def _polynomial(kernel: Polynomial, sizes: Sizes) -> str | None:
    return "no gamma" if kernel.gamma is None else None


def _part(part: Part, sizes: Sizes) -> str | None:
    n = len(part.view.train)
    for score in part.scores:
        if isinstance(score, ProjectionFit):
            if len(score.coef) != len(part.view.kernels) or score.coef.shape[1] > n:
                return "coefficients of other kernels or rows"
        elif score.neighbours is not None and (
            len(score.neighbours) != n or not score.neighbours.any()
        ):
            return "neighbours that are not its rows"
    return None


def _columns_of(part: Part) -> int:
    return sum(len(f.coef) if isinstance(f, ProjectionFit) else 1 for f in part.scores)


def _given(scores: GivenScores, sizes: Sizes) -> str | None:
    some = scores.rows if scores.neighbours is None else np.append(scores.rows, scores.neighbours)
    if (some < 0).any() or some.max(initial=0) >= sizes.get("n", 0):
        return "rows that are not there"
    if not 0 < scores.coef.shape[1] <= len(scores.rows):
        return "coefficients of other rows"
    kinds = len(scores.size), len(scores.size) + 1
    fits = len(scores.coef) == len(scores.floor) and len(scores.coef) in kinds
    return None if fits else "scores of other kernels"


def _evidence(rule: EvidenceRule, sizes: Sizes) -> str | None:
    if isinstance(rule.scores, TableScores):
        kinds = sum(map(_columns_of, rule.scores.parts))
        if len({len(part.view.train) for part in rule.scores.parts}) != 1:
            return "parts of different numbers of rows"
    else:
        kinds = 2 * len(rule.scores.coef)
    if kinds != len(rule.member):
        return "scores of other kernels"
    if len(rule.left_out) < 2 or rule.fold.min() < 0 or len(np.unique(rule.fold)) < 2:
        return "rows of one fold"
    if rule.fold.max() >= len(rule.fold):
        return "folds that no row has"
    if not rule.member.any():
        return "no score of any view"
    if rule.rows is not None and ((rule.rows < 0).any() or rule.rows.max() >= sizes["n"]):
        return "rows that are not there"
    return None


def _calibration(calibration: Calibration, sizes: Sizes) -> str | None:
    if not len(calibration.scores) or (np.diff(calibration.scores) < 0).any():
        return "scores that are not in order"
    counts = calibration.counts
    return "counts that do not grow" if (np.diff(counts, prepend=0.0) <= 0).any() else None


def _has_weights(model: KernelModel) -> bool:
    """Whether weights have a mean, and are of those rows that explanations compute with."""
    weight, n = model.calibration_weight, model.kernels.n
    if weight is None:
        return True
    if not 0 < weight.sum() < np.inf:
        return False
    if len(weight) == n or model.decides_by_evidence:
        return True
    return model.left_out is not None or not isinstance(model.rule, detector.FisherRule)


def _model(model: KernelModel, sizes: Sizes) -> str | None:
    if not model.calibration.is_threshold(model.threshold, model.false_alarm_rate):
        return "a threshold that contradicts its calibration"
    J, n = len(model.kernels.names), model.kernels.n
    if sizes.get("J", J) != J or sizes.get("n", n) != n:
        return "kernels and coefficients that do not fit together"
    if not _has_weights(model):
        return "weights of other rows, or of none"
    if model.learned is not None and (
        len(model.learned) != n or model.learned.max(initial=0) >= model.n_given
    ):
        return "rows that were not given"
    return None


_FACTORS = floats("J", low=0.0)
_STANDARD = {
    "mean_": floats("_d"), "scale_": floats("_d", low=POSITIVE), "constant_": flags("_d"),
}  # fmt: skip
_WHITEN = _STANDARD | {
    "directions_": floats("_d", "_r", low=-2.0, high=2.0),  # of length one, but for rounding
    "gains_": floats("_r", low=-LARGEST_GAIN, high=LARGEST_GAIN),
    "base_gain_": Number(POSITIVE, LARGEST_GAIN),
}  # fmt: skip
#: Every section by name; names of classes are not in files. What a class has a default for may be
#: lacking.
SCHEMA: dict[str, Section] = {
    "model": Section(KernelModel, {
        "kernels": Sections(("table-kernels", "given-kernels")),
        "rule": Sections(("fisher", "evidence")),
        "calibration": Sections(("calibration",)), "threshold": Number(),
        "false_alarm_rate": Number(0.0, 1.0), "calibration_weight": floats("m", low=0.0),
        "left_out": floats("m", "J"), "certificate": Sections(("certificate",)),
        "system": Sections(("ridge-system",)),
        "learned": whole("_learned"), "n_given": Count(),
    }, _model),
    "table-kernels": Section(detector.TableKernels, {
        "set": Sections(("kernel-set",)), "factors": _FACTORS,
    }),
    "given-kernels": Section(detector.GivenKernels, {
        "names": Names("J"), "given_scale": _FACTORS, "n": Count("n"), "n_given": Count(),
        "learned": whole("_learned"), "factors": _FACTORS,
    }),
    "kernel-set": Section(KernelSet, {
        "views": Sections(("view",), several=True), "kernel_names": Names("J"),
    }, _kernel_set),
    "view": Section(ScaledView, {
        "name": Text(), "columns": whole("_d"), "scaler": Sections(tuple(SCALINGS)),
        "train": floats("_rows", "_d"),  # as many as coefficients; see _model
        "kernels": Sections(tuple(KERNELS), several=True),
    }, _view),
    **{family.label: Section(family, {
        "width": Number(POSITIVE), "factor": Number(POSITIVE),
        "centre": floats("_d", low=-2 * LARGEST, high=2 * LARGEST),
    }, _distance_kernel) for family in (Rbf, Laplacian)},
    "linear": Section(Linear, {}),
    "polynomial": Section(Polynomial, {
        "degree": Number(), "coef0": Number(), "gamma": Number(),
    }, _polynomial),
    "cosine": Section(Cosine, {}),
    "none": Section(Unscaled, {}),
    "standard": Section(Standard, _STANDARD, learned=True),
    "whiten": Section(Whiten, _WHITEN, _whiten, learned=True),
    "whiten-raw": Section(WhitenRaw, _WHITEN, _whiten, learned=True),
    "quantile": Section(Quantile, {
        "knots_": Sections(("knots",)), "mean_": floats("_d"), "constant_": flags("_d"),
    }, _quantile, learned=True),
    "knots": Section(Knots, {
        "values": floats("_knots"), "scores": floats("_knots"), "starts": whole("_starts"),
        "slopes": floats("_d", 2, low=0.0),
    }),
    "fisher": Section(detector.FisherRule, {
        "weights": _FACTORS, "coef": Arrays("f", (("n",), ("J", "n"))),
        "score_type": Text(("projection", "distance")),
    }),
    "evidence": Section(EvidenceRule, {
        "projection": Sections(("fisher",)),
        "scores": Sections(("table-scores", "given-scores")), "left_out": floats("_rows", "_kinds"),
        "fold": whole("_rows"), "rank_weight": floats("_rows", low=POSITIVE),
        "member": flags("_kinds", "J"), "extrapolates": flags("_kinds"),
        "factors": floats("_kinds", low=0.0), "rows": whole("_rows"),
    }, _evidence),
    "table-scores": Section(TableScores, {"parts": Sections(("part",), several=True)}),
    "part": Section(Part, {
        "view": Sections(("view",)),
        "scores": Sections(("projection-score", "nearest-score"), several=True),
    }, _part),
    "projection-score": Section(ProjectionFit, {"coef": floats("_kernels", "_first")}),
    "nearest-score": Section(NearestFit, {
        "floor": Number(POSITIVE), "neighbours": flags("_some"),
    }),
    "given-scores": Section(GivenScores, {
        "rows": whole("_r"), "size": floats("J", low=POSITIVE), "constant": flags("J"),
        "coef": floats("_k", "_first"), "floor": floats("_k", low=POSITIVE),
        "neighbours": whole("_near"),
    }, _given),
    "calibration": Section(Calibration, {
        "scores": floats("m"), "counts": floats("m"), "smooth": flag,
    }, _calibration),
    "certificate": Section(detector.Certificate, {
        "gap": Number(-np.inf, np.inf), "n_iter": Count(), "solver": Text(), "history": History(),
    }),
    "ridge-system": Section(detector.RidgeSystem, {
        "p": Number(1.0, np.inf), "delta": Number(0.0), "ridge": Number(0.0),
        "row_weight": Arrays("f", (("n",), ("_rows",)), low=0.0),  # of landmarks: of all rows
    }),
}  # fmt: skip

#: Objects that parameters of estimators may be.
PARAMETERS: dict[str, Section] = {
    "lp-ball": Section(LpBall, {"p": Number(1.0, np.inf)}),
    "cross": Section(Cross, {"folds": Count()}),
    "split": Section(Split, {"fraction": share_or_count}),
    "sum": Section(Sum, {}),
    "evidence": Section(Evidence, {
        "scores": Sections(("projection", "nearest"), several=True), "whole": flag,
    }),
    "projection": Section(Projection, {"ridge": Number(POSITIVE), "max_rows": Count()}),
    "nearest": Section(Nearest, {}),
    **{family.label: Section(family, {"width": Number(POSITIVE)}) for family in (Rbf, Laplacian)},
    "linear": Section(Linear, {}),
    "polynomial": Section(Polynomial, {
        "degree": Number(), "coef0": Number(), "gamma": Number(),
    }),
    "cosine": Section(Cosine, {}),
    **{name: Section(scaling, {}) for name, scaling in SCALINGS.items()},
}  # fmt: skip

#: The rules that each estimator may have learned.
RULES: dict[str, tuple[str, ...]] = {
    "MultiKernelFisherNull": ("fisher", "evidence"),
    "JointMultiKernelFisherNull": ("fisher", "evidence"),
}
