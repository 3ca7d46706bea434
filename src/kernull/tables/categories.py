r"""Categories as places: numbers in which a column of text weighs no more than one of numbers.

A one-hot code of K values has K columns, each of unit variance once it is scaled: a column of text
would outweigh K columns of numbers. Here each value gets a place in at most two dimensions
(optimal scaling, as in correspondence analysis): the first tells values apart
whose rows differ in the other columns, the second those that it leaves close; rare values lie far
out.

With shares :math:`p_c`, shrunk class means :math:`m_c` of the other columns and the unit vectors
:math:`e_c`, the places are the leading left singular vectors of the matrix with rows
:math:`\sqrt{p_c}\,[m_c, \epsilon e_c / \sqrt{p_c}]`, divided by :math:`\sqrt{p_c}`: columns of
unit variance over the rows. They are cut at `FARTHEST`, so that no value can dominate a distance.
"""

from __future__ import annotations

import numpy as np

from kernull._typing import Array, Indices

#: No place is farther out than this, in standard deviations.
FARTHEST = 3.0
#: Rows that a value needs before its class mean counts by half.
SHRINK = 5.0
#: Weight of telling values apart against likeness of their rows.
APART = 0.3


def category_codes(texts: list[str | None], values: tuple[str, ...]) -> Indices:
    """Position of each text among the values; -1 where it is empty, -2 where it is another one.

    Examples
    --------
    >>> category_codes(["b", None, "x"], ("a", "b")).tolist()
    [1, -1, -2]
    """
    index = {value: i for i, value in enumerate(values)}
    return np.array([-1 if text is None else index.get(text, -2) for text in texts], dtype=np.intp)


def category_places(codes: Indices, n_values: int, others: Array) -> Array:
    """Places of the values of one column.

    Parameters
    ----------
    codes : integer array of shape (n,)
        Value of each training row, negative where it has none.
    n_values : int
        Number of values, K.
    others : array of shape (n, m)
        The other columns, standardised, without gaps.

    Returns
    -------
    array of shape (K, q)
        With q = 1 for two values and 2 for more; each column has mean 0 and variance 1 over the
        rows, but for what was cut.

    Examples
    --------
    >>> category_places(np.array([0, 0, 1, 1]), 2, np.zeros((4, 0))).ravel()
    array([ 1., -1.])
    """
    filled = codes >= 0
    counts = np.bincount(codes[filled], minlength=n_values).astype(float)
    shares = counts / counts.sum()
    means = np.zeros((n_values, others.shape[1]))
    np.add.at(means, codes[filled], others[filled])
    means /= counts[:, None] + SHRINK
    means /= np.sqrt(max(others.shape[1], 1))
    A = np.hstack([np.sqrt(shares)[:, None] * (means - shares @ means), APART * np.eye(n_values)])
    # Without this direction the columns below would not have mean zero over the rows.
    root = np.sqrt(shares)
    A -= np.outer(root, root @ A)
    U, _, _ = np.linalg.svd(A, full_matrices=False)
    q = 1 if n_values == 2 else 2
    places = U[:, :q] / root[:, None]
    places *= np.where(places[0] < 0, -1.0, 1.0)  # signs of singular vectors are arbitrary
    return np.asarray(np.clip(places, -FARTHEST, FARTHEST))
