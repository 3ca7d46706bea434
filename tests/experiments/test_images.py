"""E5 to E9 on small files of the published layouts, with networks of a few weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments import _caltech, e5, e6, e7, e8, e9, load_experiment, reproduce
from experiments import e8_flowers as flowers
from experiments._cells import Cell
from experiments._faces import subjects_of, videos_needed
from experiments.datasets import (
    DatasetNotFound,
    load_abnormal1001,
    load_caltech256,
    load_oulu_npu,
    oulu_faces,
)
from experiments.datasets._oulu import crop_face, parse_video, read_eyes
from kernull.paper import metrics
from tests.networks import write_network

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
PIL = pytest.importorskip("PIL.Image")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data folder, and two small networks."""
    weights = tmp_path / "weights"
    weights.mkdir()
    for seed, name in enumerate(("first", "second")):
        write_network(weights, name, seed=seed, features=4)
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("KERNULL_DATA", str(folder))
    monkeypatch.setenv("KERNULL_WEIGHTS", str(weights))
    monkeypatch.setenv("KERNULL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KERNULL_OFFLINE", "1")
    for module in (_caltech.caltech, e5._data, e8._data):
        module.cache_clear()
    yield folder
    for module in (_caltech.caltech, e5._data, e8._data):
        module.cache_clear()


