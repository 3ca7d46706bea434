"""E9. OULU-NPU, protocol IV: one model a test subject, learned from bona fide frames alone.

- 12 kernels: three networks x four regions of the face (whole, eyes and nose, nose, lower face).
- A subject's model learns from its bona fide videos of sessions 1 and 2 by the five phones that
  are not left out (the conditions of the training list; the lists name none for test subjects).
- lp MK-FN and the other methods: parameters by AUC, and the threshold at equal error, on the data
  of all other test subjects, each judged by its own model, as the paper describes. Joint lp MK-FN:
  on the development subjects under a joint model of their own.
- A video's score is the mean over its frames. APCER is the largest over the four instruments,
  ACER its mean with BPCER; mean and standard deviation over the six phones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments._cells import Cell, Experiment, Rows, Settings
from experiments._deep import GRIDS, MAIN, networks_here
from experiments._deep_run import _fused, _kpca, _ridge
from experiments._faces import (
    Subject,
    load_faces,
    prepare_faces,
    subject_kernels,
    subjects_of,
)
from experiments._models import aucs, path_scores
from experiments._plots import new_figure, save
from experiments._tables import distinct, group, markdown, mean_std, values
from experiments.datasets import load_oulu_npu
from experiments.published import DEEP
from kernull._typing import Array
from kernull.balls import LpBall
from kernull.methods import get_method
from kernull.methods.registry import DELTAS, PS, WIDTHS
from kernull.metrics import apcer, bpcer, threshold_at_eer
from kernull.problems import FisherProblem, JointFisherProblem
from kernull.solvers import solve

__all__ = ["EXPERIMENT"]

JOINT = "Joint lp MK-FN"
FIXED = tuple(f"{m}-{f}" for m in ("FN", "GP", "KPCA") for f in ("Average", "Product"))
MACHINES = ("MK-SVDD", "Slim-MK-SVDD", "MK-OCSVM", "Slim-MK-OCSVM")
NETWORKS = ("torchvision:googlenet", "torchvision:resnet50", "torchvision:vgg16")


def settings(quick: bool) -> Settings:
    """Phones, networks, regions and grids."""
    here = networks_here()
    preferred = [n for n in ("inception_v3", "vgg16", "mobilenet_v2") if n in here]
    networks = list(NETWORKS) if ":" in here[0] else (preferred + here)[:3]
    return {
        "phones": [1, 2] if quick else [1, 2, 3, 4, 5, 6],
        "networks": list(dict.fromkeys(networks)),
        "regions": ["face", "eyes_nose", "nose", "lower_face"],
        "frames": 3 if quick else 5,
        "scaling": "whiten-raw",
        "widths": list(WIDTHS),
        "ps": list(PS),
        "deltas": list(DELTAS),
        "grids": GRIDS,
        "methods": [MAIN, JOINT, *FIXED, *([] if quick else MACHINES)],
        "gap": 1e-4,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Phones x methods; nothing is drawn at random."""
    for phone in settings["phones"]:
        load_oulu_npu(phone)  # a missing list should be reported before any work is done
    return [Cell(f"phone {k}", m, 0) for m in settings["methods"] for k in settings["phones"]]


