"""Learning from rows that are read block by block: Nystroem in feature space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernull._typing import Indices
from kernull.calibration import LeftOut, leaking_view, left_out_projections, warn_of_leak
from kernull.calibration.sampled import SAMPLE_ROWS
from kernull.models.evidence import EvidenceMethod, evidence_of_landmarks
from kernull.models.fisher import FisherMethod
from kernull.models.kernels import Settings, TableKernels, TableRows, normalise
from kernull.models.model import Certificate, KernelModel, RidgeSystem, calibrate
from kernull.models.rules import FisherRule
from kernull.problems import FisherProblem
from kernull.solvers import solve
from kernull.stacks import choose_landmarks
from kernull.stacks.features import FeatureGram, Features
from kernull.stacks.planner import check_stream_memory
from kernull.stacks.sources import Source, sample_rows

#: Rows of the pilot that say what kernels are divided by.
NORMALISING_ROWS = 1000

#: Rows from which scaling, widths and landmarks are learned.
PILOT_ROWS = 20_000


def stream(
    method: FisherMethod, rows: Source, views: Mapping[str, Indices], settings: Settings
) -> KernelModel:
    """Fit a model in two sweeps over the rows.

    The first draws a pilot sample (scaling, widths, landmarks and the calibration rows come from
    it), the second sums the Gram matrix of the features. The problem that is left is exact for the
    Nystroem kernels; its gap is certified as always.
    """
    n = rows.shape[0]
    pilot = sample_rows(rows, max(PILOT_ROWS, settings.landmarks))
    fitted = TableRows(pilot, views).fit_kernels(pilot, None, settings, drop=settings.drop_constant)
    warn_of_leak(leaking_view(fitted, fitted.n))
    ball = method.ball(TableKernels(fitted))
    check_stream_memory(fitted.J, min(settings.landmarks, fitted.n), settings.memory_limit)
    kernels = fitted.take(choose_landmarks(fitted, settings.landmarks))
    gram = FeatureGram(Features(kernels)).add(rows.blocks())
    stack, target = gram.reduce()
    some = np.random.default_rng(2).permutation(fitted.n)[:NORMALISING_ROWS]
    factors = normalise(fitted.take(some).stack(), settings.normalize)
    if factors is not None:
        stack.scale = stack.scale * factors
    ridge = method.delta * n
    problem = FisherProblem(stack, ridge, target)
    result = solve(problem, ball, method.solver, tol=method.tol, max_iter=method.max_iter)
    # The solver's own coefficients are as good as its certificate asks; thresholds want exact ones.
    coef: Any = gram.landmark_coefficients(problem.evaluate(result.weights).coef)
    rule: Any = FisherRule(result.weights, coef, method.score_type)
    # The pilot keeps the order of the source, which may be that of time: draw from all of it.
    sample = np.random.default_rng(1).permutation(len(pilot))[:SAMPLE_ROWS]
    scaled = result.weights if factors is None else result.weights * factors
    inverse, a = gram.inverse_entries(pilot[sample], scaled, ridge)
    scores = rule.projection_to_score(left_out_projections(inverse, a))
    if isinstance(method, EvidenceMethod):
        rule = evidence_of_landmarks(kernels, rule, pilot)
        scores = -rule.left_out()
    return KernelModel(
        TableKernels(kernels, factors),
        rule,
        **calibrate(LeftOut(scores), settings.false_alarm_rate),
        certificate=Certificate.of(result),
        system=RidgeSystem(float(method.p), method.delta, ridge),
        n_given=n,
    )
