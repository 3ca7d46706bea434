"""Sets that come with scikit-learn, as views."""

import numpy as np

from kernull.datasets import load_breast_cancer_views, load_digits_views, load_wine_views


class TestBundled:
    def test_wine(self):
        data = load_wine_views()
        assert sum(view.shape[1] for view in data.views.values()) == 13
        assert np.bincount(data.y).tolist() == [59, 71, 48]
        names = [name for names in data.feature_names.values() for name in names]
        assert len(set(names)) == 13
        # First wine of the set: 14.23 % alcohol, hue 1.04.
        assert data.views["body"][0, data.feature_names["body"].index("alcohol")] == 14.23
        assert data.views["colour"][0, data.feature_names["colour"].index("hue")] == 1.04

    def test_breast_cancer(self):
        data = load_breast_cancer_views()
        assert {view: x.shape for view, x in data.views.items()} == dict.fromkeys(
            ("mean", "error", "worst"), (569, 10)
        )
        for view, names in data.feature_names.items():
            assert all(view in name for name in names)
        # Ten properties, the same in each view.
        assert (data.views["worst"] >= data.views["mean"]).mean() > 0.99
        assert np.bincount(data.y).tolist() == [212, 357]
        assert np.count_nonzero(data.one_class(0) == 1) == 212

    def test_digits(self):
        data = load_digits_views()
        images = data.views["pixels"].reshape(-1, 8, 8)
        profiles = data.views["profiles"]
        total = images.sum(axis=(1, 2))
        np.testing.assert_allclose(profiles[:, :8].sum(axis=1), total)
        np.testing.assert_allclose(profiles[:, 8:].sum(axis=1), total)
        # The zero frequency is the sum of the image, and cyclic shifts change no magnitude.
        np.testing.assert_allclose(data.views["fourier"][:, 0], total)
        shifted = np.abs(np.fft.fft2(np.roll(images[:5], (1, 2), axis=(1, 2))))[:, :, :5]
        np.testing.assert_allclose(data.views["fourier"][:5], shifted.reshape(5, -1), atol=1e-9)
        assert len(data.y) == 1797
        assert set(data.y) == set(range(10))
        for view, names in data.feature_names.items():
            assert len(set(names)) == data.views[view].shape[1]
