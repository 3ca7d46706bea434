"""E9. OULU-NPU, protocol IV: one model per test subject, learned from bona fide frames alone.

- 12 kernels: three networks (GoogLeNet, ResNet50, VGG16, whatever else is at hand; other networks
  are taken where ``KERNULL_NETWORKS`` names them, and the page says so) x four regions of the face
  (whole, eyes and nose, nose, lower face). Features standardised, as in the paper's other
  experiments, and whitened as in E5 to E8, each reported.
- A subject's model learns from its bona fide videos of sessions 1 and 2 by the five phones that
  are not left out (the conditions of the training list; the lists name none for test subjects).
- Parameters by AUC and the threshold at equal error come from validation subjects, each judged by
  its own model. The paper has two rules, and every method is reported under both: all other
  subjects (the paper's for lp MK-FN: every subject but the one of interest, other test subjects
  included), and the subjects that are not under test (the paper's for Joint lp MK-FN).
- Training and development subjects are listed with the very videos that their models would learn
  from; these models learn from session 1 and are judged on session 2.
- A video's score is the mean over its frames. APCER is the largest over the instruments, ACER its
  mean with BPCER; mean and standard deviation over the six phones.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import get_method
from benchmarks.peers.registry import DELTAS, PS, WIDTHS
from experiments._cells import Cell, Experiment, Rows, Settings
from experiments._deep import GRIDS, MAIN
from experiments._deep_run import _fused, _kpca, _ridge
from experiments._faces import (
    Subject,
    load_faces,
    prepare_faces,
    subject_kernels,
    subjects_of,
)
from experiments._models import aucs, path_scores
from experiments._plots import shared_weights
from experiments._tables import distinct, group, markdown, mean_std, values
from experiments.datasets import load_oulu_npu
from experiments.published import DEEP, LITERATURE
from kernull._typing import Array
from kernull.detector.calibration import Cross
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.paper.metrics import apcer, bpcer, eer

__all__ = ["EXPERIMENT"]

JOINT = "Joint lp MK-FN"
FIXED = tuple(f"{m}-{f}" for m in ("FN", "GP", "KPCA") for f in ("Average", "Product"))
MACHINES = ("MK-SVDD", "Slim-MK-SVDD", "MK-OCSVM", "Slim-MK-OCSVM")
NETWORKS = ("googlenet", "resnet50", "vgg16")
SCALINGS = ("standard", "whiten-raw")
#: Whose data choose parameters and threshold.
RULES = ALL_OTHERS, NOT_TESTED = "all other subjects", "subjects not under test"


def networks() -> list[str]:
    """The paper's networks, or those that ``KERNULL_NETWORKS`` names, separated by commas."""
    chosen = os.environ.get("KERNULL_NETWORKS", "")
    return [name.strip() for name in chosen.split(",") if name.strip()] or list(NETWORKS)


