"""Data sets of the paper and a few that come with scikit-learn.

The files of the paper's sets are looked for in :func:`data_home`; a missing one raises
:class:`DatasetNotFound`, which says where it was looked for and where to get it. The sets
whose loaders end in ``_views`` need no files.
"""

from kernull.datasets._bundled import (
    load_breast_cancer_views,
    load_digits_views,
    load_wine_views,
)
from kernull.datasets._delft import DELFT, delft_classes, load_delft
from kernull.datasets._folders import (
    ABNORMAL_CLASSES,
    AbnormalImages,
    ImageFiles,
    load_abnormal1001,
    load_caltech256,
)
from kernull.datasets._home import DatasetNotFound, data_home
from kernull.datasets._images import FlowerImage, Mnist, load_flowers17_images, load_mnist
from kernull.datasets._mfeat import load_multiple_features
from kernull.datasets._oulu import OuluProtocol, OuluVideo, load_oulu_npu, oulu_faces
from kernull.datasets._types import MultiViewData, OneClassData

__all__ = [
    "ABNORMAL_CLASSES",
    "DELFT",
    "AbnormalImages",
    "DatasetNotFound",
    "FlowerImage",
    "ImageFiles",
    "Mnist",
    "MultiViewData",
    "OneClassData",
    "OuluProtocol",
    "OuluVideo",
    "data_home",
    "delft_classes",
    "load_abnormal1001",
    "load_breast_cancer_views",
    "load_caltech256",
    "load_delft",
    "load_digits_views",
    "load_flowers17_images",
    "load_mnist",
    "load_multiple_features",
    "load_oulu_npu",
    "load_wine_views",
    "oulu_faces",
]
