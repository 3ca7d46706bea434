r"""Whitening without row i: closed forms behind `left_out_distances`.

Leaving row i (weight w of W, :math:`\omega = w/(W - w)`, z its centred values) out of a covariance
is a change of rank one, :math:`C_{(-i)} = \frac{W}{W - w}\,(C - \omega\, zz')`, so its inverse and
all distances of row i follow from products with the plain one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from kernull._typing import Array, Indices, Mask
from kernull.views.scaling import unseen_step

#: Rows and columns up to which "whiten" takes the inverse without each row.
FEW, SMALL = 64, 32
#: Share of a column's variance that one row must hold to be treated exactly beyond that.
LARGE_ENTRY = 0.1
#: Rows up to which shrinkage follows the units of the others too.
FEW_ROWS = 400
#: Moves of the shrinkage, relative to it, of which the square is too much to leave out.
FAR_MOVE = 0.2
#: Share of a sum that one row may hold for it to be had by taking the row from the whole.
OWN_SHARE = 0.9
#: Below this share of the largest variance a direction has none, as in `ViewScaler`.
NO_VARIANCE = 1e-9

Rows = Callable[[Indices], Array]


def combine_shrinkage(
    noise: Array, norm2: Array, mean: Array, columns: Array, rows: float
) -> Array:
    """Ledoit-Wolf's shrinkage from E|z|^4, |C|^2, tr C / d, for each row left out."""
    distance = norm2 / columns - mean**2
    noise = np.minimum((noise - norm2) / (columns * rows), distance)
    return np.where(noise <= 0, 0.0, noise / np.where(distance > 0, distance, 1.0))


def shrinkages_without(Z: Array, weight: Array, columns: Array) -> tuple[Array, Array]:
    r"""Ledoit-Wolf shrinkage and mean variance (n,) of the other rows, for every row left out.

    Sums over the others of :math:`|z_k + \omega z_i|^2` and of its square open up into moments of
    all rows: O(n d min(n, d)), and no matrix of rows by rows where columns are few. Z are centred
    rows, with weights of mean one; ``columns`` counts those that vary without row i.
    """
    (n, d), W = Z.shape, weight.sum()
    rest, q = W - weight, np.einsum("ij,ij->i", Z, Z)
    omega = weight / rest
    if d <= n:
        C = (Z * weight[:, None]).T @ Z / W
        norm2, own = float((C**2).sum()), np.einsum("ij,ij->i", Z @ C, Z)  # |C|^2, z'Cz
    else:
        squared = (Z @ Z.T) ** 2
        own = squared @ weight / W
        norm2 = float(weight @ own) / W
    norm2_without = (W / rest) ** 2 * (norm2 - 2 * omega * own + omega**2 * q**2)
    columns = np.maximum(columns, 1)
    shift = omega**2 * q
    mean = (weight @ q + W * shift - weight * q * (1 + omega) ** 2) / rest
    fourth = weight @ q**2 + 2 * shift * (weight @ q) + W * shift**2  # sum of w (q_k + shift)^2
    fourth = fourth + 4 * omega * (Z @ ((weight * q) @ Z)) + 4 * omega**2 * W * own
    fourth = (fourth - weight * q**2 * (1 + omega) ** 4) / rest
    mean = mean / columns
    return combine_shrinkage(fourth, norm2_without, mean, columns, n - 1.0), mean


