"""Populations of normal rows: each takes a random generator and d, and gives a sampler of rows.

A sampler is ``draw(n) -> array (n, d)``; what it draws later comes from the same population.
"""

from __future__ import annotations

import numpy as np


def gauss(rng, d):
    return lambda n: rng.normal(size=(n, d))


def factor(rng, d, factors=5, noise=0.5):
    loadings = rng.normal(size=(factors, d))
    return lambda n: rng.normal(size=(n, factors)) @ loadings + noise * rng.normal(size=(n, d))


def autoregressive(rng, d, rho=0.8):
    def draw(n):
        X = rng.normal(size=(n, d))
        for c in range(1, d):
            X[:, c] = rho * X[:, c - 1] + np.sqrt(1 - rho**2) * X[:, c]
        return X

    return draw


def clusters(rng, d, k=5):
    centres = 3.0 * rng.normal(size=(k, d)) / np.sqrt(d) * np.sqrt(10)
    return lambda n: centres[rng.integers(0, k, n)] + rng.normal(size=(n, d))


def one_hot(rng, d):
    def draw(n):
        X = np.zeros((n, d))
        X[np.arange(n), rng.integers(0, d, n)] = 1.0
        return X

    return draw


def skewed_categories(rng, d, columns=3):
    """Several categories of Zipf frequencies, each as one-hot columns."""
    sizes = np.full(columns, d // columns)
    sizes[0] += d - sizes.sum()

    def draw(n):
        blocks = []
        for size in sizes:
            p = 1.0 / np.arange(1, size + 1) ** 1.5
            picked = rng.choice(size, n, p=p / p.sum())
            blocks.append(np.eye(size)[picked])
        return np.hstack(blocks)

    return draw


def rare_ones(rng, d, share=0.01):
    """Rows that are nearly all zero: of 300 rows, at a share of 1%, 297 are."""

    def draw(n):
        X = np.zeros((n, d))
        odd = rng.permutation(n)[: round(share * n)]
        X[odd, rng.integers(0, d, len(odd))] = 1.0
        return X

    return draw


def lognormal(rng, d, sigma=1.0):
    return lambda n: rng.lognormal(0.0, sigma, (n, d))


def skewed_factor(rng, d):
    """Lognormal columns that hang together."""
    inner = factor(rng, d)
    return lambda n: np.exp(inner(n) / 2.5)


def student(rng, d, df=2.0):
    return lambda n: rng.standard_t(df, (n, d))


def counts(rng, d):
    rates = rng.uniform(0.3, 5.0, d)
    return lambda n: rng.poisson(rates, (n, d)).astype(float)


def answers(rng, d):
    """Answers from 1 to 5 that hang together."""
    loadings = rng.normal(size=(2, d))

    def draw(n):
        latent = rng.normal(size=(n, 2)) @ loadings + rng.normal(size=(n, d))
        return np.clip(np.round(latent + 3.0), 1.0, 5.0)

    return draw


def exponential(rng, d):
    return lambda n: rng.exponential(size=(n, d))


def zero_inflated(rng, d):
    return lambda n: rng.gamma(2.0, size=(n, d)) * (rng.random((n, d)) < 0.6)


def mixed(rng, d):
    """A fifth of the columns numbers, the others a skewed category that shifts them."""
    numbers = max(d // 5, 1)
    levels = d - numbers
    shift = rng.normal(size=(levels, numbers))
    p = 1.0 / np.arange(1, levels + 1)

    def draw(n):
        picked = rng.choice(levels, n, p=p / p.sum())
        return np.hstack([shift[picked] + rng.normal(size=(n, numbers)), np.eye(levels)[picked]])

    return draw


def with_codes(rng, d, codes=2):
    """Numbers that hang together beside codes of skewed categories, each of which shifts them."""
    inner, sizes = factor(rng, d - codes), rng.integers(3, 9, codes)
    shifts = [rng.normal(size=(size, d - codes)) for size in sizes]
    shares = [1.0 / np.arange(1, size + 1) for size in sizes]

    def draw(n):
        picked = [rng.choice(len(p), n, p=p / p.sum()) for p in shares]
        numbers = inner(n) + sum(shift[c] for shift, c in zip(shifts, picked, strict=True))
        return np.column_stack([numbers, *picked])

    return draw


def many_levels(rng, d, numbers=6):
    """Numbers that hang together beside a category of equally frequent levels, one column each."""
    inner = factor(rng, numbers)
    return lambda n: np.hstack([inner(n), one_hot(rng, d - numbers)(n)])


def many_codes(rng, d, levels=60):
    """Numbers that hang together beside codes of so many levels, all equally frequent."""
    inner = factor(rng, d - 1)
    return lambda n: np.column_stack([inner(n), rng.integers(0, levels, n)])


def finite(rng, d, kinds=100):
    """A finite population: rows repeat, in training and in the test alike."""
    population = rng.normal(size=(kinds, d))
    return lambda n: population[rng.integers(0, kinds, n)]


def with_constants(rng, d):
    inner = factor(rng, d - d // 3)
    values = 10.0 ** rng.uniform(-6, 6, d // 3)
    return lambda n: np.hstack([inner(n), np.tile(values, (n, 1))])


def rare_switches(rng, d, share=0.005):
    """Numbers beside switches that half a percent of the rows have on."""
    half = d // 2
    return lambda n: np.hstack([rng.normal(size=(n, half)), (rng.random((n, d - half)) < share)])


def embedding(rng, d):
    """Activations of a network: a decaying spectrum, cut off at zero."""
    basis = rng.normal(size=(d, d)) / np.sqrt(d)
    spectrum = 1.0 / np.sqrt(1.0 + np.arange(d))
    return lambda n: np.maximum((rng.normal(size=(n, d)) * spectrum) @ basis + 0.02, 0.0)


def ring(rng, d):
    """A noisy circle in the first two columns of d."""

    def draw(n):
        X = 0.1 * rng.normal(size=(n, d))
        angle = rng.uniform(0, 2 * np.pi, n)
        X[:, 0] += np.cos(angle)
        X[:, 1] += np.sin(angle)
        return X

    return draw


def units(rng, d):
    inner, size = factor(rng, d), 10.0 ** rng.uniform(-6, 6, d)
    return lambda n: inner(n) * size


def outliers(rng, X):
    """Normal rows with a third of their columns moved by six standard deviations, either way."""
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    moved = rng.random(X.shape) < 1 / 3
    moved[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = True  # at least one
    return X + 6.0 * spread * moved * rng.choice([-1.0, 1.0], X.shape)


def emptied(rng, X, share):
    """The same with a share of the cells empty, in rows that keep at least one."""
    holes = rng.random(X.shape) < share
    holes[holes.all(axis=1)] = False
    return np.where(holes, np.nan, X)
