"""What files may hold of `kernull.paper`: the methods compared in the paper, and their rules.

Files know every estimator by its name, so that `files` lies above `paper`. `kernull.files.models`
loads this module when a model or a file asks for it; no other module outside `paper` imports from
there.
"""

from __future__ import annotations

from typing import Any

from kernull import paper
from kernull.errors import ModelFileError
from kernull.files.schema import Count, Number, Section, Sizes, Text
from kernull.files.sections import floats
from kernull.paper.fused import FusedFisherRule, GaussianRule, PrincipalRule
from kernull.paper.machines import SupportRule


def description(value: Any, sizes: Sizes) -> tuple[float, ...]:
    """The one or two numbers that describe a machine of support vectors."""
    if not isinstance(value, tuple) or len(value) not in (1, 2):
        raise ModelFileError("are not as many numbers as there should be")
    return tuple(Number()(item, sizes) for item in value)


_FUSION = Text(("average", "product"))
#: Sections that these estimators have beside those of `kernull.files.sections`.
SCHEMA: dict[str, Section] = {
    "fused-fisher": Section(FusedFisherRule, {
        "fusion": _FUSION, "coef": floats("n"),
        "score_type": Text(("projection", "distance", "null-space")), "rank": Count(),
    }),
    "gaussian": Section(GaussianRule, {
        "fusion": _FUSION, "coef": floats("n"), "root": floats("n"), "factor": floats("n", "n"),
        "noise": Number(0.0), "score_type": Text(("mean", "variance", "log_density", "ratio")),
        "constant_diagonal": floats("J"),
    }),
    "principal": Section(PrincipalRule, {
        "fusion": _FUSION, "coef": floats("n", "_m"), "means": floats("n"),
        "eigenvalues": floats("_m"), "constant_diagonal": floats("J"), "shift": Number(),
    }),
    "support": Section(SupportRule, {
        "weights": floats("J", low=0.0), "coef": floats("n"), "description": description,
        "constant_diagonal": floats("J"),
    }),
}  # fmt: skip

#: The rules that each estimator may have learned.
RULES: dict[str, tuple[str, ...]] = {
    "FisherNull": ("fused-fisher",),
    "GaussianProcessOneClass": ("gaussian",),
    "KernelPCANovelty": ("principal",),
    "MultiKernelSVDD": ("support",),
    "MultiKernelOneClassSVM": ("support",),
}

#: The estimators by name.
ESTIMATORS: dict[str, Any] = {name: getattr(paper, name) for name in RULES}
