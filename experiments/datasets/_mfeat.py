"""UCI Multiple Features: six views of the same 2000 handwritten digits."""

from __future__ import annotations

import os

import numpy as np

from experiments.datasets._home import find_file
from kernull.datasets import MultiViewData

__all__ = ["load_multiple_features"]

SOURCE = "the UCI repository, https://archive.ics.uci.edu/dataset/72/multiple+features"

# View, and what its features are; in the order UCI lists them.
VIEWS = {
    "fou": "Fourier coefficients of the character shapes",
    "fac": "profile correlations",
    "kar": "Karhunen-Loeve coefficients",
    "pix": "pixel averages in 2 x 3 windows",
    "zer": "Zernike moments",
    "mor": "morphological features",
}


def load_multiple_features(*, home: str | os.PathLike[str] | None = None) -> MultiViewData:
    """Load the six views of the Multiple Features digits.

    Files are ``mfeat/mfeat-<view>.csv`` with a header row and the digit in the last column.

    Parameters
    ----------
    home : path-like, optional
        Folder that holds ``mfeat/``; by default :func:`data_home`.

    Returns
    -------
    MultiViewData
        Views fou (76), fac (216), kar (64), pix (240), zer (47), mor (6); ``y`` holds the digits,
        200 rows each, sorted by digit.

    Raises
    ------
    DatasetNotFound
        If a view's file is not in the data folder.

    Notes
    -----
    Six images occur twice; a split that must not share them has to look for equal rows.

    Examples
    --------
    >>> from experiments.datasets import load_multiple_features
    >>> data = load_multiple_features()  # doctest: +SKIP
    >>> data.views["zer"].shape  # doctest: +SKIP
    (2000, 47)
    """
    # All six are found before any is read: a missing one should not cost seconds of parsing.
    paths = {
        view: find_file(
            f"mfeat/mfeat-{view}.csv",
            what=f"Multiple Features view {view!r} ({meaning})",
            source=SOURCE,
            home=home,
        )
        for view, meaning in VIEWS.items()
    }
    tables = {
        view: np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64, ndmin=2)
        for view, path in paths.items()
    }
    digits = tables["fou"][:, -1]
    for view, table in tables.items():
        # Rows are matched by position only, so the labels are the one check there is.
        if not np.array_equal(table[:, -1], digits):
            raise ValueError(
                f"{str(paths[view])!r} does not hold the same rows as {str(paths['fou'])!r}: "
                "their label columns differ"
            )
    return MultiViewData(
        views={view: np.ascontiguousarray(table[:, :-1]) for view, table in tables.items()},
        y=digits.astype(np.int64),
        name="multiple features",
        feature_names={
            view: tuple(f"{view}_{i}" for i in range(table.shape[1] - 1))
            for view, table in tables.items()
        },
    )