def picture(path, kind, number):
    """An image whose colours tell its kind, with noise of its own."""
    rng = np.random.default_rng([kind, number])
    base = np.random.default_rng(kind).uniform(40, 215, (4, 4, 3))
    pixels = np.repeat(np.repeat(base, 4, 0), 4, 1) + rng.normal(0, 12, (16, 16, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)


def write_caltech(home, classes, per_class=12):
    root = home / "256_ObjectCategories"
    for number, name in classes.items():
        for i in range(1, per_class + 1):
            picture(root / f"{number:03d}.{name}" / f"{number:03d}_{i:04d}.jpg", number, i)
    (root / f"{min(classes):03d}.{classes[min(classes)]}" / "greg").mkdir()  # as in the archive
    (root / "RENAME2").write_text("not an image")


def write_abnormal(home, label="boat", folder="Boat"):
    main = home / "VOCdevkit" / "VOC2012" / "ImageSets" / "Main"
    main.mkdir(parents=True)
    for part, first in (("train", 0), ("val", 20)):
        lines = []
        for i in range(first, first + 12):
            name = f"2008_{i:06d}"
            picture(home / "VOCdevkit/VOC2012/JPEGImages" / f"{name}.jpg", 1, i)
            lines.append(f"{name}  {(1, 1, 1, 1, 0, -1)[i % 6]}")
        (main / f"{label}_{part}.txt").write_text("\n".join(lines) + "\n")
    for i in range(8):
        picture(home / "abnormal1001" / folder / f"odd_{i}.jpg", 2, i)


def write_oulu(home, subjects=(36, 37, 38), developers=(21, 22), trained=(1, 2)):
    """Phone 1 left out, crops in place of videos: files in folders and single files.

    As published, training subjects are listed with sessions 1 and 2 of the other phones, that is
    with the bona fide videos that a model of theirs would learn from.
    """
    root = home / "oulu-npu"
    lists = root / "Protocols" / "Protocol_4"
    lists.mkdir(parents=True)
    for part, people in (("Train", trained), ("Dev", developers), ("Test", subjects)):
        lines = []
        for who in people:
            for phone in (2, 3):
                for session in (1, 2):
                    name = f"{phone}_{session}_{who:02d}_1"
                    for frame in range(2):
                        path = root / f"{part}_files" / name / f"{frame:03d}.png"
                        picture(path, who, 10 * phone + session + 100 * frame)
                    if part == "Train":
                        attack = f"{phone}_{session}_{who:02d}_2"
                        lines += [f"+1,{name}", f"-1,{attack}"]
                        picture(root / "Train_files" / f"{attack}.png", 1002, 10 * phone + session)
            if part == "Train":
                continue
            for file, label in ((1, "+1"), (2, "-1"), (3, "-1"), (4, "-2"), (5, "-2")):
                for take in (3,):
                    name = f"1_{take}_{who:02d}_{file}"
                    lines.append(f"{label},{name}")
                    kind = who if file == 1 else 1000 + file
                    picture(root / f"{part}_files" / f"{name}.png", kind, 900 + file)
        (lists / f"{part}_1.txt").write_text("\n".join(lines) + "\n")
    return root


# ------------------------------------------------------------------ loaders


def test_caltech_as_published(home):
    write_caltech(home, {1: "ak47", 2: "american-flag", 257: "clutter"}, 3)
    data = load_caltech256()
    assert data.names == {1: "ak47", 2: "american-flag", 257: "clutter"}
    assert np.bincount(data.labels)[[1, 2, 257]].tolist() == [3, 3, 3]
    assert data.paths[0].name == "001_0001.jpg"


def test_abnormal_as_published(home):
    write_abnormal(home, "motorbike", "Motor-bike")
    data = load_abnormal1001("motorbike")
    # only what VOC marks with 1: neither hard to see (0) nor absent (-1)
    assert len(data.train) == 8
    assert len(data.validation) == 8
    assert len(data.abnormal) == 8
    with pytest.raises(ValueError, match="label"):
        load_abnormal1001("zebra")


def test_oulu_as_published(home):
    write_oulu(home)
    protocol = load_oulu_npu(1)
    assert len(protocol.test) == 15
    video = protocol.test[3]
    assert (video.phone, video.session, video.subject, video.file) == (1, 3, 36, 4)
    assert (video.bona_fide, video.instrument) == (False, "display 1")
    enrolled = protocol.enrolment("Test", 36)
    assert [v.name for v in enrolled] == ["2_1_36_1", "2_2_36_1", "3_1_36_1", "3_2_36_1"]
    assert len(oulu_faces(enrolled[0], protocol.root)) == 2
    assert len(oulu_faces(enrolled[0], protocol.root, count=1)) == 1
    with pytest.raises(DatasetNotFound, match="1_3_99_1"):
        oulu_faces(parse_video("1_3_99_1", "Test"), protocol.root)


def test_oulu_refuses_a_label_that_contradicts_the_name(home):
    root = write_oulu(home)
    path = root / "Protocols" / "Protocol_4" / "Test_1.txt"
    for line in ("-1,1_3_36_1", "+1,1_3_36_2", "+1 1_3_36_1", "+1,7_3_36_1"):
        path.write_text(f"+1,1_3_36_1\n{line}\n")
        with pytest.raises(ValueError, match="line 2"):
            load_oulu_npu(1)


def test_faces_are_cut_around_the_eyes(tmp_path):
    (tmp_path / "v.txt").write_text("0,40,50,60,50\n1,0,0,0,0\n2 42 50 62 50\n")
    eyes = read_eyes(tmp_path / "v.txt")
    assert sorted(eyes) == [0, 2]  # no face was found in frame 1
    frame = np.zeros((120, 100, 3), np.uint8)
    frame[50, 40] = frame[50, 60] = 255
    face = crop_face(frame, eyes[0])
    assert face.shape == (48, 48, 3)
    rows, columns = np.nonzero(face[..., 0])
    assert columns.tolist() == [14, 34]  # symmetric: 2.4 distances wide
    assert set(rows.tolist()) == {17}  # 0.35 of the height
    assert crop_face(frame, (0, 0, 20, 0)).shape == (48, 48, 3)  # beyond the frame: repeated


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("E5", "abnormal1001"),
        ("E6", "256_ObjectCategories"),
        ("E7", "256_ObjectCategories"),
        ("E8", "MNIST"),
        ("E8-flowers", "Flowers17"),
        ("E9", "Protocol_4"),
    ],
)
def test_missing_data_is_said_plainly(name, words, home, tmp_path):
    with pytest.raises(DatasetNotFound, match=words):
        reproduce(name, quick=True, out=tmp_path / "out")


