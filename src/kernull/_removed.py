"""What version 0.3 removed, named here so that an error can say what to write instead.

Attributes and methods of estimators are on the page docs/start/moving.md alone.
"""

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
#: Options of ``kernull``, and what to write instead.
OPTIONS = {
    **{f"--{name}": f"kernull fit --set {name}=..." for name in (
        "calibration", "contamination", "dates", "decision", "delta", "missing", "p", "scaling",
        "solver", "storage",
    )},
    "--kernel": "kernull fit --set kernels=...", "--width": "kernull fit --set widths=[...]",
    "--encode": "--kind 'PATTERN=category'", "--jobs": "OMP_NUM_THREADS=1 kernull ...",
    "--sample": "a file of fewer rows", "--curves": "kernull report, which draws the curve",
    "--leave-formulas": "-o scores.jsonl or .parquet, which leave text as it is",
    "--max-rows": "Judge.report(X, path, max_rows=...) in Python",
}  # fmt: skip
#: Parameters of estimators, and what to write instead.
GONE_PARAMETERS = {
    "r": "pass p=MixedBall(p, r)",
    "kernel_groups": "pass p=MixedBall(p, r, groups)",
    "tol": "pass solver=Solver(tol=1e-8)",
    "max_iter": "pass solver=Solver(max_iter=50)",
    "score_type": "pass decision=Sum('distance')",
    "landmarks": "pass storage=Storage('nystroem', landmarks=500)",
    "memory_limit": "pass storage=Storage(memory_limit='2GB')",
    "dtype": "pass storage=Storage(dtype='float32')",
    "drop_constant": "views that are constant are dropped, with a warning",
    "verbose": "logging.basicConfig(level='INFO') shows the iterations",
    "n_jobs": "fit within joblib.parallel_config(n_jobs=4)",
    "calibration_folds": "pass calibration=Cross(folds=5)",
    "calibration_fraction": "pass calibration=Split(0.4)",
    "max_samples": "fit to a random sample of the rows",
    "reference": "the default decides by evidence",
    "pooled": "each task has a scaling by its rows",
}


def message(name: str) -> str:
    """That a name is gone, and where it says what to use instead."""
    return f"{name} was removed in version 0.3; docs/start/moving.md says what to write instead."


def instead(name: str, advice: str) -> str:
    """That a parameter is gone, and what to write instead."""
    return f"{name} was removed in version 0.3: {advice} (docs/start/moving.md)."
