"""Model files: the same scores back, and nothing else out of a bad file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

import kernull
import kernull.estimators
import kernull.paper
from benchmarks.fuzz import models as fuzz_files
from benchmarks.fuzz.corpus import found
from kernull import MixedBall, Solver, Storage, Sum, load, save
from kernull.detector import Evidence, Nearest
from kernull.detector.calibration import Cross, Split
from kernull.errors import ModelFileError
from kernull.estimators import JointMultiKernelFisherNull
from kernull.files import read_about
from kernull.files.codec import Packer, Unpacker
from kernull.files.container import read_file, to_bytes
from kernull.files.models import _known_estimators
from kernull.kernels import KERNELS, Polynomial, Rbf
from kernull.mkl.balls import LpBall
from kernull.views import SCALINGS, Quantile, Whiten, WhitenRaw
from tests.plain import plain_fisher

X, Y = load_wine(return_X_y=True)
TARGETS = X[Y == 0]
VIEWS = {"taste": slice(0, 6), "phenols": [6, 7, 8], "look": np.arange(9, 13)}

#: Every estimator that files may hold.
ESTIMATORS = _known_estimators()

OPTIONS = [
    {},
    {"views": VIEWS, "widths": [0.25, 1.0], "p": 1.0},
    {"views": "features", "p": np.inf, "decision": Sum("distance")},
    {"kernels": ["rbf", "laplacian", "polynomial", "cosine"], "scaling": "whiten"},
    {"views": VIEWS, "calibration": Split(20)},
    {"views": VIEWS, "calibration": Cross(5), "p": LpBall(3)},
    {"views": VIEWS, "decision": Evidence(scores=(Nearest(),), whole=False), "normalize": "none"},
    {"p": np.float64(3.0), "delta": np.float32(0.5)},
    {"storage": Storage(memory_limit="2GB", dtype="float32"), "p": MixedBall(4, 1.5)},
    {"solver": Solver("kloft", tol=1e-3), "p": MixedBall(2, 1.5, ["all"])},
]


def plain_numbers(model):
    """Parameters that were numbers of NumPy, which come back as plain ones."""
    return {name: getattr(model, name) for name in ("p", "delta") if "p" in vars(model)}


@pytest.mark.parametrize("options", OPTIONS)
def test_scores_come_back_bit_by_bit(options, tmp_path):
    model = plain_fisher(**options).fit(TARGETS)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert str(again.get_params()) == str({**model.get_params(), **plain_numbers(again)})
    for method in ("score_samples", "decision_function", "predict", "p_values", "contributions"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(again.detect(X), model.detect(X))
    np.testing.assert_array_equal(again.explain(X).surprise, model.explain(X).surprise)
    np.testing.assert_array_equal(again.history_, model.history_)
    assert set(vars(again)) == set(vars(model)) - {"suspects_"}
    clone(again).fit(TARGETS)


# Those that have no folds warn of whitening by the rows that set the threshold.
@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"Calibrated"}))
def test_every_estimator_of_the_package_comes_back(name, tmp_path):
    """Grows with the package: whatever the table names is tried."""
    cls = ESTIMATORS[name]
    model = cls().fit(TARGETS)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is cls
    for method in ("score_samples", "decision_function", "predict", "p_values"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    with pytest.raises(NotFittedError, match=f"model: this {name} is not fitted"):
        save(cls(), tmp_path / "unfitted")
    assert not (tmp_path / "unfitted").exists()


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"Calibrated"}))
def test_every_estimator_with_precomputed_kernels(name, tmp_path):
    full = plain_fisher(views=VIEWS).fit(TARGETS)
    square = np.stack([K for _, K in full.kernel_set_.matrices()])
    cross = np.stack([K for _, K in full.kernel_set_.matrices(X)])
    model = ESTIMATORS[name](kernels="precomputed")
    joint = name == "JointMultiKernelFisherNull"
    model.fit({"all": square} if joint else square)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    if joint:
        model, again = model.task(), again.task()
    np.testing.assert_array_equal(again.score_samples(cross), model.score_samples(cross))


def test_tasks_and_growing_models(tmp_path):
    groups = np.repeat(np.array([3, 7]), [30, 29])
    model = JointMultiKernelFisherNull(views=VIEWS).fit(TARGETS, groups=groups)
    model.enroll(X[Y == 1], ("new", 1))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.tasks_ == model.tasks_ == [3, 7, ("new", 1)]
    for name in model.tasks_:
        labels = [name] * len(X)
        np.testing.assert_array_equal(
            again.score_samples(X, groups=labels), model.score_samples(X, groups=labels)
        )


def test_every_exported_estimator_is_in_the_table():
    exported = {
        name
        for module in (kernull.estimators, kernull.paper)
        for name in module.__all__
        if hasattr(getattr(module, name), "fit")
    }
    assert exported == set(ESTIMATORS)


MET = """
import sys, kernull
model = kernull.load(sys.argv[1])
print("kernull.paper" in sys.modules, type(model).__module__)
"""


@pytest.mark.parametrize(("name", "printed"), [
    ("MultiKernelFisherNull", "False kernull.estimators.fisher"),
    ("KernelPCANovelty", "True kernull.paper.fused"),
])  # fmt: skip
def test_the_paper_is_loaded_by_files_of_its_models_alone(name, printed, tmp_path):
    save(ESTIMATORS[name](views=VIEWS, scaling="standard").fit(TARGETS), tmp_path / "model")
    command = [sys.executable, "-c", MET, str(tmp_path / "model")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == printed


def test_precomputed_and_named_columns(tmp_path):
    square = np.stack([np.eye(59), TARGETS @ TARGETS.T / 1e6])
    cross = np.ones((2, 3, 59))
    model = plain_fisher("precomputed").fit(square)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(cross), model.score_samples(cross))

    table = pd.DataFrame(TARGETS, columns=[f"c{i}" for i in range(13)])
    model = plain_fisher(views={"a": ["c1", "c2"], "b": slice("c3", "c9")}).fit(table)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(again.score_samples(table), model.score_samples(table))
    assert again.views == model.views


def small(**options):
    """A fitted model in a small file."""
    return plain_fisher(**options).fit(TARGETS[:20])


def my_kernel(A, B):
    return (A @ B.T / A.shape[1] + 1.0) ** 2


@pytest.mark.parametrize(
    "options",
    [
        {"kernels": list(KERNELS), "scaling": "whiten"},
        {"kernels": [Rbf(width=2.0), Polynomial(degree=2.0, gamma=0.5)]},
        {"scaling": list(SCALINGS)},
        {"scaling": [Whiten(), Quantile()]},
        {"scaling": {"a": "standard", "b": ["none", Quantile()]}, "views": {"a": [0], "b": [1, 2]}},
        {"scaling": WhitenRaw(), "decision": "sum"},
    ],
)
def test_kernels_and_scalings_come_back_as_objects_and_names(options, tmp_path):
    X = TARGETS.copy()
    X[:, 2] = 5.0  # a value off it is evidence
    model = plain_fisher(**options).fit(X)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    new = np.vstack([TARGETS[:5], X[:5] + 3.0])
    np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))
    assert repr(again.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(clone(again).fit(X).score_samples(new), model.score_samples(new))
    for one, other in zip(again.kernel_set_.views, model.kernel_set_.views, strict=True):
        assert vars(one.scaler).keys() == vars(other.scaler).keys()
        assert one.kernels == other.kernels


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("Standard", "scale_", -1.0, r"scale_ holds values outside 4\.9"),
        ("Whiten", "directions_", 9.0, "directions_ holds values outside -2 to 2"),
        ("Standard", "constant_", None, "Standard lacks constant_"),
        ("Rbf", "width", None, "no width"),
        ("Polynomial", "gamma", None, "no gamma"),
    ],
)
def test_kernels_and_scalings_in_files_are_checked(name, field, value, message, tmp_path):
    scaling = name.lower() if name.lower() in SCALINGS else "none"
    model = plain_fisher(kernels=["rbf", "polynomial"], scaling=scaling).fit(TARGETS / 100)
    save(model, tmp_path / "model")
    _, tree, tensors = fuzz_files.unpack((tmp_path / "model").read_bytes())
    node = found(tree, name)[0]
    if value is None:
        node.pop(field)
    else:
        at = node[field]["tensor"]
        tensors[at] = np.full_like(tensors[at], value)
    (tmp_path / "bad").write_bytes(fuzz_files.pack(json.dumps(tree), tensors))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "bad")


def test_what_cannot_be_imported_is_refused_by_its_place(tmp_path):
    model = plain_fisher(kernels=["rbf", lambda A, B: my_kernel(A, B)]).fit(TARGETS)
    with pytest.raises(TypeError, match=r"model\.parameters\.\d+\.1: cannot be stored: <function"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="RandomState"):
        save(small(random_state=np.random.RandomState(0)), tmp_path / "model")


def test_only_our_estimators(tmp_path):
    class MultiKernelFisherNull:  # same name, another class
        pass

    for model in (MultiKernelFisherNull(), object(), kernull.LpBall(2)):
        with pytest.raises(TypeError, match="model: got"):
            save(model, tmp_path / "model")


def test_the_header_can_be_read_without_us(tmp_path):
    from safetensors import safe_open

    model = plain_fisher(views=VIEWS).fit(TARGETS)
    save(model, tmp_path / "model", note="line 3, before the repair")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        metadata = file.metadata()
    assert metadata["kernull-format"] == "4"
    assert len(metadata["sha256"]) == 64
    about = metadata["kernull-about"]
    assert json.loads(about) == read_about(tmp_path / "model")
    for word in (
        "MultiKernelFisherNull",
        "phenols",
        "scikit-learn",
        kernull.__version__,
        "line 3, before",
    ):
        assert word in about


# -- bad files -----------------------------------------------------------------------------------


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    missing = tmp_path / "no folder" / "model"
    with pytest.raises(FileNotFoundError) as caught:
        save(small(), missing)
    assert caught.value.filename == str(missing)  # what was asked for, not a temporary name


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"abc", "not written by kernull.save"),
        (b"a,b\n1,2\n3,4\n" * 20, "not written by kernull.save"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not written by kernull.save"),
        ((500).to_bytes(8, "little") + b'{"__metadata__":', "it is cut short"),
    ],
)
def test_files_of_another_kind_are_named_so(tmp_path, content, message):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model")


def test_newer_formats_say_why_not(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(fuzz_files.pack("{}", {}, version="5"))
    with pytest.raises(ModelFileError, match=r"format version 5.*newer kernull"):
        load(path)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_older_formats_say_who_wrote_them_and_what_to_do(tmp_path, version):
    path = tmp_path / "model"
    path.write_bytes(fuzz_files.pack("{}", {}, version=version))
    with pytest.raises(ModelFileError, match=rf"before 0\.3\.0 .*version {version}.*fit the model"):
        load(path)


def test_size_limit(tmp_path):
    path = tmp_path / "model"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)  # sparse
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match="above the limit"):
        load(path)
    assert time.perf_counter() - start < 1.0
    save(small(), path)
    with pytest.raises(ModelFileError, match="max_bytes"):
        load(path, max_bytes=100)


def test_damage_is_found(tmp_path):
    path = tmp_path / "model"
    save(plain_fisher().fit(TARGETS), path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1  # one bit of an array
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"hash is wrong.*take another copy"):
        load(path)


@pytest.mark.parametrize(
    ("was", "now"),
    [(b'{"', b"{x"), (b"meta", b"met\xff"), (b"shape", b"shapf"), (b"offs", b"offt")],
)
def test_damage_of_the_header_is_told_in_plain_words(tmp_path, was, now):
    path = tmp_path / "model"
    save(plain_fisher().fit(TARGETS), path)
    path.write_bytes(path.read_bytes().replace(was, now, 1))
    with pytest.raises(ModelFileError, match=r"is not a model file, or is damaged: .* again"):
        load(path)


def test_other_safetensors_files_and_pickles(tmp_path):
    import pickle

    from safetensors.numpy import save_file

    save_file({"0": np.zeros(3)}, tmp_path / "a")
    (tmp_path / "b").write_bytes(pickle.dumps(plain_fisher()))
    (tmp_path / "c").write_bytes(b"")
    for name, tree in {
        "d": [1, 2],
        "e": {"estimator": {"$": "KernelSet", "views": [], "kernel_names": []}},
        "f": {"estimator": {"$": "os.system"}},
    }.items():
        (tmp_path / name).write_bytes(to_bytes(json.dumps(tree), {}))
    for name in "abcdef":
        with pytest.raises(ModelFileError):
            load(tmp_path / name)


@pytest.mark.parametrize("name", ["score_samples", "__class__", "fit", "a b"])
def test_a_file_cannot_shadow_methods(name, tmp_path):
    save(small(), tmp_path / "model")
    for place in ("parameters", "attributes"):
        _, tree, tensors = fuzz_files.unpack((tmp_path / "model").read_bytes())
        node = tree["estimator"]
        (node["parameters"]["items"] if place == "parameters" else node)[name] = 1
        (tmp_path / "bad").write_bytes(fuzz_files.pack(json.dumps(tree), tensors))
        with pytest.raises(ModelFileError, match=r"does not have|has no field"):
            load(tmp_path / "bad")


@pytest.fixture(scope="module")
def originals():
    return fuzz_files.samples()


@given(seed=st.integers(0, 2**32 - 1), maker=st.sampled_from([0, 1, 2]), which=st.integers(0, 10))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_fuzzed_files_load_or_say_so(originals, tmp_path, seed, maker, which):
    """150 of what ``python -m benchmarks.fuzz`` does for minutes."""
    makers = (fuzz_files.mutate_bytes, fuzz_files.oversize, fuzz_files.mutate_values)
    with np.errstate(all="ignore"):
        data = makers[maker](originals[which], np.random.default_rng(seed))
    path = tmp_path / "model"
    path.write_bytes(data)
    start = time.perf_counter()
    try:
        model = load(path)
    except ModelFileError:
        pass
    else:
        assert type(model).__name__ in ESTIMATORS
    assert time.perf_counter() - start < 1.0


WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
SENSIBLE = st.characters(exclude_categories=("Cs",))  # lone surrogates are not text


def come_back(value, path):
    """A value by way of a file."""
    encoder = Packer()
    tree = encoder.encode(value)
    path.write_bytes(to_bytes(json.dumps(tree), encoder.tensors))
    tree, tensors = read_file(path)
    return Unpacker(tensors).decode(tree)


plain = st.recursive(
    st.none()
    | st.booleans()
    | WHOLE
    | st.floats(allow_nan=False)
    | st.text(SENSIBLE)
    | st.builds(slice, WHOLE, st.none() | WHOLE),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(SENSIBLE), inner)
        | st.dictionaries(WHOLE, inner)
    ),
    max_leaves=20,
)


@given(plain)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_trees_come_back(tmp_path, tree):
    again = come_back(tree, tmp_path / "tree")
    assert again == tree
    assert repr(again) == repr(tree)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3)),
        np.array(5, dtype=np.int8),
        np.array([True, False]),
        np.array(["a", "bc"], dtype=object),
        np.arange(10)[::2],
        np.array([1.5, -0.0, np.nan, 1e300]),
        np.array([0.0, 255.0]),
        np.array([0.1, 0.2], dtype=np.float32),
        np.array([-1, 2**40]),
    ],
)
def test_arrays_come_back(array, tmp_path):
    again = come_back(array, tmp_path / "tree")
    np.testing.assert_array_equal(again, array, strict=True)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(again), np.signbit(array))
    if array.ndim > 1 and array.size:
        assert again.flags.f_contiguous == array.flags.f_contiguous


# -- writing whole or not at all -----------------------------------------------------------------

KILLED = """
import sys
import numpy as np, kernull
from kernull import paper
rows = np.random.default_rng(0).standard_normal((1001, 2))
model = paper.GaussianProcessOneClass().fit(rows)  # keeps a factor of a million numbers
print("ready", flush=True)
while True:
    kernull.save(model, sys.argv[1])
"""


def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model"
    save(small(), path)
    rng = np.random.default_rng(0)
    for _ in range(4):
        save(small(), path)
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        assert process.stdout.readline() == b"ready\n"
        end = time.monotonic() + 60
        while path.stat().st_size < 8_000_000 and time.monotonic() < end:
            load(path)  # looked at while it writes: never half a file
        time.sleep(float(rng.uniform(0, 0.1)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert load(path).model_.kernels.n == 1001


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(small(p=3), path)
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, lambda *args: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                save(small(p=4), path)
        assert load(path).p == 3
        assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_permissions_are_those_of_any_file(tmp_path):
    path, other = tmp_path / "model", tmp_path / "other"
    other.write_text("")
    save(small(), path)
    assert path.stat().st_mode == other.stat().st_mode
    Path(path).chmod(0o600)
    save(small(), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_skops(tmp_path):
    skops = pytest.importorskip("skops.io")
    model = plain_fisher(views=VIEWS).fit(TARGETS)
    skops.dump(model, tmp_path / "model.skops")
    names = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("kernull.") for name in names)
    again = skops.load(tmp_path / "model.skops", trusted=names)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.p_values(X), model.p_values(X))