def test_missing_networks_are_said_plainly(home, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNULL_WEIGHTS", str(tmp_path))
    with pytest.raises(DatasetNotFound, match="KERNULL_WEIGHTS"):
        load_experiment("E6").settings(True)
    monkeypatch.delenv("KERNULL_WEIGHTS")
    with pytest.raises(DatasetNotFound, match="KERNULL_WEIGHTS"):
        load_experiment("E6").settings(True)


# ------------------------------------------------------------------ whole experiments


def small(module, monkeypatch, **changes):
    """The quick settings with one width, few parameters and what a test changes."""
    real = module.settings

    def settings(quick):
        found = real(quick)
        grids = {
            **found["grids"],
            "lp MK-FN": {"p": [1.0, 2.0], "delta": [1e-2]},
            "FN": {"delta": [0.0, 1e-2]},
            "MK-SVDD": {"nu": [0.2]},
            "kNN": {"k": [1, 3]},
        }
        return {**found, "widths": [0.5], "grids": grids, **changes}

    experiment = load_experiment(module.EXPERIMENT.name)
    changed = type(experiment)(**{**vars(experiment), "settings": settings})
    monkeypatch.setattr(module, "EXPERIMENT", changed)


def read(folder):
    import csv

    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_e6_and_e7_from_files_to_page(home, tmp_path, monkeypatch):
    write_caltech(home, {c: f"class-{c}" for c in (1, 2, 3, 257, *e7.CLASSES[:2])})
    for module in (e6, e7):
        small(module, monkeypatch, scalings=["whiten-raw", "standard"])
    outcomes = reproduce(["E6", "E7"], quick=True, out=tmp_path)
    assert "FN-Average" in outcomes[0].page.read_text()
    rows = read(tmp_path / "E6-quick")
    assert {row["target"] for row in rows} == {"001 class-1", "002 class-2", "003 class-3"}
    assert {"lp MK-FN", "FN first", "FN second", "kNN", "Mahalanobis"} <= {
        row["method"] for row in rows
    }
    assert all(int(row["n"]) == 7 for row in rows)  # 60 % of twelve
    easy = [float(row["auc"]) for row in rows if row["method"] == "lp MK-FN"]
    assert np.mean(easy) > 0.9  # the kinds differ by their colours
    assert (tmp_path / "caltech256" / "features" / "first.npy").is_file()  # shared by both
    assert (tmp_path / "E7-quick" / "methods.png").is_file()


def test_e5_from_files_to_page(home, tmp_path, monkeypatch):
    write_abnormal(home)
    small(e5, monkeypatch, classes=["boat"], families=["kernels", "peers", "machines"])
    (outcome,) = reproduce("E5", quick=True, out=tmp_path)
    rows = read(tmp_path / "E5-quick")
    assert {"lp MK-FN", "MK-SVDD", "Slim-MK-OCSVM", "OneClassSVM"} <= {r["method"] for r in rows}
    assert {int(r["n"]) for r in rows} == {8}
    assert "96.2 ± 0.3" in outcome.page.read_text()


def write_mnist(home, n_train=120, n_test=60):
    import gzip
    import struct

    rng = np.random.default_rng(0)
    folder = home / "mnist"
    folder.mkdir()
    for part, n in (("train", n_train), ("t10k", n_test)):
        digits = np.arange(n) % 10
        images = np.zeros((n, 28, 28), np.uint8)
        for image, digit in zip(images, digits, strict=True):
            image[4 + digit : 10 + digit, 2 * digit : 2 * digit + 8] = rng.integers(150, 255)
        for kind, values in (("images-idx3", images), ("labels-idx1", digits.astype(np.uint8))):
            head = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(
                f">{values.ndim}I", *values.shape
            )
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + values.tobytes()))


def test_e8_from_files_to_page(home, tmp_path, monkeypatch):
    write_mnist(home)
    small(e8, monkeypatch, per_digit=12, outliers=4, digits=[0, 8])
    reproduce("E8", quick=True, out=tmp_path)
    rows = read(tmp_path / "E8-quick")
    assert {int(r["n"]) for r in rows} == {10}  # 80 % of twelve
    assert {r["target"] for r in rows} == {"0", "8"}
    # A table of the GPU run joins the page.
    full = (tmp_path / "E8-quick" / "results.csv").read_text()
    (tmp_path / "E8-quick" / "full.csv").write_text(full)
    (outcome,) = reproduce("E8", quick=True, out=tmp_path, report_only=True)
    assert "Every training image" in outcome.page.read_text()
    assert (tmp_path / "E8-quick" / "full.png").is_file()


def test_e8_never_trains_on_what_it_tests(home, monkeypatch):
    """Row numbers of the split, seen through features that are the row numbers themselves."""
    write_mnist(home)
    seen = {}

    def spy(family, scaling, features, labels, split, settings, seed):
        seen.update(labels=labels, split=split)
        return []

    monkeypatch.setattr(e8, "run_family", spy)
    monkeypatch.setattr(e8, "load_features", lambda networks, folder: {})
    settings = {**e8.settings(True), "per_digit": 12, "outliers": 4, "test": None}
    e8.run(Cell("3", "kernels, standard", 0), settings, Path())
    train, validation, test = seen["split"]
    assert not set(train) & set(validation) | set(train) & set(test) | set(validation) & set(test)
    assert (seen["labels"][train] == 1).all()
    assert len(test) == 60
    assert (seen["labels"][validation] == -1).sum() == 9 * 4


