"""Small data sets with several views, nothing to download: scikit-learn's, and a made-up line.

The loaders of the paper's sets are part of its experiments (``experiments.datasets`` in the
repository), not of the installed package.
"""

from kernull.datasets._bundled import (
    MultiViewData,
    load_breast_cancer_views,
    load_digits_views,
    load_wine_views,
)
from kernull.datasets._line import LineData, make_line

__all__ = [
    "LineData", "MultiViewData", "load_breast_cancer_views", "load_digits_views",
    "load_wine_views", "make_line",
]  # fmt: skip
