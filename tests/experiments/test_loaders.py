"""Loaders: the real files where they are, and tiny files in the same layout everywhere."""

import gzip
import io
import itertools
import pickle
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from experiments.datasets import (
    DELFT,
    DatasetNotFound,
    data_home,
    delft_classes,
    load_delft,
    load_flowers17_images,
    load_mnist,
    load_multiple_features,
)
from kernull.errors import MissingDependencyError


@pytest.fixture
def no_variables(monkeypatch):
    for name in ("KERNULL_DATA", "KERNULL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


class TestDataHome:
    def test_order_of_variables(self, no_variables, monkeypatch, tmp_path):
        if sys.platform == "linux":
            assert data_home() == Path.home() / ".cache" / "kernull"
        monkeypatch.setenv("KERNULL_CACHE", str(tmp_path / "cache"))
        assert data_home() == tmp_path / "cache"
        monkeypatch.setenv("KERNULL_DATA", str(tmp_path / "data"))
        assert data_home() == tmp_path / "data"

    def test_empty_variable_counts_as_unset(self, no_variables, monkeypatch, tmp_path):
        monkeypatch.setenv("KERNULL_DATA", "")
        monkeypatch.setenv("KERNULL_CACHE", str(tmp_path))
        assert data_home() == tmp_path

    def test_home_folder_is_expanded(self, no_variables, monkeypatch):
        monkeypatch.setenv("KERNULL_DATA", "~/sets")
        assert data_home() == Path.home() / "sets"


class TestNotFound:
    LOADERS = (
        pytest.param(lambda **k: load_delft("wine", **k), "delft/wine.mat", id="delft"),
        pytest.param(lambda **k: delft_classes("wine", **k), "delft/wine.mat", id="classes"),
        pytest.param(load_multiple_features, "mfeat/mfeat-fou.csv", id="mfeat"),
        pytest.param(load_mnist, "mnist/train-images-idx3-ubyte.gz", id="mnist"),
        pytest.param(load_flowers17_images, "flowers17/17flowers_images.tar", id="flowers17"),
    )

    @pytest.mark.parametrize(("load", "wanted"), LOADERS)
    def test_says_what_where_and_how(self, load, wanted, monkeypatch, tmp_path):
        monkeypatch.setenv("KERNULL_DATA", str(tmp_path))
        with pytest.raises(DatasetNotFound) as caught:
            load()
        message = str(caught.value)
        assert wanted in message
        assert str(tmp_path) in message
        assert "environment variable KERNULL_DATA" in message
        assert "Get it from" in message
        assert "set KERNULL_DATA" in message

    @pytest.mark.parametrize(("load", "wanted"), LOADERS)
    def test_says_where_the_folder_came_from(self, load, wanted, no_variables, tmp_path):
        with pytest.raises(DatasetNotFound, match="the argument home"):
            load(home=tmp_path)

    def test_names_the_default_cache(self, no_variables, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
        with pytest.raises(DatasetNotFound, match="neither KERNULL_DATA nor KERNULL_CACHE is set"):
            load_mnist()
        monkeypatch.setenv("KERNULL_CACHE", str(tmp_path))
        with pytest.raises(DatasetNotFound, match="KERNULL_CACHE; KERNULL_DATA is not set"):
            load_mnist()

    def test_is_a_file_not_found_error_that_travels_between_processes(self):
        error = pickle.loads(pickle.dumps(DatasetNotFound("gone")))
        assert isinstance(error, FileNotFoundError)
        assert str(error) == "gone"


def write_delft(folder, name, features, labels):
    """Write features and labels as a Delft file: a struct ``data`` with ``data`` and ``nlab``."""
    (folder / "delft").mkdir(exist_ok=True)
    fields = {"data": features, "nlab": np.asarray(labels, dtype=np.uint8)[:, None]}
    savemat(folder / "delft" / f"{name}.mat", {"data": fields})


class TestDelft:
    COUNTS = {  # noqa: RUF012 (from INDEX.md)
        "vehicle": (18, (212, 217, 218, 199)),
        "diabetes": (8, (500, 268)),
        "sonar": (60, (111, 97)),
        "breast": (9, (238, 225)),
        "imports": (25, (71, 88)),
        "glass": (9, (69, 76, 17, 13, 9, 29)),
        "wine": (13, (59, 71, 48)),
        "liver": (6, (142, 199)),
        "survival": (3, (207, 76)),
    }
    TARGETS = {"vehicle": 4, "diabetes": 2}  # noqa: RUF012 (all others 1, MATHS.md section 8)

    def test_names(self):
        assert set(DELFT) == set(self.COUNTS)

    @pytest.mark.data
    @pytest.mark.parametrize("name", sorted(COUNTS))
    def test_published_shapes_and_classes(self, name):
        width, counts = self.COUNTS[name]
        target = self.TARGETS.get(name, 1)
        data = load_delft(name)
        assert data.X.shape == (sum(counts), width)
        assert data.X.dtype == np.float64
        assert np.isfinite(data.X).all()
        assert len(set(data.feature_names)) == width
        assert data.target == target
        assert set(np.unique(data.y)) == {-1, 1}
        assert np.count_nonzero(data.y == 1) == counts[target - 1]
        assert delft_classes(name) == dict(enumerate(counts, start=1))

    @pytest.mark.data
    def test_every_class_can_be_the_target(self):
        sizes = {c: int((load_delft("glass", c).y == 1).sum()) for c in delft_classes("glass")}
        assert sizes == {1: 69, 2: 76, 3: 17, 4: 13, 5: 9, 6: 29}

    @pytest.mark.data
    def test_documented_oddities(self):
        imports, breast = load_delft("imports"), load_delft("breast")
        constant = [
            name
            for name, column in zip(imports.feature_names, imports.X.T, strict=True)
            if np.ptp(column) == 0
        ]
        assert constant == ["engine_location"]
        missing = {n for n, c in zip(breast.feature_names, breast.X.T, strict=True) if c.min() < 0}
        assert missing == {"bare_nuclei"}
        assert breast.X.min() == -1

    def test_reads_the_layout(self, tmp_path):
        # Bytes, as in the survival set: 1 - 2 must be -1 and not 255.
        features = np.array([[1, 2, 3], [2, 3, 4], [5, 6, 7]], dtype=np.uint8)
        write_delft(tmp_path, "survival", features, [2, 1, 1])
        data = load_delft("survival", home=tmp_path)
        assert data.X[0, 0] - data.X[0, 1] == -1.0
        assert data.y.tolist() == [-1, 1, 1]
        assert (data.name, data.target) == ("survival", 1)
        assert data.feature_names == ("age", "year_of_operation", "positive_nodes")
        assert load_delft("survival", 2, home=tmp_path).y.tolist() == [1, -1, -1]
        assert delft_classes("survival", home=tmp_path) == {1: 2, 2: 1}

    def test_names_fall_back_to_numbers(self, tmp_path):
        write_delft(tmp_path, "survival", np.eye(2), [1, 2])
        assert load_delft("survival", home=tmp_path).feature_names == ("x0", "x1")

    def test_unknown_target(self, tmp_path):
        write_delft(tmp_path, "wine", np.eye(3), [1, 2, 3])
        with pytest.raises(ValueError, match=r"'wine', one of 1, 2, 3; it is 4"):
            load_delft("wine", 4, home=tmp_path)

    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"vehicle, .*it is 'iris'"):
            load_delft("iris")

    def test_not_a_prtools_file(self, tmp_path):
        (tmp_path / "delft").mkdir()
        path = tmp_path / "delft" / "wine.mat"
        savemat(path, {"x": np.eye(2)})
        with pytest.raises(ValueError, match="not a PRTools data set"):
            load_delft("wine", home=tmp_path)
        path.write_bytes(b"<html>not found</html>" * 20)
        with pytest.raises(ValueError, match="not a PRTools data set"):
            load_delft("wine", home=tmp_path)

    def test_lengths_must_agree(self, tmp_path):
        write_delft(tmp_path, "wine", np.eye(3), [1, 2])
        with pytest.raises(ValueError, match="2 labels"):
            load_delft("wine", home=tmp_path)


class TestMultipleFeatures:
    WIDTHS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}  # noqa: RUF012

    @pytest.mark.data
    def test_published_shapes_and_classes(self):
        data = load_multiple_features()
        assert {view: x.shape for view, x in data.views.items()} == {
            view: (2000, width) for view, width in self.WIDTHS.items()
        }
        assert data.y.tolist() == np.repeat(np.arange(10), 200).tolist()
        assert {view: len(names) for view, names in data.feature_names.items()} == self.WIDTHS
        assert len(np.unique(np.hstack(list(data.views.values())), axis=0)) == 2000 - 6

    @staticmethod
    def write(folder, labels):
        (folder / "mfeat").mkdir(exist_ok=True)
        for number, (view, column) in enumerate(labels.items()):
            rows = [f"{number},{i}.5,{digit}" for i, digit in enumerate(column)]
            text = "\n".join(["0,1,0", *rows]) + "\n"
            (folder / "mfeat" / f"mfeat-{view}.csv").write_text(text)

    def test_reads_the_layout(self, tmp_path):
        self.write(tmp_path, dict.fromkeys(self.WIDTHS, (3, 7)))
        data = load_multiple_features(home=tmp_path)
        assert list(data.views) == list(self.WIDTHS)
        # The header is skipped and the label column split off.
        assert data.views["fac"].tolist() == [[1.0, 0.5], [1.0, 1.5]]
        assert data.y.tolist() == [3, 7]
        assert data.one_class(7).tolist() == [-1, 1]
        with pytest.raises(ValueError, match="one of 3, 7; it is 5"):
            data.one_class(5)

    def test_views_must_hold_the_same_rows(self, tmp_path):
        self.write(tmp_path, dict.fromkeys(self.WIDTHS, (3, 7)) | {"zer": (7, 3)})
        with pytest.raises(ValueError, match=r"mfeat-zer.*label columns differ"):
            load_multiple_features(home=tmp_path)


