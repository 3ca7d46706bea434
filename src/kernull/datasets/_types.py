"""What the loaders return: a plain frozen record of arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MultiViewData"]


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
        is_target = self.y == target
        if not is_target.any():
            known = ", ".join(str(value) for value in np.unique(self.y))
            raise ValueError(
                f"target must be a class of {self.name!r}, one of {known}; it is {target!r}"
            )
        return np.where(is_target, 1, -1).astype(np.int64)