def whiten_raw_rows(X: Array, weight: Array, alone: Mask, refit: Rows) -> Rows:
    r"""Exact, with U the rows in principal axes of variances lambda.

    .. math::

       R_{ik} = \frac{1}{(1 - g_i) \frac{W}{W - w_i} \lambda_k + g_i \mu_i}, \quad
       M = (U \circ R)\, U', \quad h_i = M_{ii}, \quad
       \beta_i = (1 - g_i) \frac{W w_i}{(W - w_i)^2},

       d^2_{(-i)}(i, k) = h_i + (R\,(U \circ U)')_{ik} - 2 M_{ik}
       + \frac{\beta_i (h_i - M_{ik})^2}{1 - \beta_i h_i}.

    Columns that only row i switches on are no columns without it: their part becomes that of
    `unseen_step`.
    """
    n, d = X.shape
    W = weight.sum()
    Z = X - weight @ X / W
    rooted = Z * np.sqrt(weight / W)[:, None]
    g, mean = shrinkages_without(Z, weight, d - alone.sum(axis=1))
    if d <= n:
        variances, axes = np.linalg.eigh(rooted.T @ rooted)
        U = Z @ axes
    else:
        variances, left = np.linalg.eigh(rooted @ rooted.T)
        variances = np.maximum(variances, 0.0)
        U = left * np.sqrt(variances) / np.sqrt(weight / W)[:, None]
    rest = W - weight
    floor = g * mean
    R = 1.0 / np.maximum(
        ((1 - g) * W / rest)[:, None] * np.maximum(variances, 0.0) + floor[:, None],
        np.finfo(float).tiny,
    )
    squares = U**2
    h = (squares * R).sum(axis=1)
    beta = (1 - g) * W * weight / rest**2
    left_over = 1.0 - beta * h
    step = unseen_step("whiten-raw", n) ** 2 if alone.any() else 1.0
    jump2 = np.where(alone, (Z * (W / rest)[:, None]) ** 2, 0.0)
    jump = np.divide(jump2.sum(axis=1), floor, out=np.zeros(n), where=floor > 0)
    extra = alone.sum(axis=1) * step - jump
    hard = (left_over < 1e-6) | (floor <= NO_VARIANCE * variances.max(initial=0.0))
    hard |= jump > 1e4 * step

    def rows(index: Indices) -> Array:
        M = (U[index] * R[index]) @ U.T
        gap = h[index][:, None] - M
        out = gap + R[index] @ squares.T - M + extra[index][:, None]
        out += (beta[index] / np.where(hard[index], 1.0, left_over[index]))[:, None] * gap**2
        if hard[index].any():
            out[hard[index]] = refit(index[hard[index]])
        return np.asarray(out)

    return rows


def whiten_rows(X: Array, weight: Array, alone: Mask, refit: Rows) -> Rows:
    """Standardise, then whiten, both without row i: exact for `FEW` rows, else near."""
    W = weight.sum()
    Z = X - weight @ X / W
    Z = Z / np.sqrt(weight @ Z**2 / W)
    if len(X) <= FEW and X.shape[1] <= SMALL:
        return _whiten_exactly(Z, weight, alone, refit)
    return _whiten_nearly(Z, weight, alone, refit)


def variances_of_others(Z: Array, weight: Array, alone: Mask) -> Array:
    """Variance of each standardised column without row i, infinite where nothing is left."""
    W = weight.sum()
    omega = (weight / (W - weight))[:, None]
    V = Z * Z
    V *= -omega * (1.0 + omega)
    V += 1.0 + omega
    if float(V.min(initial=1.0)) >= 1e-6 and not alone.any():
        return V
    for i, c in zip(*np.nonzero((V < 1e-6) & ~alone), strict=True):
        others = np.arange(len(Z)) != i
        x = Z[others, c]
        centre = np.average(x, weights=weight[others])
        V[i, c] = np.average((x - centre) ** 2, weights=weight[others])
    V[alone] = np.inf
    return V


def _standard_shrinkages(Z: Array, V: Array, weight: Array, alone: Mask) -> Array:
    r"""Ledoit-Wolf shrinkage of the others, standardised among themselves: O(n d^2)."""
    (n, d), W = Z.shape, weight.sum()
    rest = W - weight
    omega = weight / rest
    gain = 1.0 / V
    scaled = gain * Z
    own = np.einsum("ij,ij->i", scaled, Z)
    C = (Z * weight[:, None]).T @ Z / W
    norm2 = np.einsum("ij,ij->i", gain @ C**2, gain)
    norm2 -= 2 * omega * np.einsum("ij,ij->i", scaled @ C, scaled)
    norm2 = (W / rest) ** 2 * (norm2 + omega**2 * own**2)
    fourth = _fourth_moments(Z, gain, scaled, own, weight)
    columns = np.maximum(d - alone.sum(axis=1), 1)
    return combine_shrinkage(fourth / rest, norm2, np.ones(n), columns, n - 1.0)