class TestMnist:
    @pytest.mark.data
    def test_published_shapes_and_classes(self):
        data = load_mnist()
        assert data.train_images.shape == (60000, 28, 28)
        assert data.test_images.shape == (10000, 28, 28)
        assert data.train_images.dtype == np.uint8
        # Every digit occurs about equally often, and the test set has 980 zeros.
        assert np.bincount(data.train_labels).min() > 5000
        assert np.bincount(data.test_labels)[0] == 980

    @staticmethod
    def write(folder, name, array):
        (folder / "mnist").mkdir(exist_ok=True)
        header = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, dtype=">u4").tobytes()
        path = folder / "mnist" / f"{name}-ubyte.gz"
        path.write_bytes(gzip.compress(header + array.tobytes()))
        return path

    def write_all(self, folder):
        images = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4)
        self.write(folder, "train-images-idx3", images)
        self.write(folder, "train-labels-idx1", np.array([5, 0, 9], dtype=np.uint8))
        self.write(folder, "t10k-images-idx3", images[:1] + 100)
        self.write(folder, "t10k-labels-idx1", np.array([7], dtype=np.uint8))
        return images

    def test_reads_the_layout(self, tmp_path):
        images = self.write_all(tmp_path)
        data = load_mnist(home=tmp_path)
        np.testing.assert_array_equal(data.train_images, images)
        np.testing.assert_array_equal(data.test_images, images[:1] + 100)
        assert data.train_labels.tolist() == [5, 0, 9]
        assert data.test_labels.tolist() == [7]
        data.train_images[0, 0, 0] = 1  # writable

    def test_damaged_files(self, tmp_path):
        self.write_all(tmp_path)
        path = self.write(tmp_path, "train-labels-idx1", np.array([5, 0], dtype=np.uint8))
        with pytest.raises(ValueError, match=r"3 images but .* 2 labels"):
            load_mnist(home=tmp_path)
        path.write_bytes(gzip.compress(bytes((0, 0, 8, 1)) + (3).to_bytes(4, "big") + b"\x01"))
        with pytest.raises(ValueError, match=r"promises shape \(3,\), 3 entries, but holds 1"):
            load_mnist(home=tmp_path)
        path.write_bytes(gzip.compress(b"hello"))
        with pytest.raises(ValueError, match="not an IDX file"):
            load_mnist(home=tmp_path)


