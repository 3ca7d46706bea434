r"""Distances of rows left out where columns outnumber rows: sums over blocks of columns.

What holds rows by rows is then smaller than the table, so all distances are worked out at once, and
no block of columns leaves the cache before it has given its part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernull._lapack import inverse_of_factor, lower_factor
from kernull._threads import in_threads
from kernull._typing import Array, Indices, Mask
from kernull.calibration.left_out_whitening import (
    FEW_ROWS,
    LARGE_ENTRY,
    NO_VARIANCE,
    Rows,
    combine_shrinkage,
    quadratic_forms,
    shrinkages_without,
    variances_of_others,
)
from kernull.views.scaling import unseen_step

#: Moves of the shrinkage, relative to it, that change no distance by more than about that.
SMALL_MOVE = 1e-2
#: Columns of a block, at least; half as many as rows, so that sums do not outweigh products.
BLOCK_COLUMNS = 192
#: Large entries up to which rows with as many are solved for together, in so many values at once.
FEW_ENTRIES, BATCH_CELLS = 16, 2**17


def sums_over_columns(work: Callable[[slice], Sequence[Array]], n: int, d: int) -> list[Array]:
    """Sums of the arrays that some work gives for each block of d columns of n rows."""
    step = max(BLOCK_COLUMNS, n // 2)
    blocks = [slice(start, start + step) for start in range(0, d, step)]

    def add_up(some: list[slice]) -> list[Array]:
        total = list(work(some[0]))
        for block in some[1:]:
            for whole, part in zip(total, work(block), strict=True):
                whole += part
        return total

    halves = [some for some in (blocks[::2], blocks[1::2]) if some]
    first, *others = in_threads(add_up, halves)
    for other in others:
        for whole, part in zip(first, other, strict=True):
            whole += part
    return first


def standardised(X: Array, weight: Array) -> Array:
    """Columns less their means, over their standard deviations."""
    W = weight.sum()
    Z = X - weight @ X / W
    scale = np.sqrt(weight @ Z**2 / W)
    Z /= np.where(scale > 0, scale, 1.0)  # of values too small to be squared
    return np.asarray(Z)


def _gains(Z: Array, weight: Array, alone: Mask) -> Array:
    """One over the variance of each column without row i; zero where nothing is left."""
    V = variances_of_others(Z, weight, alone)
    if V.min() > 0:
        return np.reciprocal(V, out=V)
    return np.divide(1.0, V, out=np.zeros(V.shape), where=V > 0)


def standard_wide(X: Array, weight: Array, alone: Mask) -> Rows:
    r"""sum_c (z_ic - z_kc)^2 / V_ic, exact."""
    n, d = X.shape

    def work(block: slice) -> tuple[Array, Array]:
        Z = standardised(X[:, block], weight)
        gain = _gains(Z, weight, alone[:, block])
        out, scaled = gain @ (Z * Z).T, gain * Z
        own = np.einsum("ij,ij->i", scaled, Z)
        out -= 2.0 * (scaled @ Z.T)
        return out, own

    out, own = sums_over_columns(work, n, d)
    if alone.any():
        own += alone.sum(axis=1) * unseen_step("standard", n) ** 2
    out += own[:, None]
    return lambda index: np.asarray(out[index])


def _shrinkages(Z: Array, weight: Array, alone: Mask, gram: Array) -> Array:
    r"""Ledoit-Wolf shrinkage of the others, standardised among themselves, for every row left out.

    :math:`|C|^2` in the units of the others is that of the whole table to second order in
    :math:`1/V - 1`, so that no d x d matrix is formed.
    """
    (n, d), W = Z.shape, weight.sum()
    rest = W - weight
    omega = weight / rest
    weighted = gram * (weight[:, None] * weight / W**2)

    def work(block: slice) -> tuple[Array, ...]:
        z = Z[:, block]
        gain = _gains(z, weight, alone[:, block])
        scaled = gain * z
        own = np.einsum("ij,ij->i", scaled, z)
        columns2 = np.einsum("ic,ic->c", z, weighted @ z)
        size = gain @ (z * z).T
        gain -= 1.0
        moves = 2.0 * gain @ columns2, np.einsum("ij,ij->i", gain, gain), gain.sum(axis=1)
        return size, scaled @ z.T, own, np.array([columns2.sum()]), *moves

    size, cross, own, total, norm2, moved2, moved = sums_over_columns(work, n, d)
    among = (total - d) / (d * (d - 1.0))  # mean squared correlation of two columns
    norm2 += total + (1 - among) * moved2 + among * moved**2
    crossed = (cross**2 @ weight) / W
    # |z_k + omega z_i|^2 in the units of the others
    size += 2 * omega[:, None] * cross + (omega**2 * own)[:, None]
    np.fill_diagonal(size, 0.0)
    norm2 = (W / rest) ** 2 * (norm2 - 2 * omega * crossed + omega**2 * own**2)
    columns = np.maximum(d - alone.sum(axis=1), 1)
    return combine_shrinkage(size**2 @ weight / rest, norm2, np.ones(n), columns, n - 1.0)


def whiten_wide(X: Array, weight: Array, alone: Mask, refit: Rows) -> Rows:
    r"""Standardise, then whiten, both without row i: near, as in `left_out_whitening`.

    With R the rows times the roots of their shares of the weight, :math:`(\beta R'R + gI)^{-1} R' =
    R' (\beta RR' + gI)^{-1}`: the whitened rows are H Z with H rows by rows.
    """
    (n, d), W = X.shape, weight.sum()
    rest, share = W - weight, weight / W
    omega = weight / rest
    Z = standardised(X, weight)
    gram, root = Z @ Z.T, np.sqrt(share)
    inner = gram * root[:, None] * root
    fourth, norm2 = share @ np.diagonal(gram) ** 2, (inner**2).sum()
    g = float(combine_shrinkage(fourth, norm2, np.ones(()), np.asarray(d), n))
    if g < NO_VARIANCE:
        return refit
    inner *= 1 - g
    inner.flat[:: n + 1] += g
    H = inverse_of_factor(lower_factor(inner)) * root / root[:, None]
    large = _large_entries(Z, omega, alone)

    def work(block: slice) -> tuple[Array, Array]:
        z = Z[:, block]
        y = H @ z
        diagonal = (1.0 - (1 - g) * (share @ (z * y))) / g  # of the inverse covariance
        small = z * z
        small *= (g * omega)[:, None]
        small[large[:, block]] = 0.0
        small /= np.maximum(1.0 - small * diagonal, 0.5)
        out = small @ (y * y).T
        small *= y
        return out, small @ y.T

    # z_i'P z_k, with the small entries of row i, is (z_i + E_i y_i)'y_k.
    out, cross = sums_over_columns(work, n, d)
    ZY = gram @ H.T
    cross += ZY
    own, zy = np.diagonal(cross).copy(), np.diagonal(ZY)
    gap = own[:, None] - cross
    out += gap - cross + zy
    moves = _moves(Z, weight, alone, gram, g)
    if g < 1 and float(np.abs(moves).max()) > SMALL_MOVE * g:  # dP/dg = (P - PP)/(1 - g)
        YY = H @ ZY
        lost = zy - np.diagonal(YY)
        out += (moves / (1 - g))[:, None] * (lost[:, None] + lost - 2.0 * (ZY - YY))
    b = np.maximum((1 - g) * omega, 1e-12)
    plain = ~large.any(axis=1)
    out += np.where(plain, 1.0 / (1.0 / b - own), 0.0)[:, None] * gap**2
    _add_large(out, Z, H, weight, alone, large, g, gap, own)
    out *= (rest / W)[:, None]
    return lambda index: np.asarray(out[index])


def _large_entries(Z: Array, omega: Array, alone: Mask) -> Mask:
    """Entries that hold much of their column, of each row no more than there are rows."""
    n = len(Z)
    large = np.abs(Z) > np.sqrt(LARGE_ENTRY / omega)[:, None]
    large |= alone
    if large.sum(axis=1).max() > n:
        size = np.where(alone, np.inf, np.abs(Z))
        large &= np.abs(Z) >= -np.partition(-size, n - 1, axis=1)[:, [n - 1]]
    return np.asarray(large)


def _moves(Z: Array, weight: Array, alone: Mask, gram: Array, g: float) -> Array:
    """How far the shrinkage moves without each row, no more than by half."""
    if len(Z) <= FEW_ROWS:
        without = _shrinkages(Z, weight, alone, gram)
    else:  # the units of the others hardly differ
        without = shrinkages_without(Z, weight, Z.shape[1] - alone.sum(axis=1))[0]
    return np.clip(without - g, -0.5 * g, min(0.5 * g, 1.0 - g))


def _add_large(
    out: Array, Z: Array, H: Array, weight: Array, alone: Mask, large: Mask, g: float,
    gap: Array, own: Array,
) -> None:  # fmt: skip
    """Add what zz' and the large entries of rows that have some change, by Woodbury.

    Rows that have as many are worked on together.
    """
    n, W = len(Z), weight.sum()
    rest, share = W - weight, weight / W
    omega = weight / rest
    used = np.flatnonzero(large.any(axis=0))
    columns = np.ascontiguousarray(Z[:, used].T)
    whitened = columns @ H.T
    step = unseen_step("whiten", n) ** 2 if alone.any() else 1.0

    def work(some: Indices) -> None:
        i = some[:, None]
        B = np.nonzero(large[i, used])[1].reshape(len(some), -1)
        z2, y, y_i = columns[B, i] ** 2, whitened[B], whitened[B, i]
        entries = g * omega[i] * z2
        if alone[some].any():
            jump2 = z2 * (W / rest[i]) ** 2
            entries = np.where(alone[i, used[B]], g - rest[i] / W * jump2 / step, entries)
        entries = np.where(np.abs(entries) < 1e-12, 1e-12, entries)
        m = B.shape[1]
        inner = np.empty((len(some), m + 1, m + 1))
        inner[:, :m, :m] = ((1 - g) / g * share * columns[B]) @ y.transpose(0, 2, 1)  # 1/g - P
        inner[:, m, :m] = inner[:, :m, m] = -y_i
        inner[:, m, m] = 1.0 / np.maximum((1 - g) * omega[some], 1e-12) - own[some]
        inner[:, np.arange(m), np.arange(m)] += 1.0 / entries - 1.0 / g
        v = np.concatenate([y_i[:, :, None] - y, gap[some][:, None]], axis=1)
        if m <= FEW_ENTRIES:
            out[some] += np.einsum("rkj,rkj->rj", np.linalg.solve(inner, v), v)
        else:
            for place, row in enumerate(some):
                out[row] += quadratic_forms(inner[place], v[place])

    counts = large.sum(axis=1)
    parts: list[Indices] = []
    for m in np.unique(counts[counts > 0]).tolist():
        mine = np.flatnonzero(counts == m)
        at_once = max(1, BATCH_CELLS // (m * n))
        parts += [mine[start : start + at_once] for start in range(0, len(mine), at_once)]
    in_threads(work, parts)