def test_e9_from_files_to_page(home, tmp_path, monkeypatch):
    write_oulu(home)
    monkeypatch.setenv("KERNULL_NETWORKS", "first, second")
    grid = {"ps": [1.0, 2.0], "deltas": [1e-2], "phones": [1]}
    methods = ["lp MK-FN", e9.JOINT, "FN-Product", "MK-SVDD"]
    small(e9, monkeypatch, **grid, methods=methods)
    (outcome,) = reproduce("E9", quick=True, out=tmp_path)
    rows = read(tmp_path / "E9-quick")
    seen = {(row["method"], row["scaling"], row["rule"]) for row in rows}
    assert seen == {(m, s, r) for m in methods for s in e9.SCALINGS for r in e9.RULES}
    for row in rows:
        assert float(row["acer"]) == pytest.approx((float(row["apcer"]) + float(row["bpcer"])) / 2)
        assert row["subjects"] == "3"
        # Two of training, two of development; and the two other test subjects by one rule.
        assert row["validated_on"] == ("6" if row["rule"] == e9.ALL_OTHERS else "4")
        assert float(row["auc"]) > 0.9  # attacks have other colours
    text = outcome.page.read_text()
    assert "3.3 ± 3.4" in text
    assert "| SAPLC |" in text
    assert "first, second (not the paper's)" in text
    assert (tmp_path / "E9-quick" / "weights_standard.png").is_file()
    cells = (tmp_path / "E9-quick" / "cells").glob("*Joint*")
    stored = [json.loads(path.read_text())["rows"] for path in cells]
    (weights,) = [np.array(r["_weights"]) for r in stored[0] if "_weights" in r]
    assert weights.shape == (2, 8)  # two p, two networks x four regions
    assert np.allclose((weights[0]).sum(), 1, atol=1e-3)  # p = 1
    assert np.allclose(np.linalg.norm(weights[1]), 1, atol=1e-3)  # p = 2


def test_e9_takes_the_papers_networks_whatever_weights_are_at_hand(home, monkeypatch):
    monkeypatch.delenv("KERNULL_NETWORKS", raising=False)
    assert e9.settings(False)["networks"] == ["googlenet", "resnet50", "vgg16"]


class Person:
    """A subject with given labels, for the rules of validation."""

    def __init__(self, labels):
        self.labels = np.array(labels)


def test_e9_validates_on_the_papers_subjects():
    """The rules by a plain loop: who is pooled decides the point and the threshold."""
    rng = np.random.default_rng(0)
    people = [Person([1, 1, -1, -1, -1]) for _ in range(5)]
    scores = [rng.normal(size=(4, 5)) + p.labels for p in people]
    test, others = people[:3], people[3:]
    grid, tuning = e9._Grid(list("abcd"), scores[:3]), e9._Grid(list("abcd"), scores[3:])
    for rule in e9.RULES:
        margins, picked = e9._judge(rule, grid, test, tuning, others)
        for i in range(3):
            pool = [k for k in range(5) if k != i] if rule == e9.ALL_OTHERS else [3, 4]
            labels = np.concatenate([people[k].labels for k in pool])
            pooled = np.concatenate([scores[k] for k in pool], axis=1)
            best = max(range(4), key=lambda c: roc_auc_score(labels, pooled[c]))
            assert picked[i] == best
            threshold = metrics.eer(labels, pooled[best]).threshold
            np.testing.assert_array_equal(margins[i], scores[i][best] - threshold)


def test_e9_judges_no_model_on_what_it_learned_from(home):
    write_oulu(home)
    protocol = load_oulu_npu(1)
    index, count = {}, 0
    for video in videos_needed(protocol):
        frames = len(oulu_faces(video, protocol.root))
        index[f"{video.part}/{video.name}"] = list(range(count, count + frames))
        count += frames
    for part, subjects in (("Train", 2), ("Dev", 2), ("Test", 3)):
        found = subjects_of(protocol, part, index)
        assert len(found) == subjects
        for person in found:
            assert not set(person.train) & set(person.test)
            assert set(person.labels) == {1, -1}
    learned = subjects_of(protocol, "Train", index)[0]
    assert {video.session for video in learned.videos if video.bona_fide} == {2}


def test_flowers_split_is_by_class(home, monkeypatch):
    seen = {}

    def spy(family, scaling, features, labels, split, settings, seed):
        seen.update(labels=labels, split=split)
        return []

    monkeypatch.setattr(flowers, "run_family", spy)
    monkeypatch.setattr(flowers, "load_features", lambda networks, folder: {})
    flowers.run(Cell("16", "kernels, standard", 0), flowers.settings(True), Path())
    assert np.flatnonzero(seen["labels"] == 1).tolist() == list(range(1280, 1360))
    assert [len(part) for part in seen["split"]] == [48, 16 + 640, 16 + 640]
