"""Rows that were written twice, and rows that are equal for other reasons."""

from __future__ import annotations

import numpy as np
import pytest

from kernull.detector.cautions import among_training_rows, copied_share
from kernull.views.kernel_set import KernelSet

TABLES_WITH_EQUAL_ROWS = {
    "one column of counts": lambda rng: rng.poisson(5, (300, 1)),
    "counts": lambda rng: rng.poisson(0.5, (300, 8)),
    "readings of two digits": lambda rng: rng.normal(size=(300, 2)).round(1),
    "whole money": lambda rng: rng.lognormal(3, 1, (1000, 2)).round(),
    "categories beside a reading": lambda rng: np.column_stack(
        [rng.normal(size=300).round(1), rng.integers(0, 3, (300, 3))]
    ),
    "things seen again and again": lambda rng: rng.normal(size=(60, 5))[rng.integers(0, 60, 300)],
    "machine at rest": lambda rng: (rng.random((300, 1)) < 0.7) * rng.normal(size=(300, 8)),
}


@pytest.mark.parametrize("table", TABLES_WITH_EQUAL_ROWS)
def test_equal_rows_of_few_values_are_no_copies(table, rng):
    Z = TABLES_WITH_EQUAL_ROWS[table](rng).astype(float)
    assert len(np.unique(Z, axis=0)) < len(Z)
    assert copied_share((Z - Z.mean(axis=0)) / Z.std(axis=0)) == 0.0


def test_copies_of_some_rows_are_counted(rng):
    rows = rng.normal(size=(300, 8))
    assert copied_share(rows) == 0.0
    assert copied_share(np.vstack([rows, rows[:150]])) == pytest.approx(2 / 3)
    assert copied_share(np.vstack([rows, *[rows[:30]] * 19])) == pytest.approx(600 / 870)
    constant_first = np.column_stack([np.zeros(300), rows])
    assert copied_share(constant_first) == 0.0
    assert copied_share(np.repeat(constant_first, 5, axis=0)) == 1.0


def test_few_rows_say_nothing(rng):
    assert copied_share(np.repeat(rng.normal(size=(5, 3)), 2, axis=0)) == 0.0


def test_training_rows_are_found_among_others_in_any_order(rng):
    rows, new = rng.normal(size=(300, 8)), rng.normal(size=(50, 8))
    kernels = KernelSet.fit(rows, {"a": np.arange(3), "b": np.arange(3, 8)})
    mixed = np.vstack([new, rows[40:20:-1].round(9)])
    assert among_training_rows(kernels, mixed).tolist() == [False] * 50 + [True] * 20
    mixed[:, 4] = 0.0
    assert not among_training_rows(kernels, mixed).any()
    assert among_training_rows(kernels, mixed, without=["b"]).sum() == 20


@pytest.mark.parametrize("table", TABLES_WITH_EQUAL_ROWS)
def test_new_rows_that_equal_training_rows_by_chance_are_not_those(table, rng):
    rows, new = (TABLES_WITH_EQUAL_ROWS[table](rng).astype(float) for _ in range(2))
    kernels = KernelSet.fit(rows, {"all": np.arange(rows.shape[1])})
    assert among_training_rows(kernels, new).mean() < 0.05