class _Grid(NamedTuple):
    """Scores of every subject's videos by every point of a grid."""

    choices: list[str]
    scores: list[Array]
    """One array (choices, videos) a subject."""


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """ACER of one method with one phone left out."""
    protocol = load_oulu_npu(int(cell.data.removeprefix("phone ")))
    views, index = load_faces(settings, folder)
    test = subjects_of(protocol, "Test", index)
    more: dict[str, Any] = {}
    if cell.method == JOINT:
        dev = subjects_of(protocol, "Dev", index)
        tuning, _ = _joint(dev, views, settings)
        grid, weights = _joint(test, views, settings)
        best, threshold = _choose(tuning, dev, range(len(dev)))
        margins = [scores[best] - threshold for scores in grid.scores]
        per = len(settings["ps"]) * len(settings["deltas"])
        width, rest = divmod(best, per)
        delta = rest % len(settings["deltas"])
        # The shared weights for every p, at the width and delta that were chosen.
        chosen = weights.reshape(-1, len(settings["ps"]), len(settings["deltas"]), len(views))
        more = {"choice": grid.choices[best], "_weights": chosen[width, :, delta].tolist()}
    else:
        grid = _alone(cell.method, test, views, settings)
        margins, picked = [], []
        for i in range(len(test)):
            others = [k for k in range(len(test)) if k != i] or [i]
            best, threshold = _choose(grid, test, others)
            margins.append(grid.scores[i][best] - threshold)
            picked.append(grid.choices[best])
        more = {"choice": max(set(picked), key=picked.count)}
    labels = np.concatenate([s.labels for s in test])
    margin = np.concatenate(margins)
    instruments = [name for s in test for name in s.instruments]
    attacks = apcer(labels, margin, 0.0, instruments=instruments)
    missed = bpcer(labels, margin, 0.0)
    return [
        {
            "apcer": attacks.max,
            "bpcer": missed,
            "acer": (attacks.max + missed) / 2,
            "worst": str(attacks.worst),
            "auc": float(aucs(labels, margin)),
            "subjects": len(test),
            **more,
        }
    ]


def _choose(grid: _Grid, subjects: Sequence[Subject], rows: Any) -> tuple[int, float]:
    """The point with the best AUC over some subjects pooled, and its threshold at equal error."""
    labels = np.concatenate([subjects[k].labels for k in rows])
    scores = np.concatenate([grid.scores[k] for k in rows], axis=1)
    best = int(np.argmax(aucs(labels, scores)))
    return best, threshold_at_eer(labels, scores[best])


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
        model = get_method(method).make(kernels="precomputed", calibration_folds=2, **point)
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
    """ACER of every method beside the published ones, and the shared weights."""
    lines = []
    by = group(rows, "method")
    for method in [m for m in settings["methods"] if (m,) in by]:
        part = by[(method,)]
        known = DEEP["E9"].get(method)
        lines.append(
            [
                method,
                *(mean_std(100 * values(part, column)) for column in ("apcer", "bpcer", "acer")),
                "" if known is None else f"{known[0]} ± {known[1]}",
                f"{len(part)} of {len(settings['phones'])}",
            ]
        )
    subjects = distinct(rows, "subjects")
    parts = [
        f"Percent, mean ± std over phones; {min(subjects)} to {max(subjects)} test subjects a "
        f"phone. Networks: {', '.join(settings['networks'])}; regions: "
        f"{', '.join(settings['regions'])}; scaling {settings['scaling']}.",
        markdown(["method", "APCER", "BPCER", "ACER", "published ACER", "phones"], lines),
    ]
    joint = by.get((JOINT,), [])
    if joint:
        _draw_weights([row["_weights"] for row in joint], settings, folder / "weights.png")
        parts += [
            "The weights that all test subjects share, for each p (mean over phones, at the width "
            "and delta chosen on the development subjects), as shares of their sum:",
            "![shared weights for each p](weights.png)",
        ]
    return "\n\n".join(parts)


def _draw_weights(weights: list[Any], settings: Settings, path: Path) -> None:
    table = np.mean(np.asarray(weights, dtype=float), axis=0)
    table = table / table.sum(axis=1, keepdims=True)
    short = [n.partition(":")[2] or n for n in settings["networks"]]
    names = [f"{n}\n{r}" for n in short for r in settings["regions"]]
    figure, axes = new_figure(figsize=(1.5 + 0.75 * len(names), 1.6 + 0.38 * len(settings["ps"])))
    image = axes.imshow(table, aspect="auto", cmap="Blues", vmin=0.0)
    for (i, k), share in np.ndenumerate(table):
        colour = "white" if share > 0.6 * table.max() else "black"
        axes.text(k, i, f"{share:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=45, ha="right")
    axes.set_yticks(range(len(settings["ps"])), [f"{p:.4g}" for p in settings["ps"]], fontsize=8)
    axes.set(ylabel="p", title="Shared kernel weights of the test subjects")
    figure.colorbar(image, ax=axes, label="share of the weight")
    save(figure, path)


EXPERIMENT = Experiment(
    "E9",
    "OULU-NPU, protocol IV: unseen presentation attacks",
    settings,
    cells,
    run,
    report,
    prepare=prepare_faces,
)
