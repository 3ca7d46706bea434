"""Faces of OULU-NPU as rows of features, and the kernels of each subject's own model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments._cells import Settings
from experiments._deep import feature_file, rooted
from experiments._models import Split, kernels_by_width
from experiments._store import write_atomically
from experiments.datasets import OuluProtocol, OuluVideo, load_oulu_npu, oulu_faces
from experiments.datasets._oulu import ENROLMENT_SESSIONS, OULU_PARTS
from experiments.features import extract
from kernull._typing import Array

__all__ = ["Subject", "load_faces", "prepare_faces", "subject_kernels", "subjects_of"]


@dataclass(frozen=True, eq=False)
class Subject:
    """Rows of one subject: frames to learn from, and frames to judge, by video.

    Attributes
    ----------
    number : int
    train : array of int
        Frames of its enrolment.
    test : array of int
        Frames of its videos on the list.
    owner : array of int
        For each test frame, the video it is from.
    videos : tuple of OuluVideo
        The videos on the list.
    """

    number: int
    train: Any
    test: Any
    owner: Any
    videos: tuple[OuluVideo, ...]

    @property
    def labels(self) -> Any:
        """+1 for bona fide videos, -1 for attacks."""
        return np.array([1 if video.bona_fide else -1 for video in self.videos])

    @property
    def instruments(self) -> list[str]:
        """Attack instrument of each video."""
        return [video.instrument for video in self.videos]

    def by_video(self, scores: Array) -> Array:
        """Mean score of each video's frames: (..., frames) -> (..., videos)."""
        share = np.equal.outer(np.arange(len(self.videos)), self.owner).astype(float)
        share /= share.sum(axis=1, keepdims=True)
        return np.asarray(scores @ share.T)


def _numbers(videos: Sequence[OuluVideo]) -> list[int]:
    return sorted({video.subject for video in videos})


def videos_needed(protocol: OuluProtocol) -> list[OuluVideo]:
    """Videos of the lists and of the enrolments of their subjects."""
    found = {*protocol.train, *protocol.dev, *protocol.test}
    for part in OULU_PARTS:
        for subject in _numbers(protocol.listed(part)):
            found |= set(protocol.enrolment(part, subject))
    return sorted(found)


def prepare_faces(settings: Settings, folder: Path, jobs: int) -> None:
    """Features of every frame by every network and region, and an index of the frames."""
    index_path = folder / "features" / "frames.json"
    views = [(n, r) for n in settings["networks"] for r in settings["regions"]]
    done = all(feature_file(folder, f"{n}@{r}").is_file() for n, r in views)
    if index_path.is_file() and done:
        return
    videos: dict[str, OuluVideo] = {}
    root = Path()
    for phone in settings["phones"]:
        protocol = load_oulu_npu(phone)
        root = protocol.root
        videos |= {f"{v.part}/{v.name}": v for v in videos_needed(protocol)}
    frames: list[Any] = []
    index: dict[str, list[int]] = {}
    for key in sorted(videos):
        faces = oulu_faces(videos[key], root, settings["frames"])
        index[key] = list(range(len(frames), len(frames) + len(faces)))
        frames += faces
    index_path.parent.mkdir(parents=True, exist_ok=True)
    for network, region in views:
        path = feature_file(folder, f"{network}@{region}")
        extract(frames, network, path, region=region, jobs=jobs)
    write_atomically(index_path, json.dumps(index))


def load_faces(settings: Settings, folder: Path) -> tuple[dict[str, Array], dict[str, list[int]]]:
    """Normalised features by ``network@region``, and the frames of each video."""
    index = json.loads((folder / "features" / "frames.json").read_text(encoding="utf-8"))
    views = {
        f"{n}@{r}": rooted(np.load(feature_file(folder, f"{n}@{r}")))
        for n in settings["networks"]
        for r in settings["regions"]
    }
    return views, index


def subjects_of(protocol: OuluProtocol, part: str, index: dict[str, list[int]]) -> list[Subject]:
    """The subjects of a list that can be enrolled.

    The lists of training and development subjects name the very videos that their models would
    learn from. Such a model learns from session 1 and is judged on the others.
    """
    listed = protocol.listed(part)
    out = []
    for number in _numbers(listed):
        enrolled = protocol.enrolment(part, number)
        videos = tuple(v for v in listed if v.subject == number and index[f"{part}/{v.name}"])
        if set(enrolled) & set(videos):
            enrolled = tuple(v for v in enrolled if v.session == ENROLMENT_SESSIONS[0])
            videos = tuple(v for v in videos if v not in enrolled)
        train = [i for v in enrolled for i in index[f"{part}/{v.name}"]]
        rows = [(i, k) for k, v in enumerate(videos) for i in index[f"{part}/{v.name}"]]
        if len(train) < 2 or not rows:
            continue
        test, owner = (np.array(column) for column in zip(*rows, strict=True))
        out.append(Subject(number, np.array(train), test, owner, videos))
    return out


def subject_kernels(
    subject: Subject, views: dict[str, Array], settings: Settings
) -> list[tuple[float, Any, Any]]:
    """Width, training kernels and kernels of the test frames, widest first."""
    split = Split(subject.train, subject.train[:0], subject.test)
    out = []
    for width, stack, cross in kernels_by_width(
        settings["widths"], views, split, scaling=settings["scaling"]
    ):
        # The next width is made from this one in place.
        out.append((width, type(stack)(stack.kernels.copy()), type(cross)(cross.kernels.copy())))
    return out
