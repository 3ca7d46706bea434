"""ONNX graphs score as the model does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from kernull import MultiKernelFisherNull, to_onnx
from tests.plain import plain_fisher

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X, Y = load_wine(return_X_y=True)
X = X / X.std(axis=0)
TARGETS = X[Y == 0]
VIEWS = {"taste": slice(0, 6), "phenols": [8, 6, 7], "hue": [9], "look": slice(10, 13)}


def run(model, rows, dtype="float64"):
    session = runtime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString())
    score, label = session.run(["score", "label"], {"X": rows.astype(dtype)})
    assert score.shape == label.shape == (len(rows),)
    return score, label


@pytest.mark.parametrize("kernels", ["rbf", "polynomial", ["rbf", "linear", "polynomial"]])
@pytest.mark.parametrize("scaling", ["none", "standard", "whiten"])
@pytest.mark.parametrize("score_type", ["projection", "distance"])
def test_scores_and_labels_are_ours(kernels, scaling, score_type):
    model = plain_fisher(
        kernels, VIEWS, scaling=scaling, score_type=score_type, widths=[0.25, 1.0]
    ).fit(TARGETS)
    score, label = run(model, X)
    ours = model.score_samples(X)
    np.testing.assert_allclose(score, ours, rtol=0, atol=1e-5)
    np.testing.assert_allclose(score, ours, rtol=0, atol=1e-9 * max(1.0, np.abs(ours).max()))
    clear = np.abs(model.decision_function(X)) > 1e-9
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(label[clear], model.predict(X)[clear])
    if kernels == "rbf":
        assert set(label) == {-1, 1}


def test_linear_kernel_alone():
    model = plain_fisher("linear", VIEWS, scaling="none").fit(TARGETS)
    np.testing.assert_allclose(run(model, X)[0], model.score_samples(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernels", ["rbf", ["rbf", "linear", "polynomial"]])
def test_single_precision(kernels):
    model = plain_fisher(kernels, VIEWS).fit(TARGETS)
    score, label = run(model, X, "float32")
    assert score.dtype == np.float32
    np.testing.assert_allclose(score, model.score_samples(X), rtol=0, atol=1e-5)
    clear = np.abs(model.decision_function(X)) > 1e-4
    np.testing.assert_array_equal(label[clear], model.predict(X)[clear])


def test_split_threshold_and_weights_of_zero():
    model = plain_fisher(
        views="features",
        p=1.0,
        delta=0.1,
        solver="frank-wolfe",
        calibration="split",
        calibration_fraction=20,
    ).fit(TARGETS)
    assert (model.weights_ == 0).any()
    score, label = run(model, X)
    np.testing.assert_allclose(score, model.score_samples(X), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(label, np.where(score >= model.threshold_, 1, -1))


def my_kernel(A, B):
    return (A @ B.T / A.shape[1] + 1.0) ** 2


@pytest.mark.parametrize(
    ("kernels", "name"),
    [("laplacian", "laplacian"), ("cosine", "cosine"), (my_kernel, "my_kernel")],
)
def test_unsupported_kernels_say_so_by_name(kernels, name):
    model = plain_fisher(kernels).fit(TARGETS)
    with pytest.raises(ValueError, match=f"kernel '{name}' has no ONNX graph"):
        to_onnx(model)


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
def test_what_else_is_refused():
    with pytest.raises(ValueError, match="precomputed"):
        to_onnx(plain_fisher("precomputed").fit(np.eye(5)[None] + 1))
    with pytest.raises(TypeError, match="object has no ONNX graph"):
        to_onnx(object())
    with pytest.raises(ValueError, match="dtype: got 'int8'"):
        to_onnx(plain_fisher().fit(TARGETS), dtype="int8")


def test_ranks_are_refused_by_name():
    model = MultiKernelFisherNull(decision="sum", scaling=("standard", "quantile")).fit(TARGETS)
    with pytest.raises(ValueError, match="scaling='quantile', which 'auto' includes, has no ONNX"):
        to_onnx(model)
