r"""Leave-one-out of rows that had a part in whitening.

Leaving row i out of the fit does not leave it out of the covariance S that whitens its view.
Without it, :math:`S_{-i} \approx S - \beta z_i z_i'` with :math:`\beta = (1 - s) n / (n - 1)^2` and
s the shrinkage. So, by Sherman and Morrison, in whitened coordinates :math:`w = S^{-1/2} z` the row
is further from every other than it seems:

.. math::

   d_{-i}^2(x_i, x_k) = \|w_i - w_k\|^2 + c_i \left( w_i'(w_i - w_k) \right)^2, \qquad
   c_i = \frac{\beta}{1 - \beta \|w_i\|^2} .

With many columns for the number of rows this decides the threshold. The other rows stay as they
are: to them, a new row would be new as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.stacks import KernelBank

__all__ = ["LeftOutOfWhitening", "is_whitened"]

#: A row that a covariance is made of would be infinitely far; this far is enough.
LEAST = 1e-3


def is_whitened(bank: KernelBank | None) -> bool:
    """Whether a bank has whitened views of several columns, all of their kernels rbf."""
    views = [] if bank is None else [view for view in bank.views if _applies(view)]
    return bool(views) and all(k.kind == "rbf" for view in views for k in view.kernels)


def _applies(view: Any) -> bool:
    return view.scaler.kind == "whiten" and len(view.columns) > 1


class LeftOutOfWhitening:
    """Rows of the kernels of a stack, each as if it had no part in whitening.

    Parameters
    ----------
    stack : Stack
        The kernels of the fit.
    bank : KernelBank
        Where they come from; all kernels of whitened views are rbf.
    row_weight : array of shape (n,), optional
        Row weights of the fit; one copy of a row is left out.
    """

    def __init__(self, stack: Any, bank: KernelBank, row_weight: Array | None = None) -> None:
        self.stack, self.bank = stack, bank
        self.n, self.J = stack.n, stack.J
        self._weight = np.ones(stack.n) if row_weight is None else np.asarray(row_weight, float)

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        out = np.array(self.stack.rows(index))
        total, own = float(self._weight.sum()), np.minimum(self._weight[index], 1.0)
        j = 0
        for view in self.bank.views:
            further: Array | None = None
            if _applies(view):
                # Standardised columns have a mean variance of one, so the floor is the shrinkage.
                shrinkage = min(1.0, view.scaler.base_gain**-2)
                beta = (1.0 - shrinkage) * own * total / (total - own) ** 2
                w = view.train[index]
                length = np.einsum("id,id->i", w, w)
                c = beta / np.maximum(1.0 - beta * length, LEAST)
                further = c[:, None] * (length[:, None] - w @ view.train.T) ** 2
            for kernel in view.kernels:
                if further is not None:
                    assert kernel.width is not None
                    out[j] *= np.exp(further / (-2.0 * kernel.width**2))
                j += 1
        return out
