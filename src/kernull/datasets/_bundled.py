"""Multi-view sets from tables that come with scikit-learn: always there, nothing to download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine


# eq=False: comparing arrays field by field has no single truth value.
@dataclass(frozen=True, eq=False)
class MultiViewData:
    """Several views of the same things, with their classes.

    Attributes
    ----------
    views : dict of str to ndarray of shape (n, d_view), float64
        The features of each view; row i of every view is the same thing.
    y : ndarray of shape (n,), int64
        The class of each row.
    name : str
        Name of the data set.
    feature_names : dict of str to tuple of str
        One name per column, for each view.

    Examples
    --------
    >>> data = load_breast_cancer_views()
    >>> {name: view.shape for name, view in data.views.items()}
    {'mean': (569, 10), 'error': (569, 10), 'worst': (569, 10)}
    >>> int((data.one_class(target=1) == 1).sum())
    357
    """

    views: dict[str, NDArray[np.float64]]
    y: NDArray[np.int64]
    name: str
    feature_names: dict[str, tuple[str, ...]]

    def one_class(self, target: int) -> NDArray[np.int64]:
        """Labels: +1 where the class is ``target``, which must occur in ``y``, and -1 elsewhere."""
        is_target = self.y == target
        if not is_target.any():
            known = ", ".join(str(value) for value in np.unique(self.y))
            raise ValueError(
                f"target must be a class of {self.name!r}, one of {known}; it is {target!r}"
            )
        return np.where(is_target, 1, -1).astype(np.int64)


# Our grouping of the thirteen measurements; the set itself has none.
WINE_VIEWS = {
    "body": ("alcohol", "malic_acid", "proline"),
    "minerals": ("ash", "alcalinity_of_ash", "magnesium"),
    "phenols": ("total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins"),
    "colour": ("color_intensity", "hue", "od280/od315_of_diluted_wines"),
}


def load_wine_views() -> MultiViewData:
    """Load the wines of three growers as four views of thirteen measurements.

    The grouping (body, minerals, phenols, colour) is ours. 178 rows; classes 0, 1, 2 with
    59, 71, 48 rows.

    Examples
    --------
    >>> {name: view.shape[1] for name, view in load_wine_views().views.items()}
    {'body': 3, 'minerals': 3, 'phenols': 4, 'colour': 3}
    """
    bunch: Any = load_wine()
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    views = {
        view: np.column_stack([columns[name] for name in names])
        for view, names in WINE_VIEWS.items()
    }
    return MultiViewData(views, bunch.target.astype(np.int64), "wine", dict(WINE_VIEWS))


def load_breast_cancer_views() -> MultiViewData:
    """Load the Wisconsin diagnostic breast cancer set as three views of ten features.

    Ten properties of cell nuclei are each summarised by their mean over the nuclei of an image,
    the standard error of that mean, and the mean of the three largest ("worst") values. Each
    summary is a view.

    569 rows; class 0 malignant (212 rows), 1 benign (357 rows).

    Examples
    --------
    >>> load_breast_cancer_views().feature_names["worst"][:2]
    ('worst radius', 'worst texture')
    """
    bunch: Any = load_breast_cancer()
    names = tuple(str(name) for name in bunch.feature_names)
    blocks = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    views = {view: np.array(bunch.data[:, block], np.float64) for view, block in blocks.items()}
    by_view = {view: names[block] for view, block in blocks.items()}
    return MultiViewData(views, bunch.target.astype(np.int64), "breast cancer", by_view)


def load_digits_views() -> MultiViewData:
    r"""Load the 8 x 8 digits as three views: pixels, profiles, Fourier magnitudes.

    With image :math:`I` the views are the 64 pixels :math:`I_{rc}`; the 16 profiles
    :math:`\sum_c I_{rc}` and :math:`\sum_r I_{rc}`; and the 40 magnitudes :math:`|\hat I_{kl}|`,
    :math:`k < 8`, :math:`l < 5`, of the two-dimensional discrete Fourier transform, which do not
    change when the image is shifted cyclically. (The other 24 repeat these, as images are real.)

    1797 rows; classes are the digits 0 to 9.

    Examples
    --------
    >>> {name: view.shape for name, view in load_digits_views().views.items()}
    {'pixels': (1797, 64), 'profiles': (1797, 16), 'fourier': (1797, 40)}
    """
    bunch: Any = load_digits()
    images: NDArray[np.float64] = np.asarray(bunch.images, dtype=np.float64)
    n = len(images)
    views = {
        "pixels": images.reshape(n, -1),
        "profiles": np.hstack([images.sum(axis=2), images.sum(axis=1)]),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(n, -1),  # 8 x 5 of each image
    }
    names = {
        "pixels": tuple(f"pixel_{r}_{c}" for r in range(8) for c in range(8)),
        "profiles": tuple(f"{axis}_{i}" for axis in ("row", "column") for i in range(8)),
        "fourier": tuple(f"fourier_{k}_{m}" for k in range(8) for m in range(5)),
    }
    return MultiViewData(views, bunch.target.astype(np.int64), "digits", names)
