"""Type aliases used throughout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: A floating array. Shapes are given in docstrings.
Array = NDArray[np.float64]
#: Integer indices.
Indices = NDArray[np.intp]
#: A boolean selection.
Mask = NDArray[np.bool_]
