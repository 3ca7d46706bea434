"""Images as views: features by pretrained networks, and embeddings that are there already."""

from kernull.views.images.embeddings import EmbeddingViews, load_embeddings
from kernull.views.images.preprocessing import FACE_REGIONS, REGIONS, Preprocessing
from kernull.views.images.reading import image_paths
from kernull.views.images.transformer import BackboneFeatures, ImageViews

__all__ = [
    "FACE_REGIONS",
    "REGIONS",
    "BackboneFeatures",
    "EmbeddingViews",
    "ImageViews",
    "Preprocessing",
    "image_paths",
    "load_embeddings",
]