def settings(quick: bool) -> Settings:
    """Phones, networks, regions and grids."""
    return {
        "phones": [1, 2] if quick else [1, 2, 3, 4, 5, 6],
        "networks": networks(),
        "regions": ["face", "eyes_nose", "nose", "lower_face"],
        "frames": 3 if quick else 5,
        "scalings": list(SCALINGS),
        "widths": list(WIDTHS),
        "ps": list(PS),
        "deltas": list(DELTAS),
        "grids": GRIDS,
        "methods": [MAIN, JOINT, *FIXED, *([] if quick else MACHINES)],
        "gap": 1e-4,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Phones x methods x scalings; nothing is drawn at random."""
    for phone in settings["phones"]:
        load_oulu_npu(phone)  # a missing list should be reported before any work is done
    return [
        Cell(f"phone {k}", f"{m}, {scaling}", 0)
        for scaling in settings["scalings"]
        for m in settings["methods"]
        for k in settings["phones"]
    ]


class _Grid(NamedTuple):
    """Scores of every subject's videos by every point of a grid."""

    choices: list[str]
    scores: list[Array]
    """One array (choices, videos) per subject."""


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Error rates of one method and scaling with one phone left out, by both validation rules."""
    method, _, scaling = cell.method.rpartition(", ")
    settings = {**settings, "scaling": scaling}
    protocol = load_oulu_npu(int(cell.data.removeprefix("phone ")))
    views, index = load_faces(settings, folder)
    test = subjects_of(protocol, "Test", index)
    others = [s for part in ("Train", "Dev") for s in subjects_of(protocol, part, index)]
    weights = None
    if method == JOINT:
        tuning, _ = _joint(others, views, settings)
        grid, weights = _joint(test, views, settings)
    else:
        tuning, grid = (_alone(method, part, views, settings) for part in (others, test))
    rows: Rows = []
    for rule in RULES:
        margins, picked = _judge(rule, grid, test, tuning, others)
        row = {"method": method, "scaling": scaling, "rule": rule, "subjects": len(test)}
        row |= {"validated_on": len(others) + (len(test) - 1 if rule == ALL_OTHERS else 0)}
        row |= _errors(test, margins)
        row |= {"choice": grid.choices[max(set(picked), key=picked.count)]}
        if weights is not None and rule == NOT_TESTED:
            row["_weights"] = _weights_by_p(weights, picked[0], settings)
        rows.append(row)
    return rows


def _judge(
    rule: str,
    grid: _Grid,
    test: Sequence[Subject],
    tuning: _Grid,
    others: Sequence[Subject],
) -> tuple[list[Array], list[int]]:
    """Scores above the threshold, and the point chosen, for each test subject.

    Parameters and threshold come from the subjects that are not under test; by the rule of all
    other subjects, also from the test subjects but the one of interest, each judged by its own
    model.
    """
    margins, picked = [], []
    for i in range(len(test)):
        rest = [k for k in range(len(test)) if k != i] if rule == ALL_OTHERS else []
        labels = np.concatenate([s.labels for s in (*others, *(test[k] for k in rest))])
        scores = np.concatenate([*tuning.scores, *(grid.scores[k] for k in rest)], axis=1)
        best, threshold = _choose(labels, scores)
        margins.append(grid.scores[i][best] - threshold)
        picked.append(best)
    return margins, picked


def _errors(test: Sequence[Subject], margins: Sequence[Array]) -> dict[str, Any]:
    """Error rates over all test subjects; a margin of zero or more accepts."""
    labels = np.concatenate([s.labels for s in test])
    margin = np.concatenate(margins)
    instruments = [name for s in test for name in s.instruments]
    attacks = apcer(labels, margin, 0.0, instruments=instruments)
    worst = max(attacks, key=attacks.__getitem__)
    missed = bpcer(labels, margin, 0.0)
    return {
        "apcer": attacks[worst],
        "bpcer": missed,
        "acer": (attacks[worst] + missed) / 2,
        "worst": str(worst),
        "auc": float(aucs(labels, margin)),
    }


def _weights_by_p(weights: Array, best: int, settings: Settings) -> list[list[float]]:
    """The shared weights for every p, at the width and delta that were chosen."""
    P, D = len(settings["ps"]), len(settings["deltas"])
    width, rest = divmod(best, P * D)
    by: Any = weights.reshape(-1, P, D, weights.shape[-1])[width, :, rest % D]
    return [[float(w) for w in b] for b in by]


def _choose(labels: Any, scores: Array) -> tuple[int, float]:
    """The point with the best AUC over subjects pooled, and its threshold at equal error."""
    best = int(np.argmax(aucs(labels, scores)))
    return best, eer(labels, scores[best]).threshold


def _alone(
    method: str, subjects: Sequence[Subject], views: dict[str, Array], settings: Settings
) -> _Grid:
    """Each subject's own model, over the whole grid."""
    choices: list[str] = []
    scores = []
    for subject in subjects:
        found: list[Array] = []
        names: list[str] = []
        for width, stack, cross in subject_kernels(subject, views, settings):
            points, part = _scores(method, stack, cross, settings)
            names += [f"width={width:g}, {point}" for point in points]
            found.append(subject.by_video(part))
        choices = names
        scores.append(np.concatenate(found))
    return _Grid(choices, scores)


def _scores(method: str, stack: Any, cross: Any, settings: Settings) -> tuple[list[str], Array]:
    """Scores (choices, frames) of one subject at one width."""
    grids = settings["grids"]
    if method == MAIN:
        ps, deltas = tuple(settings["ps"]), tuple(settings["deltas"])
        scores, _ = path_scores(stack, cross, ps, deltas, settings["gap"])
        points = [f"p={p:.5g}, delta={d:g}" for p, d in itertools.product(ps, deltas)]
        return points, scores.reshape(len(points), -1)
    if method in FIXED:
        kind, _, fusion = method.partition("-")
        K, C = (_fused(s.kernels, fusion) for s in (stack, cross))
        if kind == "KPCA":
            shares = grids["KPCA"]["components"]
            return [f"components={s:g}" for s in shares], np.stack(list(_kpca(K, C, shares)))
        if kind == "GP":
            noises = grids["GP"]["noise"]
            coefs = np.stack([_ridge(K, s) for s in noises])
            return [f"noise={s:g}" for s in noises], coefs @ C.T
        coefs = np.stack([_ridge(K, d * len(K)) for d in settings["deltas"]])
        return [f"delta={d:g}" for d in settings["deltas"]], coefs @ C.T
    points, rows = [], []
    for entry in itertools.product(*grids[method].values()):
        point = dict(zip(grids[method], entry, strict=True))
        model = get_method(method).make(kernels="precomputed", calibration=Cross(2), **point)
        rows.append(model.fit(stack).score_samples(cross))
        points.append(", ".join(f"{k}={v:g}" for k, v in point.items()))
    return points, np.stack(rows)


def _joint(
    subjects: Sequence[Subject], views: dict[str, Array], settings: Settings
) -> tuple[_Grid, Array]:
    """Joint models of all subjects over the whole grid, and their shared weights."""
    kernels = [subject_kernels(subject, views, settings) for subject in subjects]
    choices: list[str] = []
    weights: list[Array] = []
    scores: list[list[Array]] = [[] for _ in subjects]
    for w, width in enumerate(entry[0] for entry in kernels[0]):
        for p, delta in itertools.product(settings["ps"], settings["deltas"]):
            tasks = [FisherProblem(k[w][1], delta * k[w][1].n) for k in kernels]
            joint = JointFisherProblem(tasks)
            result = solve(joint, LpBall(p), tol=settings["gap"])
            weights.append(result.weights)
            choices.append(f"width={width:g}, p={p:.5g}, delta={delta:g}")
            for i, coef in enumerate(joint.split(result.coef)):
                frames = np.tensordot(result.weights, kernels[i][w][2].products(coef), axes=1)
                scores[i].append(subjects[i].by_video(frames))
    return _Grid(choices, [np.stack(found) for found in scores]), np.stack(weights)


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """Error rates of every method beside the published ones, and the shared weights."""
    columns = ("apcer", "bpcer", "acer")
    by = group(rows, "method", "scaling", "rule")
    lines = []
    for (method, scaling, rule), part in by.items():
        known = DEEP["E9"].get(method)
        papers = rule == (NOT_TESTED if method == JOINT else ALL_OTHERS)
        lines.append(
            [
                method,
                scaling,
                rule,
                *(mean_std(100 * values(part, column)) for column in columns),
                f"{known[0]} ± {known[1]}" if known is not None and papers else "",
                f"{len(part)} of {len(settings['phones'])}",
            ]
        )
    for method, (mean, spread) in LITERATURE["E9"].items():
        blank = [""] * len(columns)
        lines.append([method, "", "literature, as published", *blank, f"{mean} ± {spread}", ""])
    subjects, validated = distinct(rows, "subjects"), distinct(rows, "validated_on")
    other = settings["networks"] != list(NETWORKS)
    header = ["method", "scaling", "validated on", "APCER", "BPCER", "ACER"]
    header += ["published ACER", "phones"]
    parts = [
        f"Percent, mean ± std over phones; {min(subjects)} to {max(subjects)} test subjects per "
        f"phone, {min(validated)} to {max(validated)} subjects validate. Networks: "
        f"{', '.join(settings['networks'])}"
        + (" (not the paper's)" if other else "")
        + f"; regions: {', '.join(settings['regions'])}. The published figure stands beside the "
        "rule that the paper has for the method.",
        markdown(header, lines),
    ]
    for scaling in settings["scalings"]:
        joint = by.get((JOINT, scaling, NOT_TESTED), [])
        if joint:
            file = f"weights_{scaling}.png"
            _draw_weights([row["_weights"] for row in joint], settings, folder / file)
            parts += [
                f"The weights that all test subjects share, for each p ({scaling}; mean over "
                "phones, at the width and delta chosen on the subjects that are not under test), "
                "as shares of their sum:",
                f"![shared weights for each p, {scaling}]({file})",
            ]
    return "\n\n".join(parts)


def _draw_weights(weights: list[Any], settings: Settings, path: Path) -> None:
    table = np.mean(np.asarray(weights, dtype=float), axis=0)
    table = table / table.sum(axis=1, keepdims=True)
    names = [f"{n}\n{r}" for n in settings["networks"] for r in settings["regions"]]
    shared_weights(table, settings["ps"], names, path, "Shared kernel weights of the test subjects")


EXPERIMENT = Experiment(
    "E9",
    "OULU-NPU, protocol IV: unseen presentation attacks",
    settings,
    cells,
    run,
    report,
    prepare=prepare_faces,
)
