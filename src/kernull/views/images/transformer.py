"""Transformers from images to features: one network, or several as the views of one table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from kernull.errors import BadImageError, BadImageWarning
from kernull.views.images.backbones import Backbone, backbone_name, load_backbone, n_threads
from kernull.views.images.extraction import digest_all, extract, progress_bar
from kernull.views.images.preprocessing import resolve_region
from kernull.views.images.reading import Image, list_images

Features = NDArray[np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class _ImageTransformer(TransformerMixin, BaseEstimator):
    """What both transformers share: they learn nothing, and take anything that holds images."""

    weights: str | os.PathLike[str] | None = None
    batch_size: int = 32
    device: str = "auto"
    cache: str | os.PathLike[str] | None = None
    on_error: str = "raise"
    preprocessing: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: the networks are trained already."""
        return self

    def _check(self) -> None:
        if self.on_error not in ("raise", "nan"):
            raise ValueError(f"on_error: got {self.on_error!r}; expected 'raise' or 'nan'.")
        if not isinstance(self.batch_size, int | np.integer) or self.batch_size < 1:
            raise ValueError(f"batch_size: got {self.batch_size!r}; expected a positive integer.")
        if self.preprocessing is not None and not isinstance(self.preprocessing, Mapping):
            raise ValueError(
                f"preprocessing: got {self.preprocessing!r}; expected a mapping, such as "
                "{'resize': 'crop'}."
            )
        if self.cache is not None and not isinstance(self.cache, str | os.PathLike):
            raise ValueError(f"cache: got {self.cache!r}; expected None or the path of a folder.")

    def transform(self, X: Any) -> Features:
        """Features of images, of shape (n, d); those of several networks side by side.

        X has images of shape (n, H, W) or (n, H, W, C), as uint8, uint16 or floats from 0 to 1; or
        is a sequence of paths, arrays or Pillow images; or a folder, whose images are taken in the
        order of :func:`image_paths`. With ``on_error="raise"``, images that cannot be read are a
        `BadImageError` after all others are done.
        """
        self._check()
        images, threads = list_images(X), n_threads(self.n_jobs)
        bad = digest_all(images, threads)
        blocks = []
        for name, backbone, region in self._parts():
            box, options = resolve_region(region), (self.batch_size, self.cache, threads)
            with progress_bar(self.verbose, name, len(images)) as progress:
                blocks.append(extract(images, backbone, box, *options, bad, progress))
        table = np.hstack(blocks)
        if bad:
            table[list(bad)] = np.nan
            self._complain(images, bad, table)
        return table

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features: the network's or the view's, and a number."""
        counts = [(name, backbone.n_features) for name, backbone, _ in self._parts()]
        return np.array([f"{name}_{i}" for name, n in counts for i in range(n)], dtype=object)

    def _parts(self) -> list[tuple[str, Backbone, Any]]:
        """Name, network and region of each view."""
        raise NotImplementedError

    def _load(self, backbone: Any) -> Backbone:
        options = (self.weights, self.device, self.n_jobs, self.preprocessing)
        return load_backbone(backbone, *options)

    def _complain(self, images: Sequence[Image], bad: dict[int, str], table: Features) -> None:
        named = {images[i].name: bad[i] for i in sorted(bad)}
        listed = "; ".join(f"{name}: {reason}" for name, reason in named.items())
        message = f"X: {len(bad)} of {len(images)} images cannot be read: {listed}."
        if self.on_error == "nan":
            warnings.warn(f"{message} Their rows are NaN.", BadImageWarning, stacklevel=4)
            return
        kept = "in the cache" if self.cache is not None else "in this error's `features`"
        raise BadImageError(
            f"{message} Mend or remove them, or pass on_error='nan'. The features of the others "
            f"are {kept}.",
            named,
            table,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that images come in, and that nothing is learned."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        return tags


@dataclass(eq=False, repr=False)
class BackboneFeatures(_ImageTransformer):
    r"""Features of images by a pretrained network.

    .. math:: x \mapsto \phi(\mathrm{prepare}(\mathrm{region}(x))) \in \mathbb{R}^d

    Parameters
    ----------
    backbone : str or path-like, default "mobilenet_v2"
        The network: a name (the file ``<name>.onnx`` in the folder ``weights``), the path of an
        ``.onnx`` file, ``"torchvision:<name>"`` or ``"timm:<name>"``. How an ONNX file wants its
        images is described beside it, in ``<file>.json``; see :class:`Preprocessing`. Networks of
        the two libraries come with weights and transforms of their own; which weights can be
        said, as in ``"torchvision:resnet50:IMAGENET1K_V1"`` and ``"timm:resnet50.a1_in1k"``.
    weights : path-like, optional
        Folder of the ONNX files; by default the environment variable ``KERNULL_WEIGHTS``.
    region : None, str or (left, top, right, bottom)
        Part of each image to look at: a name from ``REGIONS``, or a box in fractions of width
        and height. None is all of it.
    batch_size : int, default 32
        Images that go through the network, and into the cache, at once.
    device : {"auto", "cpu", "cuda", "cuda:<n>"}
        Where the network runs; "auto" takes a GPU where the installed runtime has one.
    cache : path-like, optional
        Folder in which features are kept, by the content of image, weights, preprocessing and
        region. What is there is not computed again; each batch is kept as it is done.
    on_error : {"raise", "nan"}
        What becomes of images that cannot be read, when all others are done: an error that names
        them, or rows of NaN with a warning.
    preprocessing : mapping, optional
        Entries of the network's preprocessing to replace, such as ``{"resize": "crop"}``.
    n_jobs : int, optional
        Threads that read images and run ONNX networks; None and -1 mean all cores.
    verbose : int, default 0
        Whether to show progress.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull.views.images import BackboneFeatures
    >>> images = np.zeros((2, 28, 28), dtype=np.uint8)
    >>> BackboneFeatures("mobilenet_v2").transform(images).shape  # doctest: +SKIP
    (2, 1280)
    """

    backbone: str | os.PathLike[str] = "mobilenet_v2"
    region: Any = field(default=None, kw_only=True)

    def _parts(self) -> list[tuple[str, Backbone, Any]]:
        network = self._load(self.backbone)  # which judges the name
        return [(backbone_name(self.backbone), network, self.region)]


@dataclass(eq=False, repr=False)
class ImageViews(_ImageTransformer):
    """Several networks, or several regions, as the views of one table.

    One view for each pair of a network and a region. The views go into any estimator:
    ``MultiKernelFisherNull(views=images.views_)``.

    Parameters
    ----------
    backbones : str, path-like, or sequence of them
        The networks; see :class:`BackboneFeatures`.
    regions : sequence of regions, or mapping of name -> region, optional
        Regions of each image; see :class:`BackboneFeatures`. By default the whole image.
    weights, batch_size, device, cache, on_error, preprocessing, n_jobs, verbose
        Those of every network; see :class:`BackboneFeatures`.

    Attributes
    ----------
    views_ : dict of str -> slice
        Columns of each view. Known without fitting, so that a pipeline can be built from it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kernull import ImageViews, MultiKernelFisherNull
    >>> images = ImageViews(["alexnet", "mobilenet_v2"], cache="features")
    >>> model = make_pipeline(
    ...     images, MultiKernelFisherNull(views=images.views_, scaling="none")
    ... )  # doctest: +SKIP
    >>> model.fit("photographs")  # doctest: +SKIP
    """

    backbones: Any = ("mobilenet_v2",)
    regions: Any = None

    @property
    def views_(self) -> dict[str, slice]:
        """Columns of each view."""
        views, start = {}, 0
        for name, backbone, _ in self._parts():
            views[name] = slice(start, start + backbone.n_features)
            start += backbone.n_features
        return views

    def _parts(self) -> list[tuple[str, Backbone, Any]]:
        one = isinstance(self.backbones, str | os.PathLike)
        backbones = [self.backbones] if one else list(self.backbones)
        if not backbones:
            raise ValueError("backbones: got none; expected at least one network.")
        regions = _named_regions(self.regions)
        parts: list[tuple[str, Backbone, Any]] = []
        for backbone in backbones:
            network = self._load(backbone)
            for label, region in regions.items():
                name = backbone_name(backbone) + (f"/{label}" if label else "")
                if any(name == other for other, _, _ in parts):
                    raise ValueError(f"backbones: the view {name!r} is there twice.")
                parts.append((name, network, region))
        return parts


def _named_regions(regions: Any) -> dict[str, Any]:
    if regions is None:
        return {"": None}
    if isinstance(regions, Mapping):
        named = {str(name): region for name, region in regions.items()}
    else:
        listed = enumerate([regions] if isinstance(regions, str) else regions)
        named = {r if isinstance(r, str) else f"region{i}": r for i, r in listed}
    if not named:
        raise ValueError("regions: got none; expected None or at least one region.")
    for region in named.values():
        resolve_region(region)
    return named
