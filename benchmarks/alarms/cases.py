"""The cases: a generator, its size, and how a model is fitted to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

import kernull
from benchmarks.alarms import generators as g

__all__ = ["CASES", "Case", "named"]


@dataclass(frozen=True)
class Case:
    """One generator at one size.

    ``weights`` gives sample weights for a number of rows, ``times`` repeats every training row
    with a little noise, ``tasks`` is for the joint estimator: n rows for each of so many tasks.
    ``codes``, where it is not None, is for tables that go through TableViews: so many of the last
    columns are categories, and ``gaps`` are the shares of empty cells in training and new rows.
    ``kernels`` computes kernels (J, a, b) between rows, for models of precomputed ones.
    """

    name: str
    make: Callable[..., Any]
    n: int
    d: int
    discrete: bool = False
    full: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    weights: Callable[[Any, int], Any] | None = None
    times: int = 1
    tasks: int = 0
    codes: int | None = None
    gaps: tuple[float, float] = (0.0, 0.0)
    kernels: Callable[[Any, Any], Any] | None = None

    @property
    def key(self) -> str:
        return f"{self.name}, {self.n} x {self.d}"

    def populations(self, rng):
        """One sampler, or one for each task."""
        return [self.make(rng, self.d, **self.options) for _ in range(max(self.tasks, 1))]

    def training(self, rng, populations):
        """Training rows, their weights and their groups."""
        if self.tasks:
            X = np.vstack([draw(self.n) for draw in populations])
            return X, None, np.repeat(np.arange(self.tasks), self.n)
        X = populations[0](self.n // self.times)
        if self.times > 1:
            X = np.repeat(X, self.times, axis=0)
            X = X + 1e-3 * X.std(axis=0) * rng.normal(size=X.shape)
            return X, None, np.repeat(np.arange(self.n // self.times), self.times)
        return X, None if self.weights is None else self.weights(rng, self.n), None

    def test(self, populations, rows):
        """New normal rows, and the tasks they belong to (None where there are none)."""
        share = rows // len(populations)
        X = np.vstack([draw(share) for draw in populations])
        return X, np.repeat(np.arange(self.tasks), share) if self.tasks else None

    def outliers(self, rng, X):
        """Planted outliers: numbers are moved, codes stay."""
        numbers = self.d - (self.codes or 0)
        return np.hstack([g.outliers(rng, X[:, :numbers]), X[:, numbers:]])

    def fit(self, X, weights, groups, calibration, decision=None, **more):
        """A fitted model; warnings are the caller's."""
        options = {**self.model, **more}
        if decision is None:  # that of the case, or the default
            decision = options.get("decision")
        if self.tasks:
            made = kernull.JointMultiKernelFisherNull(
                **_known(kernull.JointMultiKernelFisherNull, {**options, "decision": decision})
            )
            return made.fit(X, groups=groups)
        options = {**options, "decision": decision}
        if calibration != "cross":  # the default, which the version before calls otherwise
            options["calibration"] = calibration
        made = kernull.MultiKernelFisherNull(**_known(kernull.MultiKernelFisherNull, options))
        if self.codes is not None:
            kinds = {f"x{c}": "category" for c in range(self.d - self.codes, self.d)}
            table = kernull.TableViews(kinds=kinds)
            return _OfTable(table, made.fit(table.fit_transform(X)))
        if self.kernels is not None:
            made.set_params(kernels="precomputed")
            return _OfKernels(X, self.kernels, made.fit(self.kernels(X, X)))
        fitting = {"sample_weight": weights, "groups": groups}
        known = inspect.signature(made.fit).parameters
        return made.fit(X, **{k: v for k, v in fitting.items() if v is not None and k in known})


@dataclass(frozen=True)
class _OfTable:
    """A model that reads its rows through a table."""

    table: Any
    model: Any

    @property
    def calibration_(self):
        return self.model.calibration_

    def p_values(self, X):
        return self.model.p_values(self.table.transform(X))

    @property
    def rarity(self):
        rarity = self.model.rarity
        return lambda X: rarity(self.table.transform(X))

    def detect(self, X, fdr):
        return self.model.detect(self.table.transform(X), fdr=fdr)


@dataclass(frozen=True)
class _OfKernels:
    """A model of precomputed kernels with the rows they are computed from."""

    rows: Any
    kernels: Callable[[Any, Any], Any]
    model: Any

    @property
    def calibration_(self):
        return self.model.calibration_

    def p_values(self, X):
        return self.model.p_values(self.kernels(X, self.rows))

    @property
    def rarity(self):
        rarity = self.model.rarity
        return lambda X: rarity(self.kernels(X, self.rows))

    def detect(self, X, fdr):
        return self.model.detect(self.kernels(X, self.rows), fdr=fdr)