def _fourth_moments(Z: Array, gain: Array, scaled: Array, own: Array, weight: Array) -> Array:
    r"""Sum over the others of :math:`w_k |z_k + \omega z_i|^4` in their units, from d x d moments.

    With :math:`A_k = \sum_c \gamma_c z_{kc}^2`, :math:`B_k = 2 \omega \sum_c \gamma_c z_{ic}
    z_{kc}` and D = omega^2 |z_i|^2 it is the sum of :math:`w (A + B + D)^2` less the row's own
    term. Where that is nearly all of it, the difference is lost in rounding and the sum is taken
    row by row.
    """
    W, squares = weight.sum(), Z**2
    omega = weight / (W - weight)
    weighted = squares * weight[:, None]
    shift = omega**2 * own
    total = np.einsum("ij,ij->i", gain @ (weighted.T @ squares), gain)
    total += 4 * omega * np.einsum("ij,ij->i", gain @ (weighted.T @ Z), scaled)
    moment = (Z * weight[:, None]).T @ Z
    total += 4 * omega**2 * np.einsum("ij,ij->i", scaled @ moment, scaled)
    total += 2 * shift * (gain @ weighted.sum(axis=0)) + W * shift**2
    total += 4 * omega * shift * (scaled @ (weight @ Z))  # nought, but for rounding
    mine = weight * (1 + omega) ** 4 * own**2
    out = total - mine
    for i in np.flatnonzero(~(mine <= OWN_SHARE * total)):
        size = squares @ gain[i] + 2 * omega[i] * (Z @ scaled[i]) + shift[i]
        size[i] = 0.0
        out[i] = weight @ size**2
    return np.asarray(out)


def _whiten_exactly(Z: Array, weight: Array, alone: Mask, refit: Rows) -> Rows:
    r"""All n inverses, and z'Pz as one product of the entries of P and of zz'.

    In units of the whole table, P is W - w over W times the inverse of

    .. math:: A_i = (1 - g_i)(C - \omega zz') + g_i\, \mathrm{diag}(1 - \omega z^2).
    """
    n, d = Z.shape
    W = weight.sum()
    rest = W - weight
    omega = weight / rest
    V = variances_of_others(Z, weight, alone)
    g = _standard_shrinkages(Z, V, weight, alone)
    C = (Z * weight[:, None]).T @ Z / W
    own_part = np.where(alone, 1.0, V * (rest / W)[:, None])  # 1 - omega z^2
    diagonal, (left, right) = np.arange(d), np.triu_indices(d)
    # z_k'Pz_k - 2 y'z_k + own: one product of the entries of P and of zz', of y and z, of 1.
    pairs, at = np.ones((len(left) + d + 1, n)), 0
    pairs[len(left) : -1] = Z.T
    for c, column in enumerate(pairs[len(left) : -1]):  # each pair of columns counts twice
        np.multiply(2.0 * column, pairs[len(left) + c : -1], out=pairs[at : at + d - c])
        pairs[at] *= 0.5
        at += d - c
    step = unseen_step("whiten", n) ** 2 if alone.any() else 1.0

    def rows(index: Indices) -> Array:
        z, lost, hard = Z[index], alone[index], g[index] < NO_VARIANCE
        b = (1 - g[index]) * omega[index]
        A = (1 - g[index])[:, None, None] * C
        A -= np.einsum("ri,rj->rij", b[:, None] * z, z)
        A[:, diagonal, diagonal] = own_part[index]  # shrinking does not change variances
        A[hard] = np.eye(d)
        for at in np.flatnonzero(lost.any(axis=1)):  # no columns without the row
            A[at, lost[at]], A[at, :, lost[at]] = 0.0, 0.0
            A[at, lost[at], lost[at]] = 1.0
        P = np.linalg.inv(A) * (rest / W)[index][:, None, None]
        if lost.any():
            P[lost[:, :, None] | lost[:, None, :]] = 0.0
        y = np.matmul(P, z[:, :, None])[:, :, 0]
        own = (y * z).sum(axis=1) + lost.sum(axis=1) * step
        entries = P.reshape(len(index), d * d)[:, left * d + right]
        out = np.column_stack([entries, -2.0 * y, own]) @ pairs
        if hard.any():
            out[hard] = refit(index[hard])
        return np.asarray(out)

    return rows