class TestFlowers17:
    @pytest.mark.data
    def test_published_images(self):
        pytest.importorskip("PIL")
        first, second = itertools.islice(load_flowers17_images(), 2)
        assert (first.number, first.label, second.number) == (1, 0, 2)
        assert first.image.mode == "RGB"
        assert min(first.image.size) > 100

    @pytest.mark.data
    def test_published_archive_holds_eighty_a_class(self):
        with tarfile.open(data_home() / "flowers17" / "17flowers_images.tar") as archive:
            images = [name for name in archive.getnames() if name.endswith(".jpg")]
        assert len(images) == 17 * 80

    @staticmethod
    def write(folder, numbers, prefix="17flowers/"):
        image_module = pytest.importorskip("PIL.Image")
        (folder / "flowers17").mkdir(exist_ok=True)
        with tarfile.open(folder / "flowers17" / "17flowers_images.tar", "w") as archive:
            for number in numbers:
                content = io.BytesIO()
                image_module.new("L", (4, 3), number % 256).save(content, "JPEG")
                member = tarfile.TarInfo(f"{prefix}image_{number:04d}.jpg")
                member.size = content.tell()
                content.seek(0)
                archive.addfile(member, content)
            readme = tarfile.TarInfo(f"{prefix}files.txt")
            archive.addfile(readme, io.BytesIO())

    @pytest.mark.parametrize("prefix", ["17flowers/", "jpg/", ""])
    def test_reads_the_layout_in_order(self, tmp_path, prefix):
        self.write(tmp_path, [1360, 81, 80, 1], prefix)
        images = list(load_flowers17_images(home=tmp_path))
        assert [(i.number, i.label) for i in images] == [(1, 0), (80, 0), (81, 1), (1360, 16)]
        # Still readable after the archive is closed; grey became RGB.
        assert images[2].image.size == (4, 3)
        assert images[2].image.getpixel((0, 0)) == (81, 81, 81)

    def test_unknown_number(self, tmp_path):
        self.write(tmp_path, [1361])
        with pytest.raises(ValueError, match="image number 1361"):
            next(load_flowers17_images(home=tmp_path))

    def test_without_pillow(self, tmp_path, monkeypatch):
        self.write(tmp_path, [1])
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(MissingDependencyError, match="pip install pillow"):
            load_flowers17_images(home=tmp_path)