def _known(cls, options):
    """Options that the class has; a decision that is None is its default."""
    known = inspect.signature(cls).parameters
    return {
        k: v for k, v in options.items() if not (k == "decision" and (v is None or k not in known))
    }


def _all(value):
    return lambda rng, n: np.full(n, value)


def _polynomial(*degrees):
    """Kernels (1 + x'y / d)^degree of columns that are about as large as one."""

    def kernels(X, Y):
        return np.stack([(1.0 + X @ Y.T / X.shape[1]) ** degree for degree in degrees])

    return kernels


_TABLE = [
    # Those of the issue, with their sizes.
    Case("one-hot", g.one_hot, 1000, 100, discrete=True),
    Case("one-hot", g.one_hot, 2000, 200, discrete=True, full=True),
    *(
        Case(name, make, n, d, full=n > 1000)
        for n, d in ((1000, 100), (2000, 200))
        for name, make in (
            ("five factors", g.factor),
            ("autoregressive", g.autoregressive),
            ("clusters", g.clusters),
        )
    ),
    Case(
        "repeated rows, one view per column",
        g.rare_ones,
        300,
        3,
        discrete=True,
        model={"views": "features", "delta": 1e-3},
    ),
    Case(
        "repeated rows, the paper's setting",
        g.rare_ones,
        300,
        10,
        discrete=True,
        options={"share": 0.05},
        model=dict(kernull.PAPER),
    ),
    Case("weights all 2", g.factor, 300, 8, weights=_all(2.0)),
    Case("weights all 5", g.factor, 300, 8, weights=_all(5.0)),
    Case("weights from 1 to 5", g.factor, 300, 8, weights=lambda rng, n: rng.uniform(1, 5, n)),
    Case(
        "weights that sum to 1",
        g.factor,
        300,
        8,
        weights=lambda rng, n: (w := rng.uniform(1, 5, n)) / w.sum(),
    ),
    Case("joint, five tasks", g.factor, 20, 50, tasks=5),
    Case("joint, five tasks", g.factor, 20, 100, tasks=5),
    Case("joint, five tasks", g.factor, 20, 500, tasks=5, full=True),
    Case("lognormal, sigma 3", g.lognormal, 100, 20, options={"sigma": 3.0}),
    Case("cosine kernels", g.lognormal, 100, 20, model={"kernels": "cosine"}),
    Case("near copies, with groups", g.factor, 400, 8, times=2),
    Case("deep embedding", g.embedding, 110, 300),
    Case("deep embedding", g.embedding, 110, 1500, full=True),
]
_MORE = [
    Case("Gaussian", g.gauss, 300, 8),
    Case("Gaussian", g.gauss, 100, 100),
    Case("Gaussian", g.gauss, 20, 5),
    Case("Gaussian", g.gauss, 20, 50),
    Case("five factors", g.factor, 150, 300),
    Case("five factors, noise 0.3", g.factor, 300, 400, options={"noise": 0.3}),
    Case("five factors", g.factor, 50, 10),
    Case("one-hot", g.one_hot, 100, 100, discrete=True),
    Case("skewed categories", g.skewed_categories, 500, 60, discrete=True),
    Case("skewed categories", g.skewed_categories, 200, 20, discrete=True),
    Case("numbers and a category", g.mixed, 500, 25),
    Case("rare switches", g.rare_switches, 600, 16),
    Case("lognormal, sigma 1", g.lognormal, 300, 30),
    Case("Student, 2 degrees", g.student, 300, 10),
    Case("Cauchy", g.student, 300, 5, options={"df": 1.0}),
    Case("exponential", g.exponential, 300, 10),
    Case("zero-inflated", g.zero_inflated, 400, 15),
    Case("counts", g.counts, 500, 20),
    Case("answers from 1 to 5", g.answers, 400, 30),
    Case("finite population", g.finite, 300, 5, discrete=True),
    Case("constant columns", g.with_constants, 200, 12),
    Case("units from 1e-6 to 1e6", g.units, 200, 12),
    Case("ring", g.ring, 300, 3),
    Case("one view per column", g.factor, 200, 8, model={"views": "features"}),
    Case(
        "two views",
        g.factor,
        200,
        12,
        model={"views": {"a": list(range(6)), "b": list(range(6, 12))}},
    ),
    Case("autoregressive", g.autoregressive, 300, 100),
]
_TABLES = [
    Case("table with categories", g.with_codes, 300, 8, codes=2),
    Case("table with categories", g.with_codes, 500, 20, codes=4, options={"codes": 4}),
    *(
        Case(f"table with gaps in {where}", g.factor, 300, 10, codes=0, gaps=gaps)
        for where, gaps in (
            ("training rows", (0.2, 0.0)),
            ("all rows", (0.2, 0.2)),
        )
    ),
    *(
        Case(f"categories and gaps in {where}", g.with_codes, 400, 12, codes=2, gaps=gaps)
        for where, gaps in (
            ("training rows", (0.1, 0.0)),
            ("all rows", (0.1, 0.1)),
        )
    ),
    Case("counts with gaps in training rows", g.counts, 300, 10, codes=0, gaps=(0.2, 0.0)),
    Case("lognormal with gaps in training rows", g.lognormal, 300, 10, codes=0, gaps=(0.2, 0.0)),
]
#: Gaps in new rows alone are evidence against these: `benchmarks.unseen`.
_WHERE = (("training rows", (0.2, 0.0)), ("all rows", (0.2, 0.2)))
#: Added when numbers came to be drawn by normal scores, before any of them was run.
_GAPS = [
    *(
        Case(f"{name} with gaps in {where}", make, 300, 10, codes=0, gaps=gaps, options=options)
        for name, make, options in (
            ("lognormal, sigma 2,", g.lognormal, {"sigma": 2.0}),
            ("skewed and correlated", g.skewed_factor, {}),
        )
        for where, gaps in _WHERE
    ),
    Case("Gaussian with gaps in training rows", g.gauss, 300, 10, codes=0, gaps=(0.2, 0.0)),
    Case("Cauchy with gaps in training rows", g.student, 300, 10, codes=0, gaps=(0.2, 0.0),
         options={"df": 1.0}),
    Case("lognormal with a few gaps in training rows", g.lognormal, 200, 10, codes=0,
         gaps=(0.1, 0.0)),
    Case("lognormal with gaps in training rows", g.lognormal, 1000, 10, codes=0, gaps=(0.2, 0.0)),
    Case("half-empty training rows", g.factor, 300, 10, codes=0, gaps=(0.5, 0.0)),
    Case("half-empty lognormal training rows", g.lognormal, 300, 10, codes=0, gaps=(0.5, 0.0)),
]  # fmt: skip
_LARGE = [
    Case(name, make, n, d, discrete=discrete, full=True)
    for n, d in ((5000, 50), (500, 2000))
    for name, make, discrete in (
        ("five factors", g.factor, False),
        ("one-hot", g.one_hot, True),
        ("lognormal, sigma 1", g.lognormal, False),
        ("autoregressive", g.autoregressive, False),
    )
]
#: Those of protocol 2.
_NEW = [
    *(
        Case(f"{name}, one view per column", make, n, d, model={"views": "features"})
        for name, make in (("Gaussian", g.gauss), ("five factors", g.factor))
        for n, d in ((100, 30), (300, 30), (100, 60), (300, 60))
    ),
    Case("PCA(60) as a scaling", g.factor, 120, 200, model={"scaling": PCA(60)}),
    Case("PCA(20) as a scaling", g.autoregressive, 300, 100, model={"scaling": PCA(20)}),
    Case("numbers and a level for every row", g.many_levels, 200, 206),
    Case("one-hot, a level for every row", g.one_hot, 200, 200, discrete=True),
    Case("table with a level for every row", g.many_codes, 60, 7, codes=1),
    *(
        Case(f"precomputed, polynomial of degree {shown}", make, n, d, kernels=_polynomial(*of))
        for shown, of in (("2", (2,)), ("3", (3,)), ("2 and 3", (2, 3)))
        for make, n, d in ((g.gauss, 100, 8), (g.factor, 300, 8))
    ),
    Case("weights from 1 to 100", g.factor, 300, 8, weights=lambda rng, n: rng.uniform(1, 100, n)),
    Case("lognormal weights", g.factor, 300, 8, weights=lambda rng, n: rng.lognormal(0, 1, n)),
    Case("a tenth weighs 50", g.factor, 300, 8,
         weights=lambda rng, n: np.where(rng.random(n) < 0.1, 50.0, 1.0)),
    *(
        Case(f"{name}, sum and whitening", make, 200, d,
             model={"decision": "sum", "scaling": "whiten"})
        for name, make in (("Gaussian", g.gauss), ("five factors", g.factor))
        for d in (40, 100, 200)
    ),
    *(
        Case(f"nystroem, by {decision}", g.factor, n, 10, full=n > 1500,
             model={"decision": decision, "storage": "nystroem"})
        for n in (1500, 5000)
        for decision in ("evidence", "sum")
    ),
]  # fmt: skip
CASES = (*_TABLE, *_MORE, *_TABLES, *_GAPS, *_NEW, *_LARGE)


def named(key):
    """The case of a key."""
    return next(case for case in CASES if case.key == key)
