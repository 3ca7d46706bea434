"""The nine Delft one-class data sets, as prepared by D. Tax (PRTools objects in .mat files)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from experiments.datasets._home import find_file
from kernull.datasets import MultiViewData

__all__ = ["DELFT", "OneClassData", "delft_classes", "load_delft"]

SOURCE = "D. Tax's one-class data sets (Delft, PRTools format)"

# Target classes fixed beforehand (MATHS.md section 8); never chosen by a result.
TARGETS = {
    "vehicle": 4,  # van
    "diabetes": 2,  # tested positive, 268 rows
    "sonar": 1,  # mines
    "breast": 1,  # malignant
    "imports": 1,  # low risk: symboling <= 0
    "glass": 1,  # float-processed building windows
    "wine": 1,
    "liver": 1,
    "survival": 1,  # survived five years
}

DELFT: tuple[str, ...] = tuple(TARGETS)

# The files carry no feature names. Their columns are in the order of the UCI files; that was
# checked value by value against those (glass has its first column rounded to four places), and
# the names are those UCI documents.
FEATURES = {
    "vehicle": (
        "compactness circularity distance_circularity radius_ratio pr_axis_aspect_ratio "
        "max_length_aspect_ratio scatter_ratio elongatedness pr_axis_rectangularity "
        "max_length_rectangularity scaled_variance_major scaled_variance_minor "
        "scaled_radius_of_gyration skewness_major skewness_minor kurtosis_minor kurtosis_major "
        "hollows_ratio"
    ),
    "diabetes": "pregnancies glucose blood_pressure skin_thickness insulin bmi pedigree age",
    "sonar": " ".join(f"band_{i}" for i in range(1, 61)),
    "breast": (
        "clump_thickness cell_size_uniformity cell_shape_uniformity marginal_adhesion "
        "epithelial_cell_size bare_nuclei bland_chromatin normal_nucleoli mitoses"
    ),
    "imports": (
        "normalized_losses make fuel_type aspiration num_of_doors body_style drive_wheels "
        "engine_location wheel_base length width height curb_weight engine_type num_of_cylinders "
        "engine_size fuel_system bore stroke compression_ratio horsepower peak_rpm city_mpg "
        "highway_mpg price"
    ),
    "glass": "refractive_index sodium magnesium aluminium silicon potassium calcium barium iron",
    "wine": (
        "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids "
        "nonflavanoid_phenols proanthocyanins color_intensity hue od280_od315 proline"
    ),
    "liver": "mcv alkphos sgpt sgot gammagt drinks",
    "survival": "age year_of_operation positive_nodes",
}


# eq=False: comparing arrays field by field has no single truth value.
@dataclass(frozen=True, eq=False)
class OneClassData:
    """One table with one class as the target.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64
        The features.
    y : ndarray of shape (n,), int64
        +1 for rows of the target class, -1 for all others.
    name : str
        Name of the data set.
    target : int
        The class that is the target.
    feature_names : tuple of str
        One name a column of X.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    name: str
    target: int
    feature_names: tuple[str, ...]


def load_delft(
    name: str, target: int | None = None, *, home: str | os.PathLike[str] | None = None
) -> OneClassData:
    """Load one of the nine Delft data sets with one class as the target.

    Parameters
    ----------
    name : str
        One of :data:`DELFT`.
    target : int, optional
        Target class, counted from 1 (see :func:`delft_classes`). By default the class fixed
        beforehand: vehicle 4 (van), diabetes 2 (positive), sonar 1 (mines), breast 1 (malignant),
        imports 1 (low risk), glass 1, wine 1, liver 1, survival 1.
    home : path-like, optional
        Folder that holds ``delft/``; by default :func:`data_home`.

    Returns
    -------
    OneClassData
        Features as float64 in the file's row order, labels +1 / -1.

    Raises
    ------
    DatasetNotFound
        If ``delft/<name>.mat`` is not in the data folder.

    Notes
    -----
    Duplicate rows have been removed by the publisher. In ``breast`` a missing value is -1 and is
    returned as such; in ``imports`` the column ``engine_location`` is constant.

    Examples
    --------
    >>> from experiments.datasets import load_delft
    >>> wine = load_delft("wine")  # doctest: +SKIP
    >>> wine.X.shape, int((wine.y == 1).sum())  # doctest: +SKIP
    ((178, 13), 59)
    """
    features, classes = _read(name, home)
    chosen = TARGETS[name] if target is None else target
    names = tuple(FEATURES[name].split())
    if len(names) != features.shape[1]:
        # Not the published file; numbering is honest where names would be wrong.
        names = tuple(f"x{i}" for i in range(features.shape[1]))
    return OneClassData(
        X=features,
        y=MultiViewData({}, classes, name, {}).one_class(chosen),
        name=name,
        target=int(chosen),
        feature_names=names,
    )


def delft_classes(name: str, *, home: str | os.PathLike[str] | None = None) -> dict[int, int]:
    """Classes of a Delft data set and how many rows each has.

    Parameters
    ----------
    name : str
        One of :data:`DELFT`.
    home : path-like, optional
        Folder that holds ``delft/``; by default :func:`data_home`.

    Returns
    -------
    dict of int to int
        Class (counted from 1) to number of rows, in ascending order of class.

    Examples
    --------
    >>> from experiments.datasets import delft_classes
    >>> delft_classes("wine")  # doctest: +SKIP
    {1: 59, 2: 71, 3: 48}
    """
    _, classes = _read(name, home)
    values, counts = np.unique(classes, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _read(
    name: str, home: str | os.PathLike[str] | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read features and classes from a PRTools object saved as variable ``data``."""
    if name not in TARGETS:
        raise ValueError(f"name must be one of {', '.join(DELFT)}; it is {name!r}")
    path = find_file(f"delft/{name}.mat", what=f"Delft data set {name!r}", source=SOURCE, home=home)
    try:
        record: Any = loadmat(path)["data"][0, 0]
        features, labels = record["data"], record["nlab"]
    except (KeyError, IndexError, ValueError, MatReadError) as error:
        raise ValueError(
            f"{str(path)!r} is not a PRTools data set: expected a variable 'data' with fields "
            f"'data' and 'nlab' ({error})"
        ) from error
    # Some files store small integers, whose differences would wrap around.
    table = np.array(features, dtype=np.float64)
    classes = np.array(labels, dtype=np.int64).ravel()
    if table.ndim != 2 or len(table) != len(classes):
        raise ValueError(
            f"{str(path)!r} holds features of shape {table.shape} but {len(classes)} labels"
        )
    return table, classes
