"""torchvision and timm: stand-ins with their interfaces, built on the real torch."""

from __future__ import annotations

import enum
import sys
import types

import numpy as np
import pytest

from kernull.errors import MissingDependencyError, MissingWeightsError
from kernull.views.images import BackboneFeatures, ImageViews
from kernull.views.images import torch_backbones as ours
from tests.needs import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = pytest.mark.torch
nn = torch.nn


class Residual(nn.Module):
    """Like ResNet: maps, a mean, `fc`."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.fc = nn.Linear(6, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean(dim=(2, 3)))


class Plain(nn.Module):
    """Like VGG: a classifier of several linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(16, 7), nn.ReLU(), nn.Dropout(), nn.Linear(7, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class Squeezed(nn.Module):
    """Like SqueezeNet: no linear layer at all."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3)
        self.classifier = nn.Conv2d(8, 10, 1)

    def forward(self, x):
        return self.classifier(self.features(x)).mean(dim=(2, 3))


ARCHITECTURES = {"residual": Residual, "plain": Plain, "squeezed": Squeezed}


def build(name, seed=0):
    torch.manual_seed(seed)
    return ARCHITECTURES[name]()


class Interpolation(enum.Enum):
    BILINEAR = "bilinear"


def transforms():
    return types.SimpleNamespace(
        crop_size=[12],
        resize_size=[16],
        mean=[0.485, 0.456, 0.406],
        std=[0.229, 0.224, 0.225],
        interpolation=Interpolation.BILINEAR,
    )


class Weights(enum.Enum):
    V1 = 1
    V2 = 2
    DEFAULT = 2  # noqa: PIE796 - an alias, as in torchvision

    def transforms(self):
        return transforms()


@pytest.fixture
def torchvision(monkeypatch):
    models = types.SimpleNamespace(
        list_models=lambda module: sorted(ARCHITECTURES),
        get_model_weights=lambda name: Weights,
        get_model=lambda name, weights: build(name, weights.value),
    )
    package = types.ModuleType("torchvision")
    package.models, package.__version__ = models, "0.0"
    monkeypatch.setitem(sys.modules, "torchvision", package)
    ours.load_torch.cache_clear()
    yield package
    ours.load_torch.cache_clear()


@pytest.fixture
def timm(monkeypatch):
    def create_model(name, pretrained, num_classes):
        assert pretrained
        assert num_classes == 0
        model = build("residual")
        model.fc = nn.Identity()
        return model

    wanted = {
        "input_size": (3, 12, 12),
        "interpolation": "bicubic",
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "crop_pct": 0.911,
        "crop_mode": "center",
    }
    package = types.ModuleType("timm")
    package.__version__ = "0.0"
    package.list_models = lambda: ["nasnetalarge", "resnet50"]
    package.create_model = create_model
    package.data = types.SimpleNamespace(resolve_model_data_config=lambda model: wanted)
    monkeypatch.setitem(sys.modules, "timm", package)
    ours.load_torch.cache_clear()
    yield package
    ours.load_torch.cache_clear()


def prepared(image):
    """torchvision's transform, written out: shorter side to 16, centre of 12, normalised."""
    from PIL import Image

    height, width = image.shape[:2]
    short = min(height, width)
    size = (int(16 * width / short), int(16 * height / short))
    small = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))
    top, left = round((small.shape[0] - 12) / 2), round((small.shape[1] - 12) / 2)
    small = small[top : top + 12, left : left + 12] / 255.0
    return torch.tensor(
        ((small - transforms().mean) / transforms().std).transpose(2, 0, 1)[None]
    ).float()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_features_are_what_the_last_linear_layer_is_fed(torchvision, pictures, name):
    found = BackboneFeatures(f"torchvision:{name}").transform(pictures)
    model = build(name, 2).eval()
    for image, row in zip(pictures, found, strict=True):
        x = prepared(image)
        with torch.no_grad():
            if name == "residual":
                expected = torch.relu(model.conv(x)).mean(dim=(2, 3))
            elif name == "plain":
                flat = torch.flatten(model.features(x), 1)
                expected = torch.relu(model.classifier[0](flat))
            else:
                expected = model.features(x).mean(dim=(2, 3))
        np.testing.assert_allclose(row, expected[0].numpy(), rtol=1e-4, atol=1e-5)


def test_weights_are_chosen_in_the_name(torchvision, pictures):
    first = BackboneFeatures("torchvision:residual:V1").transform(pictures)
    second = BackboneFeatures("torchvision:residual:V2").transform(pictures)
    default = BackboneFeatures("torchvision:residual").transform(pictures)
    assert (first != second).any()
    np.testing.assert_array_equal(second, default)
    with pytest.raises(ValueError, match=r"no weights 'V3'.*V1"):
        BackboneFeatures("torchvision:residual:V3").transform(pictures)


def test_timm(timm, pictures):
    extract = BackboneFeatures("timm:nasnetalarge")
    assert extract.transform(pictures).shape == (12, 6)
    described = ours.load_torch("timm", "nasnetalarge", "auto").preprocessing
    assert described.size == (12, 12)
    assert described.shorter == 13  # floor(12 / 0.911)
    assert described.interpolation == "bicubic"
    assert BackboneFeatures("timm:resnet50.a1_in1k").transform(pictures).shape == (12, 6)


def test_the_cache_knows_other_weights(torchvision, pictures, tmp_path, monkeypatch):
    extract = BackboneFeatures("torchvision:residual", cache=tmp_path)
    before = extract.transform(pictures)
    monkeypatch.setattr(torchvision.models, "get_model", lambda name, weights: build(name, 9))
    ours.load_torch.cache_clear()
    after = extract.transform(pictures)
    assert (before != after).any()
    changed = BackboneFeatures(
        "torchvision:residual", cache=tmp_path, preprocessing={"interpolation": "bicubic"}
    )
    assert (changed.transform(pictures) != after).any()
    np.testing.assert_array_equal(extract.transform(pictures), after)  # not changed for all


def test_libraries_and_files_side_by_side(torchvision, networks, pictures):
    images = ImageViews(["tiny", "torchvision:plain"], weights=networks)
    assert images.views_ == {"tiny": slice(0, 5), "plain": slice(5, 12)}
    assert images.transform(pictures).shape == (12, 12)


def test_unknown_names(torchvision, timm, pictures):
    with pytest.raises(ValueError, match=r"no network 'residul'; did you mean 'residual'"):
        BackboneFeatures("torchvision:residul").transform(pictures)
    with pytest.raises(ValueError, match=r"timm has no network 'nasnet_large'; did you mean"):
        BackboneFeatures("timm:nasnet_large").transform(pictures)


def test_no_network_to_download_from(torchvision, pictures, monkeypatch):
    def fail(name, weights):
        raise OSError("no route to host")

    monkeypatch.setattr(torchvision.models, "get_model", fail)
    with pytest.raises(MissingWeightsError, match=r"no route to host.*TORCH_HOME"):
        BackboneFeatures("torchvision:residual").transform(pictures)


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_a_library_that_is_not_installed(pictures, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    ours.load_torch.cache_clear()
    with pytest.raises(MissingDependencyError, match=f"pip install {library}"):
        BackboneFeatures(f"{library}:resnet50").transform(pictures)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(torchvision, networks, pictures):
    for backbone in ("torchvision:residual", networks / "tiny.onnx"):
        with pytest.raises(MissingDependencyError, match="device: got 'cuda'"):
            BackboneFeatures(backbone, device="cuda").transform(pictures)
