"""What the loaders return: plain frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MultiViewData", "OneClassData"]


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
        One name a column, for each view.

    Examples
    --------
    >>> from kernull.datasets import load_breast_cancer_views
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
        """Return +1 where the class is `target` and -1 elsewhere.

        Parameters
        ----------
        target : int
            A class that occurs in ``y``.

        Returns
        -------
        ndarray of shape (n,), int64
            The one-class labels.
        """
        return one_class_labels(self.y, target, self.name)


def one_class_labels(classes: NDArray[np.int64], target: int, name: str) -> NDArray[np.int64]:
    """Turn classes into +1 (target) and -1 (all others); the target must occur.

    Parameters
    ----------
    classes : ndarray of shape (n,)
        The class of each row.
    target : int
        The target class.
    name : str
        Name of the data set, for the error message.

    Returns
    -------
    ndarray of shape (n,), int64
        The one-class labels.
    """
    is_target = classes == target
    if not is_target.any():
        known = ", ".join(str(value) for value in np.unique(classes))
        raise ValueError(f"target must be a class of {name!r}, one of {known}; it is {target!r}")
    return np.where(is_target, 1, -1).astype(np.int64)
