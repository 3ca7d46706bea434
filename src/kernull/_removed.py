"""What version 0.3 removed, named here so that an error can say where to read on."""

from __future__ import annotations

#: Attributes of `kernull`.
NAMES = (
    "BackboneFeatures", "BoundaryDisplay", "ContributionsDisplay", "ImageViews",
    "MultiKernelFisherNullCV", "SelectionDisplay", "explain_columns",
    "fit_stream", "load_embeddings", "methods",
    "metrics", "paths", "selection", "to_monitor", "to_nonconform", "to_onnx",
)  # fmt: skip
#: What the paper compares with, now in `kernull.paper`.
TO_PAPER = (
    "FisherNull", "GaussianProcessOneClass", "KernelPCANovelty", "MultiKernelOneClassSVM",
    "MultiKernelSVDD",
)  # fmt: skip
#: Commands of ``kernull``.
COMMANDS = ("compare", "demo", "reproduce", "watch")


def said_of(name: str) -> str:
    """That something is gone, and where it says what to use instead."""
    return f"{name} was removed in version 0.3; docs/start/moving.md says what to write instead."