def _whiten_nearly(Z: Array, weight: Array, alone: Mask, refit: Rows) -> Rows:
    r"""Near, in O(n^2 min(n, d)).

    In units of the whole table the covariance without row i is

    .. math:: M_i = \frac{W}{W - w} \left[ S - (1 - g)\,\omega\, zz' - g\,\omega\,
        \mathrm{diag}(z^2) \right], \qquad S = (1 - g)\, C + g I.

    zz' and the entries of diag(z^2) that hold more than `LARGE_ENTRY` of their column are exact
    (Woodbury), the others as if each were the only one; g follows the row to first order.
    """
    (n, d), W = Z.shape, weight.sum()
    rest = W - weight
    omega = weight / rest
    g = _whole_shrinkage(Z, weight)
    if g < NO_VARIANCE:
        return refit
    squares = Z**2
    large = (squares * omega[:, None] > LARGE_ENTRY) | alone
    plain = ~large.any(axis=1)
    S = (1 - g) * (Z * (weight / W)[:, None]).T @ Z
    S.flat[:: d + 1] += g
    P = cho_solve(cho_factor(S), np.eye(d))
    Y, diagonal = Z @ P, np.diagonal(P)
    small = np.where(large, 0.0, g * omega[:, None] * squares)
    small /= np.maximum(1.0 - small * diagonal, 0.5)
    step = unseen_step("whiten", n) ** 2 if alone.any() else 1.0
    # z_i'P z_k, with the small entries of row i, is (z_i + E_i y_i)'y_k.
    left = Z + small * Y
    own, zy = (np.einsum("ij,ij->i", A, Y) for A in (left, Z))
    b = np.maximum((1 - g) * omega, 1e-12)
    change = _shrinkages_of_others(Z, weight, alone) - g if g < 1 else np.zeros(n)
    moves = np.minimum(change, 1.0 - g) / max(1.0 - g, 1e-12)  # dP/dg = (P - PP)/(1 - g)
    lost = zy - np.einsum("ij,ij->i", Y, Y)
    # All that adds up is one product, and so is the root of what zz' adds.
    right = np.vstack([(Y**2).T, zy, lost, Y.T, np.ones(n)])
    cross = -2.0 * (left + moves[:, None] * (Z - Y))
    factors = np.column_stack([small, np.ones(n), moves, cross, own + moves * lost])
    gaps = np.column_stack([-left, own])
    left_over = 1.0 / b - own
    # Rows that hold all of a direction, or much of what the shrinkage comes from.
    hard = (plain & (b * left_over < 1e-6)) | (np.abs(change) > FAR_MOVE * g)
    added = np.divide(1.0, left_over, out=np.zeros(n), where=plain & ~hard)[:, None]
    rank_one = np.sqrt(added) * gaps

    def rows(index: Indices) -> Array:
        out = factors[index] @ right
        root = rank_one[index] @ right[d + 2 :]
        out += np.square(root, out=root)
        for place in np.flatnonzero(~plain[index]):
            B = np.flatnonzero(large[i := index[place]])
            entries = g * omega[i] * squares[i, B]
            if alone[i].any():
                jump2 = squares[i, B] * (W / rest[i]) ** 2
                entries = np.where(alone[i, B], g - rest[i] / W * jump2 / step, entries)
            entries = np.where(np.abs(entries) < 1e-12, 1e-12, entries)
            y = right[d + 2 :][B]
            v = np.vstack([y[:, [i]] - y, gaps[i] @ right[d + 2 :]])
            inner = np.empty((len(B) + 1, len(B) + 1))
            np.negative(P[np.ix_(B, B)], out=inner[:-1, :-1])
            inner[-1, :-1] = inner[:-1, -1] = -y[:, i]
            inner[-1, -1] = -own[i]
            inner.flat[:: len(B) + 2] += 1.0 / np.append(entries, b[i])
            out[place] += quadratic_forms(inner, v)
        out *= (rest / W)[index][:, None]
        if hard[index].any():
            out[hard[index]] = refit(index[hard[index]])
        return np.asarray(out)

    return rows


def quadratic_forms(A: Array, V: Array) -> Array:
    """v'A^-1 v of every column of V, of shape (n,), for a symmetric A: definite as a rule."""
    # Transposes are what LAPACK takes, and works on in place.
    factor, info = dpotrf(A.T, lower=1, clean=0)
    if info == 0 and factor.diagonal().all():
        V = dtrsm(1.0, factor, V.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        return np.asarray(np.einsum("kj,kj->j", V, V))
    return np.asarray(np.einsum("kj,kj->j", np.linalg.solve(A, V), V))


def _shrinkages_of_others(Z: Array, weight: Array, alone: Mask) -> Array:
    """Ledoit-Wolf's shrinkage without each row."""
    if len(Z) <= FEW_ROWS:
        return _standard_shrinkages(Z, variances_of_others(Z, weight, alone), weight, alone)
    # The units of the others hardly differ.
    return shrinkages_without(Z, weight, Z.shape[1] - alone.sum(axis=1))[0]


def _whole_shrinkage(Z: Array, weight: Array) -> float:
    """Ledoit-Wolf's shrinkage of all rows, standardised."""
    (n, d), q = Z.shape, np.einsum("ij,ij->i", Z, Z)
    rooted = Z * np.sqrt(weight)[:, None]
    norm2 = np.asarray(((rooted.T @ rooted) ** 2).sum() / n**2)
    return float(combine_shrinkage(weight @ q**2 / n, norm2, np.ones(()), np.asarray(d), n))
